"""Which sentences count: those that no model dropped, and that no model was trained on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from treelm.characters import visible
from treelm.corpus.score_files import ScoreTable
from treelm.corpus.words import Words, sentences_of
from treelm.errors import CorpusFormatError

#: Shorter sentences, such as "He left .", are found everywhere by chance.
SHORTEST_TELLING = 5
#: Largest share of test sentences that may occur in the training text.
TOLERATED_OVERLAP = 0.01

#: Not even surrogates: they cannot be written as UTF-8.
_NO_ID = re.compile("[\t\n\r\ud800-\udfff]")


@dataclass(frozen=True, eq=False)
class CommonSentences:
    """The scores of the sentences that every model has scored.

    Args:
        tables: By model; all have the same ids in the same order.
        dropped: Number of sentences that each model dropped.
        left_out: Number of sentences left out for all because some model dropped them.
    """

    tables: dict[str, ScoreTable]
    dropped: dict[str, int]
    left_out: tuple[str, ...]


def common_sentences(
    tables: Mapping[str, ScoreTable], dropped: Mapping[str, Collection[str]] | None = None
) -> CommonSentences:
    """Leave out for all models the sentences that one of them dropped.

    A score of minus infinity is a score, and does not count as dropped.

    Args:
        tables: Scores by model, in any order of the sentences.
        dropped: Ids of the sentences that a model could not score, by model. They may be in its
            table or missing there; any other id must be in every table.

    Raises:
        CorpusFormatError: ``E_SCORE_IDS`` if the tables are about different sentences, ``E_NAN``
            for a score that is NaN, ``E_NO_DATA`` if nothing is left.
    """
    dropped = dropped or {}
    for model in dropped:
        if model not in tables:
            raise CorpusFormatError(
                f'sentences were dropped by "{visible(model)}", which has no scores.',
                code="E_SCORE_IDS",
            )
    without = frozenset[str]().union(*dropped.values())
    kept = {
        model: {one: place for place, one in enumerate(table.ids) if one not in without}
        for model, table in tables.items()
    }
    ids: list[str] = []
    lengths: dict[str, int] = {}
    for number, (model, places) in enumerate(kept.items()):
        _check_ids(model, tables[model])
        _check_finite(model, tables[model])
        if number == 0:
            ids = list(places)
        elif places.keys() != set(ids):
            _refuse_ids(next(iter(kept)), ids, model, places)
        _check_lengths(model, tables[model], places, lengths)
    if tables and not ids:
        raise CorpusFormatError(
            "no sentence is left that every model has scored.", code="E_NO_DATA"
        )
    return CommonSentences(
        {model: tables[model].take([places[one] for one in ids]) for model, places in kept.items()},
        {model: len(set(dropped.get(model, ()))) for model in tables},
        tuple(sorted(without)),
    )


def _check_ids(model: str, table: ScoreTable) -> None:
    for one, count in Counter(table.ids).items():
        if not one or _NO_ID.search(one):
            reason = "is empty or contains a tab or a line end"
        elif count > 1:
            reason = "is used for two sentences"
        else:
            continue
        raise CorpusFormatError(
            f'the scores of "{visible(model)}": the id "{visible(one[:40])}" {reason}.',
            code="E_SCORE_IDS",
        )


def _check_finite(model: str, table: ScoreTable) -> None:
    for values in (table.scores, table.unigram):
        if values is None:
            continue
        wrong = np.flatnonzero(np.isnan(values) | (values == np.inf))
        if len(wrong):
            place = int(wrong[0])
            raise CorpusFormatError(
                f'{visible(model)}: the score of the sentence "{visible(table.ids[place])}" is '
                f"{values[place]}; a score is a number or -inf. Something went wrong when it was "
                "made.",
                code="E_NAN",
            )


def _refuse_ids(first: str, ids: Sequence[str], second: str, places: Mapping[str, int]) -> None:
    missing = [one for one in ids if one not in places]
    more = [one for one in places if one not in set(ids)]
    example, place = (missing[0], first) if missing else (more[0], second)
    raise CorpusFormatError(
        f'the scores of "{visible(first)}" and "{visible(second)}" are not about the same '
        f"sentences: {len(missing) + len(more)} are scored by one only, such as "
        f'"{visible(example)}" of "{visible(place)}". Score the same file with both; name the '
        "sentences that a model dropped.",
        code="E_SCORE_IDS",
    )


def _check_lengths(
    model: str, table: ScoreTable, places: Mapping[str, int], lengths: dict[str, int]
) -> None:
    if table.lengths is None:
        return
    for one, place in places.items():
        length = int(table.lengths[place])
        if lengths.setdefault(one, length) != length:
            raise CorpusFormatError(
                f'the sentence "{visible(one)}" has {length} words in the scores of '
                f'"{visible(model)}" and {lengths[one]} in others. Are they about the same text?',
                code="E_SCORE_IDS",
            )


# -- training and test ----------------------------------------------------------------------


@dataclass(frozen=True)
class Overlap:
    """How many test sentences occur word for word in the training text.

    Args:
        sentences: Number of test sentences.
        found: Number of these that occur in the training text.
        telling: Number of test sentences of at least five words.
        telling_found: Number of these that occur in the training text.
        examples: A few of the latter.
    """

    sentences: int
    found: int
    telling: int
    telling_found: int
    examples: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """Share of the test sentences of at least five words that occur in the training text."""
        return self.telling_found / self.telling if self.telling else 0.0

    @property
    def is_tolerable(self) -> bool:
        """Whether the share is at most 1 %."""
        return self.share <= TOLERATED_OVERLAP

    def to_record(self) -> dict[str, object]:
        """Return it as a JSON object."""
        return {
            "sentences": self.sentences,
            "found": self.found,
            "of_5_words_or_more": self.telling,
            "of_5_words_or_more_found": self.telling_found,
            "share": self.share,
        }


def find_overlap(training: Iterable[Words], test: Iterable[Words], *, examples: int = 3) -> Overlap:
    """Count the test sentences that occur in the training text, which is read once and not kept.

    Examples:
        >>> test = [("we", "saw", "it"), ("the", "boat", "left", "at", "noon")]
        >>> find_overlap([("we", "saw", "it")], test).found
        1
    """
    counts: dict[str, int] = {}
    for words in sentences_of(test):
        sentence = " ".join(words)
        counts[sentence] = counts.get(sentence, 0) + 1
    joined = map(" ".join, sentences_of(training))
    found = {sentence for sentence in joined if sentence in counts}
    telling = {one for one in counts if one.count(" ") + 1 >= SHORTEST_TELLING}
    both = telling & found
    return Overlap(
        sentences=sum(counts.values()),
        found=sum(counts[one] for one in found),
        telling=sum(counts[one] for one in telling),
        telling_found=sum(counts[one] for one in both),
        examples=tuple(islice((one for one in counts if one in both), examples)),
    )


def check_overlap(overlap: Overlap, *, allow_overlap: bool = False) -> None:
    """Refuse a test that was trained on.

    Raises:
        CorpusFormatError: ``E_OVERLAP`` if more than 1 % of the test sentences of at least five
            words occur in the training text, unless that is allowed.
    """
    if overlap.is_tolerable or allow_overlap:
        return
    shown = "; ".join(f'"{visible(one[:60])}"' for one in overlap.examples)
    raise CorpusFormatError(
        f"{overlap.telling_found} of {overlap.telling} test sentences of {SHORTEST_TELLING} or "
        f"more words ({overlap.share:.1%}) occur in the training text, such as {shown}. More than "
        f"{TOLERATED_OVERLAP:.0%} makes the test worthless: split the data again, or allow the "
        "overlap, which the report will then mention.",
        code="E_OVERLAP",
    )
