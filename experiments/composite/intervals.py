"""Uncertainty of the reductions of perplexity: intervals from resampled documents.

    python experiments/composite/intervals.py --work FOLDER [--trees TREES] SCORES.npz...

Reads log probabilities that topics.py or, with `--trees`, syntax.py wrote, and compares
every model with the first, document by document (paired bootstrap).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt
import syntax_corpus
import topic_corpus

from treelm.tasks.evaluate.significance import paired_bootstrap_perplexity

DATA = Path(__file__).resolve().parents[3] / "shared/data"
#: Seed of the bootstrap.
SEED = 1


def document_sums(
    log_probs: npt.NDArray[np.float64], documents: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return the log probability of every document."""
    return np.bincount(documents, log_probs).astype(np.float64)


def compared(
    names: list[str], scores: list[npt.NDArray[np.float64]], documents: npt.NDArray[np.int64]
) -> list[str]:
    """Return one line for each model but the first: the change of perplexity and its interval."""
    documents = np.unique(documents, return_inverse=True)[1]
    tokens = np.bincount(documents)
    first, *others = (document_sums(each, documents) for each in scores)
    lines = [f"{names[0]}\t{np.exp(-first.sum() / tokens.sum()):.2f}"]
    for name, sums in zip(names[1:], others, strict=True):
        found = paired_bootstrap_perplexity(sums, first, tokens, seed=SEED)
        low, high = sorted(100 * (np.exp(-np.array(found.interval)) - 1))
        change = 100 * (np.exp(-found.difference) - 1)
        lines.append(
            f"{name}\t{np.exp(-sums.sum() / tokens.sum()):.2f}\t{change:+.1f} % "
            f"[{low:+.1f}, {high:+.1f}]\tp = {found.p_value:.4f}\t{found.n} documents"
        )
    return lines


def main() -> None:
    """Read the arguments, and compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument(
        "files", type=Path, nargs="+", help="scores (.npz); the first is the baseline"
    )
    parser.add_argument("--work", type=Path, required=True, help="folder of the experiment")
    parser.add_argument(
        "--trees", type=Path, help="folder written by parsed_corpus.py, for syntax.py"
    )
    parser.add_argument("--data", type=Path, default=DATA, help="data folder, for topics.py")
    parser.add_argument("--punctuation", choices=("keep", "remove"), default="keep")
    arguments = parser.parse_args()
    names = [str(file.with_suffix("").name) for file in arguments.files]
    scores = [np.load(file)["test"] for file in arguments.files]
    if arguments.trees is None:
        test = topic_corpus.read_corpus(arguments.data, arguments.work).test
        print(*compared(names, scores, syntax_corpus.documents_of(test)), sep="\n")
        return
    corpus = syntax_corpus.read_corpus(
        arguments.trees, arguments.work, punctuation=arguments.punctuation
    )
    documents = syntax_corpus.documents_of(corpus.test)
    print(*compared(names, scores, documents), sep="\n")
    print("new sentences")
    new = corpus.is_new
    print(*compared(names, [each[new] for each in scores], documents[new]), sep="\n")


if __name__ == "__main__":
    main()
