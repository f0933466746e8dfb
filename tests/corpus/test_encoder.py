"""Text as ids: the kernel against `Vocabulary.symbol`, `split_words` and reading line by line."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelm import _native
from treelm.corpus import encoder as encoder_module
from treelm.corpus.corpus import TextCorpus, TreeCorpus, TreeSentences
from treelm.corpus.encoder import encode_open, encode_sentences, encode_text, open_encoder
from treelm.corpus.unknown_words import UNKNOWN
from treelm.corpus.vocabulary import Vocabulary, VocabularyEntry
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.corpus.words import split_words
from treelm.errors import (
    CorpusFormatError,
    InputFileError,
    TreelmError,
    UsageError,
    VocabularyError,
)

SHAPES = [
    "a",
    "A",
    "vexing",
    "Vexing",
    "dogs",
    "Dogs",
    "B-52",
    "%",
    "x1",
    "Ünal",
    "ünal",
    "ΣΑΣ",
    "σας",
]
WORDS = st.sampled_from([*SHAPES, UNKNOWN, "UNK-LC", "UNK-LC-s", "İ", "i̇"])
SENTENCES = st.lists(st.lists(WORDS, max_size=5).map(tuple), max_size=8)
SIGNATURES = st.sampled_from(
    ["UNK-LC", "UNK-LC-s", "UNK-CAPS", "UNK-INITC", "UNK-INITC-KNOWNLC-ing", "UNK-INITC-KNOWNLC-s"]
)
PLACES = st.none() | st.tuples(st.integers(1, 4), st.integers(0, 3))
BREAKS = [" ", "\n", "\n\n", "\r\n", "\t", "\v\f"]
PIECES = st.sampled_from(
    [
        "a",
        "b",
        "dog",
        "\0",
        "\x1c",
        "é",
        "\x85",
        "\u00a0",
        "\u2028",
        "\ufeff",
        "\U0001f384",
        *BREAKS,
    ]
)
TEXTS = st.lists(PIECES, max_size=30).map("".join)


@st.composite
def vocabularies(draw: st.DrawFn) -> Vocabulary:
    words = draw(st.lists(WORDS.filter(lambda word: word != UNKNOWN), unique=True))
    signatures = draw(st.lists(SIGNATURES.filter(lambda name: name not in words), unique=True))
    entries = [VocabularyEntry(UNKNOWN, 1)]
    entries += [VocabularyEntry(word, 1, entry=draw(PLACES)) for word in words]
    entries += [VocabularyEntry(name, 1, is_signature=True) for name in signatures]
    return Vocabulary(tuple(entries), draw(st.sampled_from(["english", "neutral"])))


class Plain:
    """Sentences of a corpus that hide what they are, so that the definition reads them."""

    def __init__(self, corpus: TextCorpus | TreeSentences) -> None:
        self.corpus = corpus

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self.corpus)


@given(vocabularies(), SENTENCES)
def test_encoder_gives_the_ids_that_a_vocabulary_defines(
    vocabulary: Vocabulary, sentences: list[tuple[str, ...]]
) -> None:
    ids = {symbol: index for index, symbol in enumerate(vocabulary.symbols)}
    for training in (False, True):
        expected = [
            [ids[symbol] for symbol in vocabulary.replace(words, sentence=n if training else None)]
            for n, words in enumerate(sentences, 1)
        ]
        text = encode_sentences(sentences, vocabulary, training=training)
        assert [part.tolist() for part in text] == expected
        replaced = {n for n, item in enumerate(vocabulary.entries) if item.is_signature} | {0}
        assert text.unknown == sum(index in replaced for part in expected for index in part)
        for number, words in enumerate(sentences, 1):
            for position, word in enumerate(words):
                found = (
                    vocabulary.encoder.encode_training(word, number, position)
                    if training
                    else vocabulary.encoder.encode(word, position)
                )
                assert found == expected[number - 1][position]
    for words in sentences:
        assert vocabulary.decode(vocabulary.encode(words)) == vocabulary.replace(words)


@given(TEXTS, st.lists(st.integers(0, 60), max_size=5))
def test_encoder_splits_as_reading_line_by_line_does(text: str, cuts: list[int]) -> None:
    data = text.encode()
    places = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    encoder = open_encoder()
    ids: list[int] = []
    starts: list[int] = []
    documents: list[int] = []
    for first, last in pairwise(places):
        encoder.feed(data[first:last])
        batch = encoder.take()
        ids += batch[0].tolist()
        starts += batch[1].tolist()
        documents += batch[2].tolist()
    encoder.finish()
    batch = encoder.take()
    words = encoder.words()
    sentences = []
    ids += batch[0].tolist()
    starts += [*batch[1].tolist(), len(ids)]
    for first, last in pairwise(starts):
        sentences.append(tuple(words[index] for index in ids[first:last]))
    lines = text.removeprefix("\ufeff").split("\n")
    assert sentences == [split_words(line) for line in lines if split_words(line)]
    assert len(documents) + len(batch[2]) == len(sentences) == encoder.sentences


@given(st.lists(TEXTS, min_size=1, max_size=3), st.integers(1, 2))
def test_encode_open_is_the_corpus_as_ids(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], threads: int
) -> None:
    folder = tmp_path_factory.mktemp("texts")
    for number, text in enumerate(texts):
        (folder / f"{number}.txt").write_bytes(text.encode())
    corpus = TextCorpus(tuple(folder / f"{number}.txt" for number in range(len(texts))))
    expected = list(corpus.with_documents())
    if not expected:
        with pytest.raises(VocabularyError) as caught:
            encode_open(corpus)
        assert caught.value.code == "E_NO_DATA"
        return
    vocabulary, text = encode_open(corpus, threads=threads)
    assert vocabulary == build_vocabulary(Plain(corpus), VocabularyRule(name="all"))
    assert [vocabulary.decode(part) for part in text] == [item.words for item in expected]
    assert text.documents.tolist() == [item.document for item in expected]
    assert text.fingerprint == corpus.fingerprint
    closed = encode_text(corpus, vocabulary, threads=threads)
    for name in ("ids", "starts", "documents"):
        assert np.array_equal(getattr(closed, name), getattr(text, name))
    assert (closed.unknown, closed.fingerprint) == (text.unknown, text.fingerprint)
    assert text.starts.dtype == np.uint64
    assert text.ids.dtype == text.documents.dtype == np.uint32


@given(st.binary(max_size=12), st.integers(0, 20), st.integers(1, 2))
def test_encoder_refuses_bad_bytes_as_reading_does(
    tmp_path_factory: pytest.TempPathFactory, middle: bytes, cut: int, threads: int
) -> None:
    file = tmp_path_factory.mktemp("bytes") / "text"
    data = b"a b\n" + middle + b" c\n"
    file.write_bytes(data[cut:] + data[:cut])
    expected: CorpusFormatError | None = None
    try:
        list(TextCorpus((file,)))
    except CorpusFormatError as error:
        expected = error
    if expected is None:
        encode_text(file, Vocabulary.from_counts({"a": 1}), threads=threads)
        return
    for encode in (
        lambda: encode_open(TextCorpus((file,)), threads=threads),
        lambda: encode_text([file], Vocabulary.from_counts({"a": 1}), threads=threads),
        lambda: build_vocabulary(TextCorpus((file,)), VocabularyRule()),
    ):
        with pytest.raises(CorpusFormatError) as caught:
            encode()
        assert str(caught.value) == str(expected)
        found, wanted = (vars(error) for error in (caught.value, expected))
        assert found == wanted
        assert found["code"] == "E_ENCODING"


RULES = st.builds(
    VocabularyRule,
    name=st.sampled_from(["stream", "min-count", "top", "all"]),
    size=st.integers(1, 6),
    start_after=st.none() | st.integers(0, 3),
    probability=st.sampled_from([0.0, 0.4, 1.0]),
    seed=st.integers(-2, 4),
    signatures=st.sampled_from([None, False, True]),
)


def built(corpus: TextCorpus | TreeSentences | Plain, rule: VocabularyRule) -> object:
    try:
        vocabulary = build_vocabulary(corpus, rule)
    except TreelmError as error:
        return type(error), error.code
    return vocabulary, vocabulary.source


@pytest.mark.filterwarnings("ignore:the corpus has")
@given(SENTENCES, RULES)
def test_vocabulary_of_a_text_is_that_of_the_definition(
    tmp_path_factory: pytest.TempPathFactory, sentences: list[tuple[str, ...]], rule: VocabularyRule
) -> None:
    file = tmp_path_factory.mktemp("text") / "text"
    file.write_text("\n".join(" ".join(words) for words in sentences), encoding="utf-8")
    corpus = TextCorpus((file,))
    assert built(corpus, rule) == built(Plain(corpus), rule)


@pytest.mark.parametrize("name", ["stream", "min-count"])
@pytest.mark.parametrize("signatures", [True, False])
def test_vocabulary_of_trees_is_that_of_the_definition(
    sample_file: Path, name: str, signatures: bool
) -> None:
    corpus = TreeSentences(TreeCorpus((sample_file,)))
    rule = VocabularyRule(name=name, signatures=signatures, probability=0.5)  # type: ignore[arg-type]
    assert built(corpus, rule) == built(Plain(corpus), rule)


def test_vocabulary_of_a_long_text_is_settled_before_its_end(tmp_path: Path) -> None:
    file = tmp_path / "text"
    lines = (f"w{i % 7000} W{i} {'x' * (i % 300)}y" for i in range(40_000))
    file.write_text("\n".join(lines), encoding="utf-8")  # more than one block
    assert file.stat().st_size > 4 << 20
    corpus = TextCorpus((file,))
    assert built(corpus, VocabularyRule()) == built(Plain(corpus), VocabularyRule())


@pytest.mark.parametrize("word", ["", " ", "a b", "a\n", "\t", "\ud800"])
def test_encode_sentences_refuses_what_is_no_word(word: str) -> None:
    with pytest.raises(VocabularyError, match="is not a word") as caught:
        encode_sentences([("a",), ("a", word)], Vocabulary.from_counts({"a": 1}))
    assert caught.value.code == "E_BAD_TOKEN"


def test_encoder_refuses_sentence_boundaries(tmp_path: Path) -> None:
    vocabulary = Vocabulary.from_counts({"a": 1})
    for call in (
        lambda: encode_sentences([("a", "<s>")], vocabulary),
        lambda: vocabulary.encode(("a", "<s>")),
        lambda: vocabulary.replace(("a", "<s>")),
    ):
        with pytest.raises(VocabularyError, match="<s>") as of_words:
            call()
        assert of_words.value.code == "E_RESERVED_SYMBOL"
    file = tmp_path / "text"
    file.write_text("a\n\na </s> a\n")
    for read in (
        lambda: encode_text(file, vocabulary),
        lambda: encode_open(TextCorpus((file,))),
        lambda: build_vocabulary(TextCorpus((file,)), VocabularyRule()),
    ):
        with pytest.raises(CorpusFormatError, match=r"text:3:3: .*</s>") as of_text:
            read()
        assert (of_text.value.code, of_text.value.line, of_text.value.column) == (
            "E_RESERVED_SYMBOL",
            3,
            3,
        )


def test_encoder_takes_words_and_lines_of_any_length(tmp_path: Path) -> None:
    file = tmp_path / "text"
    long = "é" * (3 << 20)
    file.write_text(f"{long} a\0b {long}\n" + "x " * (3 << 20), encoding="utf-8")
    vocabulary, text = encode_open(TextCorpus((file,)))
    assert vocabulary.symbols == (UNKNOWN, "x", long, "a\0b")
    assert text.starts.tolist() == [0, 3, 3 + (3 << 20)]
    file.write_bytes(b"a\n" + b"x" * (65 << 20))
    with pytest.raises(CorpusFormatError) as caught:
        encode_open(TextCorpus((file,)))
    assert (caught.value.code, caught.value.line) == ("E_TOO_LARGE", 2)


def test_encoder_names_a_missing_file_and_wrong_threads(tmp_path: Path) -> None:
    vocabulary = Vocabulary.from_counts({"a": 1})
    for threads in (1, 2):
        with pytest.raises(InputFileError):
            encode_text(tmp_path / "none", vocabulary, threads=threads)
    with pytest.raises(UsageError):
        encode_text(tmp_path / "none", vocabulary, threads=0)


def test_vocabulary_can_be_pickled_after_use() -> None:
    vocabulary = Vocabulary.from_counts({"a": 1}, signatures={"UNK-LC": 1})
    assert vocabulary.encode(("a", "b", "%")).tolist() == [2, 1, 0]
    again = pickle.loads(pickle.dumps(vocabulary))
    assert again == vocabulary
    assert again.encode(("b",)).tolist() == [1]


def test_encoder_kernels_check_their_arguments() -> None:
    rules = None
    for symbols, flags, late in (
        ([], b"", []),
        (["a", "a"], b"\0\0", []),
        (["a"], b"\0\0", []),
        (["a"], b"\0", [(1, 1, 1)]),
    ):
        with pytest.raises(_native.KernelError, match="E_ARGUMENT"):
            _native.WordEncoder(symbols, flags, late, rules)
    stream = _native.StreamRule(seed=0, probability=0.1, start_after=0, signatures=None)
    ids, starts = np.array([3], dtype=np.uint32), np.array([0], dtype=np.uint64)
    with pytest.raises(_native.KernelError, match="E_ARGUMENT"):
        stream.feed(open_encoder(), ids, starts)
    with pytest.raises(TypeError):
        open_encoder().add_sentence([1])  # type: ignore[list-item]


def test_encoded_text_does_not_depend_on_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = []
    for number in range(5):
        files.append(tmp_path / f"{number}.txt")
        files[-1].write_text(f"a b {number}\n\nb c\n" * number)
    corpus = TextCorpus(tuple(files))
    _, whole = encode_open(corpus)
    monkeypatch.setattr(encoder_module, "_BLOCK_WORDS", 7)
    vocabulary, pieces = encode_open(corpus)
    for text in (pieces, encode_text(corpus, vocabulary)):
        for name in ("ids", "starts", "documents"):
            np.testing.assert_array_equal(getattr(text, name), getattr(whole, name))
        assert text.fingerprint == whole.fingerprint
