"""A plan of a training from a file of options: types, bytes, time, and what fits."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.files import Source, source_name
from treelm.corpus.vocabulary_file import load_vocabulary
from treelm.errors import InputFileError, UsageError
from treelm.models.composite.memory_plan import MemoryPlan, plan_topics
from treelm.models.composite.topic_config import TopicConfig
from treelm.models.model import Config, explain
from treelm.models.ngram.counts import encode_corpus
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress


class PlanCorpus(Config):
    """The text of a training."""

    text: tuple[str, ...] = ()
    """Files of text in documents."""
    trees: tuple[str, ...] = ()
    """Files of trees, instead of text."""
    vocabulary: str | None = None
    """Vocabulary file; all words of the text by default."""


class PlanResources(Config):
    """What there is to train with."""

    memory: str | None = None
    """Memory, such as ``16G``."""
    threads: int = Field(default=1, ge=1)
    """Threads."""


class EmPlanFile(Config):
    """What an ``em.toml`` says."""

    system: Literal["plsa"] = "plsa"
    corpus: PlanCorpus
    model: TopicConfig = TopicConfig()
    resources: PlanResources = PlanResources()


def read_plan_file(path: Source) -> EmPlanFile:
    """Return what a file of options says; file names in it are relative to its folder.

    Raises:
        InputFileError: if it cannot be read, or is no TOML.
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
    """Return the options of a file, and what a training with them will take.

    Args:
        path: A file such as ``em.toml``.
        progress: Told how far reading is.
    """
    options = read_plan_file(path)
    folder = Path(path).parent
    corpus = _corpus(options.corpus, folder)
    vocabulary = options.corpus.vocabulary
    words, text = encode_corpus(
        corpus,
        None if vocabulary is None else load_vocabulary(folder / vocabulary),
        threads=options.resources.threads,
        progress=progress,
    )
    memory = options.resources.memory
    plan = plan_topics(
        text,
        len(words),
        options.model,
        memory=None if memory is None else MemoryLimit.parse(memory).bytes,
    )
    return options, plan


def _corpus(corpus: PlanCorpus, folder: Path) -> TextCorpus | TreeCorpus:
    if bool(corpus.text) == bool(corpus.trees):
        raise UsageError('give either "text" or "trees" under [corpus], with a list of files.')
    if corpus.text:
        return TextCorpus(tuple(folder / name for name in corpus.text))
    return TreeCorpus(tuple(folder / name for name in corpus.trees), on_error="skip")


def plan_record(options: EmPlanFile, plan: MemoryPlan) -> dict[str, object]:
    """Return a plan as one JSON object can say it."""
    threads = options.resources.threads
    return {
        "order": options.model.order,
        "topics": options.model.topics,
        "keep_topics": options.model.kept,
        "tokens": plan.tokens,
        "types": {_name(node.words, topics=node.topics): node.types for node in plan.nodes},
        "table_bytes": plan.table_bytes,
        "peak_bytes": plan.peak_bytes,
        "plsa_seconds_an_iteration": plan.plsa_seconds / threads,
        "em_seconds_an_iteration": plan.em_seconds / threads,
        "memory": plan.memory,
        "fits": plan.fits,
        "most_topics_that_fit": plan.keep_topics,
        "smallest_cutoff_that_fits": plan.cutoff,
    }


def plan_lines(options: EmPlanFile, plan: MemoryPlan) -> Iterator[str]:
    """Yield a plan as lines for people."""
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


def _name(words: int, *, topics: bool) -> str:
    parts: Sequence[str] = [f"{words} words"] + (["topic"] if topics else [])
    return " and ".join(parts)
