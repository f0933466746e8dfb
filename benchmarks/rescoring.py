"""Words per second of rescoring n-best lists: a 5-gram and an HHMM, beside KenLM's Python module.

    python benchmarks/rescoring.py --lists val.nbest.xz --arpa lm5.arpa.gz [--hhmm MODEL]

All of them are given the different texts of each list. Words are those of these texts and their
ends; processor seconds are measured, in turns, and the median of the rounds is told.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
from measuring import Spread

import treelm
from treelm.interop.nbest_formats import read_lists
from treelm.models.ngram.arpa import read_arpa
from treelm.tasks.rerank import Scorer

Lists = list[list[str]]


def kenlm_scores(path: Path) -> Callable[[Lists], list[list[float]]]:
    """Return what scores lists by KenLM, one text after the other."""
    import kenlm

    config = kenlm.Config()
    config.show_progress = False
    model = kenlm.Model(str(path), config)
    return lambda lists: [[model.score(text) for text in texts] for texts in lists]


def seconds(work: Callable[[Lists], object], lists: Lists) -> float:
    began = time.process_time()
    work(lists)
    return time.process_time() - began


def measure(
    name: str, works: dict[str, Callable[[Lists], object]], lists: Lists, rounds: int
) -> None:
    """Print the words per second of each, all of them in turns."""
    words = sum(len(text.split()) + 1 for texts in lists for text in texts)
    spent: dict[str, list[float]] = {each: [] for each in works}
    for _ in range(rounds):
        for each, work in works.items():
            spent[each].append(seconds(work, lists))
    rates = {each: Spread.of(values).rate(words) for each, values in spent.items()}
    print(f"{name}: {len(lists)} lists, {words:,} words")
    for each, rate in rates.items():
        print(
            f"  {each}: {rate.median:,.0f} words per second "
            f"({rate.smallest:,.0f} to {rate.largest:,.0f})"
        )
    if "kenlm" in rates:
        print(f"  treelm over kenlm: {rates['treelm'].median / rates['kenlm'].median:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lists", type=Path, required=True, help="n-best lists of Moses")
    parser.add_argument("--arpa", type=Path, required=True, help="an n-gram model")
    parser.add_argument("--hhmm", help="folder of an HHMM; trained on the packaged treebank if not")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--hhmm-sentences", type=int, default=10, help="lists for the HHMM")
    parser.add_argument(
        "--alone-sentences", type=int, default=10, help="lists whose texts it also reads one by one"
    )
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    read = islice(read_lists(given.lists), given.sentences)
    lists = [list(dict.fromkeys(each.texts)) for each in read]
    with tempfile.TemporaryDirectory() as folder:
        path = given.arpa
        if path.suffix == ".gz":
            path = Path(folder) / "lm.arpa"
            with gzip.open(given.arpa) as packed, path.open("wb") as plain:
                shutil.copyfileobj(packed, plain)
        ours = Scorer(name="lm", model=read_arpa(path))
        works: dict[str, Callable[[Lists], object]] = {"treelm": ours.scores}
        try:
            works["kenlm"] = kenlm_scores(path)
        except ImportError:
            print("kenlm is not installed")
        else:
            mine, theirs = (works[name](lists[:20]) for name in ("treelm", "kenlm"))
            for one, other in zip(mine, theirs, strict=True):  # type: ignore[call-overload]
                np.testing.assert_allclose(one / np.log(10), other, atol=1e-4)
        measure("5-gram", works, lists, given.rounds)
    model = treelm.load(given.hhmm) if given.hhmm else None
    if model is None:
        model = treelm.train("hhmm", list(treelm.sample_treebank()))

    def shared(some: Lists) -> object:
        # An HHMM with a cache that holds nothing yet, whatever was measured before.
        return Scorer(name="hhmm", model=model.with_search()).scores(some)

    def alone(some: Lists) -> object:
        fresh = model.with_search()
        return [fresh.sentence_log_probs(texts) for texts in some]

    together = {"treelm, what texts begin with read once": shared}
    measure("HHMM", together, lists[: given.hhmm_sentences], 1)
    measure(
        "HHMM",
        together | {"treelm, each text by itself": alone},
        lists[: given.alone_sentences],
        1,
    )


if __name__ == "__main__":
    main()
