"""Perplexities of n-gram models that the specification states."""

from __future__ import annotations

from pathlib import Path

import pytest

from treelm.corpus.corpus import TextCorpus, TreeCorpus, TreeSentences
from treelm.models.registry import train


def test_lmplz_perplexity_of_the_wsj_sample(shared_data: Path, tmp_path: Path) -> None:
    """`</s>` counted, unknown words as `<unk>`: 300.683, as KenLM's lmplz and query give it."""
    texts = []
    for part in ("train", "dev"):
        trees = TreeCorpus((shared_data / f"treebanks/wsj-sample/{part}.mrg",))
        path = tmp_path / f"{part}.txt"
        path.write_text("".join(" ".join(words) + "\n" for words in TreeSentences(trees)))
        texts.append(TextCorpus((path,)))
    model = train("ngram", texts[0], order=5, lmplz=True)
    assert model.perplexity(texts[1]).perplexity == pytest.approx(300.683, abs=5e-4)
