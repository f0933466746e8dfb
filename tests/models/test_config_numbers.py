"""Numbers of options: strict, finite, bounded, and what a manifest holds."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from treelm.corpus.corpus import TextCorpus
from treelm.errors import OutputFileError, UsageError
from treelm.models.interface.config import Config, Option, options_of
from treelm.models.registry import find_system, systems
from treelm.models.run import Run
from treelm.tasks.train import check_storable, train_and_save

NUMERIC = [
    pytest.param(name, option, id=f"{name}.{option.name}")
    for name in systems()
    for option in options_of(find_system(name).config_class)
    if option.is_numeric
]
NO_NUMBERS = (math.nan, math.inf, -math.inf, 10**400, "2", True, 1e308)


def several(option: Option, value: object) -> object:
    return [value] if "tuple" in str(option.annotation) else value


@pytest.mark.parametrize(("system", "option"), NUMERIC)
def test_config_refuses_what_is_no_number_of_an_option(system: str, option: Option) -> None:
    required = {"seed": 1} if system == "pcfg_la" else {}
    for value in NO_NUMBERS:
        with pytest.raises(UsageError, match=option.name):
            find_system(system).make_config({**required, option.name: several(option, value)})


@pytest.mark.parametrize("system", systems())
def test_config_of_whole_floats_survives_json(system: str) -> None:
    kind = find_system(system).config_class
    required = {"seed": 1} if system == "pcfg_la" else {}
    config = find_system(system).make_config(required)
    check_storable(system, config)
    # Manifests hold 1 where a float is 1.0: programs in other languages write it so.
    stored = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in config.model_dump(mode="json").items()
    }
    assert kind.model_validate(stored) == config


@pytest.mark.parametrize("value", [2.5, 2.0, "2"])
def test_config_never_rounds(value: object) -> None:
    with pytest.raises(UsageError, match="order"):
        find_system("ngram").make_config({"order": value})


def test_check_storable_refuses_what_json_cannot_say() -> None:
    class Odd(Config):
        seed: int = 0

    with pytest.raises(UsageError, match="cannot be saved"):
        check_storable("odd", Odd(seed=1 << 64))


def test_train_and_save_looks_at_the_target_first(tmp_path: Path) -> None:
    text = TextCorpus((str(tmp_path / "not-there.txt"),))
    with pytest.raises(OutputFileError, match="does not exist"):
        train_and_save(
            find_system("ngram"), {"corpus": text}, tmp_path / "missing" / "x", {}, run=Run()
        )
