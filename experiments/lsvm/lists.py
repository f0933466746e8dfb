"""Table 2: n-best lists of translations reranked by a judge beside the translator's own score.

The lists carry the translator's score under weights that were tuned on the same tuning set. One
weight is tuned here, the judge's, by BLEU on that set; the paper tuned all weights together.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from systems import Systems

from published import LATENT_MLE, MLE, TABLE_2
from treelm.corpus.files import read_lines
from treelm.corpus.nbest import NBest, read_moses
from treelm.corpus.words import split_words
from treelm.errors import MissingExtra

Floats = npt.NDArray[np.float64]

#: Number of hypotheses per sentence, as in the paper.
SIZE = 100
#: Judges of the paper that were not trained on translations, by their rows.
JUDGES = {"+ MLE": MLE, "+ LSVM-MLE": LATENT_MLE}
BASELINE = "baseline"
#: Weights of a judge to try.
_STEPS = tuple(10 ** (quarter / 4) for quarter in range(-16, 5))
WEIGHTS = (0.0, *_STEPS, *(-step for step in _STEPS))
_PARTS = {"val": "val", "test": "test_2016_flickr"}


@dataclass(frozen=True)
class Lists:
    """Lists of one part, cut to the first hypotheses.

    Args:
        lists: The hypotheses of every sentence.
        references: Human translations, words separated by spaces.
    """

    lists: tuple[NBest, ...]
    references: tuple[str, ...]

    @property
    def sentences(self) -> list[tuple[str, ...]]:
        """All hypotheses, one after the other."""
        return [hypothesis.words for one in self.lists for hypothesis in one.hypotheses]

    def best(self, judge: Floats, weight: float) -> list[str]:
        """Return the best hypothesis of every sentence by both scores; the first of equals.

        Args:
            judge: A score of every hypothesis, minus infinity for none.
            weight: Weight of that score.
        """
        finite = judge[np.isfinite(judge)]
        judge = np.maximum(judge, finite.min() if len(finite) else 0.0)
        found, place = [], 0
        for one in self.lists:
            own = np.array([hypothesis.score for hypothesis in one.hypotheses], np.float64)
            chosen = int(np.argmax(own + weight * judge[place : place + len(one)]))
            found.append(" ".join(one.hypotheses[chosen].words))
            place += len(one)
        return found

    def bleu(self, chosen: Sequence[str]) -> float:
        """Return BLEU of tokenized translations, in percent."""
        try:
            sacrebleu: Any = importlib.import_module("sacrebleu")
        except ModuleNotFoundError as error:
            raise MissingExtra("BLEU needs sacrebleu: pip install sacrebleu") from error
        score: float = sacrebleu.corpus_bleu(
            list(chosen), [list(self.references)], tokenize="none", force=True
        ).score
        return score


def read_lists(folder: Path, part: str) -> Lists | None:
    """Return the lists of multi30k, val or test; None without the data."""
    stem = folder / "mt/multi30k" / _PARTS[part]
    lists, references = stem.with_name(f"{stem.name}.nbest.xz"), stem.with_name(f"{stem.name}.en")
    if not (lists.is_file() and references.is_file()):
        return None
    lines = [" ".join(split_words(line)) for line in read_lines(references)]
    cut = tuple(
        NBest(one.id, tuple(islice(one.hypotheses, SIZE)), one.line) for one in read_moses(lists)
    )
    return Lists(cut, tuple(lines[int(one.id)] for one in cut))


def judge(systems: Systems, name: str, part: str, lists: Lists) -> Floats:
    """Return a system's score of every hypothesis, kept beside its other scores."""
    path = systems.work / "scores" / f"{name.replace(' ', '-')}-list-{part}.npy"
    if not path.is_file():
        rows = list(dict.fromkeys(lists.sentences))
        found = systems.model(name).sentence_log_probs(rows, threads=systems.threads)
        known = dict(zip(rows, found.tolist(), strict=True))
        np.save(path, np.array([known[words] for words in lists.sentences]))
    scores: Floats = np.load(path)
    return scores


def list_rows(systems: Systems, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the lines of Table 2; none without the lists."""
    val, test = (read_lists(systems.data, part) for part in _PARTS)
    if val is None or test is None:
        return []
    nothing = [np.zeros(len(part.sentences)) for part in (val, test)]
    rows: list[tuple[str, ...]] = [
        (BASELINE, "-", *_shown(val, test, nothing, 0.0), f"{TABLE_2[BASELINE]:.2f}")
    ]
    for row, name in JUDGES.items():
        if name not in names:
            continue
        scores = [judge(systems, name, "val", val), judge(systems, name, "test", test)]
        weight = max(WEIGHTS, key=lambda value: (val.bleu(val.best(scores[0], value)), -abs(value)))
        shown = _shown(val, test, scores, weight)
        rows.append((row, f"{weight:.3g}", *shown, f"{TABLE_2[row]:.2f}"))
        alone = [1e6 * part for part in scores]
        rows.append((f"{name} alone", "-", *_shown(val, test, alone, 1.0), "-"))
    return rows


def _shown(val: Lists, test: Lists, scores: Sequence[Floats], weight: float) -> tuple[str, str]:
    return (
        f"{val.bleu(val.best(scores[0], weight)):.2f}",
        f"{test.bleu(test.best(scores[1], weight)):.2f}",
    )
