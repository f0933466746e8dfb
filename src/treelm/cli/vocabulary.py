"""`treelm vocabulary`."""

from __future__ import annotations

from typing import Literal

from treelm.cli.corpus_options import corpus_of
from treelm.cli.options import CommonOptions, OutputFile, TreeOptions
from treelm.cli.terminal import write_record
from treelm.corpus.corpus import TextCorpus, TreeSentences
from treelm.corpus.vocabulary_file import save_vocabulary
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary


def vocabulary(
    *,
    text: list[str] | None = None,
    trees: list[str] | None = None,
    output: OutputFile,
    rule: Literal["stream", "min-count", "top", "all"] = "stream",
    size: int = 60_000,
    min_count: int = 2,
    start_after: int | None = None,
    probability: float = 0.10,
    seed: int = 0,
    signatures: bool | None = None,
    style: Literal["full", "paper"] = "full",
    json: bool = False,
    reading: TreeOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Choose the words that models know, and save them in one file for all of them.

    Args:
        text: Files of tokenized text, one sentence a line.
        trees: Files of trees; give either text or trees.
        output: File to write.
        rule: stream (new words after the first sentences become signatures now and then),
            min-count, top (the most frequent), or all.
        size: top: number of words.
        min_count: min-count: smallest count.
        start_after: stream: sentences in which every word is kept; default: 10,000 or half of all.
        probability: stream: probability that a new word is replaced.
        seed: stream: seed of the random numbers.
        signatures: Rare words become signatures instead of <unk>; default: with stream only.
        style: How signatures are written: full, or paper for the form without -LC.
        json: One JSON object instead of lines.
        reading: Reading.
        common: Common.
    """
    reading, common = reading or TreeOptions(), common or CommonOptions()
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
    kinds = [item.is_signature for item in built.entries]
    write_record(
        {
            "words": kinds.count(False) - 1,
            "signatures": kinds.count(True),
            "tokens": int(built.counts.sum()),
            "unknown": int(built.counts[0]),
            "in_signatures": sum(item.count for item in built.entries if item.is_signature),
            "fingerprint": built.fingerprint,
        },
        as_json=json,
    )
