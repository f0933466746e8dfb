"""A slow structured language model: dictionaries, lists and the search as it is written down."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

Head = tuple[str, str]
Move = tuple[str, str]
NULL: Move = ("null", "")
START: Head = ("<s>", "SB")
END = "</s>"

#: (words before, the last one first; heads, the rightmost first) -> probabilities of words.
Predictor = Callable[[tuple[str, ...], tuple[Head, ...]], dict[str, float]]
#: (word, labels of the heads before it) -> probabilities of tags.
Tagger = Callable[[str, tuple[str, ...]], dict[str, float]]
#: heads -> probabilities of moves: left, right or unary with a label, or null.
Constructor = Callable[[tuple[Head, ...]], dict[Move, float]]


@dataclass(frozen=True)
class Hypothesis:
    score: float = 0.0
    heads: tuple[Head, ...] = ()
    moves: int = 0
    actions: tuple[object, ...] = ()
    unaries: int = 0


@dataclass
class SlowSlm:
    predictor: Predictor
    tagger: Tagger
    constructor: Constructor
    order: int = 1
    heads: int = 2
    stack_size: float = math.inf
    threshold: float = math.inf
    beam: float = 0.0
    unary_moves: bool = False
    merge: bool = False
    #: Orders actions of equal scores.
    rank: Callable[[object], object] = field(default=str)

    def exposed(self, hypothesis: Hypothesis) -> tuple[Head, ...]:
        return (hypothesis.heads + (START,) * self.heads)[: self.heads]

    def context(self, words: tuple[str, ...]) -> tuple[str, ...]:
        before = tuple(reversed(words)) + (START[0],) * self.order
        return before[: self.order - 1]

    def prune(self, stack: list[Hypothesis]) -> list[Hypothesis]:
        best = max((each.score for each in stack), default=0.0)
        kept = [each for each in stack if each.score >= best - self.threshold]
        if self.merge:
            groups = defaultdict(list)
            for each in kept:
                groups[each.heads, each.unaries].append(each.score)
            kept = [
                Hypothesis(log_sum(scores), heads, stack[0].moves, (), unaries)
                for (heads, unaries), scores in groups.items()
            ]
            best = max((each.score for each in kept), default=0.0)
            kept = [each for each in kept if each.score >= best - self.threshold]
        kept.sort(key=lambda each: (-each.score, [self.rank(a) for a in each.actions]))
        return kept[: int(min(self.stack_size, len(kept)))]

    def moves(self, hypothesis: Hypothesis) -> dict[Move, float]:
        first = len(hypothesis.heads) == 1
        free = self.unary_moves and hypothesis.unaries < 2
        if first and not free:
            return {NULL: 1.0}
        probs = self.constructor(self.exposed(hypothesis))

        def is_open(move: Move) -> bool:
            if move == NULL:
                return True
            return free if move[0] == "unary" else not first

        kept = {move: prob for move, prob in probs.items() if is_open(move)}
        total = sum(kept.values())
        if len(kept) < len(probs):
            kept = {move: prob / total for move, prob in kept.items()}
        return {m: p for m, p in kept.items() if p > 0 and (m == NULL or p >= self.beam)}

    def word_probs(self, state: list[Hypothesis], words: tuple[str, ...]) -> dict[str, float]:
        total = log_sum([each.score for each in state])
        found: dict[str, float] = defaultdict(float)
        for each in state:
            for word, prob in self.predictor(self.context(words), self.exposed(each)).items():
                found[word] += math.exp(each.score - total) * prob
        return found

    def advance(
        self, state: list[Hypothesis], words: tuple[str, ...], word: str
    ) -> list[Hypothesis]:
        """One round of the search: what `state` becomes when `word` follows `words`."""
        stacks: dict[int, list[Hypothesis]] = defaultdict(list)
        for each in state:
            prob = self.predictor(self.context(words), self.exposed(each)).get(word, 0.0)
            labels = tuple(label for _, label in self.exposed(each))
            for tag, tag_prob in self.tagger(word, labels).items():
                if prob * tag_prob > 0 and tag_prob >= self.beam:
                    score = each.score + math.log(prob) + math.log(tag_prob)
                    heads = ((word, tag), *each.heads)
                    actions = (*each.actions, tag)
                    stacks[each.moves].append(Hypothesis(score, heads, each.moves, actions))
        after: list[Hypothesis] = []
        count = 0
        while count <= max(stacks, default=-1):
            closed = []
            for each in self.prune(stacks.pop(count, [])):
                for move, prob in self.moves(each).items():
                    made = self.moved(each, move, math.log(prob))
                    if move == NULL:
                        closed.append(made)
                    else:
                        stacks[count + 1].append(made)
            after += self.prune(closed)
            count += 1
        return after

    def moved(self, hypothesis: Hypothesis, move: Move, log_prob: float) -> Hypothesis:
        kind, label = move
        heads, unaries = hypothesis.heads, 0
        if kind == "unary":
            heads = ((heads[0][0], label), *heads[1:])
            unaries = hypothesis.unaries + 1
        elif kind != "null":
            word = heads[1][0] if kind == "left" else heads[0][0]
            heads = ((word, label), *heads[2:])
        return Hypothesis(
            hypothesis.score + log_prob,
            heads,
            hypothesis.moves + (kind != "null"),
            (*hypothesis.actions, move),
            unaries,
        )

    def states(self, words: tuple[str, ...]) -> list[list[Hypothesis]]:
        states = [[Hypothesis()]]
        for place, word in enumerate(words):
            states.append(self.advance(states[-1], words[:place], word))
        return states

    def log_probs(self, words: tuple[str, ...]) -> list[float]:
        found = []
        for place, state in enumerate(self.states(words)):
            probs = self.word_probs(state, words[:place])
            found.append(math.log(probs[(*words, END)[place]]))
        return found

    def parses(self, words: tuple[str, ...], count: int) -> list[Hypothesis]:
        done = []
        for each in self.states(words)[-1]:
            prob = self.predictor(self.context(words), self.exposed(each)).get(END, 0.0)
            if prob > 0:
                done.append(
                    Hypothesis(each.score + math.log(prob), each.heads, each.moves, each.actions)
                )
        done.sort(key=lambda each: (-each.score, [self.rank(a) for a in each.actions]))
        return done[:count]


def log_sum(scores: list[float]) -> float:
    best = max(scores)
    return best + math.log(sum(math.exp(score - best) for score in scores))


def posteriors(parses: list[Hypothesis]) -> list[float]:
    total = log_sum([parse.score for parse in parses])
    return [math.exp(parse.score - total) for parse in parses]
