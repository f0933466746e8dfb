"""`treelm evaluate translation`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from treelm.cli.options import AsJson, CommonOptions, File, Rounds, Seed
from treelm.cli.ranges import at_least
from treelm.cli.terminal import shown, write_record
from treelm.errors import CorpusFormatError, UsageError
from treelm.tasks.evaluate.translation import (
    ROUNDS,
    Tokenizing,
    Translations,
    TranslationScores,
    check_lines,
    evaluate_translations,
    lines_of_source_length,
)

#: References: the option takes one file, and what follows that are translations.
ReferenceFiles = Annotated[
    list[str],
    Parameter(
        name="--references",
        metavar="FILE",
        consume_multiple=False,
        help="File of reference translations, one per line; give the option again for each further "
        "file of references.",
    ),
]
#: Translations by a program, or by several.
TranslationFiles = Annotated[
    list[str], Parameter(metavar="FILE", help="Files of translations, one per line.")
]


def translation(
    files: TranslationFiles,
    /,
    *,
    references: ReferenceFiles,
    tokenize: Tokenizing = "13a",
    runs: Annotated[int, at_least(1)] = 1,
    source: File | None = None,
    least_words: Annotated[int, at_least(0)] = 1,
    most_words: Annotated[int | None, at_least(0)] = None,
    rounds: Rounds = ROUNDS,
    seed: Seed = 0,
    json: AsJson = False,
    common: CommonOptions = CommonOptions(),
) -> None:
    """Score translations against references: BLEU, chrF and TER, as sacreBLEU computes them.

    Of several files the first is the baseline: the others are compared with it by a paired
    bootstrap over sentences. A difference is what the other has more than the baseline; less TER is
    better. Figures of different signatures cannot be compared.

    Args:
        tokenize: How the words are separated for BLEU: none for text that is tokenized, with spaces
            around punctuation marks.
        runs: Each system has this many files, one after the other, such as those of several tuning
            seeds: figures are means, with their standard deviation.
        source: File of the source sentences: with it only some sentences are measured.
        least_words: With --source: measure sentences whose source has at least this many words.
        most_words: With --source: measure sentences whose source has at most this many words.
        seed: Seed of the bootstrap.
    """
    del common
    if source is None and (least_words != 1 or most_words is not None):
        raise UsageError("--least-words and --most-words count words of the source: give --source.")
    systems = [Translations.read(file) for file in files]
    right = [Translations.read(file) for file in references]
    if source is not None:
        check_lines(systems, right)
        kept = lines_of_source_length(source, least_words, most_words, lines=len(right[0].lines))
        if not kept:
            raise CorpusFormatError(f"{source}: no sentence has that many words.", code="E_NO_DATA")
        systems, right = ([each.kept(kept) for each in group] for group in (systems, right))
    found = evaluate_translations(
        systems, right, seed=seed, runs=runs, tokenize=tokenize, rounds=rounds
    )
    write_record(found.to_record() if json else _lines(found), as_json=json)


def _lines(found: TranslationScores) -> dict[str, object]:
    """Return the figures as lines of text."""
    record: dict[str, object] = {"sentences": found.sentences}
    for name, scores in found.systems.items():
        for metric, score in scores.items():
            more = "" if score.deviation is None else f" (deviation {score.deviation:.2f})"
            record[f"{name}: {metric}"] = f"{score.mean:.2f}{more}"
    for name, differences in found.differences.items():
        for metric, each in differences.items():
            low, high = each.interval
            record[f"{name}: {metric} difference"] = (
                f"{each.difference:+.2f} [{low:+.2f}, {high:+.2f}] p {shown(each.p_value)}"
            )
    for metric, score in next(iter(found.systems.values())).items():
        record[f"{metric} signature"] = score.signature
    return record
