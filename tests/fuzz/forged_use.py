"""What is done with a forged model: it is loaded, asked everything that it can do, and saved again.

Forged counts are looked at, merged and trained on; of forged checkpoints the training is resumed.
Either it is refused with a code, or every number that comes out is sane: no log probability is NaN
or plus infinity, margins are no NaN, probabilities lie between 0 and 1. Numbers may well be others
than those of the model that was forged, since nothing can tell a forged weight from a learnt one.
"""

from __future__ import annotations

import json
import math
import pickle
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tests.fuzz.forged_folder import MODEL, TRAINING
from tests.fuzz.small_models import sentences, trees
from tests.fuzz.small_trainings import train_small

from treelm.corpus.encoder import encode_sentences
from treelm.errors import TreelmError, UnsupportedTask
from treelm.models.interface.abilities import (
    ExplainsDecisions,
    GivesForests,
    GivesPosteriors,
    HasSubcategories,
    HasTopics,
    ParsesWordByWord,
    TakesTreesApart,
    WritesArpa,
    has_ability,
)
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.tree_model import TreeScorer
from treelm.models.ngram.counts import NgramCounts
from treelm.models.registry import load, train
from treelm.models.run import Run
from treelm.models.treelet.counts import CountedTreelets
from treelm.tasks.counts import inspect_counts
from treelm.tasks.treelet_counts import holds_treelet_counts, inspect_treelet_counts

#: Longest message that is fit for a terminal.
_LONGEST_MESSAGE = 2000
_MOST_WORDS = 6

_TREE = trees()[3]
_KNOWN, _ONE, _UNKNOWN = tuple(_TREE.words), tuple(_TREE.words[:1]), ("frumious", "Bandersnatch")
_SENTENCES = [_KNOWN, _UNKNOWN, _ONE]
#: What the models were trained on and more, so that hardly a number is not used.
_TREES = list(trees())
_TEXT = sentences(_TREES)


class Insane(Exception):
    """A number that no model may give."""


class Answers(NamedTuple):
    """What came of a mutant that was not a finding.

    Args:
        refused: Code with which loading was refused, None if the model was loaded.
        codes: Codes with which single questions were refused, tasks that no such model does left out.
    """

    refused: str | None
    codes: tuple[str, ...] = ()


def use(folder: Path, work: Path, *, thorough: bool) -> Answers:
    """Load a model folder and use it.

    Args:
        folder: The folder.
        work: Where files may be written.
        thorough: Whether it is verified, asked about all of its training text, in threads, and
            saved, and what was saved is loaded.

    Raises:
        Exception: for a finding: anything but an error of treelm with a message fit for a terminal.
    """
    try:
        model = load(folder, verify=thorough)
    except TreelmError as error:
        return Answers(_code(error))
    return _asked(model, work, thorough=thorough)


def use_counts(folder: Path, work: Path, *, thorough: bool) -> Answers:
    """Look at a folder of counts, merge it with itself, and train on it; raises as `use` does."""
    try:
        if holds_treelet_counts([folder]):
            json.dumps(inspect_treelet_counts(folder), allow_nan=False)
            model = train("treelet", CountedTreelets.from_folders([folder, folder], Run()))
        else:
            json.dumps(inspect_counts(folder), allow_nan=False)
            counts = NgramCounts.from_folders([folder, folder] if thorough else [folder], Run())
            model = train("ngram", counts, order=counts.order, smoothing="kn")
    except TreelmError as error:
        return Answers(_code(error))
    return _asked(model, work, thorough=False)


def use_checkpoint(folder: Path, work: Path, *, thorough: bool) -> Answers:
    """Resume the training of a checkpoint, and use its model; raises as `use` does."""
    try:
        train_small((folder / TRAINING).read_text(), folder / MODEL, resume=True)
    except TreelmError as error:
        return Answers(_code(error))
    return use(folder / MODEL, work, thorough=thorough)


def _asked(model: LanguageModel, work: Path, *, thorough: bool) -> Answers:
    """Ask a model everything."""
    codes = []
    questions = [*_questions(model)]
    if thorough:
        questions += [lambda: _whole_text(model), lambda: _pickle(model)]
        questions.append(lambda: _save(model, work))
    for question in questions:
        try:
            question()
        except UnsupportedTask as error:
            _code(error)
        except TreelmError as error:
            codes.append(_code(error))
    return Answers(None, tuple(codes))


def _code(error: TreelmError) -> str:
    """Return the code of an error whose message is fit for a terminal."""
    message = str(error)
    if not message.isprintable() or len(message) > _LONGEST_MESSAGE:
        raise Insane(f"a message unfit for a terminal: {message!r}"[:300]) from error
    return error.code


def _questions(model: LanguageModel) -> Iterator[Callable[[], object]]:
    yield lambda: json.dumps(model.summary(), allow_nan=False)
    yield lambda: (model.notes(), model.description(), model.info, repr(model))
    if model.can(Task.SCORE):
        yield lambda: _log_probs(model.score(_KNOWN).log_prob)
        yield lambda: _scores(model)
        yield lambda: _scores(model, empty=True)
    if model.can(Task.SURPRISAL):
        yield lambda: _log_probs(*(word.log_prob for word in model.surprisal(_KNOWN, eos=True)))
    if model.can(Task.DECODE) and model.incremental is not None:
        yield lambda: _decode(model)
    if model.can(Task.PERPLEXITY):
        yield lambda: _numbers(model.perplexity(_SENTENCES).perplexity)
    if model.can(Task.SAMPLE):
        yield lambda: _samples(model)
    if model.can(Task.PARSE):
        yield lambda: _parses(model)
    if model.can(Task.CLASSIFY):
        yield lambda: _decisions(model)
    yield from _abilities(model)


def _abilities(model: LanguageModel) -> Iterator[Callable[[], object]]:
    if isinstance(model, TreeScorer):
        yield lambda: _log_probs(*model.tree_log_probs([_TREE]).tolist())
    if has_ability(model, GivesPosteriors):
        yield lambda: _log_probs(*model.tree_log_posteriors([_TREE]).tolist())
    if has_ability(model, TakesTreesApart):
        yield lambda: list(map(str, model.tree_factors(_TREE)))
    if has_ability(model, ExplainsDecisions):
        yield lambda: model.explain(_KNOWN)
    if has_ability(model, GivesForests):
        yield lambda: model.forests_many([_KNOWN])
    if has_ability(model, HasSubcategories):
        yield lambda: model.subcategories("NP", limit=2)
    if has_ability(model, HasTopics):
        yield lambda: _numbers(*model.topic_table().shares.tolist())
    if has_ability(model, ParsesWordByWord):
        yield lambda: model.stacks(model.advance(model.initial(), _KNOWN[0]).state, 2)
        yield lambda: _measures(model)
    if has_ability(model, WritesArpa):
        yield lambda: model.write_arpa("/dev/null")


def _scores(model: LanguageModel, *, empty: bool = False) -> None:
    for score in model.score_many([()] if empty else _SENTENCES):
        _log_probs(score.log_prob, *(word.log_prob for word in score.words or ()))


def _decode(model: LanguageModel) -> None:
    goes = model.incremental
    assert goes is not None
    first = goes.initial()
    step = goes.advance(first, _KNOWN[0])
    state = goes.state_from_bytes(step.state.to_bytes())
    both = goes.advance_many([state, first], [_KNOWN[1], _UNKNOWN[0]])
    _log_probs(step.log_prob, goes.finish(state), *both.log_probs.tolist())
    _log_probs(*goes.distribution(state).tolist())
    again = goes.advance(goes.initial(goes.end_sentence(both.states[0])), _UNKNOWN[1])
    _log_probs(again.log_prob)
    goes.key(again.state)


def _measures(model: ParsesWordByWord) -> None:
    text = encode_sentences(_SENTENCES, model.vocabulary)
    scores, measures = model.measure_ids(text.ids, text.starts)
    _log_probs(*scores.log_probs.tolist())
    for values in measures:
        _numbers(*np.ravel(values).tolist())


def _samples(model: LanguageModel) -> None:
    for sample in model.sample(2, seed=1, max_words=_MOST_WORDS):
        _log_probs(sample.log_prob)


def _parses(model: LanguageModel) -> None:
    found = [*model.parse(_KNOWN), *model.parse(_UNKNOWN), *model.parse_many([_ONE, ()])]
    if model.most_trees is None:
        found += model.parse(_KNOWN, 3)
    for parse in found:
        if parse is not None:
            _log_probs(parse.sentence_log_prob)
            str(parse.tree)


def _decisions(model: LanguageModel) -> None:
    for decision in model.classify_many([*_SENTENCES, ()]):
        _numbers(decision.margin)
        if not 0 <= decision.probability <= 1:
            raise Insane(f"a probability of {decision.probability}")


def _whole_text(model: LanguageModel) -> None:
    """Ask in threads, where a failure must find its way back."""
    if isinstance(model, TreeScorer):
        _log_probs(*model.tree_log_probs(_TREES, threads=2).tolist())
    if model.can(Task.SCORE):
        _log_probs(*model.sentence_log_probs(_TEXT, threads=2).tolist())
    if model.can(Task.CLASSIFY):
        _numbers(*(decision.margin for decision in model.classify_many(_TEXT, threads=2)))
    if model.can(Task.PARSE):
        model.parse_many(_TEXT, threads=2)


def _log_probs(*values: float) -> None:
    _numbers(*values)
    if math.inf in values:
        raise Insane("a log probability of infinity")


def _numbers(*values: float) -> None:
    if any(map(math.isnan, values)):
        raise Insane("NaN")


def _pickle(model: LanguageModel) -> None:
    again = pickle.loads(pickle.dumps(model))
    if again.can(Task.SCORE):
        assert str(again.score(_KNOWN).log_prob) == str(model.score(_KNOWN).log_prob)


_saved = count()


def _save(model: LanguageModel, work: Path) -> None:
    """Save a model that was loaded; what was saved must be loaded too."""
    target = work / f"saved{next(_saved)}"
    try:
        model.save(target)
        try:
            load(target, verify=True)
        except TreelmError as error:
            raise Insane(f"saved again it is refused: {error}"[:300]) from error
    finally:
        shutil.rmtree(target, ignore_errors=True)
