"""N-best lists with the scores of many models, each computed once and kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from treelm.corpus.files import read_lines
from treelm.corpus.nbest import NBestColumns, read_moses_columns
from treelm.models.interface.model import LanguageModel, Task
from treelm.tasks.rerank import Measure, Scorer
from treelm.translation.hypothesis_pool import HypothesisPool, pool_of_lists

Numbers = npt.NDArray[np.float64]

#: Lists whose texts are scored at once.
_AT_ONCE = 32


@dataclass(frozen=True)
class ScoredLists:
    """The lists of a development or test set.

    Args:
        data: Folder of the data.
        part: Name of the set.
        size: Hypotheses of a list that are used, the first ones.
        folder: Where scores are kept.
        threads: Number of threads.
    """

    data: Path
    part: str
    size: int
    folder: Path
    threads: int

    @cached_property
    def lists(self) -> list[NBestColumns]:
        """The lists, cut."""
        found = read_moses_columns(self.data / f"mt/multi30k/{self.part}.nbest.xz")
        return [first_of(each, self.size) for each in found]

    @cached_property
    def references(self) -> list[str]:
        """The right translations."""
        return list(read_lines(self.data / f"mt/multi30k/{self.part}.en"))

    @cached_property
    def pool(self) -> HypothesisPool:
        """Features of Moses, and statistics of BLEU."""
        return pool_of_lists(self.lists, [self.references])

    @property
    def distinct(self) -> float:
        """Different texts of a list, in the mean."""
        return float(np.mean([len(set(each.texts)) for each in self.lists]))

    def scores(self, name: str, model: Callable[[], LanguageModel]) -> Numbers:
        """Return what a model says about every hypothesis, computed now or before."""
        return self._kept(f"{self.part}.{self.size}", name, model, [x.texts for x in self.lists])

    def pair_scores(self, name: str, model: Callable[[], LanguageModel]) -> tuple[Numbers, Numbers]:
        """Return log-odds ratios, or margins, of the references and of the first hypotheses."""
        sides = {"reference": self.references, "first": [each.texts[0] for each in self.lists]}
        good, bad = (
            self._kept(f"{self.part}.{what}", name, model, [[each] for each in texts], slr=True)
            for what, texts in sides.items()
        )
        return good, bad

    def _kept(
        self,
        what: str,
        name: str,
        model: Callable[[], LanguageModel],
        lists: Sequence[Sequence[str]],
        *,
        slr: bool = False,
    ) -> Numbers:
        path = self.folder / f"{name.replace(' ', '-').replace('/', '-')}.{what}.npy"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            made = model()
            measure: Measure = "slr" if slr and made.can(Task.PERPLEXITY) else "score"
            scorer = Scorer(name=name, model=made, measure=measure, threads=self.threads)
            found: list[Numbers] = []
            for first in range(0, len(lists), _AT_ONCE):
                some = lists[first : first + _AT_ONCE]
                distinct = [list(dict.fromkeys(texts)) for texts in some]
                for texts, own, scores in zip(some, distinct, scorer.scores(distinct), strict=True):
                    places = {text: place for place, text in enumerate(own)}
                    found.append(scores[[places[text] for text in texts]])
            with path.with_suffix(".part").open("wb") as file:
                np.save(file, np.concatenate(found))
            path.with_suffix(".part").replace(path)
        kept: Numbers = np.load(path)
        return kept

    def with_features(
        self, columns: dict[str, Numbers], *, without: Sequence[str] = ()
    ) -> HypothesisPool:
        """Return the hypotheses with more features, and without some of Moses."""
        layout, kept, place = [], [], 0
        for name, count in self.pool.layout:
            if name not in without:
                layout.append((name, count))
                kept += range(place, place + count)
            place += count
        features = np.column_stack([self.pool.features[:, kept], *columns.values()])
        return replace(
            self.pool, layout=(*layout, *((name, 1) for name in columns)), features=features
        )


def first_of(each: NBestColumns, size: int) -> NBestColumns:
    """Return the first hypotheses of a list."""
    return each.reordered(range(min(size, len(each))))
