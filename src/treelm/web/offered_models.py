"""The models that a server offers: those it was started with, and no others.

Some are loaded before it answers anything. The rest are loaded when somebody asks for them, one
after the other, by a thread of their own: no request works on that, however long it takes.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Literal

from treelm.errors import ModelFileError, TreelmError, UsageError
from treelm.models.interface.abilities import GivesForests, GivesPartialParses, has_ability
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.ready import (
    USUAL_PACKAGE,
    ReadyModel,
    model_folder,
    ready_models,
    usual_models,
)
from treelm.models.registry import NEURAL, class_of, load
from treelm.store.folder import open_folder
from treelm.tasks.surprisal.stimuli import model_names
from treelm.web.answers import LoadingState, ModelAnswer
from treelm.web.refusals import Refusal
from treelm.web.work_queue import RETRY_AFTER

#: What the page can ask of a model.
View = Literal["surprisal", "trees", "states", "judge", "sample"]

#: Steps that models remember: strangers seldom ask the same again.
_CACHE_MEBIBYTES = 32

_TASKS: Mapping[View, Task] = {
    "surprisal": Task.SURPRISAL,
    "trees": Task.PARSE,
    "judge": Task.CLASSIFY,
    "sample": Task.SAMPLE,
}
_WANTED: Mapping[View, str] = {
    "surprisal": "goes word by word",
    "trees": "parses",
    "states": "parses word by word",
    "judge": "judges sentences",
    "sample": "samples sentences",
}


def views_of(model: LanguageModel) -> tuple[View, ...]:
    """Return what can be asked of a model."""
    return tuple(
        view
        for view in _WANTED
        if (_gives_partial_trees(model) if view == "states" else model.can(_TASKS[view]))
    )


def _views_of_class(kind: type[LanguageModel]) -> tuple[View, ...]:
    """Return what can be asked of models of a class, before one is loaded: perhaps too much."""
    grows = issubclass(kind, GivesPartialParses)
    return tuple(
        view for view in _WANTED if (grows if view == "states" else _TASKS[view] in kind.tasks)
    )


def _gives_partial_trees(model: LanguageModel) -> bool:
    return has_ability(model, GivesPartialParses) or any(
        map(_gives_partial_trees, model.mixed_models)
    )


def _for_serving(model: LanguageModel) -> LanguageModel:
    """Return a model for tokenized text that remembers little of what it was asked."""
    plain = model.with_tokenizer(None)
    if "cache_mebibytes" not in plain.search_options:
        return plain
    return plain.with_search(cache_mebibytes=_CACHE_MEBIBYTES)


def _made_ready(place: str) -> LanguageModel:
    """Return a loaded model that has answered something: the first time, some unfold tables."""
    model = _for_serving(load(place))
    with contextlib.suppress(TreelmError):  # it knows no full stop; nobody asked for one either
        for view in views_of(model):
            if view == "surprisal":
                model.surprisal(["."])
            elif view == "trees":
                model.parse(["."], 1)
            elif view == "judge":
                model.classify(["."])
    return model


@dataclass(slots=True)
class _Offer:
    """A model by name, and how far it is."""

    answer: ModelAnswer
    open: Callable[[], LanguageModel]
    model: LanguageModel | None = None
    loading: Future[None] = field(default_factory=Future)


class OfferedModels:
    """Models by name, all of them for tokenized text.

    Args:
        models: The models that are loaded, by name.
        further: Folders of models that are loaded when they are asked for, by name.

    Raises:
        UsageError: if there is none.
        ModelFileError: if there is no model in a folder.
    """

    def __init__(
        self, models: Mapping[str, LanguageModel], further: Mapping[str, str] | None = None
    ) -> None:
        if not models and not further:
            raise UsageError(
                "there is no model to serve: name model folders with -m, or install ready ones, "
                f"such as those of {USUAL_PACKAGE}: `pip install {USUAL_PACKAGE}`."
            )
        self._offers: dict[str, _Offer] = {}
        for name, model in models.items():
            plain = _for_serving(model)
            answer = _answer_for(name, plain, at_start=True)
            self._offers[name] = _Offer(answer, partial(_for_serving, model), plain)
        packages = {str(each.folder): each for each in ready_models().values()} if further else {}
        for name, place in (further or {}).items():
            answer = _answer_before(name, place, packages.get(place))
            self._offers[name] = _Offer(answer, partial(_made_ready, place))
        self._lock = threading.Lock()
        self._wanted: SimpleQueue[_Offer] = SimpleQueue()
        self._loader: threading.Thread | None = None

    @classmethod
    def opened(
        cls, folders: Sequence[str], further: Sequence[str] = (), *, ready: bool = True
    ) -> OfferedModels:
        """Return the models of folders, or the usual ready ones if no folder is named.

        Args:
            folders: Model folders or names of ready models, which are loaded now.
            further: The same, but loaded when they are asked for.
            ready: Whether all ready models that are installed are offered, too.

        Raises:
            UsageError: if two would have the same name, or there is no model at all.
            ModelFileError: if one cannot be loaded.
        """
        now = [str(model_folder(name)) for name in folders]
        later = [str(model_folder(name)) for name in further]
        if not now and not later:
            now = [str(each.folder) for each in usual_models()]
        later = [place for place in dict.fromkeys(later) if place not in now]
        names = model_names([*now, *later])
        for name, place in zip(names[len(now) :], later, strict=True):
            _answer_before(name, place, None)  # what was named must be there
        if ready:
            # A folder that has the name of a ready model stands before it.
            rest = [each for each in ready_models().values() if each.name not in names]
            later += [str(each.folder) for each in rest]
            names += tuple(each.name for each in rest)
        loaded = {name: _made_ready(place) for name, place in zip(names, now, strict=False)}
        return cls(loaded, dict(zip(names[len(now) :], later, strict=True)))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all of them."""
        return tuple(self._offers)

    @property
    def names_at_start(self) -> tuple[str, ...]:
        """The names of those that were loaded from the start."""
        return tuple(name for name, each in self._offers.items() if each.answer.at_start)

    def described(self) -> list[ModelAnswer]:
        """Return what the page says about the models."""
        return [each.answer for each in self._offers.values()]

    # -- which models are meant -------------------------------------------------------------

    def chosen(self, names: Iterable[str | None], view: View) -> tuple[str, ...]:
        """Return the names of the models that are meant, each of which does what is asked.

        Args:
            names: Names, each once; None for the first model that can be asked; none at all for
                those that were loaded from the start, or else the first that can be asked.
            view: What is asked.

        Raises:
            Refusal: if there is no such model, or it cannot do this.
        """
        given = list(dict.fromkeys(names))
        if not given:
            at_start = set(self.names_at_start)
            given = [name for name in self._able(view) if name in at_start] or [None]
        return tuple(self._one(name, view) for name in given)

    def _able(self, view: View) -> list[str]:
        return [name for name, each in self._offers.items() if view in each.answer.tasks]

    def _one(self, name: str | None, view: View) -> str:
        able = self._able(view)
        if name is None:
            if not able:
                raise Refusal(
                    422, "E_UNSUPPORTED_TASK", f"no model of this server {_WANTED[view]}."
                )
            return able[0]
        if name not in self._offers:
            raise _no_such_model(self.names)
        if name not in able:
            others = f" Those that do: {', '.join(able)}." if able else ""
            raise Refusal(
                422, "E_UNSUPPORTED_TASK", f"{name} is no model that {_WANTED[view]}.{others}"
            )
        return name

    def one(self, name: str | None, view: View) -> tuple[str, LanguageModel]:
        """Return a loaded model with its name; without a name, the first that can be asked.

        Raises:
            Refusal: if there is no such model, it cannot do this, or it is not loaded.
        """
        [chosen] = self.chosen([name], view)
        return chosen, self._loaded(chosen)

    def several(self, names: Iterable[str], view: View) -> list[tuple[str, LanguageModel]]:
        """Return loaded models with their names; without names, those loaded from the start."""
        return [(name, self._loaded(name)) for name in self.chosen(names, view)]

    def _loaded(self, name: str) -> LanguageModel:
        offer = self._offers[name]
        if offer.model is not None:
            return offer.model
        if offer.answer.state == "failed":
            raise Refusal(500, "E_MODEL_LOAD", str(offer.answer.problem))
        raise Refusal(
            503,
            "E_LOADING",
            f"{name} is being loaded. Ask again in a moment.",
            retry_after=RETRY_AFTER,
        )

    # -- loading ----------------------------------------------------------------------------

    @property
    def is_loading(self) -> bool:
        """Whether a model is being loaded."""
        return any(each.answer.state == "loading" for each in self._offers.values())

    def load(self, name: str, *, again: bool = True) -> ModelAnswer:
        """Begin to load a model, unless it is there or under way; return how far it is.

        Args:
            name: Which.
            again: Whether one that could not be loaded is tried once more.

        Raises:
            Refusal: if there is no such model.
        """
        if name not in self._offers:
            raise _no_such_model(self.names)
        offer = self._offers[name]
        with self._lock:
            state: LoadingState = offer.answer.state
            if state == "offered" or (state == "failed" and again):
                offer.loading = Future()
                offer.answer = offer.answer.model_copy(update={"state": "loading", "problem": None})
                self._wanted.put(offer)
                if self._loader is None:
                    self._loader = threading.Thread(target=self._load_wanted, daemon=True)
                    self._loader.start()
            return offer.answer

    def _load_wanted(self) -> None:
        while True:
            offer = self._wanted.get()
            name = offer.answer.name
            try:
                model = offer.open()
                # In this order: one that is called ready has a model.
                offer.model = model
                offer.answer = _answer_for(name, model, like=offer.answer)
            except Exception as error:  # whoever asked is told, without the paths that it names
                sys.stderr.write(f"treelm: {name} cannot be loaded:\n{traceback.format_exc()}")
                code = getattr(error, "code", "E_FAILED")
                said = f"{name} cannot be loaded ({code}); the log of the server says why."
                changed = {"state": "failed", "problem": said}
                offer.answer = offer.answer.model_copy(update=changed)
            offer.loading.set_result(None)

    async def wait_for(self, names: Iterable[str], seconds: float) -> None:
        """Begin to load models that are not there, and wait for a while until they are.

        Raises:
            Refusal: ``E_LOADING`` if they are not there after so many seconds, ``E_MODEL_LOAD`` if
                one cannot be loaded.
        """
        missing = [name for name in names if self._offers[name].model is None]
        if not missing:
            return
        for name in missing:
            self.load(name, again=False)
        waited = [
            asyncio.wrap_future(self._offers[name].loading)
            for name in missing
            if self._offers[name].answer.state == "loading"
        ]
        if waited:
            await asyncio.wait(waited, timeout=seconds)
        for name in missing:
            self._loaded(name)


def _no_such_model(known: Iterable[str]) -> Refusal:
    return Refusal(404, "E_NO_MODEL", f"there is no such model here. Models: {', '.join(known)}.")


def _answer_for(
    name: str,
    model: LanguageModel,
    *,
    at_start: bool = False,
    like: ModelAnswer | None = None,
) -> ModelAnswer:
    """Return what is said about a loaded model, which was described in some way before."""
    return ModelAnswer(
        name=name,
        system=model.system,
        tasks=list(views_of(model)),
        most_trees=model.most_trees,
        brackets=has_ability(model, GivesForests),
        exactness=model.info.exactness,
        words=len(model.vocabulary) - 1,
        state="ready",
        at_start=at_start,
        package=None if like is None else like.package,
        megabytes=None if like is None else like.megabytes,
    )


def _answer_before(name: str, place: str, ready: ReadyModel | None) -> ModelAnswer:
    """Return what is said about a model that nobody has asked for yet."""
    package = None if ready is None else f"{ready.package} {ready.version}"
    if place.startswith(NEURAL):
        from treelm.models.neural.model import NeuralModel

        return _answer_of_class(name, NeuralModel, "exact")
    try:
        folder = open_folder(Path(place))
        kind = class_of(folder)
    except ModelFileError as error:
        if ready is None:
            raise
        # The server was not asked for it by name: it goes without, and says so.
        said = f"{name} cannot be opened ({error.code}); `treelm models` says why."
        return ModelAnswer(
            name=name,
            system="unknown",
            tasks=[],
            most_trees=None,
            brackets=False,
            exactness="unknown",
            words=None,
            state="failed",
            at_start=False,
            package=package,
            problem=said,
        )
    size = sum(file.stat().st_size for file in Path(place).rglob("*") if file.is_file())
    found = _answer_of_class(name, kind, folder.manifest.exactness)
    return found.model_copy(update={"package": package, "megabytes": round(size / 1e6, 1)})


def _answer_of_class(name: str, kind: type[LanguageModel], exactness: str) -> ModelAnswer:
    return ModelAnswer(
        name=name,
        system=kind.system,
        tasks=list(_views_of_class(kind)),
        most_trees=None,
        brackets=issubclass(kind, GivesForests),
        exactness=exactness,
        words=None,
        state="offered",
        at_start=False,
    )
