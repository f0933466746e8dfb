"""An n-gram model of all available text, and bits per word on a held-out tenth.

    python benchmarks/held_out_text.py [--text FILE...] [--order 5] [--smoothing mkn] [--threads 2]

Every tenth document of each file is held out (a blank line ends a document); the rest is trained
on. Prints sizes, seconds, peak memory, and bits per word with and without the
ends of sentences.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

from treelm.corpus.corpus import TextCorpus
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.train import train_ngram
from treelm.models.run import Run

DEFAULT_TEXT = sorted((Path(__file__).resolve().parents[2] / "shared/data/text").glob("*.txt.xz"))
EVERY = 10


def split(files: list[Path], folder: Path) -> tuple[Path, Path]:
    """Write every tenth document of every file to one file, the others to another."""
    train, held_out = folder / "train.txt", folder / "held-out.txt"
    with train.open("w", encoding="utf-8") as kept, held_out.open("w", encoding="utf-8") as rest:
        for file in files:
            last = -1
            for document, words in TextCorpus((file,)).with_documents():
                target = rest if document % EVERY == EVERY - 1 else kept
                if document != last:
                    target.write("\n")
                    last = document
                target.write(" ".join(words) + "\n")
    return train, held_out


def main() -> None:
    """Split, train, evaluate and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--text", type=Path, nargs="+", default=DEFAULT_TEXT)
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--smoothing", default="mkn")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        train, held_out = split(arguments.text, Path(folder))
        start = time.perf_counter()
        config = NgramConfig(order=arguments.order, smoothing=arguments.smoothing)
        model = train_ngram(TextCorpus((train,)), config, run=Run(threads=arguments.threads))
        trained = time.perf_counter()
        model.save(Path(folder) / "model")
        saved = time.perf_counter()
        found = model.perplexity(TextCorpus((held_out,)), threads=arguments.threads)
        print(
            json.dumps(
                {
                    "train_tokens": model.corpora[0].tokens,
                    "train_seconds": round(trained - start, 1),
                    "save_seconds": round(saved - trained, 1),
                    "evaluate_seconds": round(time.perf_counter() - saved, 1),
                    "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
                    "model_megabytes": model.table.bytes // 1_000_000,
                    "words": len(model.vocabulary),
                    "held_out": found.to_record(),
                },
                indent=1,
            )
        )


if __name__ == "__main__":
    main()
