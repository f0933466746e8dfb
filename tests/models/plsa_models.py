"""Small models with topics, for tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.sample_treebank import sample_treebank
from treelm.corpus.vocabulary import Vocabulary
from treelm.models.plsa.config import PlsaConfig
from treelm.models.plsa.model import PlsaModel
from treelm.models.plsa.train import train_plsa
from treelm.models.run import Run
from treelm.seeds import random_uniform

ANIMALS = ("cat", "dog", "cow", "purrs", "barks", "eats")
STARS = ("sun", "moon", "star", "shines", "rises", "sets")


def two_topics(documents: int = 30, *, seed: int = 0) -> str:
    """Return documents about animals and documents about stars, two to one."""
    lines = []
    for document in range(documents):
        words = ANIMALS if document % 3 else STARS
        for sentence in range(4):
            drawn = [
                words[int(random_uniform(seed, document, 10 * sentence + i) * 6)] for i in range(4)
            ]
            lines.append(" ".join(["the", *drawn, "."]))
        lines.append("")
    return "\n".join(lines)


def train_small(text: str, **options: object) -> PlsaModel:
    """Return a model trained on a text."""
    vocabulary = options.pop("vocabulary", None)
    threads = options.pop("threads", 1)
    assert vocabulary is None or isinstance(vocabulary, Vocabulary)
    assert isinstance(threads, int)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "text.txt"
        path.write_text(text, encoding="utf-8")
        return train_plsa(
            TextCorpus((path,)),
            PlsaConfig.model_validate(options),
            vocabulary=vocabulary,
            run=Run(threads=threads),
        )


@cache
def sample_topics(**options: object) -> PlsaModel:
    """Return a model of the packaged treebank, five sentences a document."""
    lines = []
    for number, tree in enumerate(sample_treebank()):
        lines.append(" ".join(tree.words))
        if number % 5 == 4:
            lines.append("")
    return train_small("\n".join(lines), **{"topics": 6, "iterations": 2, **options})
