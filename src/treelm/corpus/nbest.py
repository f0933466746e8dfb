"""The n-best record: the hypotheses of a parser, translator or recogniser for one sentence.

Lists of words are read and written in the formats of Moses and Kaldi here; k-best lists of trees in
`treelm.corpus.k_best_lists`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from treelm.characters import visible
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import Source, read_lines, source_name
from treelm.corpus.words import SPACE, split_words
from treelm.errors import CorpusFormatError, UsageError
from treelm.trees.tree import Tree

_SEPARATOR = "|||"
_FIELDS = range(2, 7)
_RANKED = re.compile(r"(?P<id>.+)-(?P<rank>\d+)")


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One hypothesis for a sentence.

    Args:
        words: Its words.
        tree: Its tree, if it has one.
        score: Score given by the system that made it; larger is better.
        features: Features of the score, by name; values as written.
        more: Further columns, as written.
    """

    words: tuple[str, ...]
    tree: Tree | None = None
    score: float | None = None
    features: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    more: tuple[str, ...] = ()

    def with_feature(self, name: str, value: float) -> Hypothesis:
        """Return it with a feature added or changed.

        Examples:
            >>> Hypothesis(("a",)).with_feature("TreeLM0", -42.1).features
            {'TreeLM0': ('-42.1',)}
        """
        features = {**self.features, name: (repr(value),)}
        return Hypothesis(self.words, self.tree, self.score, features, self.more)


@dataclass(frozen=True, slots=True)
class NBest:
    """The hypotheses for one sentence, in the order of the file.

    Args:
        id: Name of the sentence.
        hypotheses: None for a sentence without any.
        line: Where it begins in its file, counted from 1.
    """

    id: str
    hypotheses: tuple[Hypothesis, ...]
    line: int = 0

    def __len__(self) -> int:
        return len(self.hypotheses)


def malformed(source: Source, line: int, what: str, advice: str) -> CorpusFormatError:
    """Return the error for a malformed line."""
    name = source_name(source)
    return CorpusFormatError(
        f"{name}:{line}: {what}. {advice}", code="E_NBEST", path=name, line=line
    )


def read_number(text: str, source: Source, line: int) -> float:
    """Return a score.

    Raises:
        CorpusFormatError: ``E_NBEST`` if it is not a score.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise malformed(
            source, line, f'"{visible(text[:40])}" is not a score', "A number was expected here."
        )
    return value


# -- Moses ----------------------------------------------------------------------------------


def read_moses(source: Source) -> Iterator[NBest]:
    """Yield the lists of a Moses n-best file: ``id ||| words ||| features ||| score``.

    Lines with the same id are one list. Two to six columns are read; what follows the score is
    kept as it is.

    Raises:
        CorpusFormatError: ``E_NBEST`` with the line, for a malformed line.
    """
    group: list[Hypothesis] = []
    current, first = "", 0
    for number, line in enumerate(read_lines(source, Wanted.N_BEST), 1):
        if not line.strip():
            continue
        columns = [column.strip(SPACE) for column in line.split(_SEPARATOR)]
        if len(columns) not in _FIELDS:
            raise malformed(
                source,
                number,
                f'{len(columns)} columns, but an n-best list has 2 to 6, separated by "|||"',
                "Lines look like: 0 ||| the words ||| LM0= -12.3 ||| -4.5",
            )
        if group and columns[0] != current:
            yield NBest(current, tuple(group), first)
            group = []
        if not group:
            current, first = columns[0], number
        group.append(_moses_hypothesis(columns, source, number))
    if group:
        yield NBest(current, tuple(group), first)


def _moses_hypothesis(columns: Sequence[str], source: Source, line: int) -> Hypothesis:
    features: dict[str, tuple[str, ...]] = {}
    name = ""
    for token in split_words(columns[2]) if len(columns) > 2 else ():
        if token.endswith("="):
            name = token[:-1]
            features[name] = ()
        else:  # old files have numbers without names
            features[name] = (*features.get(name, ()), token)
    score = read_number(columns[3], source, line) if len(columns) > 3 and columns[3] else None
    return Hypothesis(
        split_words(columns[1]), score=score, features=features, more=tuple(columns[4:])
    )


def moses_lines(lists: Iterable[NBest]) -> Iterator[str]:
    """Yield the lines of a Moses n-best file, without line ends.

    Raises:
        CorpusFormatError: ``E_NBEST`` for a word with ``|||`` in it, which separates columns.

    Examples:
        >>> best = Hypothesis(("a", "b"), score=-4.5, features={"LM0": ("-3", "2")})
        >>> list(moses_lines([NBest("0", (best,))]))
        ['0 ||| a b ||| LM0= -3 2 ||| -4.5']
    """
    for best in lists:
        for each in best.hypotheses:
            features = " ".join(
                " ".join((f"{name}=", *values) if name else values)
                for name, values in each.features.items()
            )
            score = "" if each.score is None else repr(each.score)
            words = " ".join(each.words)
            if _SEPARATOR in words:
                raise CorpusFormatError(
                    f'sentence {visible(best.id)}: a word contains "{_SEPARATOR}", which separates '
                    "the columns of a Moses list. Write the Kaldi format, or escape the word.",
                    code="E_NBEST",
                )
            columns = [best.id, words, features, score, *each.more]
            while len(columns) > 2 and not columns[-1]:
                columns.pop()
            yield f" {_SEPARATOR} ".join(columns)


# -- Kaldi ----------------------------------------------------------------------------------


def read_kaldi(source: Source, scores: Source | None = None) -> Iterator[NBest]:
    """Yield the lists of a Kaldi or ESPnet n-best file: ``utterance-rank words``.

    Neighbouring lines with the same utterance are one list. An utterance may have no words.

    Args:
        source: The file.
        scores: File with ``utterance-rank score``, line for line the same.

    Raises:
        CorpusFormatError: ``E_NBEST`` with the line, for a malformed line.
    """
    numbers = None if scores is None else enumerate(read_lines(scores), 1)
    group: list[Hypothesis] = []
    current, first = "", 0
    for number, line in enumerate(read_lines(source, Wanted.N_BEST), 1):
        name, *words = split_words(line) or ("",)
        found = _RANKED.fullmatch(name)
        if found is None:
            raise malformed(
                source,
                number,
                f'"{visible(name[:40])}" is not an utterance and a rank',
                "Lines look like: utterance-1 the words",
            )
        score = None
        if numbers is not None and scores is not None:
            at, given = next(numbers, (number, ""))
            parts = split_words(given)
            if len(parts) != 2 or parts[0] != name:
                raise malformed(
                    scores,
                    at,
                    f'there is no score for "{visible(name)}"',
                    "Both files belong together.",
                )
            score = read_number(parts[1], scores, at)
        if group and found["id"] != current:
            yield NBest(current, tuple(group), first)
            group = []
        if not group:
            current, first = found["id"], number
        group.append(Hypothesis(tuple(words), score=score))
    if group:
        yield NBest(current, tuple(group), first)


def kaldi_lines(lists: Iterable[NBest], *, scores: bool = False) -> Iterator[str]:
    """Yield the lines of a Kaldi n-best file, or of its score file; ranks begin with 1.

    Raises:
        UsageError: if a score is wanted and a hypothesis has none.

    Examples:
        >>> list(kaldi_lines([NBest("u", (Hypothesis(("a", "b")), Hypothesis(("a",))))]))
        ['u-1 a b', 'u-2 a']
    """
    for best in lists:
        for rank, each in enumerate(best.hypotheses, 1):
            if scores and each.score is None:
                raise UsageError(f"{best.id}-{rank} has no score.")
            rest = (repr(each.score),) if scores else each.words
            yield " ".join((f"{best.id}-{rank}", *rest))
