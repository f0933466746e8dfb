"""Words as the tokens of a subword tokenizer, and which tokens begin a word."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm.characters import visible
from treelm.corpus.vocabulary import RESERVED, Vocabulary
from treelm.corpus.words import split_words
from treelm.errors import ModelFileError, VocabularyError

#: What tokens that begin a word start with: byte-level BPE, SentencePiece, and plain text.
_MARKS = ("Ġ", "▁", " ")
#: What tokens that continue a word start with, where beginnings have no mark.
_CONTINUED = "##"
_CACHED_WORDS = 1 << 16


class WordPieces:
    """What a tokenizer makes of the words of a sentence, one after the other.

    Args:
        tokenizer: A tokenizer of transformers.
        size: Number of tokens that the model predicts; perhaps more than the tokenizer has.

    Raises:
        ModelFileError: if it has no token for the end of a text.
    """

    def __init__(self, tokenizer: Any, size: int) -> None:
        self._tokenizer = tokenizer
        end = tokenizer.eos_token_id
        start = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else end
        if end is None or start is None:
            raise ModelFileError(
                "the tokenizer has no token for the end of a text, so that the model cannot say "
                "where a sentence ends. Set its eos_token."
            )
        self.start: int = start
        self.end: int = end
        names = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
        special = set(tokenizer.all_special_ids)
        is_marked = [name is not None and name.startswith(_MARKS) for name in names]
        has_marks = any(is_marked)
        first = tokenizer.encode("a", add_special_tokens=False)
        #: Whether the first word of a text begins like all others.
        self._marks_first = not has_marks or (bool(first) and is_marked[first[0]])
        begins = np.zeros(size, dtype=np.bool_)
        begins_text = np.zeros(size, dtype=np.bool_)
        for number, name in enumerate(names[:size]):
            if number in special or name is None:
                continue
            begins[number] = is_marked[number] if has_marks else not name.startswith(_CONTINUED)
            begins_text[number] = begins[number] == self._marks_first
        begins[end] = begins_text[end] = True
        #: By token: whether it begins a word, or ends the text.
        self.begins_word: npt.NDArray[np.bool_] = begins
        #: The same for the first token of a text.
        self.begins_text: npt.NDArray[np.bool_] = begins_text
        self._names = [
            name if name is not None and number not in special and begins[number] else None
            for number, name in enumerate(names[:size])
        ]
        self._cached = lru_cache(_CACHED_WORDS)(self._encoded)

    def word(self, word: str, *, first: bool) -> tuple[int, ...]:
        """Return the tokens of a word.

        Args:
            word: The word.
            first: Whether it is the first of its sentence.

        Raises:
            VocabularyError: ``E_BAD_TOKEN`` if the tokenizer makes nothing of it, or if it is none.
        """
        return self._cached(word, first)

    def _encoded(self, word: str, first: bool) -> tuple[int, ...]:  # noqa: FBT001  # of a cache
        if word in RESERVED and word != "<unk>":
            raise VocabularyError(
                f'"{word}" marks a sentence boundary and cannot be a word of the text.',
                code="E_RESERVED_SYMBOL",
            )
        if split_words(word) != (word,):
            raise VocabularyError(f'"{visible(word)}" is not a word.', code="E_BAD_TOKEN")
        spaced = word if first or self._marks_first else f" {word}"
        found = tuple(self._tokenizer.encode(spaced, add_special_tokens=False))
        if not found:
            raise VocabularyError(
                f'the tokenizer makes nothing of the word "{visible(word)}".', code="E_BAD_TOKEN"
            )
        return found

    def vocabulary(self) -> Vocabulary:
        """Return the words that are one token; all others are spelled by several."""
        found: dict[str, int] = {}
        for name in self._names:
            if name is None:
                continue
            word = self._tokenizer.convert_tokens_to_string([name]).strip()
            if word and split_words(word) == (word,) and word not in RESERVED:
                found.setdefault(word, 0)
        return Vocabulary.from_counts(found, source={"tokenizer": type(self._tokenizer).__name__})
