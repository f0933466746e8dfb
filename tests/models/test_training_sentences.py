"""Models remember their training sentences, and evaluation warns of those in a test text."""

from __future__ import annotations

import os
import pickle
import random
import threading
import warnings
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import treelm
from treelm.corpus import sentence_filter
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.files import HeardFile
from treelm.corpus.sample_treebank import sample_path, sample_treebank
from treelm.corpus.sentence_filter import (
    LEAST_WORDS,
    SentenceFilter,
    filter_of_corpora,
    line_hashes,
    sentence_hashes,
)
from treelm.errors import ModelFileError, TreelmWarning
from treelm.models.interface.training_sentences import SENTENCES, find_known
from treelm.models.ngram.counts import NgramCounts
from treelm.models.registry import load, train

WORDS = [tree.words for tree in sample_treebank()]
TRAINING, NEW = WORDS[:200], [words[::-1] for words in WORDS[200:]]
LONG = [words for words in TRAINING if len(words) >= 5]


def made_up(count: int, seed: int = 1) -> list[list[str]]:
    chance = random.Random(seed)
    return [[str(chance.random()) for _ in range(5)] for _ in range(count)]


# -- hashes -----------------------------------------------------------------------------------


def hash_of(line: bytes) -> list[int]:
    """The hash of a line as it is defined, in a list that is empty for a short one."""
    words = line.split()
    if len(words) < LEAST_WORDS:
        return []
    joined, mask = b" ".join(words), 2**64 - 1
    value = zlib.crc32(joined) | len(joined) << 32
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = (value ^ value >> shift) * factor & mask
    return [value ^ value >> 31]


@given(st.text("ab\u00e4\u3042\u00a0  \n\n\t\r\v\f\x1c", max_size=200))
def test_line_hashes_are_those_of_the_words(text: str) -> None:
    lines = text.encode().split(b"\n")
    expected = [value for line in lines for value in hash_of(line)]
    assert line_hashes(text.split("\n")).tolist() == expected
    words = [[word.decode() for word in line.split()] for line in lines]
    assert sentence_hashes(words).tolist() == expected


# -- the filter -------------------------------------------------------------------------------


def test_filter_knows_all_its_sentences_and_hardly_others() -> None:
    own = made_up(5000)
    made = SentenceFilter.of([sentence_hashes(own)])
    assert (made.sentences, made.shift, made.bits.nbytes) == (5000, 0, 10_000)
    assert made.contains(sentence_hashes(own)).all()
    others = made.contains(sentence_hashes(made_up(100_000, seed=2)))
    assert 0 < others.mean() < 0.001


def test_filter_does_not_depend_on_order_pieces_or_repetition() -> None:
    hashes = sentence_hashes(made_up(1000))
    one = SentenceFilter.of([hashes])
    other = SentenceFilter.of([hashes[::-1], hashes[:0], *np.array_split(hashes, 7)])
    assert (one.bits.tobytes(), one.sentences) == (other.bits.tobytes(), other.sentences)


def test_filter_of_many_sentences_is_a_sample_of_bounded_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sentence_filter, "MOST_SENTENCES", 1000)
    monkeypatch.setattr(sentence_filter, "_GATHERED", 500)
    sentences = made_up(20_000)
    hashes = sentence_hashes(sentences)
    pieces = np.array_split(hashes, 23)
    made = SentenceFilter.of(pieces)
    assert made.shift == 5
    assert made.sentences <= 1000
    assert made.bits.nbytes == 2 * made.sentences
    assert SentenceFilter.of([hashes[::-1]]).bits.tobytes() == made.bits.tobytes()
    found = find_known([made], sentences[:5000])
    assert found.known == found.looked_at == pytest.approx(5000 / 32, rel=0.3)
    half = [*sentences[:2500], *made_up(2500, seed=3)]
    assert find_known([made], half).share == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize(
    "written",
    [
        "".join(f"{' '.join(words)}\n" for words in TRAINING),
        "".join(f"{' '.join(words)}\n" for words in TRAINING)[:-1],
        "".join(f"  {'  '.join(words)}\t\r\n\n" for words in TRAINING),
    ],
)
@pytest.mark.parametrize("block_bytes", [100, 1 << 22])
def test_filter_of_a_file_is_that_of_its_sentences(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, block_bytes: int
) -> None:
    (tmp_path / "text").write_text(written)
    data = written.encode()
    blocks = [data[at : at + block_bytes] for at in range(0, len(data), block_bytes)]
    monkeypatch.setattr(sentence_filter, "read_blocks", lambda _: iter(blocks))
    made = filter_of_corpora([TextCorpus(tmp_path / "text")])
    expected = SentenceFilter.of([sentence_hashes(TRAINING)])
    assert made is not None
    assert made.bits.tobytes() == expected.bits.tobytes()
    assert made.sentences == len(set(LONG))


def test_filter_of_several_long_files_is_a_sample_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sentence_filter, "MOST_SENTENCES", 1000)
    monkeypatch.setattr(sentence_filter, "_GATHERED", 500)
    parts = [made_up(4000), made_up(700, seed=2), made_up(2500, seed=3)]
    for number, part in enumerate(parts):
        lines = "".join(f"{' '.join(words)}\n" for words in part)
        (tmp_path / f"{number}.txt").write_text(lines)
    paths = sorted(tmp_path.glob("*.txt"))
    one, other = (filter_of_corpora([TextCorpus(each)]) for each in (paths, paths[::-1]))
    expected = SentenceFilter.of([sentence_hashes(part) for part in parts])
    assert one is not None
    assert other is not None
    assert one.shift == other.shift == expected.shift == 3
    assert one.bits.tobytes() == other.bits.tobytes() == expected.bits.tobytes()


class CountedReadings(HeardFile):
    """A file that counts how often it was read to its end."""

    readings = 0

    def listen(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        yield from blocks
        self.readings += 1


def text_file(path: Path) -> Path:
    path.write_text("".join(f"{' '.join(words)}\n" for words in TRAINING))
    return path


@pytest.mark.parametrize("threads", [1, 2])
def test_training_reads_a_text_once_and_remembers_it(tmp_path: Path, threads: int) -> None:
    file = CountedReadings(text_file(tmp_path / "text"))
    model = train("ngram", TextCorpus(file), order=2, threads=threads)
    assert file.readings == 1
    (made,) = model.training_sentences
    expected = SentenceFilter.of([sentence_hashes(TRAINING)])
    assert (made.bits.tobytes(), made.sentences) == (expected.bits.tobytes(), expected.sentences)


def test_training_remembers_a_text_that_can_be_read_only_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    data = text_file(tmp_path / "text").read_bytes()
    writer = threading.Thread(target=pipe.write_bytes, args=(data,))
    writer.start()
    model = train("ngram", TextCorpus(pipe), order=2)
    writer.join()
    assert find_known(model.training_sentences, LONG) == (len(LONG), len(LONG))


@pytest.mark.parametrize("spaces", [" ", "  ", "\t"])
def test_overlap_of_a_file_is_that_of_its_sentences(tmp_path: Path, spaces: str) -> None:
    test = [*TRAINING[:7], *made_up(20, seed=5), ("too", "short")]
    path = tmp_path / "test.txt"
    path.write_text("\ufeff" + "\n \n".join(map(spaces.join, test)), encoding="utf-8")
    made = SentenceFilter.of([sentence_hashes(TRAINING)])
    found = find_known([made], TextCorpus(path))
    assert found == find_known([made], test)
    assert 0 < found.known < found.looked_at < len(test)


def test_filter_of_trees_is_that_of_their_words() -> None:
    made = filter_of_corpora([TreeCorpus(sample_path())])
    assert made is not None
    assert made.bits.tobytes() == SentenceFilter.of([sentence_hashes(WORDS)]).bits.tobytes()
    assert filter_of_corpora([TextCorpus("-")]) is None
    assert filter_of_corpora([]) is None


# -- models -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model() -> treelm.LanguageModel:
    return train("ngram", [list(words) for words in TRAINING], order=2)


def test_model_keeps_them_in_its_folder_and_in_all_its_forms(
    tmp_path: Path, model: treelm.LanguageModel
) -> None:
    model.save(tmp_path / "model")
    assert (tmp_path / "model" / SENTENCES).stat().st_size < 2 * len(LONG) + 300
    again = load(tmp_path / "model")
    forms: Iterable[treelm.LanguageModel] = (
        model,
        again,
        treelm.NgramModel.load(tmp_path / "model"),
        pickle.loads(pickle.dumps(again)),
        again.quantized(8),
        again.floored(),
        treelm.interpolate([again, model]),
    )
    for form in forms:
        assert form.training_sentences
        assert find_known(form.training_sentences, LONG) == (len(LONG), len(LONG))
        assert find_known(form.training_sentences, NEW).known == 0
    again.floored().save(tmp_path / "view")
    assert load(tmp_path / "view").training_sentences


def test_model_knows_nothing_of_counts_and_keeps_nothing_if_told_so(tmp_path: Path) -> None:
    text = [list(words) for words in TRAINING]
    silent = train("ngram", text, order=2, sentence_hashes=False)
    counted = train("ngram", NgramCounts.count(TextCorpus.of_sentences(text), 2))
    for each in (silent, counted):
        assert each.training_sentences == ()
        each.save(tmp_path / "model")
        assert not (tmp_path / "model" / SENTENCES).exists()
        each.perplexity(text)


def test_model_does_not_remember_what_it_was_tuned_on() -> None:
    held_out = [list(words) for words in NEW]
    text = [list(words) for words in TRAINING]
    tuned = train("ngram", text, order=2, smoothing="jm", held_out=held_out)
    assert find_known(tuned.training_sentences, NEW).known == 0
    assert find_known(tuned.training_sentences, TRAINING).share == 1


@pytest.mark.parametrize(
    ("bits", "shape"), [(np.zeros(0, np.uint8), (0, 0)), (np.zeros(8, np.uint8), (64, 1))]
)
def test_forged_sentences_are_refused(
    tmp_path: Path,
    model: treelm.LanguageModel,
    bits: np.ndarray[tuple[int], np.dtype[np.uint8]],
    shape: tuple[int, int],
) -> None:
    forged = pickle.loads(pickle.dumps(model)).remember(SentenceFilter(bits, *shape))
    forged.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match=SENTENCES) as caught:
        load(tmp_path / "model")
    assert caught.value.code == "E_MODEL_TABLES"


# -- warnings ---------------------------------------------------------------------------------


def half_known() -> list[tuple[str, ...]]:
    long_new = [words for words in NEW if len(words) >= 5]
    return [*LONG[:20], *long_new[:20]]


def test_perplexity_warns_of_training_sentences(
    tmp_path: Path, model: treelm.LanguageModel
) -> None:
    mixed = half_known()
    path = tmp_path / "mixed.txt"
    path.write_text("".join(f"{' '.join(words)}\n" for words in mixed))
    for text in (mixed, iter(mixed), TextCorpus(path)):
        with pytest.warns(TreelmWarning, match=r"20 of 40 sentences of 5 words or more \(50%\)"):
            found = model.perplexity(text)
        assert found.sentences == 40
    with pytest.warns(TreelmWarning, match=r"mixed\.txt: 20 of 40") as caught:
        treelm.evaluate.perplexity(model, path)
    assert len(caught) == 1
    treelm.evaluate.perplexity(model, path, allow_overlap=True)
    # new text, short sentences and a few that repeat are no reason
    model.perplexity(NEW)
    model.perplexity([*NEW, *([("Yes", ".")] * 50)])
    model.perplexity([*NEW, *LONG[:2]])


def test_classification_and_pairs_warn_of_training_sentences(
    model: treelm.LanguageModel,
) -> None:
    good = half_known()
    bad = [words[::-1] for words in good]
    with pytest.warns(TreelmWarning, match=r"good sentences: 20 of 40 .*\(50%\)"):
        treelm.evaluate.pairs(model, good, bad)
    with pytest.warns(TreelmWarning, match="good sentences: 20 of 40"):
        treelm.evaluate.classification(model, good, bad, tuning=(NEW, [w[::-1] for w in NEW]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        treelm.evaluate.pairs(model, good, bad, allow_overlap=True)


def test_tuning_on_the_training_text_is_a_warning(
    tmp_path: Path, model: treelm.LanguageModel
) -> None:
    trained, new = ([list(words) for words in part] for part in (TRAINING, NEW))
    other = train("ngram", trained, order=1)
    doubt = r"\(100%\) stand in the training data of the model, so what was found on them"
    with pytest.warns(TreelmWarning, match=doubt):
        train("interpolated", [model, other], held_out=trained)
    with pytest.warns(TreelmWarning, match=doubt):
        train("ngram", trained, order=2, smoothing="jm", held_out=trained)
    bad = [words[::-1] for words in trained]
    with pytest.warns(TreelmWarning, match=doubt):
        train("trigram_svm", (trained[:100], bad[:100]), tuning=(trained[:100], bad[:100]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train("interpolated", [model, other], held_out=new)
        train("ngram", trained, order=2, smoothing="jm", held_out=trained, sentence_hashes=False)
