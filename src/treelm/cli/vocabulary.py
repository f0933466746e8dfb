"""`treelm vocabulary`."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from treelm.cli.corpus_options import corpus_of
from treelm.cli.options import AsJson, CommonOptions, Files, OutputFile, Seed, TreeOptions
from treelm.cli.ranges import at_least, between
from treelm.cli.terminal import write_record
from treelm.corpus.corpus import TextCorpus, TreeSentences
from treelm.corpus.vocabulary_file import save_vocabulary
from treelm.corpus.vocabulary_rules import (
    VocabularyRule,
    build_vocabulary,
    vocabulary_summary,
)


def vocabulary(
    *,
    text: Files | None = None,
    trees: Files | None = None,
    output: OutputFile,
    rule: Literal["stream", "min-count", "top", "all"] = "stream",
    size: Annotated[int, at_least(1)] = 60_000,
    min_count: Annotated[int, at_least(1)] = 2,
    start_after: Annotated[
        int | None, at_least(0), Parameter(show_default="10,000, or half of all if that is less")
    ] = None,
    probability: Annotated[float, between(0, 1)] = 0.10,
    seed: Seed = 0,
    signatures: Annotated[bool | None, Parameter(show_default="with stream only")] = None,
    style: Literal["full", "paper"] = "full",
    json: AsJson = False,
    reading: TreeOptions = TreeOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Choose the words that models know, and save them in one file for all of them.

    Args:
        text: Files of tokenized text, one sentence per line.
        trees: Files of trees; give either text or trees.
        rule: Words that are kept: stream (all of the first sentences, after that new words are
            sometimes replaced by signatures), min-count, top (the most frequent), or all.
        size: top: number of words.
        min_count: min-count: smallest count of a word.
        start_after: stream: number of sentences in which every word is kept.
        probability: stream: probability that a new word is replaced.
        seed: stream: seed of the random numbers.
        signatures: Replace rare words by signatures instead of `<unk>`.
        style: How signatures are written: full, or paper for the form without -LC.
    """
    corpus = corpus_of(text, trees, reading, common)
    sentences = corpus if isinstance(corpus, TextCorpus) else TreeSentences(corpus)
    built = build_vocabulary(
        sentences,
        VocabularyRule(
            name=rule,
            size=size,
            min_count=min_count,
            start_after=start_after,
            probability=probability,
            seed=seed,
            signatures=signatures,
        ),
        profile=reading.profile,
        style=style,
    )
    save_vocabulary(built, output)
    write_record(vocabulary_summary(built), as_json=json)
