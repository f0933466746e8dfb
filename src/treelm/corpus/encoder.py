"""Text as numbers: files or sentences in, ids of a vocabulary out, at the speed of the kernel."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.characters import visible
from treelm.corpus.corpus import (
    Fingerprint,
    TextCorpus,
    TreeCorpus,
    TreeSentences,
    hashed_blocks,
)
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import Source, encoding_error, read_ahead, size_if_known, source_name
from treelm.corpus.unknown_words import SignatureStyle
from treelm.corpus.vocabulary import Vocabulary, word_errors
from treelm.corpus.words import Words, check_sentences, sentences_of, words_of
from treelm.errors import CorpusFormatError, EngineError, UsageError, VocabularyError
from treelm.parallel.progress import SILENT, Progress

if TYPE_CHECKING:
    from treelm.trees.profile import ProfileSource

Ids = npt.NDArray[np.uint32]
Places = npt.NDArray[np.uint64]


def sizes_between(starts: Places) -> npt.NDArray[np.int64]:
    """Return the size of each piece, from where each begins and the last ends."""
    return (starts[1:] - starts[:-1]).astype(np.int64)


#: Words that are kept together: from 32 MB on, memory goes back to the system when it is let go of.
_BLOCK_WORDS = 1 << 23

#: What the kernel read since it was last asked: ids, starts and documents of sentences.
Batch = tuple[Ids, Places, Ids]


@dataclass(frozen=True, eq=False)
class EncodedText:
    """A text as ids of a vocabulary.

    Args:
        ids: One per word.
        starts: Where each sentence begins in `ids`, and the number of words at the end.
        documents: The number of each sentence's document, from 0.
        unknown: Words out of the vocabulary: those replaced by ``<unk>`` or a signature.
        fingerprint: Of the files it was read from; None if it was not read from a file.
        written: The words out of the vocabulary as they are written, in order; None if nobody
            asked for them.
        characters: Characters of the text, one after each word included; with `written`.

    Examples:
        >>> text = encode_sentences([("a", "b"), ("a",)], Vocabulary.from_counts({"a": 1}))
        >>> text.ids.tolist(), text.starts.tolist(), text.unknown
        ([1, 0, 1], [0, 2, 3], 1)
    """

    ids: Ids
    starts: Places
    documents: Ids
    unknown: int
    fingerprint: Fingerprint | None = None
    written: tuple[str, ...] | None = None
    characters: int | None = None

    def __len__(self) -> int:
        return len(self.documents)

    @cached_property
    def document_starts(self) -> Places:
        """The first sentence of every document, and the number of sentences at the end.

        Examples:
            >>> encode_sentences(["a", "b"], Vocabulary.from_counts({"a": 1})).document_starts
            array([0, 2], dtype=uint64)
        """
        changes = np.flatnonzero(np.diff(self.documents)) + 1
        whole = [0, len(self.documents)] if len(self.documents) else [0]
        return np.union1d(changes, whole).astype(np.uint64)

    def __iter__(self) -> Iterator[Ids]:
        """Yield the ids of every sentence."""
        for first, last in pairwise(self.starts.tolist()):
            yield self.ids[first:last]


def encode_text(
    text: Source | Iterable[Source] | TextCorpus,
    vocabulary: Vocabulary,
    *,
    training: bool = False,
    threads: int = 1,
    progress: Progress = SILENT,
) -> EncodedText:
    """Return plain text as ids, read once and in blocks.

    Args:
        text: One file, several, or a corpus; one sentence per line, a blank line ends a document.
        vocabulary: Which words are known; the others become signatures or ``<unk>``.
        training: Whether this is the text the vocabulary was made from, so that words are unknown
            where the streaming rule replaced them.
        threads: With more than one, reading and decompression run beside the encoding.
        progress: Called with the number of bytes read.

    Raises:
        CorpusFormatError: ``E_ENCODING`` or ``E_RESERVED_SYMBOL`` with file, line and column.
        InputFileError: for a file that cannot be read.
    """
    encoder = _native.TextEncoder(vocabulary.encoder, training=training, first_sentence=1)
    digest = hashlib.sha256()
    batches = list(_in_blocks(_read(_paths(text), encoder, digest, threads, progress)))
    return _joined(batches, encoder, digest)


def encode_open(
    corpus: TextCorpus,
    progress: Progress = SILENT,
    *,
    threads: int = 1,
    profile: ProfileSource = "english",
    style: SignatureStyle = "full",
) -> tuple[Vocabulary, EncodedText]:
    """Return a text as ids of all its words, and these as a vocabulary, in one reading.

    Args:
        corpus: The text.
        progress: Called with the number of bytes read.
        threads: With more than one, reading and decompression run beside the encoding.
        profile: Language profile of the vocabulary.
        style: How the vocabulary would write signatures; it has none.

    Raises:
        VocabularyError: ``E_NO_DATA`` for an empty corpus.
        CorpusFormatError: ``E_ENCODING`` or ``E_RESERVED_SYMBOL`` with file, line and column.
    """
    encoder = open_encoder()
    digest = hashlib.sha256()
    batches = list(_in_blocks(_read(corpus.paths, encoder, digest, threads, progress)))
    vocabulary, new_ids = _all_words(encoder, profile, style, corpus.paths)
    return vocabulary, _joined(batches, encoder, digest, new_ids)


def encode_trees(
    corpus: TreeCorpus, vocabulary: Vocabulary | None = None, *, training: bool = False
) -> tuple[Vocabulary, EncodedText]:
    """Return the sentences of trees as ids, and the vocabulary of the ids.

    Args:
        corpus: The trees.
        vocabulary: Which words are known; None for all words of the trees.
        training: As for `encode_text`.

    Raises:
        VocabularyError: ``E_NO_DATA`` for trees without words.
        CorpusFormatError: for malformed input, and ``E_RESERVED_SYMBOL``.
    """
    closed = None if vocabulary is None else vocabulary.encoder
    encoder = _native.TextEncoder(closed, training=training, first_sentence=1)
    batches = list(_in_blocks(open_batches(TreeSentences(corpus), encoder)))
    new_ids = None
    if vocabulary is None:
        vocabulary, new_ids = _all_words(encoder, corpus.options.profile, "full", corpus.paths)
    text = _joined(batches, encoder, None, new_ids)
    return vocabulary, replace(text, fingerprint=corpus.fingerprint)


def vocabulary_of_all_words(encoder: _native.TextEncoder, corpus: TreeCorpus) -> Vocabulary:
    """Return the vocabulary of everything an open encoder has read of trees.

    Raises:
        VocabularyError: ``E_NO_DATA`` if it has read nothing.
    """
    return _all_words(encoder, corpus.options.profile, "full", corpus.paths)[0]


def _all_words(
    encoder: _native.TextEncoder,
    profile: ProfileSource,
    style: SignatureStyle,
    sources: Iterable[Source],
) -> tuple[Vocabulary, Ids]:
    """Return the vocabulary of everything an open encoder has read, and the ids of its words."""
    from treelm.trees.profile import load_profile

    words = encoder.words()
    if not words:
        raise no_words(sources)
    vocabulary = Vocabulary.from_counts(
        dict(zip(words, encoder.counts().tolist(), strict=True)),
        profile=load_profile(profile),
        style=style,
        source={"name": "all", "sentences": encoder.sentences, "tokens": encoder.tokens},
    )
    return vocabulary, vocabulary.ids_of(words)


def encode_sentences(
    sentences: Iterable[Words],
    vocabulary: Vocabulary,
    *,
    training: bool = False,
    written: bool = False,
) -> EncodedText:
    """Return sentences as ids; they are one document.

    Args:
        sentences: The words of each, or strings that are split at white space.
        vocabulary: Which words are known.
        training: As for `encode_text`.
        written: Whether unknown words are kept as they are written.

    Raises:
        VocabularyError: ``E_BAD_TOKEN`` for a word that is empty or contains white space,
            ``E_RESERVED_SYMBOL`` for ``<s>`` and ``</s>``.
    """
    encoder = _native.TextEncoder(vocabulary.encoder, training=training, first_sentence=1)
    given = list(sentences_of(sentences)) if written else sentences_of(sentences)
    with word_errors():
        for words in given:
            encoder.add_sentence(words)
    text = _joined([encoder.take()], encoder)
    if not isinstance(given, list):
        return text
    places = np.flatnonzero(_is_unknown(vocabulary)[text.ids])
    numbers = np.searchsorted(text.starts, places, side="right") - 1
    unknown = written_words(given, numbers, places - text.starts[numbers].astype(np.int64))
    characters = sum(map(len, chain.from_iterable(given))) + len(text.ids)
    return replace(text, written=unknown, characters=characters)


def written_words(
    sentences: Sequence[Words], numbers: npt.NDArray[np.intp], offsets: npt.NDArray[np.int64]
) -> tuple[str, ...]:
    """Return some words of sentences as they are written.

    Args:
        sentences: The words of each, or strings that are split at white space.
        numbers: The sentence of each word, ascending.
        offsets: Its place in the sentence.
    """
    found: list[str] = []
    last, words = -1, ()
    for number, offset in zip(numbers.tolist(), offsets.tolist(), strict=True):
        if number != last:
            last, words = number, words_of(sentences[number])
        found.append(words[offset])
    return tuple(found)


def encode_written(corpus: TextCorpus, vocabulary: Vocabulary, *, threads: int = 1) -> EncodedText:
    """Return what `encode_text` gives, with the unknown words as they are written.

    Args:
        corpus: The text.
        vocabulary: Which words are known.
        threads: With more than one, reading and decompression run beside the encoding.
    """
    encoder = open_encoder()
    digest = hashlib.sha256()
    batches = list(_in_blocks(_read(corpus.paths, encoder, digest, threads, SILENT)))
    read = _joined(batches, encoder, digest)
    words = encoder.words()
    later = _symbol_ids(words, vocabulary, 1)
    ids = later[read.ids]
    if any(vocabulary.signature_marks):
        begins = read.starts[:-1][sizes_between(read.starts) > 0]
        ids[begins] = _symbol_ids(words, vocabulary, 0)[read.ids[begins]]
    places = np.flatnonzero(_is_unknown(vocabulary)[ids])
    unknown = tuple(words[number] for number in read.ids[places].tolist())
    sizes = np.fromiter(map(len, words), np.int64, len(words)) + 1
    return replace(
        read,
        ids=ids,
        unknown=len(places),
        written=unknown,
        characters=int(sizes[read.ids].sum()),
    )


def _symbol_ids(words: Sequence[str], vocabulary: Vocabulary, position: int) -> Ids:
    """Return the id of every word, or of the symbol that replaces it at a position."""
    return vocabulary.ids_of(vocabulary.symbol(word, position) for word in words)


def _is_unknown(vocabulary: Vocabulary) -> npt.NDArray[np.bool_]:
    """Return by id whether a symbol stands for unknown words."""
    marks = np.frombuffer(vocabulary.signature_marks, dtype=np.bool_).copy()
    marks[0] = True
    return marks


def encode_strings(sentences: Sequence[Words], vocabulary: Vocabulary) -> EncodedText | None:
    """Return strings as ids, split by the kernel; None where a file would give something else.

    That is so for words that are already split, and for strings that are not one line, contain no
    word, or are refused by the kernel: `encode_sentences` takes them, and says what is wrong.
    """
    check_sentences(sentences)
    lines = [sentence for sentence in sentences if isinstance(sentence, str)]
    if len(lines) != len(sentences):
        return None
    text = "\n".join(lines)
    if text.count("\n") >= max(1, len(lines)) or text.startswith("\ufeff"):
        return None
    encoder = _native.TextEncoder(vocabulary.encoder, training=False, first_sentence=1)
    try:
        encoder.feed(text.encode())
        encoder.finish()
    except (UnicodeEncodeError, _native.KernelError):
        return None
    if encoder.sentences != len(lines):
        return None
    return _joined([encoder.take()], encoder)


def open_encoder() -> _native.TextEncoder:
    """Return a kernel that gives ids by first occurrence, for `open_batches`."""
    return _native.TextEncoder(None, training=False, first_sentence=1)


def open_batches(
    corpus: TextCorpus | TreeSentences, encoder: _native.TextEncoder
) -> Iterator[Batch]:
    """Read a corpus once into an encoder and yield its batches on the way.

    Raises:
        CorpusFormatError: for malformed input, and ``E_RESERVED_SYMBOL``.
    """
    if isinstance(corpus, TextCorpus):
        yield from _read(corpus.paths, encoder, None, 1, SILENT)
        return
    for batch in corpus.corpus.batches():
        with _text_errors(None):
            batch.native.encode_words(encoder)
        yield encoder.take()


class TextPiece(NamedTuple):
    """Some lines of a text file."""

    source: Source
    """The file."""
    lines_before: int
    """Number of lines of the file before the first of these."""
    data: bytes
    """The lines, up to the end of the last one."""


def text_pieces(
    paths: Iterable[Source], size: int, digest: hashlib._Hash | None = None
) -> Iterator[TextPiece]:
    """Yield text files in pieces, cut between lines.

    Args:
        paths: The files.
        size: Bytes of a piece; a longer line is a piece of its own.
        digest: Hashes what is read, as fingerprints of text do.

    Raises:
        CorpusFormatError: ``E_WRONG_KIND`` for what is no text.
        InputFileError: for a file that cannot be read.
    """
    for path in paths:
        lines, rest = 0, b""
        for block in hashed_blocks(path, digest, Wanted.TEXT):
            rest += block
            start = 0
            while len(rest) - start >= size:
                # The last end of a line in reach, or else the next one.
                end = rest.rfind(b"\n", start, start + size) + 1
                end = end or rest.find(b"\n", start + size) + 1
                if not end:
                    break
                yield TextPiece(path, lines, rest[start:end])
                lines += rest.count(b"\n", start, end)
                start = end
            rest = rest[start:]
        if rest:
            yield TextPiece(path, lines, rest)


def encode_piece(
    piece: TextPiece,
    vocabulary: Vocabulary | None = None,
    *,
    training: bool = False,
    first_sentence: int = 1,
) -> tuple[EncodedText, _native.TextEncoder]:
    """Return a piece of a text as ids, and the kernel that read it.

    Args:
        piece: The piece.
        vocabulary: Which words are known; None gives ids by first occurrence.
        training: As for `encode_text`.
        first_sentence: Number of the first sentence in the whole text, counted from 1.

    Raises:
        CorpusFormatError: ``E_ENCODING`` or ``E_RESERVED_SYMBOL`` with file, line and column.
    """
    closed = None if vocabulary is None else vocabulary.encoder
    encoder = _native.TextEncoder(closed, training=training, first_sentence=first_sentence)
    # Only a file may begin with a byte order mark; a blank line before the others says that they
    # do not begin one.
    ahead = b"\n" if piece.lines_before else b""
    with _text_errors(piece.source, piece.lines_before - len(ahead)):
        encoder.feed(ahead)
        encoder.feed(piece.data)
        encoder.finish()
    return _joined([encoder.take()], encoder), encoder


def no_words(sources: Iterable[Source] = ()) -> VocabularyError:
    """Return the error for a corpus without words, which names its files."""
    names = " ".join(map(source_name, sources)) or "the corpus"
    return VocabularyError(
        f"{names}: contains no words, so there is no vocabulary to build. Is it the right file?",
        code="E_NO_DATA",
    )


def _paths(text: Source | Iterable[Source] | TextCorpus) -> Iterable[Source]:
    if isinstance(text, TextCorpus):
        return text.paths
    return (text,) if isinstance(text, (str, os.PathLike)) else text


def _read(
    paths: Iterable[Source],
    encoder: _native.TextEncoder,
    digest: hashlib._Hash | None,
    threads: int,
    progress: Progress,
) -> Iterator[Batch]:
    """Yield what the encoder makes of the files, block by block."""
    if threads < 1:
        raise UsageError(f"threads is {threads}; it must be at least 1.")
    for path in paths:
        blocks = hashed_blocks(path, digest, Wanted.TEXT)
        with (
            progress.step(
                f"reading {source_name(path)}", total=size_if_known(path), unit="B"
            ) as step,
            _text_errors(path),
        ):
            for block in read_ahead(blocks) if threads > 1 else blocks:
                encoder.feed(block)
                yield encoder.take()
                step.advance(len(block))
            encoder.finish()
            yield encoder.take()


def _in_blocks(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yield batches joined to large ones, each of which has memory of its own.

    Small ones would leave holes behind when they are let go of, which only small ones can fill.
    """
    gathered: list[Batch] = []
    words = 0
    for batch in batches:
        gathered.append(batch)
        words += len(batch[0])
        if words >= _BLOCK_WORDS:
            yield _concatenated(gathered)
            gathered.clear()
            words = 0
    yield _concatenated(gathered)


def _concatenated(batches: list[Batch]) -> Batch:
    if not batches:
        return np.zeros(0, np.uint32), np.zeros(0, np.uint64), np.zeros(0, np.uint32)
    ids, starts, documents = (np.concatenate(arrays) for arrays in zip(*batches, strict=True))
    return ids, starts, documents


@contextmanager
def _text_errors(path: Source | None, lines_before: int = 0) -> Iterator[None]:
    """Turn errors of the kernel into those of reading text, with the name of the file."""
    try:
        yield
    except _native.KernelError as error:
        code, message, line, column = error.args
        line += lines_before
        if code == "E_ENCODING" and path is not None:
            raise encoding_error(path, line, column) from error
        if code not in ("E_RESERVED_SYMBOL", "E_TOO_LARGE"):
            raise EngineError(f"encoding text failed: {message}", code=code) from error
        what = f"{message}. Is this a text file?"
        if code == "E_RESERVED_SYMBOL":
            what = (
                f'the text contains "{visible(message)}" as a word, which is reserved for sentence '
                "boundaries. Remove it: the models add boundaries themselves."
            )
        if path is None:
            raise CorpusFormatError(what, code=code) from error
        name = source_name(path)
        raise CorpusFormatError(
            f"{name}:{line}:{column}: {what}", code=code, path=name, line=line, column=column
        ) from error


def _joined(
    batches: list[Batch],
    encoder: _native.TextEncoder,
    digest: hashlib._Hash | None = None,
    new_ids: Ids | None = None,
) -> EncodedText:
    """Return batches as one text, with other ids if asked; `batches` is emptied on the way."""
    ids = np.empty(encoder.tokens, dtype=np.uint32)
    starts = np.empty(encoder.sentences + 1, dtype=np.uint64)
    documents = np.empty(encoder.sentences, dtype=np.uint32)
    starts[-1] = encoder.tokens
    token = sentence = 0
    batches.reverse()
    while batches:
        batch_ids, batch_starts, batch_documents = batches.pop()
        last = token + len(batch_ids)
        ids[token:last] = batch_ids if new_ids is None else new_ids[batch_ids]
        starts[sentence : sentence + len(batch_starts)] = batch_starts
        documents[sentence : sentence + len(batch_starts)] = batch_documents
        token, sentence = last, sentence + len(batch_starts)
    # An open encoder knows every word but the unknown one itself.
    unknown = encoder.unknown if new_ids is None else int(np.count_nonzero(ids == 0))
    fingerprint = (
        None
        if digest is None
        else Fingerprint(digest.hexdigest(), encoder.sentences, encoder.tokens)
    )
    return EncodedText(ids, starts, documents, unknown, fingerprint)
