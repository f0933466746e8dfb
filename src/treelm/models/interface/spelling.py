"""How unknown words are spelled: one back-off chain of characters for all unknown symbols.

The symbol of an unknown word (``<unk>`` or a signature) stands for infinitely many words. A
spelling model shares the probability of the symbol out among them::

    P(word | context) = P(symbol | context) * P(spelling | symbol)

The chain gives a spelling a product over its characters and its end, each given those before it. A
character that training has not seen is one of all code points that are left, each as likely as the
others. A symbol stands for the unknown words of one form, never for words of the vocabulary: given
the symbol, a spelling has its share of what the chain gives to all of these (Bayes' rule).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm.corpus.vocabulary import RESERVED, Vocabulary
from treelm.corpus.words import SPACE
from treelm.errors import ModelFileError
from treelm.estimation.backoff_table import BackoffTable
from treelm.estimation.layout import make_compact
from treelm.estimation.quantize import SMALL_CODES, CodeBits, quantize
from treelm.events.counts import Ids
from treelm.models.interface.model import SPELLING
from treelm.models.interface.states import model_fingerprint
from treelm.models.interface.words import WordIds
from treelm.parallel.progress import SILENT, Progress
from treelm.seeds import random_bits, random_uniform
from treelm.store.folder import FolderWriter, ModelFolder
from treelm.store.schema import Array, Tensor, Tensors, damage_in, read_tensors

Floats = npt.NDArray[np.float64]

TABLE, ALPHABET, LOG_MASS = "spelling", "alphabet", "log_mass"

#: Code points that a word may have: all but surrogates and white space.
CODE_POINTS = 0x110000 - 0x800 - len(SPACE)
#: Id of all characters that are not in the alphabet.
UNSEEN = 0

#: Longest context of a table that is read; training makes shorter ones.
_WIDEST = 16
#: Spellings whose probabilities are kept at hand.
_CACHED = 1 << 17
#: Spellings that are drawn at first, and at most, before a symbol stays a symbol.
_FEWEST_TRIES, _MOST_TRIES = 16, 1 << 14
#: Spellings that are drawn at most if none is an unknown word, or one has the symbol elsewhere.
_MOST_TRIES_FOR_ANY = 1 << 8
#: Longest spelling that is drawn.
_LONGEST = 128


def _code_points(array: Array, _: Tensors) -> str | None:
    values = array.astype(np.int64)
    if (values > 0x10FFFF).any() or ((values >= 0xD800) & (values < 0xE000)).any():
        return "contains numbers that are no characters"
    if np.isin(values, [ord(each) for each in SPACE]).any():
        return "contains white space"
    if len(values) >= CODE_POINTS:
        return "leaves no unseen characters"
    return "is not in ascending order" if (np.diff(values) <= 0).any() else None


def _log_shares(array: Array, _: Tensors) -> str | None:
    if ((array <= 0) & (array > -100)).all():
        return None
    return "contains numbers that are no logarithms of shares"


_SCHEMA = (
    Tensor(ALPHABET, np.uint32, ("characters",), _code_points),
    Tensor(LOG_MASS, np.float64, ("symbols",), _log_shares),
)


class Spelling:
    """A spelling model: the probability of every unknown word, given its symbol.

    Args:
        table: The chain: an outcome and the characters before it, the nearest first.
        alphabet: Code points of the characters that training has seen, ascending.
        log_mass: By unknown symbol, the logarithm of what the chain gives to all of its words.
        vocabulary: The words that are known, and the symbols of the others.
    """

    def __init__(
        self, table: BackoffTable, alphabet: Ids, log_mass: Floats, vocabulary: Vocabulary
    ) -> None:
        self.table = table
        self.alphabet = alphabet
        self.log_mass = log_mass
        self.vocabulary = vocabulary
        self.characters = Characters(alphabet, table.context_columns)
        self._cache: dict[tuple[int, str], float] = {}

    @cached_property
    def word_ids(self) -> WordIds:
        """Ids of words and of the symbols of unknown ones."""
        return WordIds(self.vocabulary)

    @cached_property
    def _number_of(self) -> npt.NDArray[np.int64]:
        """The number of every symbol among those that stand for unknown words."""
        return np.cumsum(self.word_ids.is_oov) - 1

    @cached_property
    def fingerprint(self) -> bytes:
        """8 bytes that tell the spelling model from others."""
        return model_fingerprint((self.vocabulary.fingerprint,), self._tensors())

    @cached_property
    def known(self) -> frozenset[str]:
        """Words of the vocabulary, whose probability needs no spelling."""
        return known_words(self.vocabulary)

    def log_probs(self, symbols: Sequence[int], words: Sequence[str]) -> Floats:
        """Return ln P(spelling | symbol) of unknown words.

        Args:
            symbols: The id of the symbol of each.
            words: The words as written.
        """
        pairs = list(zip(symbols, words, strict=True))
        cache = self._cache
        missing = [pair for pair in dict.fromkeys(pairs) if pair not in cache]
        if len(cache) + len(missing) > _CACHED:
            cache = {}
            missing = list(dict.fromkeys(pairs))
        if missing:
            own = self._number_of[[symbol for symbol, _ in missing]]
            found = self.chain_log_probs([word for _, word in missing]) - self.log_mass[own]
            cache.update(zip(missing, found.tolist(), strict=True))
        # Others may look things up meanwhile: they have the old cache or the new one.
        self._cache = cache if len(cache) <= _CACHED else {}
        return np.fromiter((cache[pair] for pair in pairs), np.float64, len(pairs))

    def log_prob(self, word: str, *, first: bool) -> float:
        """Return ln P(spelling | symbol) of one word; 0 if it is in the vocabulary.

        Args:
            word: The word as written.
            first: Whether it is the first of its sentence, where that changes its symbol.
        """
        if word in self.known:
            return 0.0
        return float(self.log_probs([self.word_ids.word(word, first=first)], [word])[0])

    def chain_log_probs(self, words: Sequence[str]) -> Floats:
        """Return what the chain gives to spellings, those of known words and of none included."""
        return self.characters.log_probs(self.table, words)

    # -- samples ----------------------------------------------------------------------------

    def sample(self, symbol: int, *, first: bool, seed: int, stream: int, place: int) -> str | None:
        """Return a word that a symbol stands for; None if hardly any spelling has that symbol.

        Args:
            symbol: Id of the symbol. One that no word has in its place, such as that of capitalised
                first words elsewhere, gets a word that has it in another.
            first: Whether the word is the first of its sentence.
            seed: Seed of the sample.
            stream: Number of the sentence.
            place: Place of the word in it.
        """
        own = random_bits(seed, stream, place)
        elsewhere = None
        start, size = 0, _FEWEST_TRIES
        while start < _MOST_TRIES:
            words = self.draw(own, start, size)
            enough = start >= _MOST_TRIES_FOR_ANY
            if enough and (elsewhere is not None or not words):  # a damaged chain never ends
                break
            for word in words:
                if self.word_ids.word(word, first=first) == symbol:
                    return word
                if elsewhere is None and self.word_ids.word(word, first=not first) == symbol:
                    elsewhere = word
            start, size = start + size, 2 * size
        return elsewhere

    def draw(self, seed: int, start: int, count: int) -> list[str]:
        """Return unknown words drawn from the chain: at most as many as asked for.

        Args:
            seed: Seed of the random numbers.
            start: Number of the first one.
            count: How many are drawn; those that are known words, or no words, are left out.
        """
        drawn = self._drawn(seed, np.arange(start, start + count, dtype=np.uint64))
        return [word for word in drawn if word and word not in RESERVED and word not in self.known]

    def _drawn(self, seed: int, tries: npt.NDArray[np.uint64]) -> list[str | None]:
        """Return spellings; None for one that does not end."""
        characters = self.characters
        contexts = np.full((len(tries), self.table.context_columns), characters.start, np.uint32)
        letters = ["", *map(chr, characters.alphabet.tolist())]
        words = ["" for _ in tries]
        active = np.arange(len(tries))
        for place in range(_LONGEST):
            counters = np.full(len(active), place, np.uint64)
            drawn = self.table.sample(contexts[active], seed, tries[active], counters)
            if (drawn > characters.end).any():
                raise ModelFileError(
                    "the spelling table predicts the start of a word, so it is damaged; copy or "
                    "train the model again.",
                    code="E_MODEL_TABLES",
                )
            going = drawn != characters.end
            active, drawn = active[going], drawn[going]
            for number, character in zip(active.tolist(), drawn.tolist(), strict=True):
                if character != UNSEEN:
                    words[number] += letters[character]
                    continue
                point = random_uniform(seed, ~int(tries[number]), place)
                words[number] += characters.unseen_character(point)
            if not len(active):
                break
            contexts[active] = characters.following(contexts[active], drawn)
        unfinished = {*active.tolist()}
        return [None if number in unfinished else word for number, word in enumerate(words)]

    # -- smaller tables -----------------------------------------------------------------------

    def quantized(
        self, bits: CodeBits, *, threads: int = 1, progress: Progress = SILENT
    ) -> Spelling:
        """Return the chain with codes instead of floats; codes of fewer than 8 bits compact.

        Args:
            bits: Number of bits per code.
            threads: Number of threads.
            progress: Progress callback.
        """
        if self.table.shape.value_bits < 32 or self.table.shape.compact:
            return self
        coded = quantize(self.table, bits, threads=threads, progress=progress).table
        small = make_compact(coded, bits, progress=progress) if bits in SMALL_CODES else coded
        return Spelling(small, self.alphabet, self.log_mass, self.vocabulary)

    def compacted(self, *, progress: Progress = SILENT) -> Spelling:
        """Return the chain with a compact table: the same numbers."""
        if self.table.shape.compact:
            return self
        small = make_compact(self.table, progress=progress)
        return Spelling(small, self.alphabet, self.log_mass, self.vocabulary)

    # -- files ------------------------------------------------------------------------------

    def _tensors(self) -> dict[str, npt.NDArray[Any]]:
        own: dict[str, npt.NDArray[Any]] = {ALPHABET: self.alphabet, LOG_MASS: self.log_mass}
        return {**self.table.to_tensors(TABLE), **own}

    def write(self, writer: FolderWriter) -> None:
        """Write the chain into a model folder."""
        writer.tables(SPELLING, self._tensors())

    @classmethod
    def read(cls, folder: ModelFolder, vocabulary: Vocabulary) -> Spelling | None:
        """Return the spelling model in a model folder; None if it has none.

        Args:
            folder: The opened folder.
            vocabulary: That of the model.

        Raises:
            ModelFileError: ``E_MODEL_TABLES`` if it is damaged, or fits another vocabulary.
        """
        if SPELLING not in folder.manifest.files:
            return None
        with damage_in(folder):
            tables = folder.tables(SPELLING)
            symbols = int(WordIds(vocabulary).is_oov.sum())
            found = read_tensors(tables, _SCHEMA, symbols=symbols)
            table = BackoffTable.from_tensors(tables, TABLE)
            columns, shape = table.context_columns, table.shape
            alphabet = np.ascontiguousarray(found[ALPHABET])
            if (
                columns > _WIDEST
                or table.widths != tuple(range(columns, -1, -1))
                or shape.sequence
                or shape.outcomes != len(alphabet) + 3
                or shape.base_size != len(alphabet) + 2
            ):
                raise ModelFileError(
                    f'the table "{TABLE}" does not fit its alphabet and the vocabulary',
                    code="E_MODEL_TABLES",
                )
        return cls(table, alphabet, found[LOG_MASS], vocabulary)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.table, self.alphabet, self.log_mass, self.vocabulary)


class Characters:
    """Ids of characters: 0 for all unseen ones, the alphabet, the end of a word, its start.

    Args:
        alphabet: Code points, ascending.
        width: Characters that the chain looks back at.

    Examples:
        >>> characters = Characters(np.array([97, 98], np.uint32), width=2)
        >>> characters.rows(["ab"])[0].tolist()
        [[1, 4, 4], [2, 1, 4], [3, 2, 1]]
    """

    def __init__(self, alphabet: Ids, width: int) -> None:
        self.alphabet = alphabet
        self.end = len(alphabet) + 1
        self.start = len(alphabet) + 2
        self.width = width
        #: Code points that share what the chain gives to unseen characters.
        self.unseen = CODE_POINTS - len(alphabet)

    def ids(self, text: str) -> Ids:
        """Return the ids of characters."""
        points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        if not len(self.alphabet):
            return np.zeros(len(points), np.uint32)
        places = np.minimum(np.searchsorted(self.alphabet, points), len(self.alphabet) - 1)
        return np.where(self.alphabet[places] == points, places + 1, UNSEEN).astype(np.uint32)

    def rows(self, words: Sequence[str]) -> tuple[Ids, npt.NDArray[np.int64]]:
        """Return a row for every character and end of words, and where each word begins."""
        sizes = np.fromiter(map(len, words), np.int64, len(words)) + 1
        starts = np.concatenate([[0], np.cumsum(sizes)])
        outcomes = np.full(int(starts[-1]), self.end, np.uint32)
        is_character = np.ones(len(outcomes), np.bool_)
        is_character[starts[1:] - 1] = False
        outcomes[is_character] = self.ids("".join(words))
        first = np.repeat(starts[:-1], sizes)
        rows = np.full((len(outcomes), 1 + self.width), self.start, np.uint32)
        rows[:, 0] = outcomes
        places = np.arange(len(outcomes))
        for back in range(1, self.width + 1):
            inside = places - back >= first
            rows[inside, back] = outcomes[places[inside] - back]
        return rows, starts

    def log_probs(self, table: BackoffTable, words: Sequence[str]) -> Floats:
        """Return what a chain gives to spellings."""
        if not len(words):
            return np.zeros(0)
        rows, starts = self.rows(words)
        shares = np.where(rows[:, 0] == UNSEEN, math.log(self.unseen), 0.0)
        return np.add.reduceat(table.log_probabilities(rows) - shares, starts[:-1])

    def following(self, contexts: Ids, drawn: Ids) -> Ids:
        """Return contexts one character later."""
        return np.column_stack([drawn, contexts])[:, : self.width]

    def unseen_character(self, point: float) -> str:
        """Return one of the unseen characters, chosen by a random number below 1."""
        return chr(self._unseen_point(min(int(point * self.unseen), self.unseen - 1)))

    @cached_property
    def _taken(self) -> npt.NDArray[np.int64]:
        spaces = [ord(each) for each in SPACE]
        surrogates = np.arange(0xD800, 0xE000)
        return np.union1d(self.alphabet.astype(np.int64), np.union1d(spaces, surrogates))

    def _unseen_point(self, index: int) -> int:
        """Return the code point with so many unseen ones before it."""
        free_before = self._taken - np.arange(len(self._taken))
        return index + int(np.searchsorted(free_before, index, side="right"))


def known_words(vocabulary: Vocabulary) -> frozenset[str]:
    """Return the words of a vocabulary, without the symbols that stand for others."""
    marks = WordIds(vocabulary).is_oov[:-1].tolist()
    pairs = zip(vocabulary.symbols, marks, strict=True)
    return frozenset(symbol for symbol, is_oov in pairs if not is_oov)
