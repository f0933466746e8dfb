"""`treelm corrupt`."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from typing import Annotated, Literal

from cyclopts import App, Parameter

from treelm.cli.corpus_options import corpus_of
from treelm.cli.model_options import ModelPath, at_once
from treelm.cli.options import CommonOptions, OutputFile, TreeOptions
from treelm.corpus.corpus import TextCorpus, TreeCorpus
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

corrupt = App(
    name="corrupt",
    help="Make wrong sentences: by a trigram model, or one error each.",
    help_epilogue="Example: `treelm corrupt noisy --trees dev.mrg --seed 1 > noisy.tsv`",
    default_parameter=Parameter(negative=(), consume_multiple=True),
    version_flags=[],
)


@corrupt.command(
    help_epilogue="Example: `treelm corrupt trigram -m model -n 1000 --min-words 5 --seed 1`"
)
def trigram(
    *,
    model: ModelPath,
    count: Annotated[int, Parameter(name=["--count", "-n"])] = 1,
    seed: int = 0,
    part: Part = "train",
    min_words: int = 5,
    max_words: int = 200,
    corpus: list[str] | None = None,
    positives: list[str] | None = None,
    output: OutputFile = "-",
    summary: str | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Draw sentences from an n-gram model, one a line, as negatives for classifiers.

    A sentence that is too short, too long or holds `<unk>` is drawn anew as a whole.

    Args:
        model: Model folder; the published recipe wants a trigram model with Kneser-Ney smoothing.
        count: Number of sentences.
        seed: Sentence i depends on the seed, the part and i alone.
        part: train, dev or test: each has sentences of its own.
        min_words: Fewest words of a sentence.
        max_words: Most words of a sentence.
        corpus: Files of text; sentences that stand there by accident are kept, but counted.
        positives: Files of text; those with a word unknown to the model are counted.
        output: File to write; standard output by default.
        summary: File for the counts, as one JSON object; default: a note on standard error.
        common: Common.
    """
    common = common or CommonOptions()
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
    help_epilogue="Example: `treelm corrupt noisy --trees dev.mrg --seed 1 --only agreement`"
)
def noisy(
    *,
    trees: list[str],
    lexicon: list[str] | None = None,
    count: Annotated[int | None, Parameter(name=["--count", "-n"])] = None,
    seed: int = 0,
    only: ErrorName | None = None,
    weights: Literal["published", "equal"] = "published",
    confusions: str | None = None,
    output: OutputFile = "-",
    summary: str | None = None,
    reading: TreeOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Put one error into each sentence: noisy sentence, type, position and original, as TSV.

    Args:
        trees: Files of trees with Penn tags.
        lexicon: Files of trees whose words, forms and spellings are used; default: the same trees.
        count: Number of noisy sentences; the trees are read again with other errors where they are
            too few. Default: one for each tree.
        seed: Sentence i depends on the seed and on i alone.
        only: Make only missing, extra, spelling, agreement or verb-form errors.
        weights: published, or equal: all types with the same probability where they apply.
        confusions: File of confused words, two a line, instead of the list that comes with treelm.
        output: File to write; standard output by default.
        summary: File for the counts, as one JSON object; default: a note on standard error.
        reading: Reading.
        common: Common.
    """
    reading, common = reading or TreeOptions(), common or CommonOptions()
    listed = read_confusions(confusions)
    corpus = _trees(trees, reading, common)
    source = _trees(lexicon, reading, common) if lexicon else corpus
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


def _trees(files: list[str], reading: TreeOptions, common: CommonOptions) -> TreeCorpus:
    corpus = corpus_of(None, files, reading, common)
    assert isinstance(corpus, TreeCorpus)
    return corpus


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
