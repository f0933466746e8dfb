"""Small n-gram models for tests."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.sample_treebank import sample_treebank
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import TreelmWarning
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.model import NgramModel
from treelm.models.ngram.train import train_ngram
from treelm.models.run import Run


def sample_sentences() -> list[str]:
    """Return the sentences of the packaged treebank."""
    return [" ".join(tree.words) for tree in sample_treebank()]


def small_ngram(
    sentences: Iterable[str] | None = None,
    *,
    vocabulary: Vocabulary | None = None,
    threads: int = 1,
    **options: object,
) -> NgramModel:
    """Train a model on sentences, by default those of the packaged treebank."""
    text = sample_sentences() if sentences is None else list(sentences)
    config = NgramConfig.model_validate(options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.txt"
        path.write_text("".join(f"{sentence}\n" for sentence in text), encoding="utf-8")
        held_out = None
        if config.smoothing == "jm":
            held_out = TextCorpus((_write(folder, text[::10]),))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TreelmWarning)  # so little text has few discounts
            return train_ngram(
                TextCorpus((path,)),
                config,
                vocabulary=vocabulary,
                held_out=held_out,
                run=Run(threads=threads),
            )


def _write(folder: str, sentences: list[str]) -> Path:
    path = Path(folder) / "held-out.txt"
    path.write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
    return path
