"""Forms and spellings of words."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from treelm.errors import CorpusFormatError
from treelm.tasks.corrupt import regular_forms
from treelm.tasks.corrupt.lexicon import Lexicon
from treelm.tasks.corrupt.morphology import Morphology, english_inflection
from treelm.tasks.corrupt.spelling import Neighbours, read_confusions
from treelm.tasks.corrupt.tagged_sentences import TaggedSentence

BASES = (
    "walk",
    "hope",
    "hop",
    "carry",
    "refer",
    "visit",
    "panic",
    "tie",
    "use",
    "focus",
    "recognize",
)
KNOWN = Morphology({(base, "VB"): 1 for base in BASES})


@pytest.mark.parametrize(
    ("base", "third", "past", "gerund"),
    [
        ("walk", "walks", "walked", "walking"),
        ("hope", "hopes", "hoped", "hoping"),
        ("hop", "hops", "hopped", "hopping"),
        ("carry", "carries", "carried", "carrying"),
        ("refer", "refers", "referred", "referring"),
        ("visit", "visits", "visited", "visiting"),
        ("panic", "panics", "panicked", "panicking"),
        ("tie", "ties", "tied", "tying"),
        ("use", "uses", "used", "using"),
        ("focus", "focuses", "focused", "focusing"),
        ("recognize", "recognizes", "recognized", "recognizing"),
    ],
)
def test_regular_verbs(base: str, third: str, past: str, gerund: str) -> None:
    assert [KNOWN.verb(base, "VB", tag) for tag in ("VBZ", "VBD", "VBG")] == [third, past, gerund]
    assert KNOWN.verb(third, "VBZ", "VBP") == base
    assert KNOWN.verb(past, "VBD", "VB") == KNOWN.verb(gerund, "VBG", "VB") == base
    assert KNOWN.verb(past, "VBN", "VBG") == gerund
    assert KNOWN.verb(past, "VBN", "VBD") is None  # the same form


def test_the_treebank_decides_between_forms() -> None:
    seen = Morphology({("travel", "VB"): 1, ("travelled", "VBD"): 3, ("got", "VBN"): 5})
    assert seen.verb("travel", "VB", "VBD") == "travelled"
    assert seen.verb("got", "VBD", "VBN") is None
    assert KNOWN.verb("got", "VBD", "VBN") == "gotten"
    cocoa = Morphology({("cache", "NN"): 1})
    assert cocoa.other_number("caches", "NNS") == "cache"


def test_verbs_that_the_treebank_does_not_have() -> None:
    nothing = Morphology({})
    forms = {
        "watched": "watch",
        "studied": "study",
        "played": "play",
        "baked": None,
        "begged": None,
    }
    assert {form: nothing.verb(form, "VBD", "VB") for form in forms} == forms
    assert nothing.verb("sings", "VBZ", "VBP") == "sing"
    assert nothing.verb("singing", "VBG", "VBN") == "sung"


def test_a_word_with_a_tag_by_mistake_has_no_forms() -> None:
    counts = {("very", "RB"): 500, ("very", "VB"): 1, ("run", "NN"): 5, ("run", "VB"): 20}
    seen = Morphology(counts)
    assert seen.verb("very", "VB", "VBG") is None
    assert seen.other_number("run", "NN") == "runs"


@pytest.mark.parametrize(
    ("singular", "plural"),
    [
        *(("dog", "dogs"), ("church", "churches"), ("city", "cities"), ("boy", "boys")),
        *(("child", "children"), ("policeman", "policemen"), ("human", "humans")),
        *(("knife", "knives"), ("analysis", "analyses"), ("sister-in-law", "sister-in-laws")),
    ],
)
def test_nouns(singular: str, plural: str) -> None:
    assert KNOWN.other_number(singular, "NN") == plural
    assert KNOWN.other_number(plural, "NNS") == singular


@pytest.mark.parametrize(
    "noun", [("news", "NN"), ("sheep", "NNS"), ("%", "NN"), ("1980s", "NNS"), ("happiness", "NN")]
)
def test_nouns_of_one_number(noun: tuple[str, str]) -> None:
    assert KNOWN.other_number(*noun) is None


def test_irregular_verbs_are_found_from_every_form() -> None:
    irregular = english_inflection()
    assert len(irregular.past) > 150
    for base, forms in irregular.past.items():
        for form in forms:
            found = KNOWN.base(form, "VBD")
            assert found is not None
            assert form in irregular.past[found], base


@given(st.from_regex(r"[a-z]{2,7}", fullmatch=True))
@example("bee")
@example("go")
def test_rules_undo_each_other(word: str) -> None:
    assume(len(word) > 2 or not word.endswith("e"))  # "aed", like "red", is no past of two letters
    assert all(word in regular_forms.from_ed(form) for form in regular_forms.past(word))
    assert all(word in regular_forms.from_ing(form) for form in regular_forms.gerund(word))


# -- spelling ---------------------------------------------------------------------------------


def distance(first: str, second: str) -> int:
    """Return the Levenshtein distance by its definition."""
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        above, row[0] = row[0], i
        for j, b in enumerate(second, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (a != b))
    return row[-1]


WORDS = st.text("abc", min_size=1, max_size=5)


@given(st.sets(WORDS, max_size=12), WORDS)
def test_neighbours_are_those_at_distance_one(words: set[str], word: str) -> None:
    assert Neighbours(words).of(word) == sorted(w for w in words if distance(w, word) == 1)


def test_the_packaged_confusions_are_those_of_the_recipe() -> None:
    listed = (
        "its/it their/there to/too of/off than/then no/not is/it as/at an/and for/four your/you "
        "form/from were/where lose/loose"
    )
    pairs = {frozenset(pair.split("/")) for pair in listed.split()}
    found = read_confusions()
    assert {frozenset((word, other)) for word, others in found.items() for other in others} == pairs
    assert set(found["it"]) == {"its", "is"}


def test_a_file_of_confusions(tmp_path: Path) -> None:
    path = tmp_path / "confusions"
    path.write_text("# mine\naffect effect  # verbs\n\neffect affect\nAdvice advise\n")
    assert read_confusions(path) == {
        "affect": ("effect",),
        "effect": ("affect",),
        "advice": ("advise",),
        "advise": ("advice",),
    }
    for wrong in ("one\n", "a b c\n", "same Same\n"):
        path.write_text("a b\n" + wrong)
        with pytest.raises(CorpusFormatError, match=":2:") as refused:
            read_confusions(path)
        assert refused.value.code == "E_CONFUSIONS"


# -- the lexicon ------------------------------------------------------------------------------


def test_words_are_written_as_inside_a_sentence() -> None:
    text = [
        TaggedSentence(
            ["The", "Dutch", "saw", "I", "The", "DNA"], ["DT", "JJ", "VBD", "PRP", "DT", "NN"]
        ),
        TaggedSentence(["Dogs", "saw", "the", "House"], ["NNS", "VBD", "DT", "NNP"]),
        TaggedSentence(["``", "The", "house"], ["``", "DT", "NN"]),
        TaggedSentence(["the", "the", "Dutch"], ["DT", "DT", "JJ"]),
    ]
    lexicon = Lexicon(text)
    written = {word for word, _ in lexicon.counts}
    assert written == {"the", "Dutch", "saw", "I", "DNA", "dogs", "House", "house", "``"}
    assert lexicon.counts["the", "DT"] == 6
    assert lexicon.entry("Houses", "NNPS") == "Houses"
    assert lexicon.entry("Houses", "NNS") == "houses"
