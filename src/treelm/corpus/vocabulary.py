"""Vocabularies: which words a model knows, and what replaces the others.

A closed set of words, the signatures seen in training, and ``<unk>``. It is built once per corpus,
saved as a text file and shared by all models that are to be compared; a fingerprint tells whether
two models have the same words.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, overload

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.characters import visible
from treelm.corpus.unknown_words import UNKNOWN, Signatures, SignatureStyle, not_a_word
from treelm.corpus.words import Words, words_of
from treelm.errors import EngineError, VocabularyError
from treelm.pickling import PickledFields

if TYPE_CHECKING:
    from treelm.trees.profile import ProfileSource

#: Where a sentence begins and ends; never words of a vocabulary.
SENTENCE_START, SENTENCE_END = "<s>", "</s>"
RESERVED = frozenset({SENTENCE_START, SENTENCE_END})

#: Sentence and position, both counted from 1 and 0: the place at which a type became known.
Entry = tuple[int, int]


@dataclass(frozen=True, slots=True)
class VocabularyEntry:
    """One symbol of a vocabulary.

    Args:
        symbol: A word, a signature, or ``<unk>``.
        count: Occurrences in the training text after replacement.
        is_signature: Whether it replaces words out of the vocabulary.
        entry: Place at which a word entered the vocabulary, where earlier occurrences were
            replaced (the streaming rule); None if it was known from its first occurrence.
    """

    symbol: str
    count: int
    is_signature: bool = False
    entry: Entry | None = None


class PlainEntries(Sequence[VocabularyEntry]):
    """Entries of words known from their first occurrence on; made one by one on demand.

    Args:
        symbols: Words and signatures.
        counts: The count of each.
        signatures: Which of them are signatures.
    """

    def __init__(
        self, symbols: Sequence[str], counts: Sequence[int], signatures: Sequence[bool]
    ) -> None:
        self.symbols = tuple(symbols)
        self.counts = counts
        self.signatures = bytes(signatures)

    def __len__(self) -> int:
        return len(self.symbols)

    @overload
    def __getitem__(self, index: int) -> VocabularyEntry: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[VocabularyEntry, ...]: ...
    def __getitem__(self, index: int | slice) -> VocabularyEntry | tuple[VocabularyEntry, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        signature = bool(self.signatures[index])
        return VocabularyEntry(self.symbols[index], self.counts[index], is_signature=signature)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PlainEntries):
            mine, theirs = (
                (entries.symbols, list(entries.counts), entries.signatures)
                for entries in (self, other)
            )
            return mine == theirs
        return tuple(self) == other

    def __hash__(self) -> int:
        return hash(tuple(self))


@dataclass(frozen=True)
class Vocabulary(PickledFields):
    """Symbols and their ids; ``<unk>`` has id 0, the others follow by falling count.

    Args:
        entries: The symbols in the order of their ids.
        profile: Language profile whose rules make the signatures.
        style: How signatures are written.
        source: What it was built from and how, for the record.

    Examples:
        >>> vocabulary = Vocabulary.from_counts({"the": 3, "dog": 2}, signatures={"UNK-LC-s": 1})
        >>> vocabulary.symbols
        ('<unk>', 'the', 'dog', 'UNK-LC-s')
        >>> vocabulary.replace(("the", "cats", "slept"))
        ('the', 'UNK-LC-s', '<unk>')
    """

    entries: Sequence[VocabularyEntry]
    profile: ProfileSource = "english"
    style: SignatureStyle = "full"
    source: Mapping[str, object] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        symbols = self.symbols
        distinct = set(symbols)
        for symbol in distinct & {*RESERVED, ""}:
            raise VocabularyError(
                f'"{symbol}" is reserved and cannot be in a vocabulary.', code="E_VOCABULARY"
            )
        if len(distinct) < len(symbols):
            twice = next(symbol for symbol, count in Counter(symbols).items() if count > 1)
            raise VocabularyError(
                f'"{visible(twice)}" is in a vocabulary twice.', code="E_VOCABULARY"
            )
        if not symbols or symbols[0] != UNKNOWN:
            raise VocabularyError(f"a vocabulary must begin with {UNKNOWN}.", code="E_VOCABULARY")

    @classmethod
    def from_counts(
        cls,
        words: Mapping[str, int],
        *,
        signatures: Mapping[str, int] | None = None,
        unknown: int = 0,
        late: Mapping[str, Entry] | None = None,
        profile: ProfileSource = "english",
        style: SignatureStyle = "full",
        source: Mapping[str, object] | None = None,
    ) -> Vocabulary:
        """Return a vocabulary of words and signatures with their counts, in the order of ids.

        Args:
            words: Words with their counts; ``<unk>`` among them is the unknown symbol.
            signatures: Signatures with their counts.
            unknown: Occurrences of ``<unk>`` besides those among `words`.
            late: Words whose earlier occurrences were replaced, with the place they entered.
            profile: Language profile of the signatures.
            style: How signatures are written.
            source: For the record.
        """
        late = late or {}
        items = [
            VocabularyEntry(word, count, is_signature=False, entry=late.get(word))
            for word, count in words.items()
            if word != UNKNOWN
        ]
        for signature, count in (signatures or {}).items():
            items.append(VocabularyEntry(signature, count, is_signature=True))
        # By falling count, then by symbol: code points are in the order of their UTF-8 bytes.
        items.sort(key=attrgetter("symbol"))
        items.sort(key=attrgetter("count"), reverse=True)
        first = VocabularyEntry(UNKNOWN, unknown + words.get(UNKNOWN, 0))
        return cls((first, *items), profile, style, dict(source or {}))

    def __len__(self) -> int:
        return len(self.entries)

    def __getstate__(self) -> dict[str, object]:
        from treelm.trees.profile import load_profile

        # The profile travels as its content: its file may not exist where the pickle is read.
        profile = load_profile(self.profile).to_config()
        state = {**super().__getstate__(), "profile": profile, "source": dict(self.source)}
        if isinstance(self.entries, PlainEntries):
            return state
        if not any(item.entry for item in self.entries):  # many times as quick as entry by entry
            counts = self.counts.tolist()
            state["entries"] = PlainEntries(
                self.symbols, counts, [bool(mark) for mark in self.signature_marks]
            )
        return state

    def __contains__(self, word: object) -> bool:
        return word in self._words

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The symbols in the order of their ids."""
        if isinstance(self.entries, PlainEntries):
            return self.entries.symbols
        return tuple(map(attrgetter("symbol"), self.entries))

    @cached_property
    def counts(self) -> npt.NDArray[np.uint64]:
        """The count of every symbol in the training text, by id."""
        if isinstance(self.entries, PlainEntries):
            return np.array(self.entries.counts, dtype=np.uint64)
        return np.array([item.count for item in self.entries], dtype=np.uint64)

    @cached_property
    def signature_marks(self) -> bytes:
        """Which symbols are signatures: one byte each, by id."""
        if isinstance(self.entries, PlainEntries):
            return self.entries.signatures
        return bytes(item.is_signature for item in self.entries)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {symbol: index for index, symbol in enumerate(self.symbols)}

    @cached_property
    def _words(self) -> frozenset[str]:
        signatures = compress(self.symbols, self.signature_marks)
        return frozenset(self.symbols).difference(signatures)

    @cached_property
    def _signatures(self) -> Signatures:
        return Signatures(self.profile, style=self.style)

    @cached_property
    def _has_signatures(self) -> bool:
        return any(self.signature_marks)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the symbols with their kinds, in the order of their ids, and of the rules."""
        digest = hashlib.sha256(f"{self.style}\n{self._signatures.profile_fingerprint}\n".encode())
        if self._has_signatures:
            lines = "".join(f"{item.symbol}\t{int(item.is_signature)}\n" for item in self.entries)
        else:
            lines = "\t0\n".join((*self.symbols, ""))
        digest.update(lines.encode())
        return digest.hexdigest()

    @cached_property
    def encoder(self) -> _native.WordEncoder:
        """The kernel that gives words their ids, as `symbol` and `replace` define them."""
        entries = () if isinstance(self.entries, PlainEntries) else self.entries
        late = [(i, *item.entry) for i, item in enumerate(entries) if item.entry is not None]
        return _native.WordEncoder(
            list(self.symbols),
            self.signature_marks,
            late,
            self._signatures.rules if self._has_signatures else None,
        )

    def symbol(self, word: str, position: int) -> str:
        """Return the symbol of a word: itself, its signature if that is known, or ``<unk>``."""
        if word in self._words:
            return word
        return self._replacement(word, position, known=self._words)

    def unknown_symbol(self, word: str, position: int) -> str:
        """Return the symbol that would replace a word if it were not in the vocabulary."""
        return self._replacement(word, position, known=self._words)

    def _replacement(self, word: str, position: int, known: Container[str]) -> str:
        if word in RESERVED:
            raise reserved_word(word)
        if not self._has_signatures:
            return UNKNOWN
        signature = self._signatures(word, position, known=known)
        return signature if signature in self._ids else UNKNOWN

    def replace(self, words: Words, *, sentence: int | None = None) -> tuple[str, ...]:
        """Return the sentence with unknown words replaced.

        Args:
            words: The sentence.
            sentence: Its number in the training text, counted from 1: occurrences before a word
                entered the vocabulary are then replaced too, as the streaming rule did. None for
                any other text.
        """
        given = enumerate(words_of(words))
        if sentence is None or not self._late:
            return tuple(self.symbol(word, position) for position, word in given)
        return tuple(self._symbol_in_training(word, sentence, position) for position, word in given)

    @cached_property
    def _late(self) -> dict[str, Entry]:
        return {item.symbol: item.entry for item in self.entries if item.entry is not None}

    def _symbol_in_training(self, word: str, sentence: int, position: int) -> str:
        here = (sentence, position)
        if word in self._words and self._late.get(word, here) <= here:
            return word
        lower = word.lower()
        known = {lower} if lower in self._words and self._late.get(lower, (0, 0)) < here else ()
        return self._replacement(word, position, known)

    def encode(self, words: Words) -> npt.NDArray[np.uint32]:
        """Return the ids of a sentence, unknown words replaced."""
        with word_errors():
            return self.encoder.encode_words(words_of(words))

    def ids_of(self, symbols: Iterable[str]) -> npt.NDArray[np.uint32]:
        """Return the ids of symbols, all of them in the vocabulary."""
        return np.fromiter(map(self._ids.__getitem__, symbols), dtype=np.uint32)

    def decode(self, ids: Iterable[int]) -> tuple[str, ...]:
        """Return the symbols of ids."""
        return tuple(self.symbols[index] for index in ids)


def reserved_word(word: str) -> VocabularyError:
    """Return the error for a sentence boundary among words."""
    return VocabularyError(
        f'"{word}" marks a sentence boundary and cannot be a word of the text.',
        code="E_RESERVED_SYMBOL",
    )


@contextmanager
def word_errors() -> Iterator[None]:
    """Turn what a kernel says of single words into `VocabularyError`."""
    try:
        yield
    except _native.KernelError as error:
        code, word, _, _ = error.args
        if code == "E_RESERVED_SYMBOL":
            raise reserved_word(word) from error
        if code == "E_BAD_TOKEN":
            raise not_a_word(word) from error
        raise EngineError(f"encoding words failed: {word}", code=code) from error


def check_same_vocabulary(first: Vocabulary, second: Vocabulary) -> None:
    """Refuse to compare or mix different vocabularies.

    Raises:
        VocabularyError: ``E_VOCABULARY_MISMATCH``.
    """
    if first.fingerprint != second.fingerprint:
        raise VocabularyError(
            f"the two vocabularies differ ({len(first)} symbols, {first.fingerprint[:8]}; "
            f"{len(second)} symbols, {second.fingerprint[:8]}), so probabilities over them cannot "
            "be compared or mixed. Build one with `treelm vocabulary` and give it to both.",
            code="E_VOCABULARY_MISMATCH",
        )
