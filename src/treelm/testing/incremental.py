"""The laws L1 to L8 of incremental models, and a check of any model against them.

Your own model, or a parser wrapped as one, is checked in one line:

    report = check_lm(model, ["the boat left", "the old boat came back"])
    print(report)
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from treelm.corpus.sample_treebank import sample_treebank
from treelm.corpus.words import Words, sentences_of, words_of
from treelm.models.interface.incremental import IncrementalModel
from treelm.models.interface.states import State
from treelm.testing.contracts import law, laws

#: Longest prefix of a sentence for which laws about every state are checked.
_WORDS = 12
_CLOSE = 1e-9


def incremental_cases(count: int = 8) -> list[tuple[str, ...]]:
    """Return sentences, among them the empty one and one of unknown words."""
    cases: list[tuple[str, ...]] = [(), ("frumious", "Bandersnatch", "frumious")]
    trees = iter(sample_treebank())
    return cases + [next(trees).words for _ in range(count)]


def _states(model: IncrementalModel, words: tuple[str, ...]) -> list[State]:
    """Return the state before the sentence and after each of its first words."""
    states = [model.initial()]
    for word in words[:_WORDS]:
        states.append(model.advance(states[-1], word).state)
    return states


def _close(first: float, second: float, tolerance: float = _CLOSE) -> bool:
    # abs_tol scaled by size: sums of many words lose digits.
    return first == second or abs(first - second) <= tolerance * max(1.0, abs(first))


def _adds_up(model: IncrementalModel) -> bool:
    """Return whether a model promises sums of 1; rounded probabilities sum to about 1 only."""
    return model.info.normalized and model.info.bits is None


@law("incremental", "L1")
def _chain_rule(model: IncrementalModel, sentence: Words) -> None:
    """The score of a sentence is the sum over its words and its end."""
    state = model.initial()
    total = 0.0
    for word in words_of(sentence):
        log_prob, state = model.advance(state, word)
        assert not math.isnan(log_prob)
        total += log_prob
    total += model.finish(state)
    assert _close(model.score_sentence(sentence), total)
    score = model.score(sentence)
    assert _close(score.log_prob, total)
    assert score.exactness == model.info.exactness
    assert [row.word for row in score.words or ()] == list(words_of(sentence))
    without = model.score(sentence, eos=False).log_prob
    assert _close(without + model.finish(state), total)


@law("incremental", "L2")
def _normalization(model: IncrementalModel, sentence: Words) -> None:
    """In every state the probabilities of all words and of the end sum to 1."""
    if not _adds_up(model):
        return
    for state in _states(model, words_of(sentence)):
        log_probs = model.distribution(state)
        assert len(log_probs) == len(model.vocabulary) + 1
        total = math.fsum(np.exp(log_probs).tolist())
        assert abs(total - 1.0) <= 1e-6, f"they sum to {total}"
        assert _close(float(log_probs[-1]), model.finish(state))
        first = model.advance(state, 0).log_prob
        assert _close(float(log_probs[0]), first)
        assert _close(float(model.distribution(state, [0])[0]), first)


@law("incremental", "L3")
def _purity(model: IncrementalModel, sentence: Words) -> None:
    """No call changes the state it is given, and equal input gives equal output to the last bit."""
    words = words_of(sentence)
    for state, word in zip(_states(model, words), words, strict=False):
        before = state.to_bytes()
        one, two = model.advance(state, word), model.advance(state, word)
        assert one == two
        assert hash(one.state) == hash(two.state)
        assert model.finish(state) == model.finish(state)
        assert model.end_sentence(state) == model.end_sentence(state)
        assert state.to_bytes() == before
    assert model.initial() == model.initial()


@law("incremental", "L4")
def _falling_prefixes(model: IncrementalModel, sentence: Words) -> None:
    """A longer prefix of a sentence is never more likely than a shorter one."""
    words = words_of(sentence)
    for state, word in zip(_states(model, words), words, strict=False):
        assert model.advance(state, word).log_prob <= 1e-12
        assert model.finish(state) <= 1e-12


@law("incremental", "L5")
def _keys(model: IncrementalModel, sentence: Words) -> None:
    """States with equal keys have equal futures."""
    words = words_of(sentence)[:_WORDS]
    groups: dict[Hashable, dict[State, None]] = {}
    for first in range(len(words) + 1):
        for state in _states(model, words[first:]):
            groups.setdefault(model.key(state), {})[state] = None
    tolerance = 0.0 if model.info.exact_key else 1e-6
    # Where weights are rounded for the key, a beam may prune differently: then one step is
    # compared.
    far = model.info.exact_key or model.info.beam is None
    for key, group in groups.items():
        assert isinstance(key, (bytes, int))
        first_future, *others = (_future(model, state, words, far=far) for state in group)
        for other in others:
            for one, two in zip(first_future, other, strict=True):
                assert one == two or abs(one - two) <= tolerance


def _future(
    model: IncrementalModel, state: State, words: tuple[str, ...], *, far: bool = True
) -> list[float]:
    """Return what a model says about some words and the end from a state on."""
    scores = [model.finish(state)]
    if not far:
        return scores + [model.advance(state, word).log_prob for word in (*words[:3], "frumious")]
    for word in (*words[:3], "frumious"):
        log_prob, state = model.advance(state, word)
        scores += [log_prob, model.finish(state)]
    return scores


@law("incremental", "L6")
def _batches(model: IncrementalModel, sentence: Words) -> None:
    """Many steps at once give what one at a time gives, in the same order."""
    words = words_of(sentence)[:_WORDS]
    states = _states(model, words)[: len(words)]
    states, words = states + states[::-1], words + words
    steps = model.advance_many(states, words)
    assert len(steps.states) == len(steps.log_probs) == len(words)
    for place, (state, word) in enumerate(zip(states, words, strict=True)):
        one = model.advance(state, word)
        assert _close(float(steps.log_probs[place]), one.log_prob)
        assert model.key(steps.states[place]) == model.key(one.state)


@law("incremental", "L7")
def _phrases(model: IncrementalModel, sentence: Words) -> None:
    """A phrase has the score of its two halves, one after the other."""
    words = words_of(sentence)
    middle = len(words) // 2
    whole = model.score_phrase(model.initial(), words)
    first = model.score_phrase(model.initial(), words[:middle])
    second = model.score_phrase(first.state, words[middle:])
    assert _close(whole.log_prob, first.log_prob + second.log_prob)
    assert model.key(whole.state) == model.key(second.state)


@law("incremental", "L8")
def _stored_states(model: IncrementalModel, sentence: Words) -> None:
    """A state survives pickling and bytes, with its key and its future."""
    words = words_of(sentence)
    for state in _states(model, words):
        for again in (
            pickle.loads(pickle.dumps(state)),
            model.state_from_bytes(state.to_bytes()),
        ):
            assert again == state
            assert hash(again) == hash(state)
            assert model.key(again) == model.key(state)
            assert _future(model, again, words) == _future(model, state, words)


@dataclass(frozen=True)
class LawReport:
    """Which laws a model keeps.

    Args:
        kept: Codes of the laws that hold for every sentence.
        broken: For each of the others, the first sentence that breaks it, and how.
        left_out: Codes of laws that do not apply to this model.
    """

    kept: tuple[str, ...]
    broken: dict[str, str]
    left_out: tuple[str, ...]

    @property
    def fine(self) -> bool:
        """Whether no law is broken."""
        return not self.broken

    def __str__(self) -> str:
        lines = [f"{code}  kept" for code in self.kept]
        reason = "the model is quantised, or not normalized"
        lines += [f"{code}  left out: {reason}" for code in self.left_out]
        lines += [f"{code}  BROKEN: {how}" for code, how in self.broken.items()]
        return "\n".join(sorted(lines))


def check_lm(model: IncrementalModel, sample: Iterable[Words]) -> LawReport:
    """Return which of the laws L1 to L8 a model keeps on sentences.

    Args:
        model: The model; L2 is left out if it is quantised or not normalized.
        sample: Sentences.
    """
    sentences = list(sentences_of(sample))
    kept, left_out = [], []
    broken: dict[str, str] = {}
    for each in laws("incremental"):
        if each.code == "L2" and not _adds_up(model):
            left_out.append(each.code)
            continue
        for sentence in sentences:
            try:
                each.check(model, sentence)
            except Exception as error:
                reason = str(error) or type(error).__name__
                broken[each.code] = f"{each.statement} Not on {sentence!r}: {reason}"
                break
        else:
            kept.append(each.code)
    return LawReport(tuple(kept), broken, tuple(left_out))
