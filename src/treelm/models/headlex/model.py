"""The head-lexicalised model: heads, then modifiers outward, each with its head word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.brackets import ReadOptions, ReadReport
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.files import read_lines
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_file import load_vocabulary, save_vocabulary
from treelm.errors import ModelFileError, TreelmError, UsageError
from treelm.estimation.backoff_table import BackoffTable
from treelm.events.counts import Places
from treelm.grammar.grammar import FloatArray
from treelm.kernel_errors import kernel_errors
from treelm.models.headlex.config import HeadlexConfig
from treelm.models.headlex.events import KINDS
from treelm.models.interface.model import Config, ModelInfo, Task, config_of
from treelm.models.interface.packed_tree_model import Forms, PackedTreeModel, tree_score_errors
from treelm.models.interface.parser import Parser
from treelm.models.interface.trained_model import TrainedModel
from treelm.models.interface.tree_events import WordTags
from treelm.models.interface.words import portable
from treelm.parallel.executor import SERIAL, Executor
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress
from treelm.store.folder import FolderWriter, ModelFolder
from treelm.store.manifest import Description, TrainingCorpus
from treelm.transforms.clean import Clean
from treelm.transforms.transform import transform_from_config
from treelm.trees.packed import PackedTrees
from treelm.trees.profile import ProfileSource, load_profile

#: Files of a model folder, and names in the file of tables.
WORDS, LABELS, TAGS, TABLES = "words.txt", "labels.txt", "tags.txt", "tables.safetensors"
COUNTS, IS_CHILD, WORD_TAGS = "unigram_counts", "is_child", "word_tags"


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

    @classmethod
    def train(
        cls,
        corpus: TextCorpus | TreeCorpus,
        config: Config,
        *,
        executor: Executor = SERIAL,
        progress: Progress = SILENT,
        vocabulary: Vocabulary | None = None,
        threads: int = 1,
        memory: MemoryLimit | None = None,
        report: ReadReport | None = None,
    ) -> Self:
        """Return a model trained on trees.

        Args:
            corpus: Trees.
            config: Options, a `HeadlexConfig`.
            executor: Not used: counting runs in threads of one process.
            progress: Told how far it is.
            vocabulary: The words to know; by default all words of the trees.
            threads: Kernel threads; results do not depend on it.
            memory: How much memory may be used; results do not depend on it.
            report: Filled with what was read.

        Raises:
            UsageError: if the options are not those of such a model, or there are no trees.
        """
        from treelm.models.headlex.train import train_headlex

        del executor
        if not isinstance(config, HeadlexConfig) or not isinstance(corpus, TreeCorpus):
            raise UsageError("a headlex model needs trees and a HeadlexConfig.")
        model = train_headlex(
            corpus,
            config,
            vocabulary=vocabulary,
            threads=threads,
            memory=memory,
            report=report,
            progress=progress,
        )
        return cast("Self", model)

    # -- properties -------------------------------------------------------------------------

    @cached_property
    def info(self) -> ModelInfo:
        """What kind of numbers it gives."""
        return ModelInfo(
            exactness="lower_bound", normalized=True, vocabulary=self._vocabulary.fingerprint
        )

    def __repr__(self) -> str:
        return f"HeadlexModel(words={len(self._vocabulary)}, labels={len(self.labels)})"

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

    def _reading(self) -> Clean:
        """Return what was done to the trees, in a form that a manifest can hold."""
        return Clean(profile=load_profile(self.profile).to_config())

    def description(self) -> Description:
        """Return what the manifest says about the model."""
        return Description(
            system=self.system,
            config=self._config.model_dump(mode="json"),
            exactness="lower_bound",
            vocabulary=self._vocabulary.fingerprint,
            corpora=self._corpora,
            transforms=(self._reading().to_config(),),
        )

    def write_files(self, writer: FolderWriter) -> None:
        """Write tables, labels and words, and the parser."""
        writer.tables(TABLES, self._tensors())
        writer.text(LABELS, "".join(f"{label}\n" for label in self.labels))
        writer.text(TAGS, "".join(f"{tag}\n" for tag in self._tags.names))
        save_vocabulary(self._vocabulary, writer.file(WORDS))
        self.write_parser(writer)

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Return the model in an opened folder, its tables mapped."""
        config = config_of(folder, HeadlexConfig, "a headlex model")
        vocabulary = load_vocabulary(folder.file(WORDS))
        if vocabulary.fingerprint != folder.manifest.vocabulary:
            raise _damaged(folder, f"{WORDS} is not the one the manifest names")
        try:
            model = _assembled(
                folder.tables(TABLES),
                (tuple(read_lines(folder.file(LABELS))), tuple(read_lines(folder.file(TAGS)))),
                vocabulary,
                config,
                {
                    "transforms": folder.manifest.transforms,
                    "corpora": folder.manifest.corpora,
                    "parser": cls.read_parser(folder),
                },
            )
            return cast("Self", model)
        except ModelFileError as error:
            raise _damaged(folder, str(error), error.code) from error

    def __reduce__(self) -> tuple[Any, ...]:
        tensors = {name: np.array(array) for name, array in self._tensors().items()}
        others = {
            "transforms": (self._reading().to_config(),),
            "corpora": self._corpora,
            "parser": self._parser,
        }
        names = (self.labels, self._tags.names)
        return _assembled, (tensors, names, portable(self._vocabulary), self._config, others)


def _assembled(
    tensors: Mapping[str, npt.NDArray[Any]],
    names: tuple[tuple[str, ...], tuple[str, ...]],
    vocabulary: Vocabulary,
    config: HeadlexConfig,
    others: dict[str, Any],
) -> HeadlexModel:
    labels, tags = names
    transforms = others.pop("transforms")
    wanted = {
        COUNTS: (np.uint64, len(vocabulary) + 1),
        IS_CHILD: (np.uint8, len(labels)),
        WORD_TAGS: (np.uint32, len(vocabulary)),
    }
    for name, (dtype, size) in wanted.items():
        array = tensors.get(name)
        if array is None or array.dtype != dtype or array.shape != (size,):
            raise ModelFileError(
                f'the array "{name}" is missing or of another kind', code="E_MODEL_TABLES"
            )
    if (tensors[WORD_TAGS] >= len(tags)).any():
        raise ModelFileError("a word has a tag that does not exist", code="E_MODEL_TABLES")
    try:
        reading = transform_from_config(transforms[0]) if len(transforms) == 1 else None
    except TreelmError as error:
        raise ModelFileError(str(error), code="E_MANIFEST") from error
    if not isinstance(reading, Clean):
        raise ModelFileError("the manifest does not say how trees are read", code="E_MANIFEST")
    return HeadlexModel(
        {name: BackoffTable.from_tensors(tensors, name) for name in KINDS},
        vocabulary,
        tensors[COUNTS],
        config,
        labels=labels,
        is_child=tensors[IS_CHILD].astype(np.bool_),
        tags=WordTags(tags, tensors[WORD_TAGS]),
        profile=reading.profile,
        **others,
    )


def _damaged(folder: ModelFolder, what: str, code: str = "E_MODEL_TABLES") -> ModelFileError:
    return ModelFileError(
        f"{folder.path}: {what.rstrip('.')}. Copy or train the model again.", code=code
    )
