"""The laws of every model, whatever its system, and of every training.

A model of your own is checked by ``check_contract("model", model, [sentences])``, its system by
``check_contract("system", system, [Trial(data, options)])``. The system must be registered: as an
entry point ``treelm.systems``, if it is not one of ours.
"""

from __future__ import annotations

import copy
import functools
import gc
import json
import multiprocessing
import pickle
import tempfile
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from treelm.corpus.sample_treebank import sample_treebank
from treelm.errors import TreelmWarning, UnsupportedTask, UsageError
from treelm.models.interface.abilities import systems_that
from treelm.models.interface.config import options_of
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.registry import System, find_system, load, train
from treelm.store.folder import open_folder
from treelm.testing.contracts import law
from treelm.testing.model_folders import different_files, folder_contents

#: Sentences of one case.
Sentences = Sequence[tuple[str, ...]]

#: One question for each task.
_QUESTIONS: dict[Task, Callable[[LanguageModel, tuple[str, ...]], object]] = {
    Task.SCORE: lambda model, words: model.score(words),
    Task.SURPRISAL: lambda model, words: model.surprisal(words),
    Task.PERPLEXITY: lambda model, words: model.perplexity([words]),
    Task.SAMPLE: lambda model, words: model.sample(1, seed=1, max_words=len(words) + 5),
    Task.PARSE: lambda model, words: model.parse(words),
    Task.CLASSIFY: lambda model, words: model.classify(words),
    Task.DECODE: lambda model, words: model.advance(model.initial(), words[0]),
}


def model_cases(count: int = 6) -> list[Sentences]:
    """Return one case: a few short sentences, among them one of unknown words."""
    short = (tree.words for tree in sample_treebank() if len(tree.words) < 12)
    return [[("frumious", "Bandersnatch"), *islice(short, count)]]


# -- what a model answers, here and elsewhere ---------------------------------------------------


def _answers(model: LanguageModel, sentences: Sentences, threads: int = 1) -> list[object]:
    """Return what a model says about sentences, everything that it can say."""
    found: list[object] = []
    if model.can(Task.SCORE):
        found += model.score_many(sentences, threads=threads)
    if model.can(Task.CLASSIFY):
        found += model.classify_many(sentences, threads=threads)
    if model.can(Task.PARSE):
        found += (str(tree) for tree in model.parse_many(sentences, threads=threads))
    assert found, "it answers nothing"
    return found


def _send_answers(sending: Connection, model: LanguageModel, sentences: Sentences) -> None:
    sending.send(_answers(model, sentences))
    sending.close()


def _forked_answers(model: LanguageModel, sentences: Sentences) -> list[object]:
    """Return what a model says in a copy of this process."""
    context = multiprocessing.get_context("fork")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_send_answers, args=(sending, model, sentences))
    with warnings.catch_warnings():
        # Python warns of forks beside threads; that models survive them is what is tested.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    sending.close()
    try:
        found: list[object] = receiving.recv()
    except EOFError:
        raise AssertionError("the forked process died") from None
    finally:
        receiving.close()
        process.join()
    return found


@functools.cache
def _new_process() -> ProcessPoolExecutor:
    """Return a process that inherited nothing; starting one takes longer than all it is asked."""
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))


def _spawned_answers(model: LanguageModel, sentences: Sentences) -> list[object]:
    """Return what a model says in a new process."""
    try:
        return _new_process().submit(_answers, model, sentences).result()
    except BrokenProcessPool:
        _new_process.cache_clear()
        raise AssertionError("the new process died") from None


def _check_same(first: Mapping[str, object], second: Mapping[str, object]) -> None:
    different = different_files(first, second)
    assert not different, f"these files differ: {', '.join(different)}"


# -- models -------------------------------------------------------------------------------------


@law("model", "class")
def _class(model: LanguageModel, sentences: Sentences) -> None:
    """Its class is the one that is registered under the name of its system."""
    del sentences
    system = find_system(model.system)
    assert system.is_stored
    assert system.model_class is type(model)


@law("model", "folder")
def _folder(model: LanguageModel, sentences: Sentences) -> None:
    """Saved, loaded and saved again it has the same bytes, and the loaded one answers the same."""
    with tempfile.TemporaryDirectory() as parent:
        first, second = Path(parent) / "first", Path(parent) / "second"
        model.save(first)
        loaded = load(first, verify=True)
        assert type(loaded) is type(model)
        assert _answers(loaded, sentences) == _answers(model, sentences)
        loaded.save(second)
        _check_same(folder_contents(first), folder_contents(second))
        del loaded  # its tables are mapped from the folder


@law("model", "manifest")
def _manifest(model: LanguageModel, sentences: Sentences) -> None:
    """Its manifest says what the model says: system, options, exactness, words, corpora."""
    del sentences
    with tempfile.TemporaryDirectory() as parent:
        model.save(Path(parent) / "model")
        said = open_folder(Path(parent) / "model").manifest
    assert said.system == model.system
    assert said.config == json.loads(model.config.model_dump_json())
    assert said.exactness == model.info.exactness
    assert said.vocabulary in (None, model.vocabulary.fingerprint)
    assert said.corpora == tuple(model.corpora)


@law("model", "pickle")
def _pickle(model: LanguageModel, sentences: Sentences) -> None:
    """Pickled it answers the same."""
    again = pickle.loads(pickle.dumps(model))
    assert type(again) is type(model)
    assert again.config == model.config
    assert _answers(again, sentences) == _answers(model, sentences)


@law("model", "copies")
def _copies(model: LanguageModel, sentences: Sentences) -> None:
    """A copy of it, deep or not, is the model itself: nothing can change it."""
    del sentences
    assert copy.copy(model) is model
    assert copy.deepcopy([model])[0] is model


@law("model", "freed")
def _freed(model: LanguageModel, sentences: Sentences) -> None:
    """Deleted after it was asked everything, it leaves memory at once: it does not hold itself."""
    with tempfile.TemporaryDirectory() as parent:
        model.save(Path(parent) / "model")
        again = load(Path(parent) / "model")
        collects = gc.isenabled()
        gc.disable()
        try:
            for task in filter(again.can, Task):
                _QUESTIONS[task](again, sentences[-1])
            if again.can(Task.SCORE):
                _answers(again, sentences, threads=2)
            alive = weakref.ref(again)
            del again
            assert alive() is None, "it holds a reference to itself"
        finally:
            if collects:
                gc.enable()


@law("model", "fork")
def _fork(model: LanguageModel, sentences: Sentences) -> None:
    """A forked process that inherits it answers the same, also after threads were used here."""
    if "fork" in multiprocessing.get_all_start_methods():
        expected = _answers(model, sentences, threads=2)
        assert _forked_answers(model, sentences) == expected


@law("model", "spawn")
def _spawn(model: LanguageModel, sentences: Sentences) -> None:
    """A new process that it is sent to answers the same."""
    assert _spawned_answers(model, sentences) == _answers(model, sentences)


@law("model", "batches")
def _batches(model: LanguageModel, sentences: Sentences) -> None:
    """Many sentences at once are answered as one at a time."""
    if model.can(Task.SCORE):
        for eos in (True, False) if model.can(Task.SURPRISAL) else (True,):
            alone = [model.score(words, eos=eos) for words in sentences]
            assert list(model.score_many(sentences, eos=eos)) == alone
        found = model.sentence_log_probs(sentences).tolist()
        assert found == [model.score(words).log_prob for words in sentences]
    if model.can(Task.CLASSIFY):
        classified = list(model.classify_many(sentences))
        assert classified == [model.classify(words) for words in sentences]
        assert [decision.margin for decision in classified] == list(map(model.decision, sentences))
    if model.can(Task.PARSE):
        parsed = [str(model.parse(words)[0].tree) for words in sentences]
        found_trees = [tree and str(tree.tree) for tree in model.parse_many(sentences)]
        assert found_trees == parsed


@law("model", "fields")
def _fields(model: LanguageModel, sentences: Sentences) -> None:
    """A score says as much of one sentence as of many: of words and their end, and of trees."""
    if model.can(Task.SCORE):
        scores = [*model.score_many(sentences), *map(model.score, sentences)]
        word_by_word = model.can(Task.SURPRISAL)
        assert {score.words is not None for score in scores} == {word_by_word}
        assert {score.end is not None for score in scores} == {word_by_word}
        assert {score.trees is not None for score in scores} == {model.sums_over_trees}


@law("model", "strings")
def _strings(model: LanguageModel, sentences: Sentences) -> None:
    """A sentence may be given as a string."""
    if model.can(Task.SCORE):
        strings = [" ".join(words) for words in sentences]
        assert list(model.score_many(strings)) == list(model.score_many(sentences))


@law("model", "threads")
def _threads(model: LanguageModel, sentences: Sentences) -> None:
    """The number of threads changes nothing, to the last bit."""
    assert _answers(model, sentences, threads=3) == _answers(model, sentences, threads=1)


@law("model", "exactness")
def _exactness(model: LanguageModel, sentences: Sentences) -> None:
    """Scores have the exactness that the model declares, and so has its description."""
    assert model.description().exactness == model.info.exactness
    if model.can(Task.SCORE):
        assert {score.exactness for score in model.score_many(sentences)} == {model.info.exactness}


@law("model", "tasks")
def _tasks(model: LanguageModel, sentences: Sentences) -> None:
    """What it can do it does; what it cannot is refused with a code and the systems that can."""
    for task in Task:
        ask = functools.partial(_QUESTIONS[task], model, sentences[-1])
        if model.can(task):
            assert task in model.tasks, task
            model.require(task)
            assert ask() is not None, task
            continue
        for refused in (functools.partial(model.require, task), ask):
            _check_refusal(model, task, refused)


def _check_refusal(model: LanguageModel, task: Task, refused: Callable[[], object]) -> None:
    refusal = None
    try:
        refused()
    except UnsupportedTask as error:
        refusal = error
    assert refusal is not None, f"{task} is not refused"
    assert refusal.code == model.obstacle(task), f"{task}: {refusal.code}"
    able = systems_that(lambda kind: task in kind.tasks)
    assert able, f"no system does {task}"
    named = "with_parser" if refusal.code == "E_NO_PARSER" else f": {', '.join(able)}."
    assert named in str(refusal), str(refusal)


@law("model", "summary")
def _summary(model: LanguageModel, sentences: Sentences) -> None:
    """Its summary can be written as JSON and names its system and vocabulary; notes are text."""
    del sentences
    summary = model.summary()
    assert json.loads(json.dumps(summary)) is not None
    assert summary["system"] == model.system
    assert summary["vocabulary"] == model.vocabulary.fingerprint == model.info.vocabulary
    assert all(isinstance(note, str) for note in model.notes())


# -- systems ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """A small training of a system.

    Args:
        data: What it is trained on, as `treelm.train` takes it.
        options: Everything else that `treelm.train` is given.
    """

    data: Any
    options: Mapping[str, Any] = field(default_factory=dict)

    def contents(self, system: System, **how: Any) -> dict[str, object]:
        """Return what is in the folder of the model."""
        with tempfile.TemporaryDirectory() as parent, warnings.catch_warnings():
            warnings.simplefilter("ignore", TreelmWarning)  # small data are poor data
            train(system.name, self.data, **self.options, **how).save(Path(parent) / "model")
            return folder_contents(Path(parent) / "model")


@law("system", "seed")
def _seed(system: System, trial: Trial) -> None:
    """Two trainings give the same model, to the last byte."""
    _check_same(trial.contents(system), trial.contents(system))


@law("system", "threads")
def _training_threads(system: System, trial: Trial) -> None:
    """The number of threads does not change the model."""
    _check_same(trial.contents(system, threads=1), trial.contents(system, threads=2))


@law("system", "declared")
def _declared(system: System, trial: Trial) -> None:
    """Every option and every input says what it is for, and the system what it is."""
    del trial
    for option in options_of(system.config_class):
        assert option.help.endswith((".", ".)")), f"{option.name}: {option.help!r}"
    assert system.inputs
    for wanted in system.inputs:
        assert wanted.help.endswith("."), f"{wanted.name}: {wanted.help!r}"
    assert system.summary.endswith(".")
    assert system.example.startswith("--")
    assert system.model_class.tasks


@law("system", "refusals")
def _refusals(system: System, trial: Trial) -> None:
    """An option that does not exist is refused before anything is read."""
    with suppress(UsageError):
        train(system.name, trial.data, **trial.options, no_such_option=1)
        raise AssertionError("the option no_such_option is accepted")
