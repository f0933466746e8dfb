"""The models that a server offers: those it was started with, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from treelm.errors import UsageError
from treelm.models.interface.abilities import GivesForests, GivesPartialParses, has_ability
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.ready import USUAL_PACKAGE, model_folder, ready_models
from treelm.models.registry import load
from treelm.tasks.surprisal.stimuli import model_names
from treelm.web.answers import ModelAnswer
from treelm.web.refusals import Refusal

#: What the page can ask of a model.
View = Literal["surprisal", "trees", "states", "judge", "sample"]

#: Steps that models remember: strangers seldom ask the same again.
_CACHE_MEBIBYTES = 32

_WANTED: Mapping[View, str] = {
    "surprisal": "goes word by word",
    "trees": "parses",
    "states": "parses word by word",
    "judge": "judges sentences",
    "sample": "samples sentences",
}


def views_of(model: LanguageModel) -> tuple[View, ...]:
    """Return what can be asked of a model."""
    able: dict[View, bool] = {
        "surprisal": model.can(Task.SURPRISAL),
        "trees": model.can(Task.PARSE),
        "states": _gives_partial_trees(model),
        "judge": model.can(Task.CLASSIFY),
        "sample": model.can(Task.SAMPLE),
    }
    return tuple(view for view, can in able.items() if can)


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


class OfferedModels:
    """Models by name, all of them for tokenized text.

    Args:
        models: The models by name.

    Raises:
        UsageError: if there is none.
    """

    def __init__(self, models: Mapping[str, LanguageModel]) -> None:
        if not models:
            raise UsageError(
                "there is no model to serve: name model folders with -m, or install ready ones, "
                f"such as those of {USUAL_PACKAGE}: `pip install {USUAL_PACKAGE}`."
            )
        self.by_name = {name: _for_serving(each) for name, each in models.items()}
        self.views = {name: views_of(model) for name, model in self.by_name.items()}

    @classmethod
    def opened(cls, folders: Sequence[str]) -> OfferedModels:
        """Return the models of folders, or the ready ones if no folder is named.

        Raises:
            UsageError: if two would have the same name, or there is no model at all.
            ModelFileError: if one cannot be loaded.
        """
        places = [str(model_folder(name)) for name in folders]
        if not places:
            places = [str(each.folder) for each in ready_models().values()]
        return cls(dict(zip(model_names(places), map(load, places), strict=True)))

    def described(self) -> list[ModelAnswer]:
        """Return what the page says about the models."""
        return [
            ModelAnswer(
                name=name,
                system=model.system,
                tasks=list(self.views[name]),
                most_trees=model.most_trees,
                brackets=has_ability(model, GivesForests),
                exactness=model.info.exactness,
                words=len(model.vocabulary) - 1,
            )
            for name, model in self.by_name.items()
        ]

    def one(self, name: str | None, view: View) -> tuple[str, LanguageModel]:
        """Return a model with its name; without a name, the first that can be asked.

        Raises:
            Refusal: if there is no such model, or it cannot do this.
        """
        if name is None:
            able = [each for each, views in self.views.items() if view in views]
            if not able:
                raise Refusal(
                    422, "E_UNSUPPORTED_TASK", f"no model of this server {_WANTED[view]}."
                )
            name = able[0]
        if name not in self.by_name:
            known = ", ".join(self.by_name)
            raise Refusal(404, "E_NO_MODEL", f"there is no such model here. Models: {known}.")
        if view not in self.views[name]:
            able = [each for each, views in self.views.items() if view in views]
            others = f" Those that do: {', '.join(able)}." if able else ""
            raise Refusal(
                422, "E_UNSUPPORTED_TASK", f"{name} is no model that {_WANTED[view]}.{others}"
            )
        return name, self.by_name[name]

    def several(self, names: Iterable[str], view: View) -> list[tuple[str, LanguageModel]]:
        """Return models with their names; without names, all that can be asked."""
        chosen = list(dict.fromkeys(names))
        if not chosen:
            chosen = [each for each, views in self.views.items() if view in views]
        return [self.one(name, view) for name in chosen] or [self.one(None, view)]
