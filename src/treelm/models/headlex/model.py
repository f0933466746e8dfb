"""The head-lexicalised model: heads, then modifiers outward, each with its head word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.brackets import ReadOptions
from treelm.corpus.vocabulary import Vocabulary
from treelm.estimation.backoff_table import BackoffTable
from treelm.events.counts import Places
from treelm.grammar.grammar import FloatArray
from treelm.kernel_errors import kernel_errors
from treelm.models.headlex.config import HeadlexConfig
from treelm.models.headlex.events import KINDS
from treelm.models.interface.config import Config, config_of
from treelm.models.interface.model import ModelInfo, Task
from treelm.models.interface.packed_tree_model import (
    Forms,
    PackedTreeModel,
    only_transform,
    tree_score_errors,
)
from treelm.models.interface.parser import Parser
from treelm.models.interface.trained_model import TrainedModel
from treelm.models.interface.tree_events import WordTags
from treelm.store.folder import TABLES, FolderWriter, ModelFolder
from treelm.store.manifest import TrainingCorpus
from treelm.store.schema import (
    UNIGRAM_COUNTS,
    Tensor,
    damage_in,
    ids,
    read_names,
    read_tensors,
    read_words,
    write_words,
)
from treelm.transforms.clean import Clean
from treelm.trees.packed import PackedTrees
from treelm.trees.profile import ProfileSource, load_profile

#: Files of a model folder, and names in the file of tables.
LABELS, TAGS = "labels.txt", "tags.txt"
COUNTS, IS_CHILD, WORD_TAGS = UNIGRAM_COUNTS.name, "is_child", "word_tags"

_SCHEMA = (
    UNIGRAM_COUNTS,
    Tensor(IS_CHILD, np.uint8, ("labels",)),
    Tensor(WORD_TAGS, np.uint32, ("words",), ids("tags")),
)


class HeadlexModel(TrainedModel[HeadlexConfig], PackedTreeModel):
    """Predicts heads and modifiers from labels and head words.

    Args:
        tables: Probabilities of every kind of event.
        vocabulary: The words.
        unigram_counts: Count of each word in the training trees, then the number of trees.
        config: How it was trained.
        labels: Labels by id.
        is_child: Whether each label was seen below another.
        tags: The most frequent category of every word.
        profile: Language profile, which says what heads are.
        corpora: What it was trained on.
        parser: What gives sentences their trees.
    """

    system: ClassVar[str] = "headlex"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.SCORE, Task.PERPLEXITY})
    config_class: ClassVar[type[Config]] = HeadlexConfig
    tree_reference: ClassVar[str] = (
        "Collins (1999), Model 1; Pauls and Klein (2012), section 5.2, footnote 6: what is added "
        "to it; section 4: the sum over trees (docs/systems/headlex.md)"
    )

    def __init__(
        self,
        tables: Mapping[str, BackoffTable],
        vocabulary: Vocabulary,
        unigram_counts: npt.NDArray[np.uint64],
        config: HeadlexConfig,
        *,
        labels: Sequence[str],
        is_child: npt.NDArray[np.bool_],
        tags: WordTags,
        profile: ProfileSource = "english",
        corpora: Sequence[TrainingCorpus] = (),
        parser: Parser | None = None,
    ) -> None:
        self.tables = dict(tables)
        self.labels = tuple(labels)
        self.is_child = is_child
        self.profile = profile
        self._vocabulary = vocabulary
        self._unigram_counts = unigram_counts
        self._tags = tags
        self._config: HeadlexConfig = config
        self._corpora = tuple(corpora)
        self._parser = parser
        with kernel_errors("opening a headlex model"):
            self._kernel = _native.HeadlexModel(
                labels=list(self.labels),
                is_child=np.ascontiguousarray(is_child),
                tables=[self.tables[kind].native for kind in KINDS],
                encoder=vocabulary.encoder,
                recipe=ReadOptions(profile=profile, strip=False).recipe(),
            )

    # -- properties -------------------------------------------------------------------------

    @cached_property
    def info(self) -> ModelInfo:
        """What kind of numbers it gives."""
        return ModelInfo(
            exactness="lower_bound", normalized=True, vocabulary=self._vocabulary.fingerprint
        )

    def __repr__(self) -> str:
        return f"HeadlexModel(words={len(self._vocabulary)}, labels={len(self.labels)})"

    def details(self) -> dict[str, object]:
        """Return the few numbers that tell it from others."""
        return {"labels": len(self.labels) - 3}

    # -- trees ------------------------------------------------------------------------------

    def score_packed(
        self, trees: PackedTrees, starts: Places, *, threads: int = 1
    ) -> tuple[FloatArray, Forms]:
        """Return the joint natural log probability of each tree and its words, and its form."""
        with tree_score_errors():
            log_probs, forms, _, _ = self._kernel.score(trees.native, starts, threads=threads)
        return log_probs, forms

    def score_each(
        self, batches: Sequence[PackedTrees], *, threads: int = 1
    ) -> list[tuple[FloatArray, Forms]]:
        """Return what `score_packed` gives for batches that are one list each."""
        with tree_score_errors():
            found = self._kernel.score_each([batch.native for batch in batches], threads=threads)
        return [(log_probs, forms) for log_probs, forms, _, _ in found]

    def usual_tags(self, words: Sequence[str]) -> list[str]:
        """Return the most frequent tag of every word in training."""
        ids = self._vocabulary.encode(words)
        return [self._tags.names[tag] for tag in self._tags.of_word[ids].tolist()]

    # -- files ------------------------------------------------------------------------------

    def _tensors(self) -> dict[str, npt.NDArray[Any]]:
        arrays: dict[str, npt.NDArray[Any]] = {
            COUNTS: self._unigram_counts,
            IS_CHILD: self.is_child.astype(np.uint8),
            WORD_TAGS: self._tags.of_word,
        }
        for kind, table in self.tables.items():
            arrays |= table.to_tensors(kind)
        return arrays

    def transforms(self) -> Sequence[Mapping[str, object]]:
        """Return what was done to the training trees."""
        return (Clean(profile=load_profile(self.profile).to_config()).to_config(),)

    def write_files(self, writer: FolderWriter) -> None:
        """Write tables, labels and words, and the parser."""
        writer.tables(TABLES, self._tensors())
        writer.lines(LABELS, self.labels)
        writer.lines(TAGS, self._tags.names)
        write_words(writer, self._vocabulary)
        self.write_parser(writer)

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Return the model in an opened folder, its tables mapped."""
        config = config_of(folder, HeadlexConfig, "a headlex model")
        with damage_in(folder):
            vocabulary = read_words(folder)
            labels, tags = read_names(folder, LABELS), read_names(folder, TAGS)
            tensors = folder.tables()
            found = read_tensors(
                tensors, _SCHEMA, words=len(vocabulary), labels=len(labels), tags=len(tags)
            )
            return cls(
                {name: BackoffTable.from_tensors(tensors, name) for name in KINDS},
                vocabulary,
                found[COUNTS],
                config,
                labels=labels,
                is_child=found[IS_CHILD].astype(np.bool_),
                tags=WordTags(tags, found[WORD_TAGS]),
                profile=only_transform(folder, Clean).profile,
                corpora=folder.manifest.corpora,
                parser=cls.read_parser(folder),
            )

    def _arguments(self) -> dict[str, Any]:
        return {
            **super()._arguments(),
            "tables": self.tables,
            "labels": self.labels,
            "is_child": self.is_child,
            "tags": self._tags,
            "profile": load_profile(self.profile).to_config(),
            "parser": self._parser,
        }
