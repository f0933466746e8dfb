"""Counter-based random numbers and lower-casing: Python and the kernel agree."""

from __future__ import annotations

import math
import sys
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.reference import random_numbers

from treelm import _native, seeds

NUMBERS = st.integers(0, 2**64 - 1) | st.integers(0, 100)
# The kernel's tables are of this version of Unicode; a newer Python knows more letters.
SAME_UNICODE = unicodedata.unidata_version == "14.0.0"

# -- random numbers -------------------------------------------------------------------------


@settings(max_examples=80)
@given(NUMBERS, NUMBERS, NUMBERS)
def test_seeds_follow_the_recipe(seed: int, stream: int, counter: int) -> None:
    uniform = seeds.random_uniform(seed, stream, counter)
    assert uniform == random_numbers.random_uniform(seed, stream, counter)
    assert seeds.random_bits(seed, stream, counter) == random_numbers.random_bits(
        seed, stream, counter
    )
    assert 0.0 <= uniform < 1.0


@pytest.mark.parametrize(
    ("place", "bits"),
    [
        ((0, 0, 0), 0x238275BC38FCBE91),
        ((1, 2, 3), 0xD0734750FDE362B3),
        ((2**64 - 1, 2**64 - 1, 2**64 - 1), 0x595B17F487C0E71B),
        ((20120708, 10001, 17), 0xBBC580E4FC0EF050),
    ],
)
def test_seeds_values_never_change(place: tuple[int, int, int], bits: int) -> None:
    """Stored models depend on these values; computed once with the recipe in the module's docs."""
    assert seeds.random_bits(*place) == bits
    assert seeds.random_uniform(*place) == (bits >> 11) / 2**53
    assert _native.random_uniform(*place) == (bits >> 11) / 2**53


def test_seeds_first_value_is_splitmix64() -> None:
    """The published first output of SplitMix64 with seed 0 (Steele et al. 2014)."""
    assert random_numbers._mix(0) == 0xE220A8397B1DCDAF


@given(st.integers(-(2**70), 2**70), st.integers(-(2**70), 2**70))
def test_seeds_numbers_are_taken_modulo_two_to_the_64(seed: int, stream: int) -> None:
    assert seeds.random_bits(seed, stream) == seeds.random_bits(seed % 2**64, stream % 2**64)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_seeds_look_uniform_along_every_axis(axis: int) -> None:
    size, bins = 20_000, 50
    places = [[7, 7, 7] for _ in range(size)]
    for i, place in enumerate(places):
        place[axis] = i
    sample = np.array([_native.random_uniform(*place) for place in places])
    assert len(np.unique(sample)) == size
    assert abs(sample.mean() - 0.5) < 5 * math.sqrt(1 / 12 / size)
    counts, _ = np.histogram(sample, bins, (0.0, 1.0))
    chi_square = float(((counts - size / bins) ** 2 / (size / bins)).sum())
    assert abs(chi_square - (bins - 1)) < 5 * math.sqrt(2 * (bins - 1))
    neighbours = float(np.corrcoef(sample[:-1], sample[1:])[0, 1])
    assert abs(neighbours) < 5 / math.sqrt(size)


def test_seeds_bits_are_balanced() -> None:
    size = 4000
    ones = np.zeros(64)
    for i in range(size):
        bits = seeds.random_bits(1, i)
        ones += [bits >> bit & 1 for bit in range(64)]
    assert np.all(np.abs(ones / size - 0.5) < 5 * 0.5 / math.sqrt(size))


def test_seeds_arguments_are_not_interchangeable() -> None:
    places = [(a, b, c) for a in range(6) for b in range(6) for c in range(6)]
    assert len({seeds.random_bits(*place) for place in places}) == len(places)


def test_seeds_generators_are_reproducible_and_apart() -> None:
    first, again = seeds.generator(1, 2).random(5), seeds.generator(1, 2).random(5)
    assert first.tolist() == again.tolist()
    assert first.tolist() != seeds.generator(1, 3).random(5).tolist()


# -- lower case -----------------------------------------------------------------------------

LETTERS = "aAzZ1.-'’\u0301\u00ad\u0345ΣσςΑΒİIıǅẞßⅠⒶKÅ犬𐐀𞤀:ʰ \t\n"


def every_character(last: int = sys.maxunicode) -> list[str]:
    """All code points but surrogates; if Python is newer than the tables, those that are old."""
    last = last if SAME_UNICODE else 0x07FF
    return [chr(point) for point in range(last + 1) if not 0xD800 <= point < 0xE000]


def test_seeds_lower_case_of_every_character() -> None:
    wrong = [char for char in every_character() if _native.lower_case(char) != char.lower()]
    assert wrong == []


def test_seeds_lower_case_around_a_sigma() -> None:
    """Every letter and mark before and after a capital sigma, which looks at its neighbours."""
    wrong = [
        char
        for char in every_character(last=0x1FFFF)
        for text in (f"{char}Σ", f"aΣ{char}", f"aΣ{char}a", f"a{char}Σ")
        if _native.lower_case(text) != text.lower()
    ]
    assert wrong == []


ANY_CHARACTER = st.characters(
    exclude_categories=["Cs"], max_codepoint=sys.maxunicode if SAME_UNICODE else 0x07FF
)


@settings(max_examples=80)
@given(st.text(LETTERS) | st.text(ANY_CHARACTER, max_size=20))
@example("ΑΣ' Σ ΣΑ'Σ. 'Σ'")
def test_seeds_lower_case_of_strings(text: str) -> None:
    assert _native.lower_case(text) == text.lower()


def test_seeds_lower_case_of_long_strings() -> None:
    text = "ÄΣ" * 100_000
    assert _native.lower_case(text) == text.lower()
    assert _native.lower_case("") == ""
    assert _native.lower_case("A\0B") == "a\0b"
