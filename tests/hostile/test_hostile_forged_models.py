"""What forged models were once accepted or broke: refused now, or sane.

Each was found by the forger of `tests/fuzz`, which makes such folders by the thousand.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.command_line import processor_time_below
from tests.fuzz.forge_campaign import make_forgers
from tests.fuzz.forged_folder import Folder
from tests.fuzz.forged_use import use
from tests.hostile.inputs import refused_at_once

from treelm.corpus.vocabulary import Vocabulary, VocabularyEntry
from treelm.errors import ModelFileError, TreelmError, UsageError
from treelm.models.mixture.weights import check_weights
from treelm.models.registry import load
from treelm.tasks.inspect.grammar import inspect_subcategories

Change = Callable[[Folder], object]


@cache
def originals(system: str) -> tuple[Folder, ...]:
    return tuple(make_forgers([system])[system].originals)


def forged(path: Path, system: str, change: Change, *, variant: int = 0) -> Path:
    """Write a small model with a change, its sizes and checksums right; return the folder."""
    folder = originals(system)[variant].copy()
    folder.manifest["config"] = dict(folder.manifest["config"])
    folder.tables = {name: array.copy() for name, array in (folder.tables or {}).items()}
    change(folder)
    folder.write(path / "model")
    return path / "model"


def number(name: str, value: Any, place: Any = 0) -> Change:
    """Return what changes one number of a tensor."""

    def change(folder: Folder) -> None:
        assert folder.tables is not None
        folder.tables[name][place] = value

    return change


def option(name: str, value: Any) -> Change:
    """Return what changes an option."""
    return lambda folder: folder.manifest["config"].update({name: value})


# -- messages ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["\x1b[31m", "a\n", "\u202eorder", "x" * 1000])
@pytest.mark.parametrize("system", ["ngram", "interpolated"])
def test_hostile_options_are_named_safely(system: str, name: str, tmp_path: Path) -> None:
    folder = forged(tmp_path, system, option(name, 1))
    with refused_at_once("E_MANIFEST", "there is no such option"):
        load(folder)


def test_hostile_options_by_the_thousand_are_not_all_named(tmp_path: Path) -> None:
    more = {f"option{number}": number for number in range(1000)}
    folder = forged(tmp_path, "hhmm", lambda folder: folder.manifest["config"].update(more))
    with refused_at_once("E_MANIFEST", "option0", "and 995 more"):
        load(folder)


# -- topics --------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", ["plsa", "composite"])
def test_hostile_topics_that_are_not_there(system: str, tmp_path: Path) -> None:
    folder = forged(tmp_path, system, number("predictor.0.topics", 3, -1))
    with refused_at_once("E_MODEL_TABLES", "predictor.0.topics"):
        load(folder)


# -- names ---------------------------------------------------------------------------------------


NAMES = [
    ("tree_features", 0, "features.txt", "weights"),
    ("tree_features", 1, "rules.txt", None),
    ("pcfg", 0, "labels.txt", "substates"),
    ("lsvm", 0, "classes.txt", None),
    ("headlex", 1, "tags.txt", None),
    ("treelet", 1, "tags.txt", None),
    ("hhmm", 2, "endings.txt", None),
    ("composite", 0, "phrases.txt", None),
]


@pytest.mark.parametrize(("system", "variant", "name", "tensor"), NAMES)
def test_hostile_names_that_stand_twice(
    system: str, variant: int, name: str, tensor: str | None, tmp_path: Path
) -> None:
    def change(folder: Folder) -> None:
        assert folder.tables is not None
        first = folder.texts[name].partition(b"\n")[0]
        folder.texts[name] += first + b"\n"
        if tensor is not None:
            folder.tables[tensor] = np.append(folder.tables[tensor], folder.tables[tensor][:1])

    folder = forged(tmp_path, system, change, variant=variant)
    with refused_at_once("E_MODEL_TABLES", name, "twice"):
        load(folder)


# -- HHMM ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [np.nan, -np.inf, -0.5])
def test_hostile_hhmm_share_that_is_no_number(share: float, tmp_path: Path) -> None:
    folder = forged(tmp_path, "hhmm", number("fitting_share", share))
    with refused_at_once("E_MODEL_TABLES", "fitting_share"):
        load(folder)


def test_hostile_hhmm_without_rules_on_one_side(tmp_path: Path) -> None:
    """Nothing is awaited at the first depth: an odd grammar, but no reason for an IndexError."""

    def change(folder: Folder) -> None:
        tables = folder.tables or {}
        tables["left"], tables["right"] = tables["right"], tables["left"]

    folder = forged(tmp_path, "hhmm", change)
    assert use(folder, tmp_path, thorough=True).refused in (None, "E_MODEL_TABLES")


# -- n-grams -------------------------------------------------------------------------------------


def test_hostile_ngrams_that_predict_the_start_of_a_sentence(tmp_path: Path) -> None:
    def change(folder: Folder) -> None:
        assert folder.tables is not None
        folder.tables["ngram.slots"] *= 2

    model = load(forged(tmp_path, "ngram", change, variant=2))
    with pytest.raises(ModelFileError, match="start of a sentence"):
        model.sample(50, seed=1, max_words=20)


@pytest.mark.parametrize("size", [1, 46, 48])
def test_hostile_ngrams_over_another_number_of_words(size: int, tmp_path: Path) -> None:
    """The distribution over the next word had another length than the vocabulary."""
    folder = forged(tmp_path, "ngram", number("ngram.shape", size, 5))
    with refused_at_once("E_MODEL_TABLES", "ngram"):
        load(folder)


# -- numbers that overflow -----------------------------------------------------------------------


WEIGHTS = [
    ("trigram_svm", "weights"),
    ("tree_features", "weights"),
    ("lsvm", "weights"),
    ("lsvm", "calibration"),
    ("pcfg", "openness"),
    ("hhmm", "tag_counts"),
]


@pytest.mark.parametrize("value", [1e308, -1e308, 1e31, np.inf, np.nan])
@pytest.mark.parametrize(("system", "name"), WEIGHTS)
def test_hostile_numbers_whose_sums_overflow(
    system: str, name: str, value: float, tmp_path: Path
) -> None:
    folder = forged(tmp_path, system, number(name, value))
    with refused_at_once("E_MODEL_TABLES", name, "1e+30"):
        load(folder)


# -- treelets ------------------------------------------------------------------------------------


def slots_times(factor: int) -> Change:
    """Return what changes every slot of the right-hand sides that were never seen."""

    def change(folder: Folder) -> None:
        assert folder.tables is not None
        folder.tables["yields.slots"] *= factor

    return change


def test_hostile_treelets_whose_right_hand_sides_never_begin(tmp_path: Path) -> None:
    """Only the end is drawn, again and again: it was waited for a symbol that never comes."""
    model = load(forged(tmp_path, "treelet", slots_times(0), variant=1))
    with processor_time_below(5), pytest.raises(ModelFileError, match="right-hand side"):
        model.sample(20, seed=1)


@pytest.mark.parametrize("variant", [0, 1, 2])
def test_hostile_treelets_whose_right_hand_sides_are_all_empty(
    variant: int, tmp_path: Path
) -> None:
    """The probability of the end is 1 at the start, by which one cannot divide: NaN."""
    folder = forged(tmp_path, "treelet", slots_times(2), variant=variant)
    assert use(folder, tmp_path, thorough=True).refused is None


# -- what a campaign of 1.4 million found ----------------------------------------------------------


@pytest.mark.parametrize("name", ["\x1b[31m", "\x00", "\u2028", "\U0010ffff"])
def test_hostile_labels_are_named_safely(name: str, tmp_path: Path) -> None:
    def change(folder: Folder) -> None:
        folder.texts = dict(folder.texts)
        labels = folder.texts["labels.txt"].decode().split("\n")
        labels[labels.index("NP")] = name
        folder.texts["labels.txt"] = "\n".join(labels).encode()

    path = forged(tmp_path, "pcfg", change)
    with pytest.raises(TreelmError) as caught:
        inspect_subcategories(path, "NP")
    assert name[0] not in str(caught.value)


def test_hostile_words_that_stand_twice_are_named_safely() -> None:
    with pytest.raises(TreelmError, match="twice") as caught:
        Vocabulary([VocabularyEntry("<unk>", 0), *[VocabularyEntry("\ufeff", 1)] * 2])
    assert "\ufeff" not in str(caught.value)


def test_hostile_weights_whose_sum_overflows() -> None:
    with pytest.raises(UsageError, match="add up to"):
        check_weights([0.5, 1.7e308, 1.7e308], 3)
