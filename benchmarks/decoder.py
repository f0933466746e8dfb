"""The decoder: time of a sentence by its length, with and without an HHMM.

    python benchmarks/decoder.py [--data FOLDER] [--hhmm MODEL] [--sentences N] [--join N]

The folder has a phrase table, an ARPA file, weights and a development set, as Moses leaves them.
Prints processor time on one core, which a shared machine makes longer, and how it grows with the
length. Long sources are made by joining sentences.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from treelm.models.interface.model import LanguageModel
from treelm.models.ngram.arpa import read_arpa
from treelm.models.registry import load
from treelm.translation.decoder import Decoder, DecoderConfig, Translation
from treelm.translation.phrase_table import PhraseTable
from treelm.translation.weights import Weights

DATA = Path(__file__).resolve().parents[2] / "shared/data/mt/multi30k"
#: Upper ends of the lengths that are measured together, ten words each.
BINS = (10, 20, 30, 40)
#: Weight of the HHMM; the others are those of the file.
HHMM_WEIGHT = 0.05

Source = list[str]


def by_length(source: Sequence[str], most: int, joined: int) -> dict[int, list[Source]]:
    """Return sentences by the upper end of their lengths, short ones joined into long ones."""
    words = [line.split() for line in source]
    for several in range(2, joined + 1):
        pieces = (words[i : i + several] for i in range(0, len(source), several))
        words += [[word for line in piece for word in line] for piece in pieces]
    found: dict[int, list[Source]] = {end: [] for end in BINS}
    for each in words:
        end = -(-len(each) // 10) * 10
        if end in found and len(found[end]) < most:
            found[end].append(each)
    return found


def measure(decoder: Decoder, sentences: Sequence[Source]) -> tuple[float, list[Translation]]:
    """Return processor seconds per sentence, after one to warm up, and the translations."""
    list(decoder.translate(sentences[:1]))
    start = time.process_time()
    found = list(decoder.translate(sentences))
    return (time.process_time() - start) / len(sentences), found


def settings(hhmm: LanguageModel | None) -> list[tuple[str, LanguageModel | None, DecoderConfig]]:
    """Return what is compared: a name, the second model, and the search."""
    stack = DecoderConfig(distortion_limit=6)
    rows: list[tuple[str, LanguageModel | None, DecoderConfig]] = [
        ("n-gram, stack", None, stack),
        ("n-gram, cube", None, DecoderConfig(distortion_limit=6, search="cube")),
    ]
    for beam, pops in ((50, 100), (2000, 20)) if hhmm is not None else ():
        config = DecoderConfig(
            distortion_limit=6, search="cube", pop_limit=pops, min_pops_per_coverage=0
        )
        assert hhmm is not None
        model = hhmm.with_search(beam_width=beam)
        rows.append((f"+ HHMM {beam}, cube, {pops} pops", model, config))
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--hhmm", type=Path)
    parser.add_argument("--sentences", type=int, default=50, help="of each length")
    parser.add_argument("--join", type=int, default=4, help="sentences joined at most")
    options = parser.parse_args()
    began = time.perf_counter()
    table = PhraseTable.read(options.data / "phrase-table.gz")
    print(f"{len(table)} pairs of phrases read in {time.perf_counter() - began:.2f} s")
    ngram = read_arpa(options.data / "lm5.arpa.gz")
    weights = Weights.read(options.data / "weights.ini")
    text = (options.data / "val.de").read_text("utf-8").splitlines()
    bins = {
        end: some for end, some in by_length(text, options.sentences, options.join).items() if some
    }
    hhmm = None if options.hhmm is None else load(options.hhmm)
    for name, second, config in settings(hhmm):
        models = [ngram] if second is None else [ngram, second]
        own = weights if second is None else weights.replaced({"LM1": (HHMM_WEIGHT,)})
        decoder = Decoder(table, models, own, config)
        lengths, times = [], []
        print(f"\n{name}")
        for end, sentences in bins.items():
            each, found = measure(decoder, sentences)
            lengths.append(float(np.mean([len(words) for words in sentences])))
            times.append(each)
            reads = sum(one.counts.model_reads for one in found) / len(found)
            score = sum(one.score or 0 for one in found) / len(found)
            print(
                f"  {end - 9:2} to {end:2} words: {1000 * each:8.1f} ms/sentence, "
                f"{1 / each:7.1f} sentences/s, {reads:9.0f} phrases read, mean score {score:.3f} "
                f"({len(sentences)} sentences)"
            )
        if len(times) > 2:
            fitted = np.polyval(np.polyfit(lengths, times, 1), lengths)
            spread = float(np.sum((np.array(times) - np.mean(times)) ** 2))
            left = float(np.sum((np.array(times) - fitted) ** 2))
            print(f"  r^2 of a line over the length: {1 - left / spread:.3f}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"\npeak memory {peak / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
