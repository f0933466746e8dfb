"""Head rules by statistics: the child that can stand alone, and that is at home in the phrase.

Hand-made head rules follow grammarians' tests (Zwicky 1985): the head is the part that can replace
the whole, and that determines of which kind the whole is. Both can be counted in a treebank. For a
child with label c in phrases P,

- independence is how often c is the only child of P, among the phrases P that have a c;
- projection is how often the mother of a c is a P;
- coverage is how many of the phrases P have a c.

The score of c in P is their product, each to a power, times a constant for phrases, and another one
for a child of the same category as its mother. The labels with the best scores are the first tier
of the rule. It decides the phrases that have one of them, from the side at which they stand where
there is only one; the next tier is found in the same way among the phrases that are left. The
constants were chosen for agreement with the hand-made profiles of four languages (GUM, wsj-sample,
CESS-ESP and Keyaki, training parts; IcePaHC, development part). Sangati and Zuidema (2009) compare
other criteria that need no hand-made rules.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from treelm.tasks.new_language.notes import Note, listed, percent
from treelm.tasks.new_language.survey import Child, LocalTrees

Rules = Counter[tuple[str, tuple[Child, ...]]]


@dataclass(frozen=True)
class Constants:
    """What the criterion weighs, and how."""

    independence: float = 0.5
    projection: float = 0.5
    coverage: float = 0.3
    phrase: float = 0.05
    same: float = 1.0
    #: Number of phrases that the mean independence is worth.
    prior: float = 50.0
    #: Labels whose score is at least this share of the best one of their tier belong to it.
    tier: float = 0.7
    #: Phrases with a choice whose two best children are closer than this are close calls.
    close: float = 1.5


CONSTANTS = Constants()
#: What is left after so many tiers is decided by the side.
MOST_TIERS = 12


@dataclass(frozen=True)
class Tier:
    """Labels of similar scores, and the side from which the first is taken."""

    labels: tuple[str, ...]
    right: bool


@dataclass(frozen=True)
class ProposedRule:
    """The head rule of a category."""

    tiers: tuple[Tier, ...]
    default_right: bool
    choices: int
    close_calls: int
    heads: Counter[str]


@dataclass
class HeadProposal:
    """The head rules of a treebank."""

    rules: dict[str, ProposedRule]
    default_right: bool
    coordinators: tuple[str, ...]
    notes: list[Note] = field(default_factory=list)


class Statistics:
    """What is counted of children in phrases, without punctuation."""

    def __init__(self, rules: Rules) -> None:
        self.phrases: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
        self.under: dict[str, Counter[str]] = defaultdict(Counter)
        self.mothers: Counter[str] = Counter()
        self.is_tag: dict[str, bool] = {}
        for (mother, children), count in rules.items():
            kept = tuple(label for label, _, punctuation in children if not punctuation)
            if not kept:
                continue
            self.phrases[mother][kept] += count
            self.is_tag.update((label, tag) for label, tag, _ in children)
            for label in kept:
                self.under[mother][label] += count
                self.mothers[label] += count

    def scores(
        self, mother: str, phrases: Counter[tuple[str, ...]], constants: Constants
    ) -> dict[str, float]:
        """Return how likely each label is that of heads, for some phrases of a category."""
        alone: Counter[str] = Counter()
        present: Counter[str] = Counter()
        for kept, count in phrases.items():
            for label in set(kept):
                present[label] += count
            if len(kept) == 1:
                alone[kept[0]] += count
        total = phrases.total()
        mean = (alone.total() + 1.0) / (total + 2.0)
        return {
            label: self._score(
                mother,
                label,
                (alone[label] + constants.prior * mean) / (count + constants.prior),
                count / total,
                constants,
            )
            for label, count in present.items()
        }

    def _score(
        self, mother: str, label: str, independence: float, coverage: float, constants: Constants
    ) -> float:
        projection = self.under[mother][label] / self.mothers[label]
        value: float = (
            independence**constants.independence
            * projection**constants.projection
            * coverage**constants.coverage
        )
        if mother == label:
            return value * constants.same
        return value if self.is_tag[label] else value * constants.phrase


def propose_heads(
    trees: LocalTrees, closed: Iterable[str], constants: Constants = CONSTANTS
) -> HeadProposal:
    """Return head rules for every category of a treebank.

    Args:
        trees: Its phrases.
        closed: Tags of few words, among which coordinators are looked for.
        constants: Of the criterion.
    """
    statistics = Statistics(trees.rules)
    notes: list[Note] = []
    coordinators = _coordinators(trees.rules, set(closed), statistics, notes)
    rules = {
        mother: _rule(statistics, mother, frozenset(coordinators), constants)
        for mother in sorted(statistics.phrases)
        if any(len(kept) > 1 for kept in statistics.phrases[mother])
    }
    right = sum(rule.choices for rule in rules.values() if rule.default_right)
    left = sum(rule.choices for rule in rules.values() if not rule.default_right)
    for mother, rule in sorted(rules.items(), key=lambda item: -item[1].choices):
        if rule.choices:
            notes.append(
                Note(
                    f"heads.rules.{mother}",
                    sure=rule.close_calls <= 0.1 * rule.choices and rule.choices >= 20,
                    evidence=f"{rule.choices} with a choice; heads {listed(rule.heads, 5)}; "
                    "close calls "
                    f"{percent(rule.close_calls, rule.choices)}.",
                )
            )
    notes.append(
        Note(
            "heads.default",
            sure=max(left, right) >= 2 * min(left, right),
            evidence=f"heads stand at the left in categories with {left} choices, at the right "
            f"in {right}.",
        )
    )
    return HeadProposal(rules, right > left, coordinators, notes)


def _rule(
    statistics: Statistics, mother: str, coordinators: frozenset[str], constants: Constants
) -> ProposedRule:
    left = Counter(statistics.phrases[mother])
    choices = sum(count for kept, count in left.items() if len(kept) > 1)
    tiers: list[Tier] = []
    heads: Counter[str] = Counter()
    close = 0
    while left and len(tiers) < MOST_TIERS:
        scores = statistics.scores(mother, left, constants)
        for coordinator in coordinators & scores.keys():
            del scores[coordinator]
        if not scores:
            break
        best = max(scores.values())
        labels = {label for label, score in scores.items() if score >= constants.tier * best}
        tier = Tier(
            tuple(sorted(labels, key=lambda label: (-scores[label], label))[:200]),
            _side(left, labels, default=bool(tiers) and tiers[0].right),
        )
        tiers.append(tier)
        decided = {kept: count for kept, count in left.items() if labels & set(kept)}
        for kept, count in decided.items():
            del left[kept]
            if len(kept) == 1:
                continue
            order = reversed(kept) if tier.right else iter(kept)
            head = next(label for label in order if label in labels)
            heads[head] += count
            others = (scores.get(label, 0.0) for label in kept if label != head)
            close += count if max(others, default=0.0) * constants.close > scores[head] else 0
    default_right = tiers[0].right if tiers else False
    return ProposedRule(tuple(tiers), default_right, choices, close, heads)


def _side(choices: Counter[tuple[str, ...]], labels: set[str], *, default: bool = False) -> bool:
    """Return whether heads stand at the right, where only one child can be the head."""
    balance = 0
    for kept, count in choices.items():
        places = [place for place, label in enumerate(kept) if label in labels]
        if len(places) == 1:
            balance += count * (2 * places[0] - (len(kept) - 1)) // max(1, len(kept) - 1)
    return balance > 0 if balance else default


def _coordinators(
    rules: Rules, closed: set[str], statistics: Statistics, notes: list[Note]
) -> tuple[str, ...]:
    """Return tags of words, or the phrases of them, that stand between equal labels."""
    between: Counter[str] = Counter()
    equal: Counter[str] = Counter()
    for (_, children), count in rules.items():
        kept = [label for label, _, punctuation in children if not punctuation]
        for before, label, after in zip(kept, kept[1:], kept[2:], strict=False):
            between[label] += count
            equal[label] += count if before == after and before != label else 0
    found = []
    for label, count in between.most_common():
        own = statistics.mothers[label]
        share = equal[label] / count
        is_word = label in closed
        if not is_word and not _is_over(rules, label, closed):
            continue
        if equal[label] >= 10 and share >= 0.25 and equal[label] >= 0.15 * own:
            sure = share >= 0.4 and equal[label] >= 0.3 * own
            found.append(label)
            notes.append(
                Note(
                    "heads.coordinators",
                    sure=sure,
                    evidence=f"{label}: in {percent(equal[label], count)} of {count} places "
                    "between two "
                    "sisters these have one label.",
                )
            )
    if not found:
        notes.append(
            Note("heads.coordinators", sure=False, evidence="no tag stands mostly between equals.")
        )
    return tuple(found)


def _is_over(rules: Rules, label: str, closed: set[str]) -> bool:
    """Return whether a phrase is made of words of closed classes alone."""
    mine: Counter[bool] = Counter()
    for (mother, children), count in rules.items():
        if mother == label:
            mine[all(child in closed for child, _, punctuation in children if not punctuation)] += (
                count
            )
    return mine.total() > 0 and mine[True] >= 0.9 * mine.total()
