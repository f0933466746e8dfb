"""Corpora cut into parts that share no sentence."""

from __future__ import annotations

import pytest

from treelm.errors import CorpusFormatError, UsageError
from treelm.tasks.corrupt.data_split import PUBLISHED_SIZES, split_sentences

SIZES = {"gen": 50, "train": 20, "dev": 10, "test": 10}
CORPUS = [tuple(f"{word}{number}" for word in "abcde") for number in range(100)]


def test_parts_have_their_sizes_and_share_no_sentence() -> None:
    split = split_sentences(CORPUS, SIZES, seed=1)
    assert {name: len(part) for name, part in split.parts.items()} == SIZES
    everything = [sentence for part in split.parts.values() for sentence in part]
    everything += split.rest
    assert sorted(everything) == sorted(" ".join(words) for words in CORPUS)


def test_short_sentences_and_duplicates_are_left_out_and_counted() -> None:
    corpus = [*CORPUS, *CORPUS[:30], ("too", "short", "to", "keep"), ("too", "short")]
    split = split_sentences(corpus, SIZES, seed=1)
    assert (split.read, split.too_short, split.duplicates) == (132, 2, 30)
    assert split.parts == split_sentences(CORPUS, SIZES, seed=1).parts


def test_words_are_counted_before_duplicates() -> None:
    split = split_sentences([("a",)] * 3 + [("b", "c")] * 2, {}, seed=0, min_words=2)
    assert split.summary() == {"read": 5, "too_short": 3, "duplicates": 1, "rest": 1}


def test_order_is_random_but_depends_on_the_seed_alone() -> None:
    first, again, other = (split_sentences(CORPUS, SIZES, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert set(first.parts["test"]) != set(other.parts["test"])
    assert list(first.parts["gen"]) != sorted(first.parts["gen"])
    # Sentences from all over the corpus: a part is no stretch of it.
    numbers = {int(sentence.split()[0][1:]) for sentence in first.parts["train"]}
    assert min(numbers) < 30
    assert max(numbers) > 70


def test_a_larger_part_begins_with_the_smaller_one() -> None:
    small = split_sentences(CORPUS, {"gen": 10}, seed=3).parts["gen"]
    large = split_sentences(CORPUS, {"gen": 40}, seed=3).parts["gen"]
    assert large[:10] == small


def test_published_sizes() -> None:
    assert list(PUBLISHED_SIZES.values()) == [450_000, 50_000, 3_000, 3_000]


def test_too_few_sentences_are_refused() -> None:
    with pytest.raises(CorpusFormatError, match=r"need 101 different sentences.*has 100") as error:
        split_sentences(CORPUS, {"gen": 101}, seed=1)
    assert error.value.code == "E_NO_DATA"


@pytest.mark.parametrize(
    "wrong", [{"seed": -1}, {"seed": 1, "min_words": 0}, {"seed": 1, "sizes": {"gen": -1}}]
)
def test_impossible_numbers_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        split_sentences(CORPUS, **wrong)  # type: ignore[arg-type]
