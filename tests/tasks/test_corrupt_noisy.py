"""Sentences with one error each."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.sample_treebank import sample_treebank
from treelm.errors import UsageError
from treelm.tasks.corrupt.error_types import ErrorName
from treelm.tasks.corrupt.lexicon import Lexicon
from treelm.tasks.corrupt.noisy import (
    EQUAL_WEIGHTS,
    PUBLISHED_WEIGHTS,
    NoiseCounts,
    NoiseGenerator,
    NoisySentence,
    make_noisy,
)
from treelm.tasks.corrupt.tagged_sentences import TaggedSentence, tagged, tagged_corpus
from treelm.trees.tree import Tree


def sentence(text: str) -> TaggedSentence:
    """Return a sentence written as word/tag."""
    pairs = [token.rsplit("/", 1) for token in text.split()]
    return TaggedSentence([word for word, _ in pairs], [tag for _, tag in pairs])


def generator(*texts: str, only: ErrorName | None = None) -> NoiseGenerator:
    return NoiseGenerator(Lexicon(map(sentence, texts)), only=only)


def outcomes(text: str, only: ErrorName, *known: str, seeds: int = 400) -> set[str]:
    """Return all sentences that one type of error makes of a sentence."""
    make = generator(text, *known, only=only)
    found = set()
    for seed in range(seeds):
        noisy = make.corrupt(sentence(text), seed=seed)
        if noisy is None:
            return set()
        assert noisy.error == only
        found.add(" ".join(noisy.words))
    return found


# -- missing ----------------------------------------------------------------------------------


def test_a_word_is_missing() -> None:
    text = "The/DT dog/NN wants/VBZ to/TO bark/VB and/CC I/PRP sleep/VBP on/IN it/PRP ./."
    assert outcomes(text, "missing") == {
        "Dog wants to bark and I sleep on it .",
        "The wants to bark and I sleep on it .",
        "The dog to bark and I sleep on it .",
        "The dog wants bark and I sleep on it .",
        "The dog wants to and I sleep on it .",
        "The dog wants to bark I sleep on it .",
        "The dog wants to bark and sleep on it .",
        "The dog wants to bark and I on it .",
        "The dog wants to bark and I sleep it .",
        "The dog wants to bark and I sleep on .",
    }


def test_only_words_of_the_classes_are_missing() -> None:
    assert outcomes("Now/RB ,/, quietly/RB green/JJ ./.", "missing") == set()
    # A quotation mark is no first word.
    assert outcomes("``/`` The/DT better/JJR ./.", "missing") == {"`` Better ."}


def test_the_class_of_a_missing_word_is_drawn_by_weight() -> None:
    text = sentence("The/DT dog/NN saw/VBD the/DT cat/NN the/DT owl/NN ./.")
    make = generator(only="missing")
    drawn = [make.corrupt(text, seed=seed) for seed in range(20000)]
    found = Counter(noisy.way for noisy in drawn if noisy is not None)
    assert_shares(found, {"determiner": 28, "verb": 23, "noun": 7})
    places = Counter(noisy.position for noisy in drawn if noisy and noisy.way == "noun")
    assert_shares(places, {1: 1, 4: 1, 6: 1})


# -- extra ------------------------------------------------------------------------------------


def test_a_word_is_extra() -> None:
    found = outcomes("The/DT dog/NN barks/VBZ ./.", "extra", "Cat/NN a/DT", seeds=3000)
    words = ["the", "dog", "barks", "."]
    repeated = {"The the dog barks .", "The dog dog barks .", "The dog barks barks ."}
    same_tag = {
        *("A the dog barks .", "The a dog barks ."),
        *("The cat dog barks .", "The dog cat barks ."),
    }
    anything = set()
    for place in range(5):
        for new in (*words, "cat", "a"):
            noisy = [*words[:place], new, *words[place:]]
            first = 1 if noisy[0] == "." else 0
            noisy[first] = noisy[first].capitalize()
            anything.add(" ".join(noisy))
    assert repeated | same_tag <= found
    assert found == repeated | same_tag | anything | {"The dog barks . ."}


def test_the_worked_example() -> None:
    text = "There/EX were/VBD many/JJ contributors/NNS ./."
    found = outcomes(text, "extra", "was/VBD", seeds=3000)
    assert "There was were many contributors ." in found


@pytest.mark.parametrize(
    ("first", "displaced"),
    [
        ("The/DT", "the"),
        ("Anna/NNP", "Anna"),
        ("I/PRP", "I"),
        ("DNA/NN", "DNA"),
        ("Dutch/JJ", "Dutch"),
    ],
)
def test_a_displaced_first_word(first: str, displaced: str) -> None:
    text = f"{first} barks/VBZ"
    known = ("the/DT DNA/NN or/CC DNA/NN", "the/DT Dutch/JJ", "a/DT Otto/NNP we/PRP dog/NN red/JJ")
    found = outcomes(text, "extra", *known, seeds=3000)
    assert f"Or {displaced} barks" in found
    assert f"Otto {displaced} barks" in found
    assert not any(noisy.startswith("or") for noisy in found)


def test_tokens_whose_tag_has_no_other_word_do_not_take_part() -> None:
    make = generator("the/DT dog/NN ./.", "a/DT", only="extra")
    text = sentence("The/DT dog/NN ./.")
    drawn = [make.corrupt(text, seed=seed) for seed in range(3000)]
    same_tag = {noisy.words for noisy in drawn if noisy is not None and noisy.way == "same-tag"}
    assert same_tag == {("A", "the", "dog", "."), ("The", "a", "dog", ".")}
    shares = Counter(noisy.way for noisy in drawn if noisy is not None)
    assert_shares(shares, {"repeated": 1, "same-tag": 1, "any": 1})
    # Without any other word the way is not chosen.
    alone = generator("the/DT dog/NN ./.", only="extra")
    ways = {noisy.way for s in range(300) if (noisy := alone.corrupt(text, seed=s))}
    assert ways == {"repeated", "any"}


def test_new_words_are_drawn_by_frequency() -> None:
    make = generator("dog/NN " * 2 + "cat/NN " * 3 + "owl/NN " * 5, only="extra")
    text = sentence("dog/NN sleeps/VBZ")
    drawn = [make.corrupt(text, seed=seed) for seed in range(12000)]
    found = Counter(
        noisy.words[noisy.position].lower()
        for noisy in drawn
        if noisy is not None and noisy.way == "same-tag"
    )
    assert_shares(found, {"cat": 3, "owl": 5})


# -- spelling ---------------------------------------------------------------------------------


def test_confusions_come_before_neighbours() -> None:
    known = "ton/NN " * 10
    assert outcomes("He/PRP went/VBD to/TO Rome/NNP", "spelling", known) == {
        "He went too Rome",
    }
    assert outcomes("IT/PRP 's/VBZ Its/PRP$", "spelling") == {"ITS 's Its", "IS 's Its", "IT 's It"}


def test_neighbours_are_frequent_words_one_letter_away() -> None:
    known = ("cart/NN " * 10, "cut/VB " * 10, "at/IN " * 9, "Pat/NNP " * 20, "x1t/NN " * 20)
    assert outcomes("The/DT Cat/NN", "spelling", *known) == {"The Cart", "The Cut"}
    assert outcomes("cat/NN ,/, q/NN", "spelling", *known) == {"cart , q", "cut , q"}
    # Names are mistaken for names, too.
    assert outcomes("Cat/NNP", "spelling", *known) == set()
    assert outcomes("Cat/NNP 1/CD", "spelling", *known) == {"Cart 1", "Cut 1", "Pat 1"}


# -- agreement --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The/DT dog/NN barks/VBZ", {"The dog bark"}),
        ("Dogs/NNS bark/VBP", {"Dogs barks"}),
        ("It/PRP is/VBZ", {"It are"}),
        ("I/PRP am/VBP", {"I is"}),
        ("ARE/VBP they/PRP", {"IS they"}),
        ("She/PRP has/VBZ", {"She have"}),
        ("They/PRP do/VBP n't/RB", {"They does n't"}),
        ("They/PRP were/VBD", {"They was"}),
        ("Was/VBD it/PRP", {"Were it"}),
        ("They/PRP went/VBD", set()),
        ("They/PRP 're/VBP", set()),
        ("We/PRP fly/VBP", {"We flies"}),
        ("A/DT dog/NN", {"A dogs"}),
        ("every/DT very/RB old/JJ stone/NN house/NN of/IN", {"every very old stone houses of"}),
        ("each/DT of/IN men/NNS", set()),
        ("A/DT Ford/NNP", set()),
        ("the/DT dog/NN", set()),
        ("a/DT few/JJ days/NNS", {"a few day"}),
        ("These/DT mice/NNS", {"This mice", "These mouse"}),
        ("that/DT woman/NN", {"those woman", "that women"}),
        ("that/IN woman/NN", set()),
        ("this/DT information/NN", {"these information"}),
        ("This/DT was/VBD", {"These was", "This were"}),
        ("an/DT RNA/NN", {"an RNAs"}),
        ("those/DT cell-lines/NNS", {"that cell-lines", "those cell-line"}),
    ],
)
def test_agreement(text: str, expected: set[str]) -> None:
    assert outcomes(text, "agreement") == expected


def test_agreement_chooses_among_pairs_of_way_and_token() -> None:
    text = sentence("This/DT dog/NN barks/VBZ ;/: cats/NNS sleep/VBP")
    make = generator(only="agreement")
    drawn = [make.corrupt(text, seed=seed) for seed in range(8000)]
    found = Counter((noisy.way, noisy.position) for noisy in drawn if noisy is not None)
    assert_shares(found, {("determiner", 0): 1, ("noun", 1): 1, ("verb", 2): 1, ("verb", 5): 1})


# -- verb forms -------------------------------------------------------------------------------

KNOWN = "walk/VB go/VB write/VB stop/VB"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("to/TO walk/VB", {"to walked", "to walking", "to walks"}),
        (
            "can/MD n't/RB ever/RB go/VB",
            {f"can n't ever {verb}" for verb in ("went", "going", "goes")},
        ),
        ("must/MD put/VB", {"must putting", "must puts"}),
        ("to/TO be/VB", {"to was", "to being", "to is"}),
        ("Walk/VB home/RB", set()),
        ("let/VB him/PRP go/VB", set()),
        ("has/VBZ written/VBN", {"has write", "has wrote", "has writing"}),
        ("'ve/VBP not/RB walked/VBN", {"'ve not walk", "'ve not walking"}),
        ("is/VBZ stopped/VBN", {"is stop", "is stopping"}),
        ("the/DT written/VBN word/NN", set()),
        ("’s/VBZ walking/VBG", {"’s walk", "’s walked"}),
        ("have/VBP walking/VBG shoes/NNS", set()),
        ("He/PRP walked/VBD", {"He walk"}),
        ("Went/VBD home/RB", {"Go home"}),
        ("It/PRP was/VBD", {"It be"}),
        ("He/PRP put/VBD it/PRP", set()),
        ("He/PRP frobbed/VBD it/PRP", set()),
    ],
)
def test_verb_forms(text: str, expected: set[str]) -> None:
    assert outcomes(text, "verb-form", KNOWN) == expected


# -- distribution -----------------------------------------------------------------------------


def assert_shares(found: Counter[object] | Counter[str] | Counter[int], weights: dict) -> None:  # type: ignore[type-arg]
    """Assert that counts agree with weights, each within 4 standard errors, and by chi-square."""
    assert set(found) == set(weights)
    total, everything = found.total(), sum(weights.values())
    chi_square = 0.0
    for name, weight in weights.items():
        share = weight / everything
        expected = total * share
        assert abs(found[name] - expected) < 4 * math.sqrt(expected * (1 - share)), name
        chi_square += (found[name] - expected) ** 2 / expected
    # 0.999 quantile of chi-square, by the approximation of Wilson and Hilferty.
    freedom = len(weights) - 1
    assert chi_square < freedom * (1 - 2 / (9 * freedom) + 3.09 * math.sqrt(2 / (9 * freedom))) ** 3


EVERYTHING = "This/DT dog/NN has/VBZ written/VBN to/TO Rome/NNP ./."


@pytest.mark.parametrize("weights", [PUBLISHED_WEIGHTS, EQUAL_WEIGHTS])
def test_types_are_drawn_by_weight(weights: dict[ErrorName, int]) -> None:
    make = NoiseGenerator(Lexicon([sentence(EVERYTHING)]), weights=weights)
    text = sentence(EVERYTHING)
    assert all(kind.candidates(text) for kind in make.types)
    drawn = (make.corrupt(text, seed=seed) for seed in range(100_000))
    found = Counter(noisy.error for noisy in drawn if noisy is not None)
    assert_shares(found, dict(weights))


def test_types_that_do_not_apply_leave_their_share_to_the_others() -> None:
    make = generator()
    text = sentence("The/DT dog/NN")
    drawn = (make.corrupt(text, seed=3, index=index) for index in range(20_000))
    found = Counter(noisy.error for noisy in drawn if noisy is not None)
    assert_shares(found, {"missing": 24, "extra": 17})


# -- properties -------------------------------------------------------------------------------

SAMPLE = list(tagged_corpus(sample_treebank()))
LEXICON = Lexicon(SAMPLE)
ALL_TYPES = NoiseGenerator(LEXICON)


def original_of(noisy: NoisySentence) -> list[str]:
    """Return the original in lower case, from the noisy sentence and where its error is."""
    words, place = [word.lower() for word in noisy.words], noisy.position
    if noisy.error == "extra":
        del words[place]
    elif noisy.error == "missing":
        words.insert(place, noisy.original[place].lower())
    else:
        words[place] = noisy.original[place].lower()
    return words


def check(noisy: NoisySentence) -> None:
    assert noisy.words != noisy.original
    change = {"missing": -1, "extra": 1}.get(noisy.error, 0)
    assert len(noisy.words) == len(noisy.original) + change
    assert original_of(noisy) == [word.lower() for word in noisy.original]
    if not change:
        pairs = enumerate(zip(noisy.words, noisy.original, strict=True))
        differing = [place for place, (new, old) in pairs if new != old]
        assert differing == [noisy.position]


@given(st.sampled_from(SAMPLE), st.integers(0, 2**64 - 1), st.integers(0, 2**40))
def test_one_error_where_it_is_said_to_be(text: TaggedSentence, seed: int, index: int) -> None:
    noisy = ALL_TYPES.corrupt(text, seed=seed, index=index)
    if len(text.words) < 2:
        assert noisy is None
    else:
        assert noisy is not None
        check(noisy)
        assert noisy == NoiseGenerator(LEXICON).corrupt(text, seed=seed, index=index)


def test_words_and_tags_of_a_tree() -> None:
    tree = Tree.from_string("(S (NP (DT The) (NN dog)) (VP (VBZ barks)))")
    assert tagged(tree) == (["The", "dog", "barks"], ["DT", "NN", "VBZ"])


# -- corpora ----------------------------------------------------------------------------------


def read_sample() -> Iterator[TaggedSentence]:
    return iter(SAMPLE)


def test_a_corpus_is_read_as_often_as_needed() -> None:
    counts = NoiseCounts()
    many = list(make_noisy(read_sample, ALL_TYPES, LEXICON, seed=5, count=1000, counts=counts))
    assert len(many) == counts.sentences == 1000
    once = list(make_noisy(read_sample, ALL_TYPES, LEXICON, seed=5))
    assert many[: len(once)] == once
    assert many[len(once)].original == once[0].original
    assert many[len(once) : 2 * len(once)] != once
    assert many[:10] == list(make_noisy(read_sample, ALL_TYPES, LEXICON, seed=5, count=10))
    assert counts.duplicates == 1000 - len({noisy.words for noisy in many})
    in_corpus = {tuple(text.words) for text in SAMPLE}
    assert counts.in_corpus == sum(noisy.words in in_corpus for noisy in many)
    assert json.loads(json.dumps(counts.summary()))["sentences"] == 1000


def test_what_cannot_be_changed_is_counted() -> None:
    texts = [sentence(text) for text in ("Yes/UH", "Well/UH ,/, no/UH", "It/PRP rains/VBZ")]
    lexicon = Lexicon(texts)
    make = NoiseGenerator(lexicon, only="agreement")
    counts = NoiseCounts()
    made = list(make_noisy(lambda: texts, make, lexicon, counts=counts))
    assert [noisy.words for noisy in made] == [("It", "rain")]
    assert (counts.too_short, counts.nothing_applies) == (1, 1)
    assert list(make_noisy(lambda: texts[:2], make, lexicon)) == []
    with pytest.raises(UsageError) as refused:
        list(make_noisy(lambda: texts[:2], make, lexicon, count=5))
    assert refused.value.code == "E_NOTHING_APPLIES"
    with pytest.raises(UsageError):
        list(make_noisy(lambda: texts, make, lexicon, count=-1))
    with pytest.raises(UsageError, match="verb-form"):
        NoiseGenerator(lexicon, only="typo")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["gum", "masc", "wsj-sample"])
def test_treebanks(shared_data: Path, name: str) -> None:
    corpus = TreeCorpus((shared_data / "treebanks" / name / "dev.mrg",), on_error="skip")
    texts = list(tagged_corpus(corpus))
    lexicon = Lexicon(texts)
    counts = NoiseCounts()
    for noisy in make_noisy(lambda: texts, NoiseGenerator(lexicon), lexicon, seed=1, counts=counts):
        check(noisy)
    assert counts.sentences + counts.too_short + counts.nothing_applies == len(texts)
    shares = {name: sum(ways.values()) / counts.sentences for name, ways in counts.made.items()}
    assert shares["missing"] > 24 / 89 - 0.05
    assert all(share > 0.05 for share in shares.values())
