"""The schema of a model: every declared property is checked, and nothing else is looked at."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import EstimationError, ModelFileError
from treelm.store.checkpoint import CheckpointFolder
from treelm.store.folder import FolderWriter, ModelFolder, open_folder, save_folder
from treelm.store.manifest import Description
from treelm.store.schema import (
    ANY,
    UNIGRAM_COUNTS,
    Rule,
    Tensor,
    Tensors,
    ascending,
    ascending_within,
    columns,
    damage_in,
    distribution,
    finite,
    ids,
    non_negative,
    offsets,
    probabilities,
    read_tensors,
    read_words,
    write_words,
)

Arrays = dict[str, NDArray[Any]]

SCHEMA = (
    Tensor("starts", np.int64, ("words+1",), offsets("entries")),
    Tensor("tags", np.int32, ("entries",), ids("labels"), ascending_within("starts")),
    Tensor("rules", np.int32, ("rules", 3), ids("labels")),
    Tensor("weights", np.float64, ("rules+entries",), finite),
    Tensor("notes", np.uint8, (ANY,), optional=True),
)


def good() -> Arrays:
    return {
        "starts": np.array([0, 2, 2, 3], np.int64),
        "tags": np.array([0, 4, 1], np.int32),
        "rules": np.array([[0, 1, 2], [4, 4, 4]], np.int32),
        "weights": np.zeros(5),
    }


def refusal(tensors: Arrays, schema: tuple[Tensor, ...] = SCHEMA, **sizes: Any) -> str:
    """Return why tensors are refused; fail if they are not."""
    with pytest.raises(ModelFileError) as caught:
        read_tensors(tensors, schema, **sizes)
    assert caught.value.code == "E_MODEL_TABLES"
    return str(caught.value)


# -- names, types and shapes ------------------------------------------------------------------


def test_tensors_that_fit_come_back_with_their_sizes() -> None:
    tensors = good()
    found = read_tensors({**tensors, "more": np.zeros(1)}, SCHEMA, labels=5)
    assert {*found} == {*tensors}
    assert all(found[name] is array for name, array in tensors.items())
    assert found.sizes == {"labels": 5, "words": 3, "entries": 3, "rules": 2}
    assert found.size("rules+entries+4") == 9
    assert found.size(7) == 7


def test_known_sizes_are_not_changed() -> None:
    sizes = {"labels": 5, "words": 3}
    read_tensors(good(), SCHEMA, **sizes)
    assert sizes == {"labels": 5, "words": 3}


def test_optional_tensors_may_be_missing_but_not_wrong() -> None:
    notes = np.zeros(2, np.uint8)
    assert "notes" in read_tensors({**good(), "notes": notes}, SCHEMA, labels=5)
    message = refusal({**good(), "notes": notes.astype(np.int8)}, labels=5)
    assert message == 'the tensor "notes" has type int8, not uint8'


@pytest.mark.parametrize("name", ["starts", "tags", "rules", "weights"])
def test_missing_tensors_are_named(name: str) -> None:
    tensors = good()
    del tensors[name]
    assert refusal(tensors, labels=5) == f'the tensor "{name}" is missing'


def test_types_and_shapes_are_compared() -> None:
    def changed(name: str, array: NDArray[Any]) -> str:
        return refusal({**good(), name: array}, labels=5, words=3)

    assert changed("tags", np.zeros(3, np.int64)) == 'the tensor "tags" has type int64, not int32'
    assert changed("starts", np.zeros(5, np.int64)) == (
        'the tensor "starts" has shape (5,), not (words+1 = 4)'
    )
    assert changed("rules", np.zeros((2, 2), np.int32)) == (
        'the tensor "rules" has shape (2, 2), not (rules = 2, 3)'
    )
    assert changed("rules", np.zeros(6, np.int32)) == (
        'the tensor "rules" has shape (6,), not (rules, 3)'
    )
    assert "rules+entries = 5" in changed("weights", np.zeros(4))
    assert changed("notes", np.zeros((2, 2), np.uint8)) == (
        'the tensor "notes" has shape (2, 2), not (any)'
    )


def test_bytes_in_another_order_are_another_type() -> None:
    assert "has type" in refusal({**good(), "weights": np.zeros(5, ">f8")}, labels=5)


def test_a_size_cannot_be_negative() -> None:
    schema = (Tensor("starts", np.int64, ("words+1",)),)
    assert read_tensors({"starts": np.zeros(1, np.int64)}, schema).sizes == {"words": 0}
    assert "not (words+1)" in refusal({"starts": np.zeros(0, np.int64)}, schema)


def test_a_schema_must_say_where_its_sizes_come_from() -> None:
    schema = (Tensor("both", np.int64, ("left+right",)),)
    with pytest.raises(ValueError, match="not known"):
        read_tensors({"both": np.zeros(3, np.int64)}, schema)


def test_other_tensors_are_refused_where_none_is_expected() -> None:
    assert read_tensors(good(), SCHEMA, only=True, labels=5)
    message = refusal({**good(), "more\x1b": np.zeros(1)}, only=True, labels=5)
    assert message == 'the tensor "more\\x1b" does not belong to this model'


@given(
    st.dictionaries(
        st.sampled_from(["a", "b"]), st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2
    )
)
def test_a_size_has_one_value(shapes: dict[str, tuple[int, int]]) -> None:
    schema = (Tensor("a", np.uint8, ("n", "m+1")), Tensor("b", np.uint8, ("m", "n")))
    tensors = {name: np.zeros(shape, np.uint8) for name, shape in shapes.items()}
    fits = shapes["a"] == (shapes["b"][1], shapes["b"][0] + 1)
    if fits:
        assert read_tensors(tensors, schema).sizes == dict(zip("mn", shapes["b"], strict=True))
    else:
        refusal(tensors, schema)


# -- values -----------------------------------------------------------------------------------


def problem(rule: Rule, values: Any, dtype: type[np.generic] = np.float64, **sizes: int) -> bool:
    """Return whether a rule refuses values."""
    found = rule(np.array(values, dtype), Tensors({}, sizes))
    assert found is None or found.strip()
    return found is not None


NUMBERS = st.lists(
    st.sampled_from([-1.0, 0.0, 0.25, 1.0, 1.5, np.nan, np.inf, -np.inf]), max_size=4
)


@given(NUMBERS)
def test_rules_about_numbers_are_what_they_say(values: list[float]) -> None:
    real = all(np.isfinite(value) for value in values)
    assert problem(finite, values) == (not real)
    assert problem(non_negative, values) == (not real or min(values, default=0) < 0)
    shares = all(0 <= value <= 1 for value in values)
    assert problem(probabilities, values) == (not shares)
    assert problem(distribution, values) == (
        not shares or (bool(values) and abs(sum(values) - 1) >= 1e-6)
    )


@given(st.lists(st.integers(-2, 6), max_size=5), st.integers(0, 3), st.integers(0, 5))
def test_ids_lie_in_their_range(values: list[int], first: int, last: int) -> None:
    inside = all(first <= value < last for value in values)
    assert problem(ids(last, start=first), values, np.int32) == (not inside)
    rule = ids("labels", start="phrases")
    assert problem(rule, values, np.int64, labels=last, phrases=first) == (not inside)


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3)), max_size=4))
def test_columns_have_their_own_ends(rows: list[tuple[int, int]]) -> None:
    outside = any(not (0 <= one < 2 and 0 <= two < 3) for one, two in rows)
    found = columns(2, "words")(np.array(rows, np.int32).reshape(-1, 2), Tensors({}, {"words": 3}))
    assert (found is not None) == outside


@given(st.lists(st.integers(0, 4), max_size=5))
def test_ascending_means_each_is_larger(values: list[int]) -> None:
    assert problem(ascending, values, np.uint32) == (values != sorted(set(values)))


@given(st.lists(st.integers(0, 5), max_size=5), st.integers(0, 5), st.integers(0, 1))
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_offsets_go_from_nothing_to_the_end(
    dtype: type[np.generic], values: list[int], end: int, step: int
) -> None:
    fine = (
        bool(values)
        and values[0] == 0
        and values[-1] == end
        and all(two - one >= step for one, two in itertools.pairwise(values))
    )
    assert problem(offsets("n", step=step), values, dtype, n=end) == (not fine)


def test_offsets_of_any_size_are_compared() -> None:
    largest = (1 << 63) - 1
    assert problem(offsets(3), [0, -largest, 3], np.int64)
    assert problem(offsets(3), [0, largest, 3], np.int64)
    assert problem(offsets(3), [0, (1 << 64) - 1, 3], np.uint64)


def test_pieces_ascend_each_for_itself() -> None:
    schema = SCHEMA[:2]

    def tags(*values: int) -> Arrays:
        return {**good(), "tags": np.array(values, np.int32)}

    assert read_tensors(tags(3, 4, 0), schema, labels=5)
    assert 'within the pieces that "starts" gives' in refusal(tags(3, 3, 0), schema, labels=5)
    nothing = {"starts": np.zeros(1, np.int64), "tags": np.zeros(0, np.int32)}
    assert read_tensors(nothing, schema, labels=5).sizes["words"] == 0


CHANGES: dict[str, tuple[str, Callable[[Arrays], None]]] = {
    "ids": ("rules", lambda t: t["rules"].__setitem__((1, 1), 5)),
    "negative ids": ("tags", lambda t: t["tags"].__setitem__(0, -1)),
    "offsets": ("starts", lambda t: t["starts"].__setitem__(-1, 4)),
    "falling offsets": ("starts", lambda t: t["starts"].__setitem__(1, 3)),
    "NaN": ("weights", lambda t: t["weights"].__setitem__(3, np.nan)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_values_are_checked_and_their_tensor_is_named(name: str) -> None:
    tensors = good()
    tensor, change = CHANGES[name]
    change(tensors)
    assert refusal(tensors, labels=5).startswith(f'the tensor "{tensor}" ')


class _Unread(np.ndarray[Any, np.dtype[Any]]):
    """An array whose values nobody may look at."""

    def _read(self, *_: object, **__: object) -> NoReturn:
        raise AssertionError("the values were read")

    __array_ufunc__ = __array_function__ = __getitem__ = __iter__ = _read  # type: ignore[assignment]
    min = max = sum = tolist = astype = copy = _read  # type: ignore[assignment]


def test_values_without_rules_are_not_read() -> None:
    """A mapped table of gigabytes must not be read when its model is opened."""
    array = np.zeros(8, np.uint8).view(_Unread)
    with pytest.raises(AssertionError, match="were read"):
        finite(array)
    schema = (Tensor("slots", np.uint8, ("slots",)), Tensor("words", np.uint8, (8,)))
    found = read_tensors({"slots": array, "words": array}, schema)
    assert found["slots"] is array


# -- folders ----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> ModelFolder:
    vocabulary = Vocabulary.from_counts({"dog": 2, "cat": 1})

    def write(writer: FolderWriter) -> None:
        writer.tables("tables.safetensors", {UNIGRAM_COUNTS.name: np.zeros(4, np.uint64)})
        writer.lines("labels.txt", ["S", "NP"])
        write_words(writer, vocabulary)

    save_folder(tmp_path / "model", Description("toy", vocabulary=vocabulary.fingerprint), write)
    return open_folder(tmp_path / "model")


def test_words_labels_and_counts_come_back(folder: ModelFolder) -> None:
    vocabulary = read_words(folder)
    assert vocabulary.symbols == ("<unk>", "dog", "cat")
    assert folder.lines("labels.txt") == ("S", "NP")
    assert read_tensors(folder.tables(), (UNIGRAM_COUNTS,), words=len(vocabulary))
    with pytest.raises(ModelFileError), damage_in(folder):
        read_tensors(folder.tables(), (UNIGRAM_COUNTS,), words=4)


def test_words_of_another_model_are_refused(tmp_path: Path) -> None:
    vocabulary = Vocabulary.from_counts({"dog": 2})
    description = Description("toy", vocabulary="another")
    save_folder(tmp_path / "m", description, lambda writer: write_words(writer, vocabulary))
    opened = open_folder(tmp_path / "m")
    with pytest.raises(ModelFileError) as caught, damage_in(opened):
        read_words(opened)
    assert "words.txt is not the vocabulary" in str(caught.value)
    assert caught.value.code == "E_MODEL_TABLES"


def test_damage_names_the_folder_the_tensor_and_the_remedy(folder: ModelFolder) -> None:
    with pytest.raises(ModelFileError) as caught, damage_in(folder):
        read_tensors(folder.tables(), (Tensor("rules", np.int32, (ANY,)),))
    assert str(caught.value) == (
        f'{folder.path}: the tensor "rules" is missing. The folder is damaged, or files of '
        "another model were copied into it; copy it again or train the model again."
    )
    with (
        pytest.raises(ModelFileError, match=r"or count again\.$"),
        damage_in(folder, "count again"),
    ):
        raise EstimationError("nothing adds up.", code="E_NOT_NORMALIZED")


def test_damage_keeps_what_is_said_of_files_and_the_manifest(folder: ModelFolder) -> None:
    with pytest.raises(ModelFileError) as caught, damage_in(folder):
        folder.lines("missing.txt")
    assert caught.value.code == "E_MODEL_FILE"
    assert str(caught.value).count(str(folder.path)) == 1
    with pytest.raises(ModelFileError) as caught, damage_in(folder):
        raise ModelFileError("there is no such transform", code="E_MANIFEST")
    assert caught.value.code == "E_MANIFEST"


class _Checkpoint(CheckpointFolder):
    file_name = "state.safetensors"
    told_by = "options"


def test_checkpoints_are_read_by_a_schema_too(tmp_path: Path) -> None:
    checkpoint = _Checkpoint.beside(tmp_path / "model")
    checkpoint.write({"history": np.zeros(3)}, "key")
    tables = checkpoint.open("key")
    assert tables is not None
    schema = (Tensor("history", np.float64, ("rounds",)),)
    assert checkpoint.read(tables, schema).sizes == {"rounds": 3}
    with pytest.raises(ModelFileError, match=r"resume=True") as caught:
        checkpoint.read(tables, schema, rounds=2)
    assert caught.value.code == "E_CHECKPOINT"
