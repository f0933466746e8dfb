"""Our module of KenLM's name beside KenLM itself: the same ARPA files, every method."""

from __future__ import annotations

import copy
import math
import pickle
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import treelm
import treelm.interop.kenlm as ours
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import TreelmWarning, UnsupportedTask, UsageError

#: KenLM gives single precision.
CLOSE = pytest.approx

#: Without <unk>, and with a context whose weight is 1 and a word that is as likely without it.
PRUNED = """\
\\data\\
ngram 1=6
ngram 2=4
ngram 3=2

\\1-grams:
-0.6\t</s>
-99\t<s>\t-0.3
-0.5\tthe\t-0.2
-0.7\tdog\t0
-0.9\tbarks\t-0.4
-1.1\tloudly

\\2-grams:
-0.1\t<s> the\t-0.25
-0.2\tthe dog\t-0.15
-0.9\tdog barks\t-0.1
-0.3\tbarks </s>

\\3-grams:
-0.05\tthe dog barks
-0.4\tdog barks </s>

\\end\\
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two ARPA files: one that we trained, with <unk>, and a small one without."""
    folder = tmp_path_factory.mktemp("kenlm")
    sentences = [[word.lower() for word in tree.words] for tree in treelm.sample_treebank()]
    counts: dict[str, int] = {}
    for word in (word for sentence in sentences for word in sentence):
        counts[word] = counts.get(word, 0) + 1
    known = Vocabulary.from_counts({word: count for word, count in counts.items() if count > 1})
    model = treelm.train("ngram", sentences, order=4, vocabulary=known)
    assert isinstance(model, treelm.NgramModel)
    model.write_arpa(folder / "trained.arpa")
    model.save(folder / "model")
    (folder / "pruned.arpa").write_text(PRUNED)
    return {name: folder / f"{name}.arpa" for name in ("trained", "pruned")}


@pytest.fixture(scope="module", params=["trained", "pruned"])
def pair(request: pytest.FixtureRequest, files: dict[str, Path]) -> tuple[Any, Any, list[str]]:
    """Both modules' models of a file, and sentences of known and unknown words."""
    kenlm = pytest.importorskip("kenlm")
    path = str(files[request.param])
    config = kenlm.Config()
    config.show_progress = False
    mine = ours.Config()
    mine.arpa_complain = ours.ARPALoadComplain.NONE
    lines = Path(path).read_text().splitlines()
    unigrams = lines[lines.index("\\1-grams:") + 1 : lines.index("\\2-grams:") - 1]
    words = [line.split("\t")[1] for line in unigrams[:300]]
    words = [word for word in words if word not in ("<s>", "</s>")]
    source = random.Random(5)
    sentences = [
        " ".join(source.choices([*words, "zzgrumpf", "Ünbekannt"], k=source.randrange(9)))
        for _ in range(200)
    ]
    sentences += ["the dog barks", "the dog barks loudly", "dog barks", "", "  the\tdog  "]
    sentences += [" ".join(word.lower() for word in tree.words) for tree in _some_trees()]
    return kenlm.Model(path, config), ours.Model(path, mine), sentences


def _some_trees() -> Iterator[treelm.Tree]:
    yield from list(treelm.sample_treebank())[:50]


@pytest.mark.parametrize("eos", [True, False])
@pytest.mark.parametrize("bos", [True, False])
def test_kenlm_score_is_that_of_kenlm(
    pair: tuple[Any, Any, list[str]], bos: bool, eos: bool
) -> None:
    theirs, mine, sentences = pair
    for sentence in sentences:
        expected = theirs.score(sentence, bos=bos, eos=eos)
        assert mine.score(sentence, bos=bos, eos=eos) == CLOSE(expected, abs=1e-5, rel=1e-6)
        assert mine.score(sentence.encode(), bos, eos) == CLOSE(expected, abs=1e-5, rel=1e-6)


@pytest.mark.parametrize("eos", [True, False])
@pytest.mark.parametrize("bos", [True, False])
def test_kenlm_full_scores_are_those_of_kenlm(
    pair: tuple[Any, Any, list[str]], bos: bool, eos: bool
) -> None:
    theirs, mine, sentences = pair
    for sentence in sentences:
        expected = list(theirs.full_scores(sentence, bos=bos, eos=eos))
        found = list(mine.full_scores(sentence, bos=bos, eos=eos))
        assert [row[0] for row in found] == CLOSE([row[0] for row in expected], abs=1e-5)
        assert [row[1:] for row in found] == [row[1:] for row in expected], sentence


def test_kenlm_perplexity_is_that_of_kenlm(pair: tuple[Any, Any, list[str]]) -> None:
    theirs, mine, sentences = pair
    for sentence in sentences:
        expected = math.log10(theirs.perplexity(sentence))
        assert math.log10(mine.perplexity(sentence)) == CLOSE(expected, abs=1e-5)


@pytest.mark.parametrize("start", ["BeginSentenceWrite", "NullContextWrite", None])
def test_kenlm_states_lead_to_the_same_scores(
    pair: tuple[Any, Any, list[str]], start: str | None
) -> None:
    kenlm = pytest.importorskip("kenlm")
    theirs, mine, sentences = pair
    for sentence in sentences:
        before, after = kenlm.State(), kenlm.State()
        own, own_after = ours.State(), ours.State()
        if start is not None:
            getattr(theirs, start)(before)
            getattr(mine, start)(own)
        # The end may be read like a word, and what follows it too, as decoders do.
        for word in (*sentence.split(), "</s>", "the", ""):
            expected = theirs.BaseFullScore(before, word, after)
            found = mine.BaseFullScore(own, word, own_after)
            assert found.log_prob == CLOSE(expected.log_prob, abs=1e-5)
            assert (found.ngram_length, found.oov) == (expected.ngram_length, expected.oov)
            assert mine.BaseScore(own, word, own) == found.log_prob
            assert own == own_after
            assert theirs.BaseScore(before, word, after) == CLOSE(found.log_prob, abs=1e-5)
            before, after = after, before


def test_kenlm_knows_the_same_words(pair: tuple[Any, Any, list[str]]) -> None:
    theirs, mine, sentences = pair
    words = {word for sentence in sentences for word in sentence.split()}
    for word in {*words, "<s>", "</s>", "<unk>", "", "two words"}:
        assert (word in mine) == (word in theirs), word
        assert (word.encode() in mine) == (word in mine)


def test_kenlm_order_and_path_are_those_of_kenlm(pair: tuple[Any, Any, list[str]]) -> None:
    theirs, mine, _ = pair
    assert mine.order == theirs.order
    assert mine.path == theirs.path
    assert repr(mine).replace("from ", "from b'").replace(">", "'>") == repr(theirs)


def test_kenlm_module_has_every_name_of_kenlm() -> None:
    kenlm = pytest.importorskip("kenlm")
    public = {name for name in dir(kenlm) if not name.startswith("_")} - {"os"}
    assert public == set(ours.__all__)
    for name in public:
        own, other = getattr(ours, name), getattr(kenlm, name)
        wanted = {each for each in vars(other) if not each.startswith("_")}
        # Attributes of instances, which other tests read.
        wanted -= {"path", "load_method", "show_progress", "arpa_complain"}
        assert wanted <= set(dir(own)), name
    for name in ("load_method", "show_progress", "arpa_complain"):
        assert getattr(ours.Config(), name) == getattr(kenlm.Config(), name)
    for name in ("LoadMethod", "ARPALoadComplain"):
        values = {key: value for key, value in vars(getattr(kenlm, name)).items() if key.isupper()}
        assert {key: getattr(getattr(ours, name), key) for key in values} == values


def test_kenlm_states_are_equal_only_where_kenlm_scores_alike(
    pair: tuple[Any, Any, list[str]],
) -> None:
    kenlm = pytest.importorskip("kenlm")
    theirs, mine, sentences = pair
    after = []
    for sentence in (*sentences[:60], "the dog barks", "a dog barks", "the dog", "dog"):
        state, own = kenlm.State(), ours.State()
        theirs.BeginSentenceWrite(state)
        mine.BeginSentenceWrite(own)
        for word in sentence.split():
            following = kenlm.State()
            theirs.BaseScore(state, word, following)
            mine.BaseScore(own, word, own)
            state = following
        after.append((state, own))
    same = 0
    for state, own in after:
        for other, own_other in after:
            # Neither of the two keeps as few words as would do, but nothing is merged that differs.
            if own == own_other:
                assert hash(own) == hash(own_other)
                ignored = kenlm.State()
                for word in ("the", "dog", "barks", "zzgrumpf", "</s>"):
                    found, expected = (theirs.BaseScore(s, word, ignored) for s in (state, other))
                    assert found == expected
                same += 1
    assert same > len(after)


def test_kenlm_state_is_a_value(files: dict[str, Path]) -> None:
    model = ours.Model(str(files["trained"]))
    first, second = ours.State(), ours.State()
    assert first == second
    model.NullContextWrite(second)
    assert first == second
    assert first <= second
    assert first >= second
    model.BaseScore(first, "the", second)
    assert first != second
    assert (first < second) != (first > second)
    assert first != "the"
    for made in (copy.copy(second), copy.deepcopy(second), pickle.loads(pickle.dumps(second))):
        assert made == second
        assert made is not second
        assert hash(made) == hash(second)


def test_kenlm_model_folder_gives_the_scores_of_its_arpa_file(files: dict[str, Path]) -> None:
    arpa = ours.Model(str(files["trained"]))
    folder = ours.LanguageModel(files["trained"].parent / "model")
    again = pickle.loads(pickle.dumps(folder))
    assert isinstance(again, ours.LanguageModel)
    for model in (folder, again):
        assert model.score("the dog barks") == CLOSE(arpa.score("the dog barks"), abs=1e-5)


def test_kenlm_serves_any_model_that_goes_word_by_word() -> None:
    trees = list(treelm.sample_treebank())[:30]
    hhmm = treelm.train("hhmm", trees)
    model = ours.Model(hhmm)
    words = trees[0].words
    text = " ".join(words)
    total = hhmm.score(text).log_prob / 2.302585092994046
    assert model.score(text) == CLOSE(total)
    state = ours.State()
    model.BeginSentenceWrite(state)
    steps = [model.BaseScore(state, word, state) for word in words]
    assert sum(steps) + model.BaseScore(state, "</s>", state) == CLOSE(total)
    assert [row[1] for row in model.full_scores(text)] == [0] * (len(words) + 1)
    assert model.order > 1000
    assert words[0] in model
    with pytest.raises(UnsupportedTask, match="from its start"):
        model.NullContextWrite(state)


def test_kenlm_order_of_a_mixture_is_that_of_its_longest_part() -> None:
    sentences = [tree.words for tree in treelm.sample_treebank()]
    vocabulary = treelm.Vocabulary.from_counts(
        {word: 1 for sentence in sentences for word in sentence}
    )
    parts = [treelm.train("ngram", sentences, order=n, vocabulary=vocabulary) for n in (2, 3)]
    mixture = ours.Model(treelm.interpolate(parts, [0.5, 0.5]))
    assert mixture.order == 3
    assert mixture.score("the dog", bos=False) < 0


def test_kenlm_refuses_a_state_of_another_model(files: dict[str, Path]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)
        one, other = (ours.Model(str(path)) for path in files.values())
    state = ours.State()
    one.BeginSentenceWrite(state)
    with pytest.raises(UsageError) as caught:
        other.BaseScore(state, "the", state)
    assert caught.value.code == "E_STATE_MODEL"


def test_kenlm_complains_about_a_file_without_unknown_words_unless_told_not_to(
    files: dict[str, Path],
) -> None:
    with pytest.warns(TreelmWarning, match="no <unk>"):
        ours.Model(str(files["pruned"]))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"mmap lm http://kheafield.com/code format version 5\n\0", "convert the ARPA file"),
        (b"no model", "ARPA"),
        (None, "No such file|not"),
    ],
    ids=["binary", "text", "missing"],
)
def test_kenlm_unreadable_model_is_an_os_error(
    content: bytes | None, told: str, tmp_path: Path
) -> None:
    path = tmp_path / "lm.binary"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(OSError, match="Cannot read model") as caught:
        ours.Model(str(path))
    assert any(part in str(caught.value) for part in told.split("|"))


def test_kenlm_refuses_what_is_no_text(files: dict[str, Path]) -> None:
    model = ours.Model(str(files["trained"]))
    with pytest.raises(TypeError, match="Cannot convert"):
        model.score(3)  # type: ignore[arg-type]
