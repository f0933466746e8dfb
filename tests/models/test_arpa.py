"""ARPA files: there and back, other people's models, and files that are none."""

from __future__ import annotations

import gzip
import math
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import CorpusFormatError, TreelmWarning, UsageError
from treelm.models.interface.model import Task
from treelm.models.ngram.arpa import probability_sums, read_arpa, write_arpa
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.model import NgramModel
from treelm.models.ngram.train import train_ngram
from treelm.models.registry import load
from treelm.tasks.convert import convert

TEXT = "the dog barks\nthe cat sleeps\na dog sleeps\nthe dog sleeps\n"

#: A pruned model as SRILM writes it: "barks dog the" has no "barks dog", <s> has log10 p -99.
PRUNED = """\
written by hand

\\data\\
ngram 1=5
ngram 2=2
ngram 3=1

\\1-grams:
-0.6\t</s>
-99\t<s>\t-0.3
-0.5\tthe\t-0.2
-0.7\tdog\t-0.1
-0.9\tbarks

\\2-grams:
-0.1\t<s> the\t-0.25
-0.2\tthe dog\t-0.15

\\3-grams:
-0.05\tthe dog barks

\\end\\
"""


@pytest.fixture
def model(tmp_path: Path) -> NgramModel:
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    with pytest.warns(UserWarning, match="no discount can be estimated"):
        return train_ngram(TextCorpus((text,)), NgramConfig(order=3))


def rows(model: NgramModel, level: int) -> dict[tuple[int, ...], tuple[float, float]]:
    """Return log10 probabilities and weights of the rows of a level."""
    columns, probability, weight = model.table.rows(level)
    return {
        tuple(row): (math.log10(p) if p > 0 else -99.0, math.log10(abs(b)) if b else -99.0)
        for row, p, b in zip(columns.tolist(), probability, weight, strict=True)
    }


@pytest.mark.parametrize("name", ["model.arpa", "model.arpa.gz", "model.arpa.xz"])
def test_there_and_back(model: NgramModel, tmp_path: Path, name: str) -> None:
    write_arpa(model, tmp_path / name)
    again = read_arpa(tmp_path / name)
    assert again.vocabulary.symbols == model.vocabulary.symbols
    assert again.vocabulary.fingerprint == model.vocabulary.fingerprint
    for level in range(2):
        ours, theirs = rows(model, level), rows(again, level)
        assert ours.keys() == theirs.keys()
        for row, numbers in ours.items():
            assert theirs[row] == pytest.approx(numbers, abs=1e-6)
    for sentence in ("the dog barks", "a cat barks", "unheard of", "", "sleeps sleeps sleeps"):
        expected = model.score(sentence).log_prob
        assert again.score(sentence).log_prob == pytest.approx(expected, abs=1e-6)
    write_arpa(again, tmp_path / "again.arpa")
    third = read_arpa(tmp_path / "again.arpa")
    np.testing.assert_array_equal(third.table.native.slots, again.table.native.slots)


def test_words_never_seen_are_written_too(model: NgramModel, tmp_path: Path) -> None:
    write_arpa(model, tmp_path / "m.arpa")
    lines = (tmp_path / "m.arpa").read_text().splitlines()
    assert "ngram 1=9" in lines  # <unk>, six words, </s>, <s>
    assert any(line.split("\t")[1] == "<unk>" for line in lines if line.count("\t"))
    [start] = [line for line in lines if line.split("\t")[1:2] == ["<s>"]]
    assert start.startswith("-99\t")
    assert lines[-1] == "\\end\\"


def test_a_pruned_model_backs_off_as_its_numbers_say(tmp_path: Path) -> None:
    path = tmp_path / "pruned.arpa"
    path.write_text(PRUNED)
    model = read_arpa(path, precision="double", oov_log_prob=None)
    steps = [score.log_prob / math.log(10) for score in model.surprisal("the dog barks", eos=True)]
    # <s> the | the dog after <s>: weight of (<s> the) | the stored trigram | barks has no weight
    assert steps == pytest.approx([-0.1, -0.25 - 0.2, -0.05, -0.6], abs=1e-6)
    assert model.score("dog barks").log_prob / math.log(10) == pytest.approx(
        (-0.3 - 0.7) + (-0.1 - 0.9) - 0.6, abs=1e-6
    )


def test_rows_that_only_carry_longer_ones_are_not_written_back(tmp_path: Path) -> None:
    path = tmp_path / "pruned.arpa"
    path.write_text(PRUNED)
    write_arpa(read_arpa(path, oov_log_prob=None), tmp_path / "again.arpa")
    again = (tmp_path / "again.arpa").read_text()
    assert "ngram 2=2\n" in again
    assert "dog barks" not in again.replace("the dog barks", "")


WITHOUT_UNKNOWN = """\\data\\
ngram 1=4
ngram 2=2

\\1-grams:
-1\t<s>\t-0.3
-0.5\t</s>
-0.4\tthe\t-0.2
-0.6\tboat\t-0.1

\\2-grams:
-0.2\t<s> the
-0.3\tthe boat

\\end\\
"""
#: By hand, in base 10: ``the``, ``zebra`` after a back-off, ``boat`` alone, the end after another.
BY_HAND = (-0.2, -0.2 - 100, -0.6, -0.1 - 0.5)


def test_a_file_without_unknown_word_gives_it_what_kenlm_does(tmp_path: Path) -> None:
    path = tmp_path / "model.arpa"
    path.write_text(WITHOUT_UNKNOWN)
    with pytest.warns(TreelmWarning, match=r"has no <unk>.*-230\.259"):
        model = read_arpa(path)
    assert model.vocabulary.symbols == ("<unk>", "the", "boat")
    expected = [value * math.log(10) for value in BY_HAND]
    score = model.score("the zebra boat")
    assert score.words is not None
    assert [word.log_prob for word in score.words] == pytest.approx(expected[:3])
    assert score.end == pytest.approx(expected[3])
    # every other way to the same number
    state, found = model.initial(), []
    for word in ("the", "zebra", "boat"):
        (many,) = model.advance_many([state], [word]).log_probs.tolist()
        log_prob, after = model.advance(state, word)
        (asked,) = model.distribution(state, [word]).tolist()
        assert asked == log_prob == many
        found.append(log_prob)
        state = after
    assert [*found, model.finish(state)] == pytest.approx(expected)
    assert model.estimate("zebra") == pytest.approx(-100 * math.log(10))
    batch = model.score_batch(["zebra", "", "the boat", "boat zebra zebra"])
    assert batch.log_probs == pytest.approx(
        np.array([-100.3, -0.5, -0.3 - 0.5, -0.2, -0.3, -0.6, -0.9, -100.1, -100, -0.5])
        * math.log(10)
    )
    with pytest.warns(TreelmWarning, match="do not sum to 1"):
        assert math.isfinite(model.perplexity(["the zebra"]).perplexity)
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").score("the zebra boat") == score
    # written, it has no unknown word again
    write_arpa(model, tmp_path / "again.arpa")
    assert "<unk>" not in (tmp_path / "again.arpa").read_text()
    with pytest.warns(TreelmWarning):
        again = read_arpa(tmp_path / "again.arpa")
    assert again.score("the zebra boat").log_prob == pytest.approx(score.log_prob)


def test_another_probability_of_unknown_words_can_be_chosen(tmp_path: Path) -> None:
    path = tmp_path / "model.arpa"
    path.write_text(WITHOUT_UNKNOWN)
    model = read_arpa(path, oov_log_prob=-5.0)
    assert model.continuation("zebra", bos=False).log_prob == -5.0
    write_arpa(model, tmp_path / "again.arpa")
    again = read_arpa(tmp_path / "again.arpa")
    assert again.continuation("zebra", bos=False).log_prob == pytest.approx(-5.0)
    nothing = read_arpa(path, oov_log_prob=None)
    assert nothing.score("the zebra").log_prob == -math.inf
    assert nothing.fingerprint != model.fingerprint
    with pytest.raises(UsageError, match="below 0"):
        model.with_oov_log_prob(0.0)
    convert(path, tmp_path / "model", oov_log_prob=-5.0)
    assert load(tmp_path / "model").score("zebra boat") == model.score("zebra boat")
    with pytest.raises(UsageError, match="ARPA files"):
        convert(tmp_path / "model", tmp_path / "other.arpa", oov_log_prob=-5.0)


def test_probabilities_that_do_not_sum_to_one_are_marked(model: NgramModel, tmp_path: Path) -> None:
    path = tmp_path / "model.arpa"
    write_arpa(model, path)
    again = read_arpa(path)
    assert again.info.normalized
    assert again.config.sums == pytest.approx((1, 1), abs=1e-5)
    assert again.notes() == ()
    assert again.perplexity(["the dog barks"]).perplexity > 1
    # After "dog" the words and the end have 10^-0.5 + 10^-0.7 + 10^-0.9 + 10^-0.6, times 10^-0.1.
    path.write_text(PRUNED)
    pruned = read_arpa(path, oov_log_prob=None)
    after_dog = sum(10 ** -(place / 10 + 0.1) for place in (5, 7, 9, 6))
    assert pruned.config.sums is not None
    assert pruned.config.sums[0] <= after_dog <= pruned.config.sums[1]
    pruned.save(tmp_path / "model")
    for each in (pruned, load(tmp_path / "model")):
        assert not each.info.normalized
        assert each.can(Task.PERPLEXITY)
        (note,) = each.notes()
        assert "not to 1" in note
        with pytest.warns(TreelmWarning, match="do not sum to 1"):
            assert each.perplexity(["the dog barks"]).perplexity > 1


def test_sums_are_checked_in_a_bounded_number_of_contexts(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("".join(f"w{n} w{n % 7} w{n % 11}\n" for n in range(1500)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        large = train_ngram(TextCorpus((text,)), NgramConfig(order=3))
    sums = probability_sums(large)
    assert 150 <= len(sums) <= 200
    assert sums == pytest.approx([1.0] * len(sums), abs=1e-5)


def test_signatures_are_lost_with_a_warning(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    vocabulary = Vocabulary.from_counts({"the": 3, "dog": 3}, signatures={"UNK-LC-s": 4})
    with pytest.warns(UserWarning, match="no discount can be estimated"):
        model = train_ngram(TextCorpus((text,)), NgramConfig(order=2), vocabulary=vocabulary)
    with pytest.warns(TreelmWarning, match="signatures"):
        write_arpa(model, tmp_path / "m.arpa")
    again = read_arpa(tmp_path / "m.arpa")
    assert again.vocabulary.symbols == model.vocabulary.symbols
    replaced = " ".join(model.vocabulary.replace(["the", "dog", "barks"]))
    assert again.score(replaced).log_prob == pytest.approx(
        model.score("the dog barks").log_prob, abs=1e-6
    )


def test_reading_does_not_depend_on_threads(model: NgramModel, tmp_path: Path) -> None:
    write_arpa(model, tmp_path / "m.arpa")
    one, three = (read_arpa(tmp_path / "m.arpa", threads=threads) for threads in (1, 3))
    np.testing.assert_array_equal(one.table.native.slots, three.table.native.slots)


def edited(*changes: tuple[str, str]) -> str:
    """Return the pruned model with something changed."""
    text = PRUNED
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 0),
        ("no such thing\n", 1),
        (edited(("\\end\\\n", "")), 21),
        (edited(("ngram 2=2", "ngram 2=3")), 19),
        (edited(("ngram 2=2", "ngram 2=1")), 19),
        (edited(("ngram 2=2", "ngram 3=2")), 5),
        (edited(("ngram 2=2", "ngram two=2")), 5),
        (edited(("ngram 2=2", "ngram 2=2 or so")), 5),
        (edited(("ngram 2=2", "ngram 2=99999999999999999999999")), 5),
        (edited(("ngram 2=2", "ngram 2=4294967295")), 5),
        (edited(("ngram 1=5\nngram 2=2\nngram 3=1\n", "")), 5),
        (edited(("\\2-grams:", "\\3-grams:")), 15),
        (edited(("\\2-grams:", "\\4-grams:")), 15),
        (edited(("-0.5\tthe", "the")), 11),
        (edited(("-0.5\tthe", "0.5\tthe")), 11),
        (edited(("-0.5\tthe", "nan\tthe")), 11),
        (edited(("-0.5\tthe\t-0.2", "-0.5")), 11),
        (edited(("-0.5\tthe\t-0.2", "-0.5\tthe\tnan")), 11),
        (edited(("-0.5\tthe\t-0.2", "-0.5\tthe\t31")), 11),
        (edited(("-0.5\tthe\t-0.2", "-0.5\tthe\t-0.2\t-0.2")), 11),
        (edited(("-0.7\tdog", "-0.7\tthe")), 12),
        (edited(("-0.1\t<s> the", "-0.1\t<s> cat")), 16),
        (edited(("-0.1\t<s> the", "-0.1\tthe")), 16),
        (edited(("-0.1\t<s> the\t-0.25", "-0.2\tthe dog")), 17),
        (edited(("-99\t<s>\t-0.3", "-99\t<S>\t-0.3")), 15),
        (edited(("-0.6\t</s>", "-0.6\t<end>")), 15),
    ],
)
def test_what_is_no_arpa_file_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int
) -> None:
    path = tmp_path / "bad.arpa"
    path.write_text(text)
    with pytest.raises(CorpusFormatError) as caught:
        read_arpa(path)
    assert caught.value.code == "E_ARPA"
    assert caught.value.line == line
    assert f"bad.arpa:{line}:" in str(caught.value)


def test_words_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.arpa"
    path.write_bytes(PRUNED.encode().replace(b"dog", b"d\xffg"))
    with pytest.raises(CorpusFormatError, match=r"bad\.arpa:12: the text is not valid UTF-8"):
        read_arpa(path)


@settings(max_examples=80)
@given(data=st.data())
def test_damaged_files_are_refused_or_read_and_nothing_else(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    raw = bytearray(PRUNED.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path = tmp_path_factory.mktemp("arpa") / "damaged.arpa.gz"
    path.write_bytes(gzip.compress(bytes(raw)))
    try:
        model = read_arpa(path, oov_log_prob=None)
    except CorpusFormatError as error:
        assert error.code in {"E_ARPA", "E_ENCODING"}  # noqa: PT017 (a model may also come out)
    else:
        assert not math.isnan(model.score("the dog barks").log_prob)
