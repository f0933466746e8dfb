"""The counts of the program evalb, sentence by sentence, and its summaries.

With the English profile they are those of evalb with its parameter file ``COLLINS.prm``. Trees are
taken as they are written, traces and function tags included: read them with `EVALB_OPTIONS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum

from treelm.characters import visible
from treelm.corpus.brackets import ReadOptions
from treelm.tasks.evaluate.parse_accuracy import precision_recall_f1
from treelm.trees.profile import Profile, ProfileSource, load_profile
from treelm.trees.tree import Tree

#: How trees are read for evalb's counts: as written, but for ``\/`` and ``\*`` in words.
EVALB_OPTIONS = ReadOptions(strip=False, normalize_root=False)
#: The longest sentences of evalb's second summary, in words.
CUTOFF = 40


class Status(IntEnum):
    """What became of a sentence: counted, an error (words differ), or skipped (no parse)."""

    VALID = 0
    ERROR = 1
    SKIPPED = 2


@dataclass(frozen=True, slots=True)
class EvalbSentence:
    """A row of evalb's table.

    Args:
        number: Number of the sentence, from 1.
        length: Words of the gold tree without empty elements, punctuation included.
        status: Whether it counts; all that follows is 0 if it does not.
        matched: Constituents in both trees.
        gold: Constituents of the gold tree.
        guessed: Constituents of the parse.
        crossing: Constituents of the parse that overlap one of the gold tree, neither inside the
            other.
        words: Words that count.
        correct_tags: Number of these with the correct tag.
        reason: Why it is an error.
    """

    number: int
    length: int
    status: Status
    matched: int = 0
    gold: int = 0
    guessed: int = 0
    crossing: int = 0
    words: int = 0
    correct_tags: int = 0
    reason: str = ""

    @property
    def complete(self) -> bool:
        """Whether both trees have the same constituents."""
        return self.status is Status.VALID and self.gold == self.guessed == self.matched

    def to_record(self) -> dict[str, int | str]:
        """Return the numbers by name."""
        return {**asdict(self), "status": self.status.name.lower()}


@dataclass(frozen=True, slots=True)
class EvalbSummary:
    """Sums over sentences; shares are in percent, as evalb prints them, and 0 where undefined."""

    sentences: int
    errors: int
    skipped: int
    valid: int
    recall: float
    precision: float
    f1: float
    complete_match: float
    average_crossing: float
    no_crossing: float
    two_or_less_crossing: float
    tagging_accuracy: float

    def to_record(self) -> dict[str, float]:
        """Return the numbers by name."""
        return asdict(self)


def score_evalb(
    number: int,
    gold: Sequence[Tree],
    guess: Sequence[Tree],
    profile: ProfileSource = "english",
    *,
    problem: str = "",
) -> EvalbSentence:
    """Return evalb's counts of a sentence.

    Args:
        number: Number of the sentence.
        gold: The gold tree, or the trees of the line.
        guess: The parser's; nothing where it found none.
        profile: Says which words and labels do not count and which labels are equal.
        problem: Why one of the two cannot be read, which makes the sentence an error.

    Examples:
        >>> from treelm.corpus.brackets import parse_tree
        >>> gold = parse_tree("(TOP (S (NP (NP (NN rain)) (SBAR (-NONE- 0))) (VP (VBD fell))))")
        >>> guess = parse_tree("(TOP (S (NP (NN rain)) (VP (VBD fell))))")
        >>> score = score_evalb(1, [gold], [guess])
        >>> score.matched, score.gold, score.guessed, score.complete
        (3, 4, 3, False)
    """
    rules = load_profile(profile)
    right, found = _Side(gold, rules), _Side(guess, rules)
    if problem:
        return EvalbSentence(number, right.length, Status.ERROR, reason=problem)
    if not found.words:
        return EvalbSentence(number, right.length, Status.SKIPPED)
    if reason := _difference(right.words, found.words):
        return EvalbSentence(number, right.length, Status.ERROR, reason=reason)
    return EvalbSentence(
        number,
        right.length,
        Status.VALID,
        matched=(right.brackets & found.brackets).total(),
        gold=right.brackets.total(),
        guessed=found.brackets.total(),
        crossing=_crossing(right.brackets, found.brackets),
        words=len(right.words),
        correct_tags=sum(a == b for a, b in zip(right.tags, found.tags, strict=True)),
    )


def summarize_evalb(sentences: Iterable[EvalbSentence], longest: int | None = None) -> EvalbSummary:
    """Return the sums over the sentences, or over those of at most `longest` words."""
    rows = [row for row in sentences if longest is None or row.length <= longest]
    valid = [row for row in rows if row.status is Status.VALID]
    precision, recall, f1 = precision_recall_f1(
        sum(row.matched for row in valid),
        sum(row.guessed for row in valid),
        sum(row.gold for row in valid),
    )
    words = sum(row.words for row in valid)
    crossing = [row.crossing for row in valid]
    return EvalbSummary(
        sentences=len(rows),
        errors=sum(row.status is Status.ERROR for row in rows),
        skipped=sum(row.status is Status.SKIPPED for row in rows),
        valid=len(valid),
        recall=100 * recall,
        precision=100 * precision,
        f1=100 * f1,
        complete_match=percent(sum(row.complete for row in valid), len(valid)),
        average_crossing=sum(crossing) / len(valid) if valid else 0.0,
        no_crossing=percent(crossing.count(0), len(valid)),
        two_or_less_crossing=percent(sum(count <= 2 for count in crossing), len(valid)),
        tagging_accuracy=percent(sum(row.correct_tags for row in valid), words),
    )


def percent(part: int, whole: int) -> float:
    """Return a share in percent, 0 of nothing."""
    return 100 * part / whole if whole else 0.0


class _Side:
    """What evalb keeps of a gold tree or a parse: words with tags, and brackets over them."""

    def __init__(self, trees: Sequence[Tree], profile: Profile) -> None:
        rules = profile.evaluation
        same = {label: group[0] for group in rules.equal_labels for label in group}
        roots = {*profile.reading.root_labels, *rules.delete_labels}
        deleted = roots | set(rules.delete_tags)
        empty = set(profile.reading.empty_tags)
        self.length = 0
        self.words: list[str] = []
        self.tags: list[str] = []
        self.brackets: Counter[tuple[str, int, int]] = Counter()
        # Visits each phrase twice: on the way down to note where it starts, on the way up to close.
        stack: list[tuple[Tree, int | None]] = [(tree, None) for tree in reversed(trees)]
        while stack:
            node, start = stack.pop()
            label = str(node.label)
            if node.word is not None:
                self.length += label not in empty
                if (
                    label not in empty
                    and label not in deleted
                    and (not rules.delete_punctuation or any(map(str.isalnum, node.word)))
                ):
                    self.words.append(node.word)
                    self.tags.append(same.get(label, label))
            elif start is None:
                stack.append((node, len(self.words)))
                stack.extend((child, None) for child in reversed(node.children))
            elif start < len(self.words) and label:  # the bracket without a label is the root
                base = label.partition("-")[0].partition("=")[0]
                if base not in deleted:
                    self.brackets[same.get(base, base), start, len(self.words)] += 1


def _difference(gold: Sequence[str], guess: Sequence[str]) -> str:
    """Return in which way the words differ, or nothing."""
    if len(gold) != len(guess):
        return f"{len(gold)} words that count in the gold tree and {len(guess)} in the parse"
    for right, found in zip(gold, guess, strict=True):
        if right != found:
            return f'the words differ: "{visible(right)}" and "{visible(found)}"'
    return ""


def _crossing(gold: Counter[tuple[str, int, int]], guess: Counter[tuple[str, int, int]]) -> int:
    spans = {(start, end) for _, start, end in gold}
    return sum(
        count
        for (_, start, end), count in guess.items()
        if any(a < start < b < end or start < a < end < b for a, b in spans)
    )
