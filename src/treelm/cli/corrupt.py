"""`treelm corrupt`."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from typing import Annotated, Literal

from cyclopts import Parameter

from treelm.cli.apps import command_group, example_line
from treelm.cli.corpus_options import trees_of
from treelm.cli.model_options import ModelPath, at_once
from treelm.cli.options import (
    CommonOptions,
    Count,
    File,
    Files,
    NewFile,
    OutputFile,
    Seed,
    TreeOptions,
)
from treelm.cli.ranges import at_least
from treelm.corpus.corpus import TextCorpus
from treelm.corpus.files import write_atomically
from treelm.errors import TreelmWarning
from treelm.models.registry import load
from treelm.tasks.corrupt.error_types import ErrorName
from treelm.tasks.corrupt.lexicon import Lexicon
from treelm.tasks.corrupt.noisy import (
    EQUAL_WEIGHTS,
    PUBLISHED_WEIGHTS,
    NoiseCounts,
    NoiseGenerator,
    NoisySentence,
    make_noisy,
)
from treelm.tasks.corrupt.spelling import read_confusions
from treelm.tasks.corrupt.tagged_sentences import tagged_corpus
from treelm.tasks.corrupt.trigram import Part, TrigramNegatives

_MODEL = "Model folder; the published recipe uses a trigram model with Kneser-Ney smoothing."
#: Where the counts go.
SummaryFile = Annotated[
    NewFile | None,
    Parameter(
        name="--summary",
        help="File to write: the counts, as one JSON object.",
        show_default="notes on standard error",
    ),
]
#: Length of a sentence.
Words = Annotated[int, at_least(1)]

corrupt = command_group(
    "corrupt",
    "Make wrong sentences: by a trigram model, or one error each.",
    "treelm corrupt noisy --trees dev.mrg --seed 1 > noisy.tsv",
)


@corrupt.command(
    help_epilogue=example_line("treelm corrupt trigram -m model -n 1000 --min-words 5 --seed 1")
)
def trigram(
    *,
    model: Annotated[ModelPath, Parameter(help=_MODEL)],
    count: Count = 1,
    seed: Seed = 0,
    part: Part = "train",
    min_words: Words = 5,
    max_words: Words = 200,
    corpus: Files | None = None,
    positives: Files | None = None,
    output: OutputFile = "-",
    summary: SummaryFile = None,
    common: CommonOptions = CommonOptions(),
) -> None:
    """Sample sentences from an n-gram model, one per line, as negatives for classifiers.

    A sentence that is too short, too long or contains `<unk>` is replaced as a whole.

    Args:
        count: Number of sentences.
        seed: Sentence i depends only on the seed, the part and i.
        part: Each part has sentences of its own.
        min_words: Fewest words of a sentence.
        max_words: Most words of a sentence.
        corpus: Files of text; sampled sentences that happen to occur there are kept, but counted.
        positives: Files of text; sentences with a word unknown to the model are counted.
    """
    flush = at_once(output, line_buffered=False)
    negatives = TrigramNegatives(
        load(model), seed=seed, part=part, min_words=min_words, max_words=max_words
    )
    with write_atomically(output) as out:
        for sentence in negatives.draw(count):
            out.write(f"{sentence}\n".encode())
            if flush:
                out.flush()
    if corpus is not None:
        negatives.look_up(TextCorpus(tuple(corpus)))
    if positives is not None:
        negatives.look_at_positives(TextCorpus(tuple(positives)))
    _report(negatives.counts.summary(), summary, common)


@corrupt.command(
    help_epilogue=example_line("treelm corrupt noisy --trees dev.mrg --seed 1 --only agreement")
)
def noisy(
    *,
    trees: Files,
    lexicon: Annotated[Files | None, Parameter(show_default="the same trees")] = None,
    count: Annotated[Count | None, Parameter(show_default="one for each tree")] = None,
    seed: Seed = 0,
    only: ErrorName | None = None,
    weights: Literal["published", "equal"] = "published",
    confusions: Annotated[File | None, Parameter(show_default="the list in treelm")] = None,
    output: OutputFile = "-",
    summary: SummaryFile = None,
    reading: TreeOptions = TreeOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Put one error into each sentence: noisy sentence, type, position and original, tab-separated.

    Sentences of one word, and those in which no error can be made, are left out and counted.

    Args:
        trees: Files of trees with Penn tags.
        lexicon: Files of trees whose words, forms and spellings are used.
        count: Number of noisy sentences; if there are too few trees, they are read again with other
            errors.
        seed: Sentence i depends only on the seed and i.
        only: Make errors of this type only.
        weights: published, or equal: all types with the same probability where they apply.
        confusions: File of commonly confused words, two per line.
    """
    listed = read_confusions(confusions)
    corpus = trees_of(trees, reading, common)
    source = trees_of(lexicon, reading, common) if lexicon else corpus
    counts = NoiseCounts()
    flush = at_once(output, line_buffered=False)
    with warnings.catch_warnings(), write_atomically(output) as out:
        # What is strange in the trees has been said; they are read again several times.
        warnings.simplefilter("ignore", TreelmWarning)
        words = Lexicon(tagged_corpus(source))
        generator = NoiseGenerator(
            words,
            confusions=listed,
            weights=PUBLISHED_WEIGHTS if weights == "published" else EQUAL_WEIGHTS,
            only=only,
        )
        for sentence in make_noisy(
            lambda: tagged_corpus(corpus), generator, words, seed=seed, count=count, counts=counts
        ):
            out.write(f"{_row(sentence)}\n".encode())
            if flush:
                out.flush()
    _report(counts.summary(), summary, common)


def _row(sentence: NoisySentence) -> str:
    noisy, original = " ".join(sentence.words), " ".join(sentence.original)
    return f"{noisy}\t{sentence.error}\t{sentence.position}\t{original}"


def _report(counts: Mapping[str, object], file: str | None, common: CommonOptions) -> None:
    """Write the counts to a file as JSON, or say them on standard error."""
    if file is None:
        for name, value in counts.items():
            common.note(f"{name.replace('_', ' ')}: {_shown(value)}")
        return
    with write_atomically(file) as out:
        out.write((json.dumps(counts, indent=2) + "\n").encode())


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        parts = (f"{name} {_shown(inner)}" for name, inner in value.items())
        brackets = any(isinstance(inner, Mapping) for inner in value.values())
        return ("; " if brackets else ", ").join(parts).replace("_", " ")
    return f"{value:.4f}" if isinstance(value, float) else str(value)
