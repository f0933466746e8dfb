"""The smallest folders of counts, and checkpoints of the smallest trainings, for the forger.

As small models they come from a few short trees of the packaged treebank, which are in memory, so
that a training that is resumed finds the same data.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.fuzz.forged_folder import Checkpoint, Folder
from tests.fuzz.small_models import few, held_out, sentences

import treelm.store.checkpoint as checkpoints
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.labelled import LabelledSentences
from treelm.errors import TreelmWarning
from treelm.models.ngram.counts import NgramCounts
from treelm.models.registry import SYSTEMS
from treelm.models.run import Run
from treelm.models.treelet.config import TreeletConfig
from treelm.tasks.train import Trained, train_and_save
from treelm.tasks.treelet_counts import build_treelet_counts

_SMALL_SEARCH = {"stack_size": 3, "n_best": 2, "iterations": 1, "follow_up": 1}
#: A training of every system that writes checkpoints, with the kinds of checkpoint that it has.
TRAININGS: dict[str, tuple[str, dict[str, Any]]] = {
    "pcfg_la": (
        "pcfg_la",
        {
            "seed": 1,
            "cycles": 1,
            "split_iterations": 2,
            "merge_iterations": 1,
            "smooth_iterations": 1,
        },
    ),
    "lsvm": ("lsvm", {"start": "zero", "rounds": 2, "regularization": 0.1}),
    "plsa": (
        "plsa",
        {"topics": 3, "keep_topics": 2, "order": 2, "plsa_iterations": 2, "iterations": 2},
    ),
    "composite": (
        "composite",
        {"order": 2, "heads": 1, "topics": 3, "keep_topics": 2, "test_topics": 2, **_SMALL_SEARCH},
    ),
    "slm": ("slm", _SMALL_SEARCH),
}


@cache
def _inputs(system: str) -> dict[str, object]:
    trees, rest = TreeCorpus.of_trees(few()), TreeCorpus.of_trees(held_out())
    text = sentences(few())
    if system == "plsa":
        return {"corpus": TextCorpus.of_sentences(text)}
    if system == "lsvm":
        good = TextCorpus.of_sentences(text)
        bad = TextCorpus.of_sentences(words[::-1] for words in text)
        labelled = LabelledSentences(good, bad)
        return {"data": labelled, "tuning": labelled, "trees": trees}
    return {"corpus": trees} if system == "pcfg_la" else {"corpus": trees, "held_out": rest}


def train_small(training: str, target: Path, *, resume: bool) -> Trained:
    """Train a small model and save it.

    Args:
        training: Name of the training.
        target: The folder.
        resume: Whether to take up the checkpoint beside it.
    """
    system, options = TRAININGS[training]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return train_and_save(
            SYSTEMS[system], _inputs(system), target, options, run=Run(resume=resume)
        )


def make_checkpoints(training: str, folder: Path) -> list[Checkpoint]:
    """Return all checkpoints that a training writes.

    Args:
        training: Name of the training.
        folder: Where it may write.
    """
    found: list[Checkpoint] = []
    with _told_of_checkpoints(training, found):
        train_small(training, folder / training, resume=False)
    return found


@contextmanager
def _told_of_checkpoints(training: str, found: list[Checkpoint]) -> Iterator[None]:
    write = checkpoints.write_tables

    def write_and_read(path: Path, *arguments: Any) -> None:
        write(path, *arguments)
        found.append(Checkpoint.of_training(training, path))

    with patch.object(checkpoints, "write_tables", write_and_read):
        yield


def make_counts(folder: Path) -> list[Folder]:
    """Return folders of counts, of n-grams and of treelets.

    Args:
        folder: Where they may be written.
    """
    text = TextCorpus.of_sentences(sentences(few()))
    for order in (2, 3):
        NgramCounts.count(text, order).save(folder / f"ngrams{order}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)  # few trees have no temporal nouns
        for variant in ("full", "rule"):
            config = TreeletConfig.model_validate({"variant": variant})
            build_treelet_counts(TreeCorpus.of_trees(few()), folder / f"treelets-{variant}", config)
    return [Folder.read(path) for path in sorted(folder.iterdir())]
