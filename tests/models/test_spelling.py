"""Spelling models: they sum to one over all strings, and add up to open vocabularies."""

from __future__ import annotations

import itertools
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.encoder import encode_sentences, encode_text, encode_written
from treelm.corpus.files import Content
from treelm.corpus.sample_treebank import sample_treebank
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.corpus.words import SPACE
from treelm.errors import ModelFileError, TreelmWarning, UsageError, VocabularyError
from treelm.models.interface.model import SPELLING, LanguageModel
from treelm.models.interface.spelled import with_spelling
from treelm.models.interface.spelling import CODE_POINTS, Characters, Spelling
from treelm.models.interface.train_spelling import count_words, rare_words, spelling_of
from treelm.models.mixture.model import interpolate
from treelm.models.registry import load, train

pytestmark = pytest.mark.filterwarnings("ignore::treelm.errors.TreelmWarning")

KNOWN = Vocabulary.from_counts({"ab": 3, "b": 2, "aab": 1})
COUNTS = {"ba": 3, "abba": 1, "aa": 2, "bb": 1, "a": 1, "abx": 1}
ANY_WORD = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=SPACE), min_size=1, max_size=12
)


def tiny(order: int = 3) -> Spelling:
    return spelling_of(COUNTS, KNOWN, order=order)


def text() -> list[tuple[str, ...]]:
    return [tree.words for tree in sample_treebank()]


def classes() -> Vocabulary:
    return build_vocabulary(text(), VocabularyRule(name="min-count", min_count=2, signatures=True))


def small(**options: object) -> LanguageModel:
    return train("ngram", text()[:240], order=2, unknown="spelling", **options)


# -- all strings --------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, 3, 6])
def test_spellings_of_all_strings_sum_to_one(order: int) -> None:
    """All strings up to a length, known words left out, and what longer ones have: exactly 1."""
    spelling, longest = tiny(order), 6
    assert spelling.alphabet.tolist() == [ord("a"), ord("b")]  # x is in one type only: unseen
    unseen = CODE_POINTS - 2
    total = 0.0
    for size in range(1, longest + 1):
        for letters in itertools.product("ab\u2603", repeat=size):
            word = "".join(letters)
            if word in KNOWN:
                continue
            ways = float(unseen) ** word.count("\u2603")
            total += ways * math.exp(spelling.log_prob(word, first=False))
    # Independently: what the chain has left after so many characters, from its distributions.
    left = alive(spelling, longest) / math.exp(float(spelling.log_mass[0]))
    assert total + left == pytest.approx(1.0, abs=1e-6)


def alive(spelling: Spelling, longest: int) -> float:
    """Return the probability that a spelling has more than so many characters."""
    width = spelling.table.context_columns
    start, end = spelling.characters.start, spelling.characters.end
    reached = {(start,) * width: 1.0}
    for _ in range(longest + 1):
        after: dict[tuple[int, ...], float] = {}
        for context, weight in reached.items():
            probabilities = np.exp(spelling.table.distribution(context))
            assert probabilities[: end + 1].sum() == pytest.approx(1.0, abs=1e-6)
            for character in range(end):
                following = (character, *context)[:width]
                share = weight * float(probabilities[character])
                after[following] = after.get(following, 0.0) + share
        reached = after
    return sum(reached.values())


def test_what_known_words_had_is_given_to_the_others() -> None:
    spelling = tiny()
    taken = ["", "ab", "b", "aab", "<s>", "</s>"]
    chain = spelling.chain_log_probs(taken)
    assert math.exp(spelling.log_mass[0]) == pytest.approx(1 - np.exp(chain).sum())
    assert spelling.log_prob("ab", first=True) == 0.0
    whole = spelling.chain_log_probs(["ba"])[0]
    assert spelling.log_prob("ba", first=False) == pytest.approx(whole - spelling.log_mass[0])


def test_words_of_a_form_share_its_symbol() -> None:
    """All words of a symbol sum to at most one, and to hardly less where it is frequent."""
    vocabulary = classes()
    spelling = spelling_of(rare_words(vocabulary, count_words([_written(text())])), vocabulary)
    symbols = np.flatnonzero(spelling.word_ids.is_oov[:-1])
    assert len(symbols) > 5
    drawn = spelling.draw(11, 0, 20000)  # not those that the shares were found with
    for first in (True, False):
        own = np.array([spelling.word_ids.word(word, first=first) for word in drawn])
        shares = np.bincount(own, minlength=len(vocabulary))[symbols] / 20000
        sums = shares / np.exp(spelling.log_mass)
        expected = np.exp(spelling.log_mass) * 20000
        assert (sums < 1 + 5 / np.sqrt(expected)).all()  # the share itself was drawn
        assert (sums[shares > 0.05] > 0.9).all()
        assert (shares > 0.05).any()


def test_form_of_a_word_is_not_paid_for_twice() -> None:
    """Given the symbol, a spelling has what the chain gives it, as a share of all of its form."""
    model = small(vocabulary=classes())
    spelling = model.spelling
    assert spelling is not None
    number = [s for s in spelling.vocabulary.symbols if s == "<unk>" or s.startswith("UNK")]
    own = spelling.word_ids.word("toadening", first=False)
    assert spelling.vocabulary.symbols[own] == "UNK-LC-ing"
    mass = spelling.log_mass[number.index("UNK-LC-ing")]
    whole = spelling.chain_log_probs(["toadening"])[0]
    assert spelling.log_prob("toadening", first=False) == pytest.approx(whole - mass)
    assert mass < -2


def _written(sentences: list[tuple[str, ...]]) -> TextCorpus:
    return TextCorpus((Content("text", "\n".join(map(" ".join, sentences)).encode()),))


# -- characters ---------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(ANY_WORD, min_size=1, max_size=5), st.integers(0, 4))
def test_rows_are_those_of_the_definition(words: list[str], width: int) -> None:
    alphabet = np.array(sorted({ord(each) for each in "".join(words)})[::2], np.uint32)
    characters = Characters(alphabet, width)
    rows, starts = characters.rows(words)
    expected = []
    for word in words:
        known = alphabet.tolist()
        ids = [known.index(ord(each)) + 1 if ord(each) in known else 0 for each in word]
        line = [characters.start] * width + [*ids, characters.end]
        expected += [
            [line[place], *line[place - width : place][::-1]] for place in range(width, len(line))
        ]
    assert rows.tolist() == expected
    assert starts.tolist() == [0, *itertools.accumulate(len(word) + 1 for word in words)]


@settings(max_examples=60, deadline=None)
@given(ANY_WORD)
def test_every_word_has_a_probability(word: str) -> None:
    found = tiny().log_prob(word, first=False)
    assert (word in KNOWN and found == 0.0) or -5000 < found < 0


@given(st.sets(st.characters(exclude_categories=["Cs"], exclude_characters=SPACE), max_size=6))
def test_unseen_characters_are_all_others(letters: set[str]) -> None:
    alphabet = np.array(sorted(map(ord, letters)), np.uint32)
    characters = Characters(alphabet, 0)
    some = [characters.unseen_character(point) for point in (0.0, 0.01, 0.05, 0.5, 1 - 2**-53)]
    assert len({*some}) == 5
    for each in some:
        assert each not in letters
        assert each not in SPACE
        each.encode()
    assert chr(0x10FFFF) in {*letters, some[-1], chr(0x10FFFE)} | set(some)


def test_first_unseen_characters_are_in_order() -> None:
    characters = Characters(np.array([0, 2, 14], np.uint32), 0)
    unseen = characters.unseen
    found = [ord(characters.unseen_character((index + 0.5) / unseen)) for index in range(9)]
    assert found == [1, 3, 4, 5, 6, 7, 8, 15, 16]


def test_samples_are_as_frequent_as_their_probability() -> None:
    spelling = tiny()
    drawn = [spelling.sample(0, first=False, seed=1, stream=n, place=0) for n in range(3000)]
    for word in ("ba", "a", "bb"):
        expected = math.exp(spelling.log_prob(word, first=False))
        share = drawn.count(word) / len(drawn)
        assert abs(share - expected) < 4 * math.sqrt(expected * (1 - expected) / len(drawn))
    assert not {*KNOWN.symbols[1:], "", "<s>"} & {*drawn}


# -- text ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("vocabulary", [KNOWN, classes()], ids=["unk", "classes"])
def test_written_text_is_encoded_text_with_its_unknown_words(
    vocabulary: Vocabulary, tmp_path: Path
) -> None:
    file = tmp_path / "text"
    lines = ["Vexing ab b <unk> \u5317\u4eac", "", "aab", "The eels UNK-LC the zzz"]
    file.write_text("\n".join(lines) + "\n")
    plain = encode_text(str(file), vocabulary)
    found = encode_written(TextCorpus(str(file)), vocabulary)
    assert found.ids.tolist() == plain.ids.tolist()
    assert found.starts.tolist() == plain.starts.tolist()
    assert found.documents.tolist() == plain.documents.tolist()
    assert found.unknown == plain.unknown or "<unk>" in (found.written or ())
    assert found.fingerprint == plain.fingerprint
    again = encode_sentences([line for line in lines if line], vocabulary, written=True)
    assert again.written == found.written
    assert again.characters == found.characters == 49


# -- training -----------------------------------------------------------------------------------


def test_rare_known_words_are_learnt_from_where_unknown_ones_are_few() -> None:
    counts = count_words([_written([("a", "b", "b"), ("c", "a", "d", "d", "d")])])
    vocabulary = Vocabulary.from_counts({"a": 2, "b": 2, "d": 3})
    assert rare_words(vocabulary, counts) == {"a": 1, "b": 1, "c": 1, "d": 1}


def test_words_count_as_often_as_they_occur() -> None:
    sentences = [("Boat", "eel", "<unk>"), ("boat", "Boat", "eel"), ("eel",)]
    found = rare_words(Vocabulary.from_counts({"boat": 2}), count_words([_written(sentences)]))
    assert found == {"Boat": 2, "boat": 1, "eel": 3}


@pytest.mark.parametrize(
    ("system", "options"),
    [("pcfg", {}), ("pcfg_la", {"seed": 1}), ("hhmm", {"observation": "bayes"})],
)
def test_models_that_do_not_sum_to_one_cannot_spell(
    system: str, options: dict[str, object]
) -> None:
    with pytest.raises(UsageError, match="sum to one"):
        train(system, list(sample_treebank())[:20], unknown="spelling", **options)


def test_counts_have_no_spellings(tmp_path: Path) -> None:
    from treelm.tasks.counts import build_counts

    build_counts(_written(text()[:50]), tmp_path / "counts", order=2)
    with pytest.raises(UsageError, match="counts have none"):
        train("ngram", tmp_path / "counts", unknown="spelling")


def test_default_is_the_symbol_alone() -> None:
    model = train("ngram", text()[:50], order=2)
    assert model.spelling is None
    assert model.closed is model
    assert "bits_per_character" not in model.perplexity([("zzz",)]).to_record()


def test_mixture_of_parts_of_which_one_spells_is_refused() -> None:
    one = small()
    other = train("ngram", text()[:240], order=1, vocabulary=one.vocabulary)
    with pytest.raises(VocabularyError, match="spells unknown words") as caught:
        interpolate([one, other], [0.5, 0.5])
    assert caught.value.code == "E_VOCABULARY_MISMATCH"


def test_other_forms_of_a_model_spell_too() -> None:
    model = small()
    expected = model.score("zzz").log_prob - model.closed.score("zzz").log_prob
    floored = model.floored(0.1)
    for other in (model.quantized(16), model.compacted(), model.with_max_words(20), floored):
        own = other.score("zzz").log_prob - other.closed.score("zzz").log_prob
        assert own == pytest.approx(expected, abs=1e-4)
    assert model.with_max_words(20).spelling is model.spelling
    assert floored.spelling is model.spelling
    assert floored.perplexity(["zzz"]).closed_perplexity == pytest.approx(
        floored.closed.perplexity(["zzz"]).perplexity
    )


def stored(spelling: Spelling | None) -> int:
    assert spelling is not None
    return sum(array.nbytes for array in spelling.table.to_tensors("table").values())


def test_tables_of_spellings_become_smaller_with_those_of_the_model(tmp_path: Path) -> None:
    model = small(vocabulary=classes())
    words = ["toadening", "zzz", "Krk", "1850s", "\u2603"]
    before = [model.score(word).log_prob - model.closed.score(word).log_prob for word in words]
    compact, coded = model.compacted(), model.quantized(6)
    assert stored(compact.spelling) < 0.7 * stored(model.spelling)
    assert stored(coded.spelling) < 0.4 * stored(model.spelling)
    for other, tolerance in ((compact, 1e-9), (coded, 0.5)):
        other.save(tmp_path / str(tolerance))
        for form in (other, load(tmp_path / str(tolerance))):
            own = [form.score(word).log_prob - form.closed.score(word).log_prob for word in words]
            assert own == pytest.approx(before, abs=tolerance)
            assert stored(form.spelling) == stored(other.spelling)
    assert compact.spelling is not None
    drawn = compact.spelling.draw(3, 0, 50)
    assert len(drawn) > 25
    assert np.isfinite(compact.spelling.chain_log_probs(drawn)).all()
    # One that is small already stays as it is.
    assert coded.spelling is not None
    assert coded.spelling.compacted() is coded.spelling
    assert coded.spelling.quantized(8) is coded.spelling


def test_spellings_are_stored_as_the_options_of_the_model_say() -> None:
    model = small(bits=6, layout="compact")
    assert model.spelling is not None
    assert model.spelling.table.shape.compact
    assert stored(model.spelling) == stored(small().quantized(6).spelling)


def test_rare_sequences_can_be_left_out_of_spellings() -> None:
    """Fewer rows, and still all strings sum to one."""
    counts = dict.fromkeys(["abab", "abba", "baba", "bab", "aab", "abb", "bba"], 1)
    whole, pruned = (spelling_of(counts, KNOWN, order=5, min_count=least) for least in (1, 3))
    assert stored(pruned) < stored(whole)
    rows = [[len(each.table.rows(level)[0]) for level in range(5)] for each in (whole, pruned)]
    assert all(after < before for before, after in zip(rows[0][:2], rows[1][:2], strict=True))
    assert rows[0][3:] == rows[1][3:]
    assert alive(pruned, 0) <= 1.0
    for context in itertools.product(range(1, 3), repeat=4):
        probabilities = np.exp(pruned.table.distribution(context))
        assert probabilities[: pruned.characters.end + 1].sum() == pytest.approx(1.0, abs=1e-6)
    small_model = small(spelling_min_count=3)
    assert stored(small_model.spelling) < stored(small().spelling)
    assert small_model.with_max_words(20).config.spelling_min_count == 3


def test_leaving_out_sequences_needs_spellings() -> None:
    with pytest.raises(UsageError, match="spelling only"):
        train("ngram", text()[:40], order=2, spelling_min_count=2)


def test_larger_vocabulary_and_smaller_one_can_be_compared() -> None:
    """The closed perplexity falls with the vocabulary; with spellings it does not."""
    sentences, dev = text()[:240], text()[240:]
    found = []
    for least in (1, 2, 8):
        rule = VocabularyRule(name="min-count", min_count=least)
        vocabulary = build_vocabulary(sentences, rule)
        model = train("ngram", sentences, order=2, vocabulary=vocabulary, unknown="spelling")
        found.append(model.perplexity(dev, allow_overlap=True))
    closed = [each.closed_perplexity or 0.0 for each in found]
    opened = [each.bits_per_character or 0.0 for each in found]
    assert closed[0] > closed[1] > 1.5 * closed[2]
    assert max(opened) < 1.15 * min(opened)


def test_other_vocabulary_is_refused() -> None:
    with pytest.raises(UsageError, match="another vocabulary"):
        with_spelling(train("ngram", text()[:50], order=2), tiny())


# -- files --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import warnings

    folder = tmp_path_factory.mktemp("spelled") / "model"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)
        small(vocabulary=classes()).save(folder)
    return folder


def _changed(saved: Path, tmp_path: Path, **tensors: np.ndarray | None) -> Path:
    folder = tmp_path / "model"
    shutil.copytree(saved, folder)
    file = folder / SPELLING
    found = load_file(file)
    for name, array in tensors.items():
        if array is None:
            del found[name]
        else:
            found[name] = array
    save_file(found, file)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][SPELLING]["size"] = file.stat().st_size
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.mark.parametrize(
    "change",
    [
        {"alphabet": np.array([98, 97], np.uint32)},
        {"alphabet": np.array([0xD800], np.uint32)},
        {"alphabet": np.array([32, 97], np.uint32)},
        {"alphabet": np.array([97, 0x110000], np.uint32)},
        {"alphabet": np.array([97], np.uint32)},
        {"alphabet": None},
        {"log_mass": None},
        {"log_mass": np.zeros(1)},
        {"log_mass": "nan"},
        {"log_mass": "positive"},
        {"spelling.shape": np.zeros(9, np.uint64)},
        {"spelling.slots": None},
    ],
    ids=str,
)
def test_forged_spellings_are_refused(
    saved: Path, tmp_path: Path, change: dict[str, object]
) -> None:
    size = len(load_file(saved / SPELLING)["log_mass"])
    values = {"nan": np.full(size, math.nan), "positive": np.full(size, 0.5)}
    made = {
        name: values.get(each, each) if isinstance(each, str) else each
        for name, each in change.items()
    }
    folder = _changed(saved, tmp_path, **made)  # type: ignore[arg-type]
    with pytest.raises(ModelFileError) as caught:
        load(folder)
    assert caught.value.code in ("E_MODEL_TABLES", "E_MANIFEST")
    assert str(folder) in str(caught.value)
    assert "malformed" not in str(caught.value)  # the manifest is as it was


@pytest.mark.parametrize("option", ["symbol", "spelling"])
def test_option_and_file_must_go_together(saved: Path, tmp_path: Path, option: str) -> None:
    folder = _changed(saved, tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["config"]["unknown"] = option
    if option == "spelling":
        del manifest["files"][SPELLING]
        (folder / SPELLING).unlink()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelFileError, match="unknown"):
        load(folder)
