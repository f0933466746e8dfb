"""States as bytes, and which model they belong to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelm.errors import UsageError
from treelm.models.interface.states import (
    FINGERPRINT_BYTES,
    STATE_VERSION,
    model_fingerprint,
    pack_numbers,
    pack_pieces,
    state_bytes,
    state_payload,
    unpack_numbers,
    unpack_pieces,
)

MODEL = b"abcdefgh"


@given(st.lists(st.integers(0, (1 << 64) - 1)))
def test_numbers_survive_packing(numbers: list[int]) -> None:
    assert unpack_numbers(pack_numbers(numbers)) == numbers


@given(st.lists(st.binary()))
def test_pieces_survive_packing(pieces: list[bytes]) -> None:
    assert unpack_pieces(pack_pieces(pieces)) == pieces


@given(st.binary())
def test_any_bytes_unpack_or_are_refused(data: bytes) -> None:
    for unpack, pack in ((unpack_numbers, pack_numbers), (unpack_pieces, pack_pieces)):
        try:
            found = unpack(data)
        except UsageError as error:
            assert error.code == "E_STATE_BYTES"  # noqa: PT017 (or it unpacks)
        else:
            assert unpack(pack(found)) == found


def test_state_bytes_name_version_and_model() -> None:
    data = state_bytes(MODEL, b"xyz")
    assert data[0] == STATE_VERSION
    assert data[1:9] == MODEL
    assert state_payload(data, MODEL) == b"xyz"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "E_STATE_BYTES"),
        (bytes([STATE_VERSION + 1]) + MODEL + b"x", "E_STATE_BYTES"),
        (state_bytes(MODEL, b"")[:-1], "E_STATE_BYTES"),
        (state_bytes(b"stranger", b"x"), "E_STATE_MODEL"),
    ],
)
def test_other_bytes_are_refused(data: bytes, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        state_payload(data, MODEL)
    assert caught.value.code == code


def test_fingerprint_tells_models_apart() -> None:
    table = np.arange(1 << 20, dtype=np.uint32)
    changed = table.copy()
    changed[-1] += 1
    found = {
        model_fingerprint(["a"], {"t": table}),
        model_fingerprint(["a"], {"t": changed}),
        model_fingerprint(["a"], {"t": table.reshape(2, -1)}),
        model_fingerprint(["a"], {"u": table}),
        model_fingerprint(["b"], {"t": table}),
        model_fingerprint(["a", ""], {"t": table}),
        model_fingerprint([], {}),
    }
    assert len(found) == 7
    assert {len(each) for each in found} == {FINGERPRINT_BYTES}
    assert model_fingerprint(["a"], {"t": table}) == model_fingerprint(["a"], {"t": table.copy()})
