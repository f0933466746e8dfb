"""The models of the HHMM study: trained once, kept in folders, over one vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

from corpora import TEXTS, split_text, trees_of
from recipe import check_kept_options

from treelm.corpus.corpus import TextCorpus, TreeCorpus, TreeSentences
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.models.hhmm.config import HhmmConfig
from treelm.models.hhmm.model import HhmmModel
from treelm.models.hhmm.train import train_hhmm
from treelm.models.interface.incremental import IncrementalModel
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.model import NgramModel
from treelm.models.ngram.train import train_ngram
from treelm.models.run import Run

HHMM, NGRAM, BIG = "HHMM", "5-gram", "big 5-gram"
ORDERS = (1, 2, 3, 4, 5)

Kind = TypeVar("Kind", HhmmModel, NgramModel)


class StudyModels:
    """Trains models on demand, once.

    Args:
        data: Folder of the data.
        folder: Where models and texts are kept; they are reused if it was made with the same
            options.
        depth: Elements of the stack.
        beam_width: Stacks that are kept.
        held_out_every: Hold out every n-th document of the large texts; default: by text.
        threads: Number of threads of n-gram training.
    """

    def __init__(
        self,
        data: Path,
        folder: Path,
        *,
        depth: int,
        beam_width: int,
        held_out_every: int | None,
        threads: int,
    ) -> None:
        self.data, self.folder, self.threads = data, folder, threads
        self.depth, self._beam, self._every = depth, beam_width, held_out_every
        check_kept_options(
            folder,
            {
                "depth": depth,
                "beam_width": beam_width,
                "held_out_every": held_out_every or TEXTS,
                "training_trees": self.training_trees.fingerprint.sha256,
            },
        )

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Words seen at least twice in the training trees."""
        rule = VocabularyRule(name="min-count", min_count=2, signatures=False)
        return build_vocabulary(TreeSentences(self.training_trees), rule)

    @property
    def training_trees(self) -> TreeCorpus:
        """The trees that everything but the big 5-gram is trained on."""
        return trees_of(self.data, "train")

    @cached_property
    def hhmm(self) -> HhmmModel:
        """The HHMM."""
        config = HhmmConfig(depth=self.depth, beam_width=self._beam)
        return self._kept(
            "hhmm",
            HhmmModel,
            lambda: train_hhmm(self.training_trees, config, vocabulary=self.vocabulary),
        )

    def beam(self, width: int) -> HhmmModel:
        """Return the HHMM with another beam."""
        return self.hhmm.with_search(beam_width=width)

    @cached_property
    def yields(self) -> TextCorpus:
        """The words of the training trees."""
        path = self.folder / "trees.txt"
        with path.open("w", encoding="utf-8") as text:
            for words in TreeSentences(self.training_trees):
                text.write(" ".join(words) + "\n")
        return TextCorpus((path,))

    @cache  # noqa: B019 (the one object lives as long as the study)
    def ngram(self, order: int) -> NgramModel:
        """Return an n-gram model of the words of the training trees."""
        return self._ngram(f"{order}-gram", order, lambda: self.yields)

    @cached_property
    def texts(self) -> dict[str, tuple[Path, Path]]:
        """Large texts: the training part, and held-out documents."""
        folder = self.folder / "texts"
        folder.mkdir(exist_ok=True)
        return {
            name: split_text(self.data / f"text/{name}.txt.xz", folder, self._every or every)
            for name, every in TEXTS.items()
        }

    @property
    def big_text(self) -> TextCorpus:
        """The training text of the big 5-gram."""
        return TextCorpus(tuple(path for path, _ in self.texts.values()))

    @cached_property
    def big(self) -> NgramModel:
        """A 5-gram model of the large texts."""
        return self._ngram("big-5-gram", 5, lambda: self.big_text)

    def makers(self) -> dict[str, Callable[[], IncrementalModel]]:
        """Return the function that makes each model of the table."""

        def ngram(order: int) -> Callable[[], IncrementalModel]:
            return lambda: self.ngram(order)

        return {
            **{f"{order}-gram": ngram(order) for order in ORDERS},
            HHMM: lambda: self.hhmm,
            BIG: lambda: self.big,
        }

    def _ngram(self, name: str, order: int, text: Callable[[], TextCorpus]) -> NgramModel:
        config = NgramConfig(order=order)
        return self._kept(
            name,
            NgramModel,
            lambda: train_ngram(
                text(), config, vocabulary=self.vocabulary, run=Run(threads=self.threads)
            ),
        )

    def _kept(self, name: str, kind: type[Kind], train: Callable[[], Kind]) -> Kind:
        folder = self.folder / "models" / name
        if not folder.exists():
            folder.parent.mkdir(exist_ok=True)
            train().save(folder)
        return kind.load(folder)
