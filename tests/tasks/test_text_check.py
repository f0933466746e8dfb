"""A text that does not fit its model is noticed."""

from __future__ import annotations

from typing import Any

import pytest

from treelm.corpus.vocabulary import Vocabulary
from treelm.tasks.text_check import LOOKED_AT, MANY_UNKNOWN, TextCheck

KNOWN = Vocabulary.from_counts(
    dict.fromkeys(["the", "The", "ferry", "left", "fell", "it", ".", ",", "U.S.", "4", "000"], 2)
)


def messages(*lines: str, **how: Any) -> list[str]:
    check = TextCheck(KNOWN, **how)
    list(check.watch(lines))
    return list(check.messages())


def test_known_words_need_no_message() -> None:
    assert messages("The ferry left .", "", "it fell , the U.S.") == []


def test_few_unknown_words_are_named_and_many_are_a_warning() -> None:
    few = messages(*["the ferry left ."] * 5, "frumious ferry")
    assert few == ["4.5 % of the words (1 of 22) are unknown to the model."]
    (many,) = messages("the frumious ferry")
    assert many.startswith("warning: 33.3 % of the words (1 of 3) are unknown")
    assert "--tokenize" in many
    assert 1 / 3 > MANY_UNKNOWN > 1 / 22


@pytest.mark.parametrize(
    ("line", "sign"),
    [
        ("The ferry left.", '"left."'),
        ("the ferry, it fell .", '"ferry,"'),
        ('the "ferry" left .', '"ferry"'),
        ("it left the\u00a0ferry .", "no-break space"),
        ("4\u202f000 left .", "no-break space"),
    ],
)
def test_untokenized_text_is_noticed(line: str, sign: str) -> None:
    found = [each for each in messages(line) if "looks untokenized" in each]
    assert len(found) == 1
    assert sign in found[0]
    assert found[0].endswith("Use --tokenize.")
    assert not any("--tokenize" in each for each in messages(line, tokenized=True))


def test_commands_without_the_option_name_the_one_that_tokenizes() -> None:
    found = messages("The ferry left.", has_option=False)
    assert len(found) == 2
    assert all("`treelm tokenize`" in each and "--tokenize" not in each for each in found)


def test_one_of_several_models_is_named() -> None:
    assert "are unknown to models/ngram." in messages("slithy ferry", model="models/ngram")[0]


def test_capitals_are_noticed() -> None:
    found = messages("THE FERRY LEFT")
    assert any('capitals such as "THE"' in each for each in found)


@pytest.mark.parametrize("line", ["the NATO ferry left .", "The U.S. left .", "it fell ..."])
def test_words_of_tokenized_text_are_no_sign(line: str) -> None:
    assert not any("looks untokenized" in each or "capitals" in each for each in messages(line))


def test_only_the_first_sentences_are_looked_at_and_all_are_counted() -> None:
    check = TextCheck(KNOWN)
    list(check.watch(["the ferry left ."] * LOOKED_AT + ["The ferry left."] * LOOKED_AT))
    assert (check.words, check.unknown) == (7 * LOOKED_AT, LOOKED_AT)
    assert len(list(check.messages())) == 1


def test_abbreviations_are_no_sign_of_text_that_is_not_tokenized() -> None:
    check = TextCheck(Vocabulary.from_counts({"Dr": 3, "left": 3, ".": 3}))
    check.add_sentences([("Dr.", "left", ".")])
    assert not any("looks untokenized" in message for message in check.messages())
    check.add_sentences([("Dr.", "left.")])
    assert any("looks untokenized" in message for message in check.messages())
