"""What an incremental parser holds possible after each word: its best partial trees.

In a partial tree a node ``…`` stands for what is not decided yet: nodes between the one above and
the one below it, and all that follows to the right. Its words are those read so far.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from treelm.corpus.lengths import TooLongSentence
from treelm.errors import UsageError, option
from treelm.extras import import_extra
from treelm.trees.tree import Tree

#: Label of a node for what is not decided yet.
OPEN = "…"
#: Derivations that a parser gives after each word, and for each tree that is shown at least: those
#: that look the same are one tree, so that probabilities should not depend on `k`.
DERIVATIONS, DERIVATIONS_PER_TREE = 64, 4
#: Most trees after each word, and most words of a sentence: all derivations are in memory at once.
MOST_TREES, MOST_WORDS = 50, 200


class Derivation(NamedTuple):
    """One way in which a parser has come to where it is after a word.

    Args:
        tree: What it has built, with `OPEN` where nothing is decided yet.
        log_prob: Natural log of the probability of the words and the derivation, whatever comes
            next.
        ids: For each word from the first to the last: what the derivation was called after it.
        ranks: Its rank among all derivations after each of these words, from 1.
        log_probs: Its log probability after each of these words.
        start: The word with which it begins; not the first if the parser had to begin again.
    """

    tree: Tree
    log_prob: float
    ids: tuple[int, ...]
    ranks: tuple[int, ...]
    log_probs: tuple[float, ...]
    start: int = 0

    def id_after(self, word: int) -> int | None:
        """Return what it was called after a word; None before it began."""
        return self.ids[word - self.start] if self.start <= word < self.end else None

    @property
    def end(self) -> int:
        """The number of words up to which it goes."""
        return self.start + len(self.ids)


class ParsedWord(NamedTuple):
    """What a parser gives for a word of a sentence.

    Args:
        word: The word.
        surprisal: In bits.
        log_mass: Natural log of the probability of all derivations together.
        derivations: The best of them, the best first.
    """

    word: str
    surprisal: float
    log_mass: float
    derivations: tuple[Derivation, ...]


@dataclass(frozen=True, slots=True)
class PartialTree:
    """A partial tree after a word.

    Args:
        tree: The tree, with nodes ``…`` for what is not decided yet.
        probability: Given the words so far.
        log_prob: Natural log of the probability of tree and words.
        rank: From 1, the most probable.
        start: The word with which the tree begins: not the first if the parser lost all analyses
            and had to begin again.
        came_from: Rank of the tree it grew from among those shown after the word before; None if
            that was not among them.
        continued: Whether one of the trees shown after the next word grows from it; True after the
            last word for those that can be the end.
        survives: Whether one of the best trees of the whole sentence grows from it.
        wins: Whether the best tree of the whole sentence grows from it.
    """

    tree: Tree
    probability: float
    log_prob: float
    rank: int
    start: int
    came_from: int | None
    continued: bool
    survives: bool
    wins: bool


@dataclass(frozen=True, slots=True)
class PartialStep:
    """What is possible after a word.

    Args:
        word: The word.
        surprisal: In bits.
        trees: The best partial trees, the best first.
        winner_rank: Rank at this point of the tree that wins in the end; for one that is not shown,
            its rank among the derivations that the parser kept. None if it had not begun yet.
        winner_probability: Its probability at this point; 0 if it had not begun.
        began_again: Whether the parser had no analysis left and began again with this word.
    """

    word: str
    surprisal: float
    trees: tuple[PartialTree, ...]
    winner_rank: int | None
    winner_probability: float
    began_again: bool = False

    @property
    def shown(self) -> float:
        """The probability of all trees that are shown."""
        return math.fsum(tree.probability for tree in self.trees)


@dataclass(frozen=True, slots=True)
class WholeTree:
    """A tree of the whole sentence.

    Args:
        tree: The tree.
        probability: Given the sentence.
        log_prob: Natural log of the probability of tree and words.
    """

    tree: Tree
    probability: float
    log_prob: float


@dataclass(frozen=True, slots=True)
class PartialParses:
    """A sentence, and what a parser held possible after each of its words.

    Args:
        system: The system of the model.
        steps: One for each word.
        whole: The best trees of the whole sentence, the best first; none if the parser has none.
    """

    system: str
    steps: tuple[PartialStep, ...]
    whole: tuple[WholeTree, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The words."""
        return tuple(step.word for step in self.steps)

    @property
    def disambiguation(self) -> int | None:
        """Place of the word that brought the winner to the top for good; None if it was there."""
        for place in range(len(self.steps) - 1, -1, -1):
            if self.steps[place].winner_rank != 1:
                return place + 1 if place + 1 < len(self.steps) else None
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return everything as what JSON can hold; trees as brackets."""
        return {
            "system": self.system,
            "words": list(self.words),
            "disambiguation": self.disambiguation,
            "steps": [
                {
                    "word": step.word,
                    "surprisal": step.surprisal,
                    "winner_rank": step.winner_rank,
                    "winner_probability": step.winner_probability,
                    "began_again": step.began_again,
                    "trees": [
                        {
                            "tree": str(each.tree),
                            "probability": each.probability,
                            "log_prob": each.log_prob,
                            "rank": each.rank,
                            "start": each.start,
                            "came_from": each.came_from,
                            "continued": each.continued,
                            "survives": each.survives,
                            "wins": each.wins,
                        }
                        for each in step.trees
                    ],
                }
                for step in self.steps
            ],
            "whole": [
                {
                    "tree": str(each.tree),
                    "probability": each.probability,
                    "log_prob": each.log_prob,
                }
                for each in self.whole
            ],
        }

    def to_frame(self) -> Any:
        """Return a data frame of polars with a row for each word and partial tree after it.

        Its columns are ``position``, ``word``, ``surprisal``, and those that `to_dict` has about
        trees, which are brackets.

        Raises:
            MissingExtra: without polars, which the extra ``frames`` brings.
        """
        polars = import_extra("polars", "A data frame")
        return polars.DataFrame(
            [
                {
                    "position": position,
                    "word": step["word"],
                    "surprisal": step["surprisal"],
                    "winner_rank": step["winner_rank"],
                    "winner_probability": step["winner_probability"],
                    **tree,
                }
                for position, step in enumerate(self.to_dict()["steps"], 1)
                for tree in step["trees"]
            ],
            infer_schema_length=None,
        )

    def _repr_html_(self) -> str:
        from treelm.view.partial_parses_page import partial_parses_html

        return partial_parses_html(self)


@dataclass(slots=True)
class _Group:
    """Derivations after a word that look the same."""

    tree: Tree
    start: int
    members: list[Derivation]

    @property
    def log_prob(self) -> float:
        best = self.members[0].log_prob
        return best + math.log(math.fsum(math.exp(d.log_prob - best) for d in self.members))


def join_partial_parses(
    system: str,
    words: Sequence[ParsedWord],
    whole: Sequence[Derivation],
    log_whole: float,
    k: int,
) -> PartialParses:
    """Return what a parser held possible: derivations that look the same taken together.

    Args:
        system: The system of the model.
        words: Words with their derivations.
        whole: Derivations of the whole sentence, the best first.
        log_whole: Natural log of the probability of all of them together.
        k: Most trees after each word.
    """
    shown = [_best_groups(word.derivations, k) for word in words]
    places = [_places(groups) for groups in shown]
    ends = _best_groups(whole, k)
    survivors = [member for group in ends for member in group.members]
    winners = ends[0].members if ends else []
    steps = []
    for at, word in enumerate(words):
        grown = [_ancestors(group.members, at - 1, places) for group in shown[at]]
        next_shown = shown[at + 1] if at + 1 < len(words) else ends
        continued = _ancestors((m for group in next_shown for m in group.members), at, places)
        surviving, winning = (_ancestors(some, at, places) for some in (survivors, winners))
        trees = []
        for place, group in enumerate(shown[at]):
            log_prob = group.log_prob
            trees.append(
                PartialTree(
                    group.tree,
                    _share(log_prob, word.log_mass),
                    log_prob,
                    place + 1,
                    group.start,
                    min(grown[place], default=-1) + 1 or None,
                    place in continued,
                    place in surviving,
                    place in winning,
                )
            )
        rank, probability = _standing(winners, at, word.log_mass, trees)
        again = at > 0 and _begins_at(word, at)
        steps.append(PartialStep(word.word, word.surprisal, tuple(trees), rank, probability, again))
    trees_of_all = tuple(
        WholeTree(group.tree, _share(group.log_prob, log_whole), group.log_prob) for group in ends
    )
    return PartialParses(system, tuple(steps), trees_of_all)


def _begins_at(word: ParsedWord, at: int) -> bool:
    return bool(word.derivations) and all(each.start == at for each in word.derivations)


def _best_groups(derivations: Iterable[Derivation], k: int) -> list[_Group]:
    found: dict[tuple[int, Tree], _Group] = {}
    for each in derivations:
        group = found.setdefault((each.start, each.tree), _Group(each.tree, each.start, []))
        group.members.append(each)
    return sorted(found.values(), key=lambda group: -group.log_prob)[:k]


def _places(groups: Sequence[_Group]) -> dict[int, int]:
    """Return the group of each derivation, by what it is called."""
    return {each.ids[-1]: place for place, group in enumerate(groups) for each in group.members}


def _ancestors(
    derivations: Iterable[Derivation], at: int, places: Sequence[dict[int, int]]
) -> set[int]:
    """Return the groups after a word from which any of some derivations has grown."""
    if at < 0:
        return set()
    ids = (each.id_after(at) for each in derivations)
    return {places[at][each] for each in ids if each is not None and each in places[at]}


def _standing(
    winners: Sequence[Derivation], at: int, log_mass: float, trees: Sequence[PartialTree]
) -> tuple[int | None, float]:
    """Return rank and probability after a word of what wins in the end."""
    for tree in trees:
        if tree.wins:
            return tree.rank, tree.probability
    began = [each for each in winners if each.start <= at]
    if not began:
        return None, 0.0
    best = began[0]
    rank = max(best.ranks[at - best.start], len(trees) + 1)
    return rank, _share(best.log_probs[at - best.start], log_mass)


def _share(log_prob: float, log_mass: float) -> float:
    return min(1.0, math.exp(min(0.0, log_prob - log_mass))) if log_prob > -math.inf else 0.0


def words_to_parse(words: Sequence[str], k: int, system: str) -> tuple[str, ...]:
    """Return the words of a sentence that is parsed word by word.

    Raises:
        UsageError: if `k` is out of range.
        TooLongSentence: ``E_TOO_LONG``.
    """
    if not 1 <= k <= MOST_TREES:
        raise UsageError(f"{option('k')} must lie between 1 and {MOST_TREES}, not be {k}.")
    if len(words) > MOST_WORDS:
        raise TooLongSentence(
            0,
            len(words),
            f"the partial trees of {system} models are shown for at most {MOST_WORDS} words. "
            "Give a shorter sentence.",
        )
    return tuple(words)


def derivations_for(k: int) -> int:
    """Return how many derivations are needed to show so many trees."""
    return max(DERIVATIONS, DERIVATIONS_PER_TREE * k)
