"""What a model folder must contain: tensors declared once, and checked by one reader.

A system lists its tensors, each with a type, a shape in named sizes, and what its values must be::

    SCHEMA = (
        UNIGRAM_COUNTS,
        Tensor("rules", np.int32, ("rules", 3), ids("labels")),
        Tensor("starts", np.int64, ("words+1",), offsets("entries")),
        Tensor("tags", np.int32, ("entries",), ids("labels")),
    )
    with damage_in(folder):
        vocabulary = read_words(folder)
        found = read_tensors(folder.tables(), SCHEMA, words=len(vocabulary), labels=len(labels))

Sizes that are not given follow from the first tensor that has them and must agree everywhere.
Values are looked at only where a tensor declares what they must be, so that a large mapped table
is not read when its model is loaded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm.characters import visible
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_file import load_vocabulary, save_vocabulary
from treelm.errors import EstimationError, ModelFileError
from treelm.store.folder import FolderWriter, ModelFolder
from treelm.store.untrusted import excerpt

Array = npt.NDArray[Any]
#: A length: a number, ``words``, ``words+1``, a sum such as ``rules+tops``, or ``*`` for any.
Size = int | str

#: File of the vocabulary.
WORDS = "words.txt"
#: A length that nothing else depends on.
ANY = "*"
#: Larger numbers come from no training, and sums and products of them might overflow.
LARGEST = 1e30
#: Probabilities may differ from a sum of 1 by less than this.
TOLERANCE = 1e-6


class Tensors(dict[str, Array]):
    """Arrays by name that fit their schema, and the sizes they agree on."""

    def __init__(self, arrays: Mapping[str, Array], sizes: dict[str, int]) -> None:
        super().__init__(arrays)
        self.sizes = sizes

    def number(self, name: str) -> int | float:
        """Return the only value of a tensor of shape ``(1,)``."""
        value: int | float = self[name][0].item()
        return value

    def size(self, size: Size) -> int:
        """Return the value of a size, such as ``words+1``."""
        if isinstance(size, int):
            return size
        names, constant = _terms(size)
        return constant + sum(self.sizes[name] for name in names)


#: Returns what is wrong with the values of a tensor, or None; the other tensors are there to
#: compare with, their types and shapes already checked.
Rule = Callable[[Array, Tensors], str | None]


class Tensor:
    """One tensor of a model.

    Args:
        name: What it is called in the file.
        dtype: Its type.
        shape: Its lengths; see `Size`.
        rules: What its values must be; without rules they are not looked at.
        optional: Whether it may be missing.
    """

    __slots__ = ("dtype", "name", "optional", "rules", "shape")

    def __init__(
        self,
        name: str,
        dtype: type[np.generic],
        shape: tuple[Size, ...],
        *rules: Rule,
        optional: bool = False,
    ) -> None:
        self.name, self.dtype, self.shape = name, dtype, shape
        self.rules, self.optional = rules, optional


#: How often each word was seen in training, and how many sentences there were.
UNIGRAM_COUNTS = Tensor("unigram_counts", np.uint64, ("words+1",))


def read_tensors(
    tensors: Mapping[str, Array], schema: Sequence[Tensor], *, only: bool = False, **sizes: int
) -> Tensors:
    """Return the tensors that a schema lists, after checking them; others are left out.

    Args:
        tensors: Arrays by name, such as those of a file; nothing about them is trusted.
        schema: What must be there.
        only: Whether tensors that the schema does not list are refused.
        sizes: Sizes that are known.

    Raises:
        ModelFileError: ``E_MODEL_TABLES``, naming the tensor and what is wrong with it. Inside
            `damage_in` the message also names the folder and says what to do.
    """
    found = Tensors({}, dict(sizes))
    for item in schema:
        array = tensors.get(item.name)
        if array is not None:
            _check_kind(item, array, found)
            found[item.name] = array
        elif not item.optional:
            raise _wrong(item.name, "is missing")
    others = sorted(set(tensors) - {item.name for item in schema}) if only else []
    if others:
        raise _wrong(excerpt(others[0]), "does not belong to this model")
    for item in schema:
        if item.name in found:
            for rule in item.rules:
                problem = rule(found[item.name], found)
                if problem is not None:
                    raise _wrong(item.name, problem)
    return found


def _check_kind(item: Tensor, array: Array, found: Tensors) -> None:
    """Check type and shape; sizes that were not known yet are known afterwards."""
    if array.dtype != item.dtype:
        raise _wrong(item.name, f"has type {array.dtype}, not {np.dtype(item.dtype)}")
    if array.ndim != len(item.shape) or not all(
        _agrees(size, length, found.sizes)
        for size, length in zip(item.shape, array.shape, strict=True)
    ):
        wanted = ", ".join(_shown(size, found.sizes) for size in item.shape)
        raise _wrong(item.name, f"has shape {array.shape}, not ({wanted})")


def _agrees(size: Size, length: int, sizes: dict[str, int]) -> bool:
    """Return whether a length is the declared one; the first length with a name defines it."""
    if size == ANY:
        return True
    if isinstance(size, int):
        return size == length
    names, rest = _terms(size)
    unknown = [name for name in names if name not in sizes]
    rest += sum(sizes[name] for name in names if name in sizes)
    if not unknown:
        return rest == length
    if len(unknown) > 1:
        raise ValueError(f"the sizes {unknown} are not known before {size}")
    if length < rest:
        return False
    sizes[unknown[0]] = length - rest
    return True


def _shown(size: Size, sizes: Mapping[str, int]) -> str:
    if isinstance(size, int) or size == ANY:
        return "any" if size == ANY else str(size)
    names, constant = _terms(size)
    if any(name not in sizes for name in names):
        return size
    return f"{size} = {constant + sum(sizes[name] for name in names)}"


@lru_cache(maxsize=1024)
def _terms(size: str) -> tuple[tuple[str, ...], int]:
    """Return the names of a sum, and its number."""
    parts = [part.strip() for part in size.split("+")]
    numbers = [int(part) for part in parts if part.isdecimal()]
    return tuple(part for part in parts if not part.isdecimal()), sum(numbers)


def _wrong(name: str, what: str) -> ModelFileError:
    return ModelFileError(f'the tensor "{name}" {what}', code="E_MODEL_TABLES")


# -- values -----------------------------------------------------------------------------------


def finite(array: Array, _: Tensors | None = None) -> str | None:
    """Ask for numbers that are neither NaN nor infinite, nor so large that they might become so."""
    if (np.abs(array) <= LARGEST).all():
        return None
    return f"contains NaN, infinity or numbers beyond {LARGEST:g}"


def non_negative(array: Array, _: Tensors | None = None) -> str | None:
    """Ask for numbers from 0 on that are finite in the same sense."""
    if ((array >= 0) & (array <= LARGEST)).all():
        return None
    return f"contains negative numbers, NaN, infinity or numbers beyond {LARGEST:g}"


def probabilities(array: Array, _: Tensors | None = None) -> str | None:
    """Ask for numbers from 0 to 1."""
    if ((array >= 0) & (array <= 1)).all():
        return None
    return "contains numbers that are not probabilities"


def distribution(array: Array, _: Tensors | None = None) -> str | None:
    """Ask for probabilities that add up to 1; an empty tensor is accepted."""
    problem = probabilities(array)
    if problem is not None or not array.size:
        return problem
    total = float(array.sum())
    return None if abs(total - 1) < TOLERANCE else f"adds up to {total:.9g}, not to 1"


def ids(end: Size, start: Size = 0) -> Rule:
    """Ask for whole numbers from `start` on and below `end`."""

    def rule(array: Array, found: Tensors) -> str | None:
        first, last = found.size(start), found.size(end)
        if not array.size or (int(array.min()) >= first and int(array.max()) < last):
            return None
        return f"contains ids outside the range from {first} to {last - 1}"

    return rule


def columns(*ends: Size) -> Rule:
    """Ask for rows of ids, those of each column from 0 on and below its own end."""

    def rule(array: Array, found: Tensors) -> str | None:
        for column, end in enumerate(ends):
            problem = ids(end)(array[:, column], found)
            if problem is not None:
                return f"{problem} in column {column + 1}"
        return None

    return rule


def ascending(array: Array, _: Tensors | None = None) -> str | None:
    """Ask for numbers each of which is larger than the one before."""
    return None if (array[1:] > array[:-1]).all() else "is not in ascending order"


def ascending_within(starts: str) -> Rule:
    """Ask for ascending numbers in each piece; another tensor says where the pieces begin."""

    def rule(array: Array, found: Tensors) -> str | None:
        begins = np.zeros(len(array) + 1, np.bool_)
        begins[found[starts]] = True
        if (begins[1:-1] | (array[1:] > array[:-1])).all():
            return None
        return f'is not in ascending order within the pieces that "{starts}" gives'

    return rule


def offsets(end: Size, step: int = 0) -> Rule:
    """Ask for places from 0 to `end`, each at least `step` after the one before."""

    def rule(array: Array, found: Tensors) -> str | None:
        last = found.size(end)
        if not len(array) or int(array[0]) != 0 or int(array[-1]) != last:
            return f"does not go from 0 to {last}"
        # Compared before subtracting: differences of unsigned numbers are never negative.
        falls = (array[1:] < array[:-1]).any()
        return "is not in ascending order" if falls or (np.diff(array) < step).any() else None

    return rule


# -- folders ----------------------------------------------------------------------------------


@contextmanager
def damage_in(folder: ModelFolder, again: str = "train the model again") -> Iterator[None]:
    """Name the folder, the cause and the remedy in what is said about damaged tables.

    Args:
        folder: What is being read.
        again: What else helps than copying the folder again.

    Raises:
        ModelFileError: ``E_MODEL_TABLES``, or ``E_MANIFEST`` if that is the cause.
    """
    shown = visible(str(folder.path))
    try:
        yield
    except (ModelFileError, EstimationError) as error:
        if str(error).startswith(shown):  # says it already: a missing file, or a damaged part
            raise
        raise ModelFileError(
            f"{shown}: {str(error).rstrip('.')}. The folder is damaged, or files of another model "
            f"were copied into it; copy it again or {again}.",
            code="E_MANIFEST" if error.code == "E_MANIFEST" else "E_MODEL_TABLES",
        ) from error


def read_names(folder: ModelFolder, name: str) -> tuple[str, ...]:
    """Return the lines of a text file that names something in each, such as labels.

    Raises:
        ModelFileError: ``E_MODEL_TABLES`` if a line stands there twice; to be called inside
            `damage_in`.
    """
    names = folder.lines(name)
    if len({*names}) < len(names):
        twice = next(line for line, count in Counter(names).items() if count > 1)
        raise ModelFileError(f'{name} holds "{excerpt(twice)}" twice', code="E_MODEL_TABLES")
    return names


def write_words(writer: FolderWriter, vocabulary: Vocabulary) -> None:
    """Write the vocabulary of a model."""
    save_vocabulary(vocabulary, writer.file(WORDS))


def read_words(folder: ModelFolder) -> Vocabulary:
    """Return the vocabulary of a model, which is the one that its manifest names.

    Raises:
        ModelFileError: ``E_MODEL_TABLES`` if it is another one; to be called inside `damage_in`.
        VocabularyError: if the file holds no vocabulary.
    """
    vocabulary = load_vocabulary(folder.file(WORDS))
    if vocabulary.fingerprint != folder.manifest.vocabulary:
        raise ModelFileError(
            f"{WORDS} is not the vocabulary that the manifest names", code="E_MODEL_TABLES"
        )
    return vocabulary
