"""A training plan from an options file: types, bytes, time, and what fits."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, ValidationInfo, field_validator

from treelm.corpus.brackets import MAX_THREADS
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.files import Source, source_name
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_file import load_vocabulary
from treelm.errors import InputFileError, UsageError
from treelm.models.composite.config import CompositeConfig
from treelm.models.composite.memory_plan import MemoryPlan, NodePlan, plan_topics
from treelm.models.composite.parse_plan import plan_parses
from treelm.models.composite.parsed_text import prepare
from treelm.models.interface.config import Config, explain
from treelm.models.ngram.counts import encode_corpus
from treelm.models.plsa.config import PlsaConfig
from treelm.parallel.executor import MAX_WORKERS
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress

#: Bytes of a worker without tables, and how many times it holds them at its peak. Measured.
WORKER_BYTES = 90 << 20
SENT_COPIES = 3
#: Bytes of what a worker asks of tables that are held in shards, for tables of so many bytes, and
#: how it grows with these: 128 sentences of 3-gram/2-SLM models of 0.25 and 1 million words.
ASKED_BYTES = 28 << 20
ASKED_OF_BYTES = 288 << 20
ASKED_GROWTH = 0.63


class PlanCorpus(Config):
    """The text of a training."""

    text: tuple[str, ...] = Field(default=(), strict=False)
    """Files of text in documents."""
    trees: tuple[str, ...] = Field(default=(), strict=False)
    """Files of trees, instead of text."""
    held_out: tuple[str, ...] = Field(default=(), strict=False)
    """Held-out trees for the weights of a composite model."""
    vocabulary: str | None = None
    """Vocabulary file; all words of the text by default."""


class PlanResources(Config):
    """The resources to train with."""

    memory: str | None = None
    """Memory limit, such as ``16G``."""
    threads: int = Field(default=1, ge=1, le=MAX_THREADS)
    """Threads, of each worker if there are workers."""
    workers: int | None = Field(default=None, ge=1, le=MAX_WORKERS)
    """Workers that do the E-steps; by default this process does."""
    shards: int | None = Field(default=None, ge=1)
    """Shards in which workers add up counts; by default this process does."""
    shard_parameters: bool = False
    """Whether tables are held in as many shards too, which workers ask."""


class EmPlanFile(Config):
    """The content of an ``em.toml``."""

    system: Literal["plsa", "composite"] = "plsa"
    """The system that will be trained."""
    corpus: PlanCorpus
    model: PlsaConfig | CompositeConfig = Field(default={}, validate_default=True)
    """Options of the system."""
    resources: PlanResources = PlanResources()

    @field_validator("model", mode="before")
    @classmethod
    def _of_system(cls, options: object, info: ValidationInfo) -> object:
        """Read the options as those of the system, which comes before them."""
        if not isinstance(options, dict):
            return options
        kind = CompositeConfig if info.data.get("system") == "composite" else PlsaConfig
        return kind.model_validate(options)

    @property
    def kept(self) -> int:
        """Number of topics that a training document keeps."""
        if isinstance(self.model, PlsaConfig):
            return self.model.kept
        return self.model.keep_topics if self.model.topics else 0


def read_plan_file(path: Source) -> EmPlanFile:
    """Return the content of an options file; file names in it are relative to its folder.

    Raises:
        InputFileError: if it cannot be read, or is not TOML.
        UsageError: for options that do not exist, or impossible values.
    """
    try:
        options = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputFileError(f"{source_name(path)}: cannot be read as TOML ({error}).") from error
    try:
        return EmPlanFile.model_validate(options)
    except ValidationError as error:
        raise UsageError(f"{source_name(path)}: {explain(error)}") from error


def plan_training(path: Source, *, progress: Progress = SILENT) -> tuple[EmPlanFile, MemoryPlan]:
    """Return the options of a file, and what training with them will take.

    Args:
        path: A file such as ``em.toml``.
        progress: Progress callback.
    """
    options = read_plan_file(path)
    folder = Path(path).parent
    corpus = _corpus(options.corpus, folder)
    file = options.corpus.vocabulary
    vocabulary = None if file is None else load_vocabulary(folder / file)
    limit = options.resources.memory
    memory = None if limit is None else MemoryLimit.parse(limit).bytes
    if isinstance(options.model, CompositeConfig):
        if not isinstance(corpus, TreeCorpus):
            raise UsageError('a composite model is trained on trees. Give "trees" under [corpus].')
        files = tuple(folder / name for name in options.corpus.held_out)
        held_out = TreeCorpus(files, on_error="skip") if files else None
        return options, _plan_composite(
            corpus, held_out, options.model, vocabulary=vocabulary, memory=memory
        )
    words, text = encode_corpus(
        corpus, vocabulary, threads=options.resources.threads, progress=progress
    )
    return options, plan_topics(text, len(words), options.model, memory=memory)


def _plan_composite(
    corpus: TreeCorpus,
    held_out: TreeCorpus | None,
    config: CompositeConfig,
    *,
    vocabulary: Vocabulary | None,
    memory: int | None,
) -> MemoryPlan:
    prepared = prepare(corpus, config, vocabulary=vocabulary)
    check = None
    if held_out is not None:
        check = prepare(held_out, config, vocabulary=prepared.vocabulary, codes=prepared.codes).text
    return plan_parses(prepared, config, held_out=check, memory=memory)


def _corpus(corpus: PlanCorpus, folder: Path) -> TextCorpus | TreeCorpus:
    if bool(corpus.text) == bool(corpus.trees):
        raise UsageError('give either "text" or "trees" under [corpus], with a list of files.')
    if corpus.text:
        return TextCorpus(tuple(folder / name for name in corpus.text))
    return TreeCorpus(tuple(folder / name for name in corpus.trees), on_error="skip")


def plan_record(options: EmPlanFile, plan: MemoryPlan) -> dict[str, object]:
    """Return a plan as a JSON object."""
    resources = options.resources
    at_once = resources.threads * (resources.workers or 1)
    model = options.model
    return {
        "order": model.order,
        **({"heads": model.heads} if isinstance(model, CompositeConfig) else {}),
        "topics": model.topics,
        "keep_topics": options.kept,
        "tokens": plan.tokens,
        "types": {_name(node): node.types for node in plan.nodes},
        "table_bytes": plan.table_bytes,
        "peak_bytes": plan.peak_bytes,
        **{f"{_word(stage)}_bytes": size for stage, size in plan.stages.items()},
        **{
            f"{_word(kind)}_seconds_an_iteration": seconds / at_once
            for kind, seconds in plan.seconds.items()
        },
        **_worker_sizes(resources, plan),
        "memory": plan.memory,
        "fits": plan.fits,
        "most_topics_that_fit": plan.keep_topics,
        "smallest_cutoff_that_fits": plan.cutoff,
    }


def _worker_sizes(resources: PlanResources, plan: MemoryPlan) -> dict[str, object]:
    """Return what workers take besides this process."""
    sizes: dict[str, object] = {}
    if resources.workers is not None:
        # A worker reads the tables in the form in which they were sent, and makes its own of them.
        held = plan.table_bytes
        if resources.shard_parameters:
            held = min(held, int(ASKED_BYTES * (held / ASKED_OF_BYTES) ** ASKED_GROWTH))
        each = WORKER_BYTES + SENT_COPIES * held
        sizes = {
            "workers": resources.workers,
            "worker_bytes": each,
            "all_workers_bytes": each * resources.workers,
        }
    if resources.shards is not None:
        full = plan.nodes[-1]
        row = 4 * (full.words + full.heads + full.topics + 1) + 8
        sizes |= {
            "shards": resources.shards,
            "shard_bytes": -(-full.types * row // resources.shards),
        }
        if resources.shard_parameters:
            sizes["parameter_shard_bytes"] = -(-plan.table_bytes // resources.shards)
    return sizes


def plan_lines(options: EmPlanFile, plan: MemoryPlan) -> Iterator[str]:
    """Yield a plan as readable lines."""
    for name, value in plan_record(options, plan).items():
        if isinstance(value, dict):
            for node, types in value.items():
                yield f"types, {node}\t{types:,}"
        elif name.endswith("bytes") or (name == "memory" and value is not None):
            yield f"{name}\t{_gibibytes(value)}"
        else:
            yield f"{name}\t{value}"


def _gibibytes(value: object) -> str:
    assert isinstance(value, int)
    return f"{value / 2**30:.2f} GiB"


def _name(node: NodePlan) -> str:
    heads = [f"{node.heads} heads"] if node.heads else []
    return " and ".join([f"{node.words} words", *heads, *(["topic"] if node.topics else [])])


def _word(name: str) -> str:
    return name.replace("-", "_")
