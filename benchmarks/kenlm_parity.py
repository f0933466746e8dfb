"""The same numbers as KenLM: one text, one order, two programs, every n-gram compared.

    python benchmarks/kenlm_parity.py --lmplz PATH [--text FILE] [--order 5]

Trains with KenLM's ``lmplz`` and with treelm, then compares the results n-gram by n-gram:
vocabulary, log10 probability and back-off weight of every n-gram; and the perplexity of the text
under treelm's own model, under KenLM's ARPA file, and under treelm's ARPA file read again. Exits
with 1 if a number differs by more than 1e-4 or a perplexity in its first five digits.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.encoder import encode_text
from treelm.corpus.files import read_lines
from treelm.models.ngram.arpa import read_arpa, write_arpa
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.model import NgramModel
from treelm.models.ngram.train import train_ngram

DEFAULT_TEXT = Path(__file__).resolve().parents[2] / "shared" / "data" / "text" / "reuters.txt.xz"
LARGEST_DIFFERENCE = 1e-4


def run_lmplz(lmplz: Path, text: Path, order: int, arpa: Path) -> float:
    """Train with KenLM and return the seconds it took; blank lines end documents, as in treelm."""
    plain = arpa.with_suffix(".txt")
    with plain.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in read_lines(text) if line.strip())
    start = time.perf_counter()
    with plain.open("rb") as source, arpa.open("wb") as target:
        subprocess.run(
            [lmplz, "-o", str(order), "--discount_fallback", "-T", str(arpa.parent)],
            stdin=source,
            stdout=target,
            stderr=subprocess.DEVNULL,
            check=True,
        )
    return time.perf_counter() - start


def compare(ours: NgramModel, theirs: NgramModel) -> float:
    """Print the largest differences by order and return the largest of all."""
    same = set(ours.vocabulary.symbols) == set(theirs.vocabulary.symbols)
    print(f"same vocabulary: {'yes' if same else 'NO'} ({len(ours.vocabulary)} words)")
    if not same:
        return math.inf
    order, words = ours.config.order, len(ours.vocabulary)
    to_theirs = np.append(
        theirs.vocabulary.ids_of(list(ours.vocabulary.symbols)), [words, words + 1]
    ).astype(np.uint32)
    worst = 0.0
    for level in range(order - 1, -1, -1):
        rows, probability, weight = ours.table.rows(level)
        found, _, _ = theirs.table.rows(level)
        length = rows.shape[1]
        whole = np.zeros((len(rows), order), dtype=np.uint32)
        whole[:, :length] = to_theirs[rows]
        log_p = theirs.table.log_probabilities(whole, level=level) / math.log(10)
        difference = np.abs(log_p - np.log10(probability)).max()
        weights = 0.0
        if length < order:
            theirs_weight = theirs.table.backoff_weights(whole[:, :-1], level=level - 1)
            weights = float(np.abs(np.log10(theirs_weight) - np.log10(np.abs(weight))).max())
        # KenLM lists <s> as a word of probability one; in treelm it is never predicted.
        extra = len(found) - len(rows)
        print(
            f"{length}-grams: {len(rows)}, as many in both: {'yes' if extra in (0, 1) else 'NO'}; "
            f"largest difference of log10 p {difference:.2e}, of log10 weight {weights:.2e}"
        )
        worst = max(worst, float(difference), weights, 0.0 if extra in (0, 1) else math.inf)
    return worst


def perplexity(model: NgramModel, text: Path) -> float:
    """Return the perplexity of a text, ends of sentences included."""
    encoded = encode_text(text, model.vocabulary)
    scores: npt.NDArray[np.float64] = model.score_ids(encoded.ids, encoded.starts).log_probs
    return math.exp(-float(scores.mean()))


def main() -> None:
    """Train both, compare, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lmplz", type=Path, required=True)
    parser.add_argument("--text", type=Path, default=DEFAULT_TEXT)
    parser.add_argument("--order", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        arpa = Path(folder) / "kenlm.arpa"
        kenlm_seconds = run_lmplz(arguments.lmplz, arguments.text, arguments.order, arpa)
        start = time.perf_counter()
        config = NgramConfig(order=arguments.order, smoothing="mkn", lmplz=True)
        ours = train_ngram(TextCorpus((arguments.text,)), config)
        print(f"trained: lmplz {kenlm_seconds:.1f} s, treelm {time.perf_counter() - start:.1f} s")
        theirs = read_arpa(arpa)
        write_arpa(ours, Path(folder) / "ours.arpa.gz")
        again = read_arpa(Path(folder) / "ours.arpa.gz")
        worst = compare(ours, theirs)
        found = [perplexity(model, arguments.text) for model in (ours, theirs, again)]
    print("perplexity of the text: treelm {}, KenLM's ARPA {}, our ARPA {}".format(*found))
    digits = {f"{value:.5g}" for value in found}
    if worst > LARGEST_DIFFERENCE or len(digits) > 1:
        sys.exit("NOT the same")
    print(f"the same: largest difference {worst:.2e}")


if __name__ == "__main__":
    main()
