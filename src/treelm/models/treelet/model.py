"""The treelet model: trees scored piece by piece, sentences by the sum over a parser's trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.vocabulary import Vocabulary
from treelm.estimation.layout import Layout
from treelm.estimation.quantize import SMALL_CODES, CodeBits
from treelm.events.counts import Places
from treelm.grammar.grammar import FloatArray
from treelm.kernel_errors import kernel_errors
from treelm.models.interface.config import Config, config_of
from treelm.models.interface.model import LONGEST_SAMPLE, ModelInfo, Task
from treelm.models.interface.packed_tree_model import (
    Forms,
    PackedTreeModel,
    only_transform,
    tree_score_errors,
)
from treelm.models.interface.parser import Parser
from treelm.models.interface.score_explanation import ScoreStep
from treelm.models.interface.scores import Sample
from treelm.models.interface.trained_model import TrainedModel
from treelm.models.treelet.config import TreeletConfig
from treelm.models.treelet.explain import Factor, TreeletExplainer
from treelm.models.treelet.tables import TreeletTables
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress
from treelm.seeds import given_or_fresh
from treelm.store.folder import TABLES, FolderWriter, ModelFolder
from treelm.store.manifest import TrainingCorpus
from treelm.store.schema import (
    UNIGRAM_COUNTS,
    damage_in,
    read_names,
    read_tensors,
    read_words,
    write_words,
)
from treelm.transforms.treelet import Treelet
from treelm.trees.packed import PackedTrees
from treelm.trees.tree import Tree

#: Files of a model folder, and a name in the file of tables.
LABELS, TAGS, COUNTS = "labels.txt", "tags.txt", UNIGRAM_COUNTS.name

#: A drawn tree that is deeper is given up.
DEEPEST_SAMPLE = 200


class TreeletModel(TrainedModel[TreeletConfig], PackedTreeModel):
    """Predicts what phrases consist of, and words, from the treelets around them.

    Args:
        tables: Probabilities.
        vocabulary: The words.
        unigram_counts: Count of each word in the training trees, then the number of trees.
        config: How it was trained.
        transform: What it does to trees before it looks at them.
        corpora: What it was trained on.
        parser: What gives sentences their trees.
    """

    system: ClassVar[str] = "treelet"
    samples_own_trees: ClassVar[bool] = True
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.SCORE, Task.PERPLEXITY, Task.SAMPLE})
    config_class: ClassVar[type[Config]] = TreeletConfig

    def __init__(
        self,
        tables: TreeletTables,
        vocabulary: Vocabulary,
        unigram_counts: npt.NDArray[np.uint64],
        config: TreeletConfig,
        *,
        transform: Treelet,
        corpora: Sequence[TrainingCorpus] = (),
        parser: Parser | None = None,
    ) -> None:
        self.tables = tables
        self.transform = transform
        self._vocabulary = vocabulary
        self._unigram_counts = unigram_counts
        self._config: TreeletConfig = config
        self._corpora = tuple(corpora)
        self._parser = parser
        #: Scores packed trees.
        self.kernel = tables.kernel(vocabulary, transform, config.marked_tags)

    # -- properties -------------------------------------------------------------------------

    @cached_property
    def info(self) -> ModelInfo:
        """What kind of numbers it gives."""
        return ModelInfo(
            exactness="lower_bound",
            normalized=True,
            bits=self._config.bits,
            vocabulary=self._vocabulary.fingerprint,
        )

    def __repr__(self) -> str:
        return (
            f"TreeletModel(variant={self._config.variant!r}, words={len(self._vocabulary)}, "
            f"rules={len(self.tables.symbols.rules) - 1})"
        )

    def details(self) -> dict[str, object]:
        """Return the few numbers that tell it from others."""
        bits = self._config.bits
        return {
            "variant": self._config.variant,
            "transforms": list(self._config.applied),
            "labels": len(self.tables.symbols.labels) - 4,
            "rules": len(self.tables.symbols.rules) - 1,
            **({} if bits is None else {"bits": bits}),
            **({} if self.layout == "hashed" else {"layout": self.layout}),
        }

    # -- trees ------------------------------------------------------------------------------

    def score_packed(
        self, trees: PackedTrees, starts: Places, *, threads: int = 1
    ) -> tuple[FloatArray, Forms]:
        """Return the joint natural log probability of each tree and its words, and its form."""
        with tree_score_errors():
            log_probs, forms, _, _ = self.kernel.score(
                trees.native, starts, transform=True, threads=threads
            )
        return log_probs, forms

    def score_each(
        self, batches: Sequence[PackedTrees], *, threads: int = 1
    ) -> list[tuple[FloatArray, Forms]]:
        """Return what `score_packed` gives for batches that are one list each."""
        with tree_score_errors():
            found = self.kernel.score_each(
                [batch.native for batch in batches], transform=True, threads=threads
            )
        return [(log_probs, forms) for log_probs, forms, _, _ in found]

    def distinct(self, trees: Sequence[Tree]) -> Sequence[Tree]:
        """Return the transformed trees that are different, in order."""
        return list(dict.fromkeys(self.transform.apply_all(trees)))

    def tree_log_probs_of_distinct(self, trees: Sequence[Tree], *, threads: int = 1) -> FloatArray:
        """Return the joint natural log probability of trees that are transformed already."""
        packed = PackedTrees.from_trees(trees)
        starts = np.arange(len(trees) + 1, dtype=np.uint64)
        with tree_score_errors():
            return self.kernel.score(packed.native, starts, transform=False, threads=threads)[0]

    def usual_tags(self, words: Sequence[str]) -> list[str]:
        """Return the most frequent tag of every word in training, before any transform."""
        ids = self._vocabulary.encode(words)
        return [self.tables.tags[tag] for tag in self.tables.word_tags[ids].tolist()]

    @cached_property
    def _explainer(self) -> TreeletExplainer:
        return TreeletExplainer(self)

    tree_reference: ClassVar[str] = (
        "Pauls and Klein (2012), section 2: the generative story; 2.2: its back-off chains; 4: the "
        "sum over trees (docs/systems/treelet.md)"
    )

    def tree_steps(self, tree: Tree) -> list[ScoreStep]:
        """Return the factors of a tree, in the order of the generative story."""
        found = []
        for factor in self.tree_factors(tree):
            given = ", ".join(f"{name} = {value}" for name, value in factor.given)
            known = f" | {given}" if given else ""
            what = f"P({factor.label} → {factor.outcome}{known})"
            found.append(ScoreStep(what, factor.log_prob))
        return found

    def tree_factors(self, tree: Tree) -> list[Factor]:
        """Return the factors of a tree as a treebank has it, in the order of the story."""
        return self._explainer.factors(tree)

    # -- samples ----------------------------------------------------------------------------

    @cached_property
    def _sampler(self) -> _native.TreeletSampler:
        with kernel_errors("preparing to sample"):
            return _native.TreeletSampler(self.kernel, np.ascontiguousarray(self.tables.is_tag))

    def sample(
        self,
        count: int,
        *,
        seed: int | None = None,
        first: int = 0,
        max_words: int = LONGEST_SAMPLE,
        max_depth: int = DEEPEST_SAMPLE,
        threads: int = 1,
    ) -> list[Sample]:
        """Return sentences drawn from the model, with their transformed trees.

        Args:
            count: How many.
            seed: Sample i depends on the seed and on i alone. Without a seed there is a new one
                each time; `Sample.seed` says it.
            first: Number of the first one.
            max_words: A longer sentence is given up: it is not complete, and has no words.
            max_depth: So is a deeper tree.
            threads: Kernel threads; results do not depend on it.
        """
        chosen = given_or_fresh(seed)
        with kernel_errors("sampling"):
            packed, outcomes, log_probs = self._sampler.draw(
                chosen & ((1 << 64) - 1),
                first,
                count,
                max_words=max_words,
                max_depth=max_depth,
                threads=threads,
            )
        trees = iter(PackedTrees(packed))
        values = iter(log_probs.tolist())
        drawn = []
        for outcome in outcomes.tolist():
            if outcome:
                drawn.append(Sample((), float("-inf"), complete=False, seed=chosen))
                continue
            tree = next(trees)
            words = tuple(tree.words)
            drawn.append(Sample(words, next(values), complete=True, tree=tree, seed=chosen))
        return drawn

    # -- smaller ones -----------------------------------------------------------------------

    def quantized(
        self, bits: CodeBits, *, threads: int = 1, progress: Progress = SILENT
    ) -> TreeletModel:
        """Return the model with codes of 4 to 8 or 16 bits instead of floats in its large tables.

        Codes of fewer than 8 bits make them compact.
        """
        tables = self.tables.quantized(bits, threads=threads, progress=progress)
        config = self._config.model_copy(update={"bits": bits})
        coded = self._changed(tables=tables, config=config)
        return coded.compacted(progress=progress) if bits in SMALL_CODES else coded

    @property
    def layout(self) -> Layout:
        """How its large tables lie in memory."""
        return self._config.layout

    def compacted(
        self, *, memory: MemoryLimit | None = None, progress: Progress = SILENT
    ) -> TreeletModel:
        """Return the model with compact tables: smaller, slower, and with the same numbers."""
        tables = self.tables.compacted(self._config.bits, memory=memory, progress=progress)
        config = self._config.model_copy(update={"layout": "compact"})
        return self._changed(tables=tables, config=config)

    # -- files ------------------------------------------------------------------------------

    def _tensors(self) -> dict[str, npt.NDArray[Any]]:
        return {**self.tables.to_tensors(), COUNTS: self._unigram_counts}

    def transforms(self) -> Sequence[Mapping[str, object]]:
        """Return what was done to the training trees."""
        return (self.transform.to_config(),)

    def write_files(self, writer: FolderWriter) -> None:
        """Write tables, labels and words, and the parser."""
        writer.tables(TABLES, self._tensors())
        writer.lines(LABELS, self.tables.symbols.labels)
        writer.lines(TAGS, self.tables.tags)
        write_words(writer, self._vocabulary)
        self.write_parser(writer)

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Return the model in an opened folder, its tables mapped."""
        config = config_of(folder, TreeletConfig, "a treelet model")
        with damage_in(folder):
            vocabulary = read_words(folder)
            words, tensors = len(vocabulary), folder.tables()
            counts = read_tensors(tensors, (UNIGRAM_COUNTS,), words=words)[COUNTS]
            names = read_names(folder, LABELS), read_names(folder, TAGS)
            tables = TreeletTables.from_tensors(tensors, *names, words)
            tables.check(config)
            return cls(
                tables,
                vocabulary,
                counts,
                config,
                transform=only_transform(folder, Treelet),
                corpora=folder.manifest.corpora,
                parser=cls.read_parser(folder),
            )

    def _arguments(self) -> dict[str, Any]:
        own = {"tables": self.tables, "transform": self.transform, "parser": self._parser}
        return {**super()._arguments(), **own}
