"""States between words: their interface, and their form as bytes.

A state as bytes is a version byte, the 8 bytes that identify its model, and numbers with 7 bits
per byte, the lowest first (LEB128).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from treelm.errors import UsageError

STATE_VERSION = 1
FINGERPRINT_BYTES = 8

_LARGEST_VARINT_BYTES = 10
_SAMPLED_BLOCKS = 64
_BLOCK_BYTES = 4096


@runtime_checkable
class State(Protocol):
    """The state of a model within a sentence: immutable, comparable, hashable, picklable."""

    @property
    def model(self) -> bytes:
        """The 8 bytes that identify the model of the state."""
        ...

    def to_bytes(self) -> bytes:
        """Return the state as bytes; `state_from_bytes` of its model reads them."""
        ...


@dataclass(frozen=True, slots=True)
class Context:
    """What a sentence inherits from its document.

    Args:
        document: Name of the document; None if it is not known.
        memory: What a model with document memory carries from sentence to sentence.
        parts: In a mixture, the contexts of its parts.
    """

    document: str | None = None
    memory: tuple[float, ...] = ()
    parts: tuple[Context, ...] = ()


class Step(NamedTuple):
    """One word further: natural log probability of the word, and the state after it."""

    log_prob: float
    state: State


class Steps(NamedTuple):
    """Many steps at once, in the given order."""

    log_probs: npt.NDArray[np.float64]
    states: list[State]


# -- bytes ----------------------------------------------------------------------------------


def pack_numbers(numbers: Iterable[int]) -> bytes:
    r"""Return natural numbers as bytes, 7 bits each.

    Examples:
        >>> pack_numbers([1, 300])
        b'\x01\xac\x02'
    """
    packed = bytearray()
    for number in numbers:
        rest = number
        while rest > 0x7F:
            packed.append(rest & 0x7F | 0x80)
            rest >>= 7
        packed.append(rest)
    return bytes(packed)


def unpack_numbers(packed: bytes) -> list[int]:
    r"""Return the numbers that `pack_numbers` has packed.

    Raises:
        UsageError: ``E_STATE_BYTES`` if the last one is cut off or one is too large.

    Examples:
        >>> unpack_numbers(b"\x01\xac\x02")
        [1, 300]
    """
    numbers = []
    number = shift = 0
    for byte in packed:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number = shift = 0
        elif shift >= 7 * _LARGEST_VARINT_BYTES:
            raise damaged_state()
    if shift:
        raise damaged_state()
    return numbers


def pack_pieces(pieces: Iterable[bytes]) -> bytes:
    """Return pieces of bytes as one, each with its length before it."""
    return b"".join(pack_numbers((len(piece),)) + piece for piece in pieces)


def unpack_pieces(packed: bytes) -> list[bytes]:
    """Return the pieces that `pack_pieces` has packed.

    Raises:
        UsageError: ``E_STATE_BYTES`` if the last one is cut off.

    Examples:
        >>> unpack_pieces(pack_pieces([b"one", b"", b"two"]))
        [b'one', b'', b'two']
    """
    pieces = []
    place = 0
    while place < len(packed):
        end = place
        while packed[end] >= 0x80:
            end += 1
            if end == len(packed):
                raise damaged_state()
        (length,) = unpack_numbers(packed[place : end + 1])
        place = end + 1 + length
        if place > len(packed):
            raise damaged_state()
        pieces.append(packed[end + 1 : place])
    return pieces


def state_bytes(model: bytes, payload: bytes) -> bytes:
    """Return a state as bytes: version, model, payload."""
    return bytes((STATE_VERSION,)) + model + payload


def state_payload(data: bytes, model: bytes) -> bytes:
    """Return the payload of a state as bytes, after checking version and model.

    Raises:
        UsageError: ``E_STATE_BYTES`` or ``E_STATE_MODEL``.
    """
    if len(data) <= FINGERPRINT_BYTES or data[0] != STATE_VERSION:
        raise damaged_state()
    check_state_model(data[1 : 1 + FINGERPRINT_BYTES], model)
    return data[1 + FINGERPRINT_BYTES :]


def check_state_model(found: bytes, model: bytes) -> None:
    """Refuse a state of another model.

    Raises:
        UsageError: ``E_STATE_MODEL``.
    """
    if found != model:
        raise UsageError(
            f"the state belongs to the model {found.hex()}, not to this one ({model.hex()}). "
            "States contain ids and tables of their own model; start with `initial()` of this one.",
            code="E_STATE_MODEL",
        )


def damaged_state() -> UsageError:
    """Return the error for bytes that are not a state."""
    return UsageError(
        "these bytes are not a valid state: truncated, changed, or from another version of "
        "treelm. Only what `to_bytes` of a state returned can be read.",
        code="E_STATE_BYTES",
    )


# -- which model ----------------------------------------------------------------------------


def model_fingerprint(parts: Iterable[str], arrays: Mapping[str, npt.NDArray[np.generic]]) -> bytes:
    """Return 8 bytes that identify a model, in time that does not grow with its tables.

    Args:
        parts: Everything small that makes the model what it is.
        arrays: Its tables: names, types and shapes count, and blocks spread over the content.
    """
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:{part}\n".encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        data = array.reshape(-1).view(np.uint8)
        if data.size <= _SAMPLED_BLOCKS * _BLOCK_BYTES:
            digest.update(data.tobytes())
            continue
        for first in np.linspace(0, data.size - _BLOCK_BYTES, _SAMPLED_BLOCKS).astype(np.int64):
            digest.update(data[first : first + _BLOCK_BYTES].tobytes())
    return digest.digest()[:FINGERPRINT_BYTES]
