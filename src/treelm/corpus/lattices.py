"""Word lattices of recognisers: text lattices of Kaldi, and the standard lattice format of HTK.

A path from the start to an end is a hypothesis. Scores are natural logarithms, of which more is
better, whatever the file has: Kaldi writes costs.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from treelm.characters import visible
from treelm.corpus.files import Source, read_lines, source_name
from treelm.corpus.words import split_words
from treelm.errors import CorpusFormatError, TreelmWarning

#: Kaldi's text form of lattices and compact lattices, or HTK's standard lattice format.
LatticeFormat = Literal["kaldi", "slf"]

#: What stands in a lattice for no word.
NO_WORDS = frozenset({"<eps>", "!NULL", "<s>", "</s>", "!SENT_START", "!SENT_END"})

_SLF_NAMES = {
    "START": "S",
    "END": "E",
    "WORD": "W",
    "acoustic": "a",
    "language": "l",
    "UTTERANCE": "U",
    "NODES": "N",
    "LINKS": "L",
}


class Arc(NamedTuple):
    """A step of a hypothesis.

    Args:
        source: Where it begins.
        target: Where it ends.
        word: Its word; None for none.
        acoustic: Acoustic score.
        graph: Score of the recogniser's own language model and graph.
    """

    source: int
    target: int
    word: str | None
    acoustic: float = 0.0
    graph: float = 0.0


@dataclass(frozen=True, slots=True)
class Lattice:
    """A lattice of one utterance, its nodes numbered so that every arc goes up.

    Args:
        name: Name of the utterance.
        arcs: Sorted by where they begin.
        nodes: Number of nodes; the first is the start.
        ends: Nodes at which a hypothesis may end, with acoustic and graph scores of ending there.
    """

    name: str
    arcs: tuple[Arc, ...]
    nodes: int
    ends: Mapping[int, tuple[float, float]]


def read_lattices(
    source: Source,
    form: LatticeFormat = "kaldi",
    *,
    symbols: Mapping[str, str] | None = None,
    skipped: Iterable[str] = (),
) -> Iterator[Lattice]:
    """Yield the lattices of a file.

    Args:
        source: The file.
        form: Its format.
        symbols: Words by their numbers, if the file has these.
        skipped: Words that are no words to a language model, such as marks of noise.

    Raises:
        CorpusFormatError: ``E_LATTICE`` with the line, for what is malformed, has a cycle, or has
            no way to an end.
    """
    silent = NO_WORDS | frozenset(skipped)
    read = _read_kaldi if form == "kaldi" else _read_slf
    for drawn in read(source):
        yield drawn.lattice(symbols, silent)


def read_symbols(source: Source) -> dict[str, str]:
    """Return the words of a symbol table by their numbers: ``word number`` on each line.

    Raises:
        CorpusFormatError: ``E_LATTICE`` with the line, for what is malformed.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(read_lines(source), 1):
        parts = split_words(line)
        if len(parts) != 2 or not parts[1].isdecimal():
            raise _malformed(
                source, number, "this is not a word and its number", "Lines look like: the 12"
            )
        found[parts[1]] = parts[0]
    return found


def _malformed(source: Source, line: int, what: str, advice: str) -> CorpusFormatError:
    name = source_name(source)
    return CorpusFormatError(
        f"{name}:{line}: {what}. {advice}", code="E_LATTICE", path=name, line=line
    )


class _Drawn:
    """A lattice as it is read: nodes have names, and scores are as they will be.

    Args:
        source: The file.
        name: Name of the utterance.
        line: Where it begins.
    """

    def __init__(self, source: Source, name: str, line: int) -> None:
        self.source, self.name, self.line = source, name, line
        self.start: str | None = None
        self.arcs: list[tuple[str, str, str, float, float]] = []
        self.ends: dict[str, tuple[float, float]] = {}

    def lattice(self, symbols: Mapping[str, str] | None, silent: frozenset[str]) -> Lattice:
        """Return it with numbered nodes; what no hypothesis passes is left out."""
        numbers = {name: number for number, name in enumerate(self._useful())}
        if symbols is None and self.arcs and all(arc[2].isdecimal() for arc in self.arcs):
            warnings.warn(
                f"{source_name(self.source)}: the words of {visible(self.name)} are numbers; a "
                "symbol table gives their words.",
                TreelmWarning,
                stacklevel=2,
            )
        arcs = [
            Arc(numbers[first], numbers[last], self._word(word, symbols, silent), acoustic, graph)
            for first, last, word, acoustic, graph in self.arcs
            if first in numbers and last in numbers
        ]
        ends = {numbers[name]: scores for name, scores in self.ends.items() if name in numbers}
        return Lattice(self.name, tuple(sorted(arcs, key=lambda arc: arc[:2])), len(numbers), ends)

    def _word(
        self, label: str, symbols: Mapping[str, str] | None, silent: frozenset[str]
    ) -> str | None:
        if symbols is not None:
            if label not in symbols:
                raise _malformed(
                    self.source,
                    self.line,
                    f'utterance "{visible(self.name)}": the symbol table has no word '
                    f'"{visible(label[:40])}"',
                    "Is it the table of this recogniser?",
                )
            label = symbols[label]
        return None if label in silent or (label == "0" and symbols is None) else label

    def _useful(self) -> list[str]:
        """Return the nodes on a way from the start to an end, every one after those before it."""
        following: dict[str, list[str]] = {}
        before: dict[str, list[str]] = {}
        for first, last, *_ in self.arcs:
            following.setdefault(first, []).append(last)
            before.setdefault(last, []).append(first)
        start = [] if self.start is None else [self.start]
        forth, back = _reached(start, following), _reached(self.ends, before)
        useful = forth & back
        if not useful:
            raise _malformed(
                self.source,
                self.line,
                f'utterance "{visible(self.name)}": no path leads from the start to an end',
                "Was the file cut off?",
            )
        # Kahn's algorithm; what is left over is on a cycle.
        waiting = {node: sum(each in useful for each in before.get(node, ())) for node in useful}
        order = [node for node in start if not waiting[node]]
        for node in order:
            for each in following.get(node, ()):
                if each in useful:
                    waiting[each] -= 1
                    if not waiting[each]:
                        order.append(each)
        if len(order) < len(useful):
            raise _malformed(
                self.source,
                self.line,
                f'utterance "{visible(self.name)}": the lattice has a cycle',
                "Lattices of words have none; convert it with its recogniser's tools.",
            )
        return order


def _reached(starts: Iterable[str], following: Mapping[str, Sequence[str]]) -> set[str]:
    """Return all nodes that can be reached."""
    left = list(starts)
    found = set(left)
    while left:
        for node in following.get(left.pop(), ()):
            if node not in found:
                found.add(node)
                left.append(node)
    return found


# -- Kaldi ------------------------------------------------------------------------------------


def _read_kaldi(source: Source) -> Iterator[_Drawn]:
    """Yield lattices: the name, a line per arc and end, a blank line."""
    current: _Drawn | None = None
    for number, line in enumerate(read_lines(source), 1):
        parts = split_words(line)
        if not parts:
            if current is not None:
                yield current
            current = None
        elif current is None:
            current = _Drawn(source, parts[0], number)
            if parts[0].startswith("VERSION="):
                raise _malformed(
                    source,
                    number,
                    "this is a lattice of HTK, not of Kaldi",
                    "Read it as slf: --format slf",
                )
            if len(parts) > 1:
                raise _malformed(
                    source,
                    number,
                    "a lattice begins with the name of its utterance alone",
                    "Write it as text: lattice-copy ark:FILE ark,t:-",
                )
        else:
            _add_kaldi(current, parts, source, number)
    if current is not None:
        yield current


def _add_kaldi(drawn: _Drawn, parts: Sequence[str], source: Source, line: int) -> None:
    """Add an arc (compact or not) or an end."""
    if drawn.start is None:
        drawn.start = parts[0]
    if len(parts) <= 2:
        graph, acoustic = _kaldi_scores(parts[1:], source, line)
        drawn.ends[parts[0]] = (acoustic, graph)
        return
    # A compact lattice has a word and a weight, another an input label before the word.
    is_compact = len(parts) == 3 or (len(parts) == 4 and "," in parts[3])
    if len(parts) > 5 or (is_compact and len(parts) > 4):
        raise _malformed(
            source,
            line,
            f"{len(parts)} columns, but an arc has 3 to 5",
            "Arcs look like: 0 1 word 3.5,120.4,1_2_3",
        )
    word, rest = (parts[2], parts[3:]) if is_compact else (parts[3], parts[4:])
    graph, acoustic = _kaldi_scores(rest, source, line)
    drawn.arcs.append((parts[0], parts[1], word, acoustic, graph))


def _kaldi_scores(weights: Sequence[str], source: Source, line: int) -> tuple[float, float]:
    """Return graph and acoustic score of a weight, ``graph,acoustic`` and perhaps an alignment."""
    values = weights[0].split(",")[:2] if weights else []
    scores = [-_number(value, source, line) + 0.0 for value in values]
    return (*scores, 0.0, 0.0)[0], (*scores, 0.0, 0.0)[1]


def _number(text: str, source: Source, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise _malformed(
            source, line, f'"{visible(text[:40])}" is not a score', "Scores are finite numbers."
        )
    return value


# -- HTK --------------------------------------------------------------------------------------


def _read_slf(source: Source) -> Iterator[_Drawn]:
    """Yield lattices; each begins with its version."""
    fields: list[tuple[int, dict[str, str]]] = []
    for number, line in enumerate(read_lines(source), 1):
        if line.startswith("#") or not line.strip():
            continue
        found = _slf_fields(line, source, number)
        if "VERSION" in found and fields:
            yield _slf_lattice(fields, source)
            fields = []
        fields.append((number, found))
    if fields:
        yield _slf_lattice(fields, source)


def _slf_fields(line: str, source: Source, number: int) -> dict[str, str]:
    found: dict[str, str] = {}
    for token in split_words(line):
        name, equals, value = token.partition("=")
        if not equals:
            raise _malformed(
                source,
                number,
                f'"{visible(token[:40])}" is not a field',
                "Fields look like: J=0 S=0 E=1 W=the a=-12.5 l=-2.1",
            )
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        found[_SLF_NAMES.get(name, name)] = value.replace("\\", "")
    return found


def _slf_lattice(rows: Sequence[tuple[int, dict[str, str]]], source: Source) -> _Drawn:
    line = rows[0][0]
    header: dict[str, str] = {}
    nodes: dict[str, str] = {}
    links: list[tuple[int, dict[str, str]]] = []
    for number, fields in rows:
        if "I" in fields:
            nodes[fields["I"]] = fields.get("W", "!NULL")
        elif "J" in fields:
            links.append((number, fields))
        else:
            header |= fields
    name = header.get("U") or Path(source_name(source)).name.partition(".")[0]
    drawn = _Drawn(source, name, line)
    base = _slf_base(header.get("base"), source, line)
    entered, left = set(), set()
    for number, fields in links:
        missing = [key for key in ("S", "E") if fields.get(key) not in nodes]
        if missing:
            raise _malformed(
                source,
                number,
                f"the link has no node {missing[0]}=",
                "Links look like: J=0 S=0 E=1 W=the a=-12.5 l=-2.1",
            )
        first, last = fields["S"], fields["E"]
        left.add(first)
        entered.add(last)
        acoustic, graph = (_slf_score(fields.get(key), base, source, number) for key in "al")
        drawn.arcs.append((first, last, fields.get("W", nodes[last]), acoustic, graph))
    starts = [header["start"]] if "start" in header else [n for n in nodes if n not in entered]
    ends = [header["end"]] if "end" in header else [n for n in nodes if n not in left]
    if len(starts) != 1:
        raise _malformed(
            source, line, f"{len(starts)} nodes may be the start", "Name it in the header: start=0"
        )
    drawn.start = starts[0]
    drawn.ends = dict.fromkeys(ends, (0.0, 0.0))
    return drawn


def _slf_base(text: str | None, source: Source, line: int) -> float:
    """Return the base of the logarithms of a lattice; 0 where it has probabilities."""
    base = math.e if text is None else _number(text, source, line)
    if base < 0 or base == 1:
        raise _malformed(source, line, f"base={base:g} is no base", "Logarithms have base=2.71828")
    return base


def _slf_score(text: str | None, base: float, source: Source, line: int) -> float:
    """Return a score as a natural logarithm; one that is not there is 0."""
    if text is None:
        return 0.0
    value = _number(text, source, line)
    if base > 0:
        return value * math.log(base)
    if value <= 0:
        raise _malformed(source, line, f"{text} is no probability", "With base=0 scores are those.")
    return math.log(value)
