"""Measure the models of treelm-en, and write their cards.

    python packages/treelm-en/measure.py --data FOLDER --work FOLDER [--only parser ngram ...]

Development sets are used, and some choices were made on them: below which weight rules are dropped,
how many features the judge has, how the HHMM looks at words before. So the figures are not those of
unseen text. Each figure is kept in the work
folder, so an interrupted run is resumed by the same command.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from train import DATA, MODELS

import treelm
from treelm.corpus.corpus import TreeCorpus

TREEBANKS = ("gum", "masc", "craft")
LICENCES = {"en-judge": "cc-by-sa-4.0"}
USUAL_LICENCE = "cc-by-sa-4.0"


class Measures:
    """Figures of one model, each measured once.

    Args:
        model: Its folder.
        data: Folder of treebanks and pairs.
        work: Folder where figures are kept.
    """

    def __init__(self, model: Path, data: Path, work: Path) -> None:
        self.model, self.data, self.work = model, data, work
        work.mkdir(parents=True, exist_ok=True)
        self._path = work / f"{model.name}.json"
        self.scores: dict[str, float] = (
            json.loads(self._path.read_text(encoding="utf-8")) if self._path.exists() else {}
        )

    def add(self, name: str, find: Callable[[], float]) -> None:
        """Measure something that is not known yet."""
        if name not in self.scores:
            self.scores[name] = find()
            self._path.write_text(json.dumps(self.scores, indent=1) + "\n", encoding="utf-8")
            print(self.model.name, name, self.scores[name], flush=True)

    def add_all(self, names: Iterable[str], find: Callable[[], dict[str, float]]) -> None:
        """Measure several things at once, unless all are known."""
        if all(name in self.scores for name in names):
            return
        for name, value in find().items():
            self.add(name, lambda value=value: value)  # type: ignore[misc]

    def command(self, *arguments: object) -> str:
        """Return what a command of treelm writes."""
        words = [sys.executable, "-m", "treelm", *map(str, arguments)]
        return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout

    def record(self, *arguments: object) -> dict[str, Any]:
        """Return the JSON object that a command writes."""
        found: dict[str, Any] = json.loads(self.command(*arguments, "--json"))
        return found

    def gold(self, treebank: str, part: str = "dev") -> tuple[Path, Path]:
        """Return the trees of a treebank and their words, one per line."""
        trees, words = (self.work / f"{treebank}.{part}.{end}" for end in ("mrg", "txt"))
        if not words.exists():
            found = list(TreeCorpus((self.data / f"treebanks/{treebank}/{part}.mrg",)))
            trees.write_text("".join(f"{tree}\n" for tree in found), encoding="utf-8")
            lines = (" ".join(tree.words) + "\n" for tree in found)
            words.write_text("".join(lines), encoding="utf-8")
        return trees, words

    def f1(self, treebank: str, part: str = "dev") -> float:
        """Return the labelled F1 on a treebank, in percent."""
        gold, words = self.gold(treebank, part)
        parses = self.work / f"{self.model.name}.{treebank}.{part}.mrg"
        self.command("parse", "-m", self.model, "--tokenized", words, "-o", parses, "-q")
        return round(100 * self.record("evaluate", "parses", gold, parses)["labelled_f1"], 2)

    def perplexity(self, treebank: str) -> dict[str, float]:
        """Return the perplexity of a treebank, unknown words by their symbols and spelled."""
        text = self.gold(treebank)[1]
        found = self.record("evaluate", "perplexity", "-m", self.model, text, "--tokenized")
        return {
            f"perplexity {treebank} dev": round(found["closed_perplexity"], 1),
            f"open perplexity {treebank} dev": round(found["perplexity"], 1),
            f"bits per character {treebank} dev": round(found["bits_per_character"], 3),
        }

    def blimp(self) -> dict[str, float]:
        """Return the accuracy on BLiMP, all and subject-verb agreement, in percent.

        The better sentence of a pair wins; ties are half right.
        """
        path = self.data / "grammaticality/blimp.jsonl.xz"
        found = self.record("evaluate", "pairs", "-m", self.model, "--blimp", path, "--half-ties")
        agreement = found["per_phenomenon"]["subject_verb_agreement"]
        return {
            "BLiMP": round(100 * found["accuracy"], 1),
            "BLiMP subject-verb agreement": round(100 * agreement["accuracy"], 1),
        }

    def reading_times(self) -> dict[str, float]:
        """Return 1000 times the gain in log likelihood per word of Natural Stories.

        Over length, frequency and position, two words of spill-over, ten parts left out in turn.
        """
        times = self.data / "reading/naturalstories/words.tsv"
        options = ("--spill-over", 2, "--cross-validate", 10)
        found = self.record("evaluate", "reading-times", times, "-m", self.model, *options)
        held_out = found["results"][0]["cross_validated"]
        low, high = held_out["interval_sentences"]
        return {
            "reading times gain x1000": round(1000 * held_out["per_word"], 2),
            "reading times gain x1000, from": round(1000 * low, 2),
            "reading times gain x1000, to": round(1000 * high, 2),
        }

    def words_per_second(self) -> float:
        """Return how many words of GUM it reads in a second of processor time, one thread."""
        model = treelm.load(self.model)
        lines = self.gold("gum")[1].read_text(encoding="utf-8").splitlines()[:300]
        sentences = [line.split() for line in lines]
        parses = "parse" in map(str, model.abilities)
        begin = time.process_time()
        if parses and model.system == "pcfg_la":
            model.parse_many(sentences)
        elif hasattr(model, "margins"):
            model.margins(sentences)
        else:
            model.sentence_log_probs(sentences)
        return round(sum(map(len, sentences)) / (time.process_time() - begin))

    def load_seconds(self) -> float:
        """Return how long loading takes, in seconds of processor time."""
        begin = time.process_time()
        treelm.load(self.model)
        return round(time.process_time() - begin, 2)

    def memory(self) -> float:
        """Return the most memory of a process that loads it and uses it once, in megabytes."""
        use = "parse" if "parser" in self.model.name else "score"
        # Not by getrusage: what it tells of a child begins with what its parent holds.
        script = (
            "import sys, treelm; "
            f"treelm.load(sys.argv[1]).{use}('The old man gave the boat to his sister.'); "
            "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
        )
        words = [sys.executable, "-c", script, str(self.model)]
        printed = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
        return round(float(printed) * 1.024e-3)


def measure(name: str, found: Measures, *, blimp: bool) -> None:
    """Measure what a model of this name is for."""
    found.add("megabytes", lambda: _megabytes(found.model))
    found.add("load seconds", found.load_seconds)
    found.add("words per second", found.words_per_second)
    found.add("memory in megabytes", found.memory)
    if name in ("en-parser", "en-hhmm"):
        for treebank in TREEBANKS:
            found.add(f"F1 {treebank} dev", lambda: found.f1(treebank))  # noqa: B023
    if name in ("en-ngram", "en-hhmm", "en-treelet", "en-mixture"):
        for treebank in TREEBANKS[:2]:
            names = (f"perplexity {treebank} dev", f"bits per character {treebank} dev")
            found.add_all(names, lambda: found.perplexity(treebank))  # noqa: B023
    if name == "en-judge":
        found.add("accuracy on errors in gum dev", lambda: _judged(found))
    if name in ("en-ngram", "en-hhmm", "en-mixture"):
        found.add_all(("reading times gain x1000",), found.reading_times)
    if blimp and name != "en-parser":
        found.add_all(("BLiMP", "BLiMP subject-verb agreement"), found.blimp)


def _judged(found: Measures) -> float:
    """Return the accuracy on sentences of GUM and the same with an error each, in percent."""
    gold, _ = found.gold("gum")
    noisy = found.work / "gum.noisy.tsv"
    if not noisy.exists():
        found.command("corrupt", "noisy", "--trees", gold, "--seed", 7, "-o", noisy)
    rows = [line.split("\t") for line in noisy.read_text(encoding="utf-8").splitlines()]
    judge = treelm.load(found.model)
    good = judge.margins([row[3].split() for row in rows])
    bad = judge.margins([row[0].split() for row in rows])
    return round(100 * float(((good > 0).mean() + (bad <= 0).mean()) / 2), 1)


def _megabytes(folder: Path) -> float:
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return round(size / 1e6, 2)


def write_card(model: Path, scores: dict[str, float]) -> None:
    """Write the card of a model, with what it was trained on and what it is for."""
    place = model.parent / f".{model.name}.scores.json"
    place.write_text(json.dumps(scores), encoding="utf-8")
    card = model.parent / f".{model.name}.md"
    licence = LICENCES.get(model.name, USUAL_LICENCE)
    options = ("--language", "en", "--license", licence, "--scores", place)
    words = [sys.executable, "-m", "treelm", "card", "-m", model, *options, "-o", card, "-q"]
    subprocess.run([str(word) for word in words], check=True)
    text = card.read_text(encoding="utf-8") + (model.parents[2] / "CARDS.md").read_text(
        encoding="utf-8"
    )
    (model / "README.md").write_text(text, encoding="utf-8")
    place.unlink()
    card.unlink()


def main() -> None:
    """Measure models and write their cards."""
    parser = argparse.ArgumentParser(description="Measure the models of treelm-en.")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--work", type=Path, default=Path("build/treelm-en/scores"))
    parser.add_argument("--models", type=Path, default=MODELS, help="folder of model folders")
    parser.add_argument("--only", nargs="*", help="models to measure, without en-; default: all")
    parser.add_argument("--no-blimp", action="store_true", help="leave BLiMP out: it takes long")
    parser.add_argument("--no-cards", action="store_true", help="write no cards")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    names = [f"en-{name}" for name in arguments.only or ()] or sorted(
        path.name for path in arguments.models.glob("en-*")
    )
    for name in names:
        found = Measures(arguments.models / name, arguments.data, arguments.work)
        measure(name, found, blimp=not arguments.no_blimp)
        if not arguments.no_cards:
            write_card(found.model, found.scores)


if __name__ == "__main__":
    main()
