"""Everything the search needs, as arrays: made by training, kept in the model folder, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.errors import EstimationError, ModelFileError
from treelm.kernel_errors import kernel_errors
from treelm.models.hhmm.bounded import BoundedGrammar
from treelm.models.hhmm.observation import Observations, SuffixTags
from treelm.models.hhmm.progeny import LeftProgeny, left_progeny
from treelm.models.hhmm.rules import END, TOLERANCE, BinaryRules, Floats

_KINDS: dict[str, type[np.generic]] = {
    "rules": np.int32,
    "rule_probabilities": np.float64,
    "left": np.float64,
    "right": np.float64,
    "word_start": np.int64,
    "word_tag": np.int32,
    "word_value": np.float64,
    "unigram": np.float64,
    "tag_counts": np.float64,
    "end_share": np.float64,
    "phrasal": np.int32,
    "fitting_share": np.float64,
}
_SUFFIX_KINDS: dict[str, type[np.generic]] = {
    "suffix_start": np.int64,
    "suffix_tag": np.int32,
    "suffix_value": np.float64,
}


@dataclass(frozen=True, eq=False)
class StoreTables:
    """A grammar for each side and depth of the store, and the words of its tags.

    Args:
        rules: The grammar before it was bounded.
        left: Rule probabilities on left branches, rows by depth.
        right: The same on right branches.
        fitting_share: The probability that a tree of the grammar fits the store.
        words: The words of each tag.
        suffixes: What tells the tags of unknown words, with ``bayes``.
    """

    rules: BinaryRules
    left: Floats
    right: Floats
    fitting_share: float
    words: Observations
    suffixes: SuffixTags | None = None

    @classmethod
    def of(
        cls, bounded: BoundedGrammar, words: Observations, suffixes: SuffixTags | None = None
    ) -> StoreTables:
        """Return the tables of a bounded grammar."""
        share = bounded.fitting_share
        return cls(bounded.rules, bounded.left, bounded.right, share, words, suffixes)

    def __getstate__(self) -> dict[str, object]:
        # What is derived holds kernel objects, which cannot be pickled, and is made anew.
        return {item.name: self.__dict__[item.name] for item in fields(self)}

    @property
    def depth(self) -> int:
        """Elements of the store."""
        return len(self.left) - 1

    @cached_property
    def progeny(self) -> LeftProgeny:
        """Expected left progeny."""
        nothing = np.zeros((0, 0))
        bounded = BoundedGrammar(self.rules, self.depth, self.left, self.right, nothing, nothing)
        return left_progeny(bounded)

    @cached_property
    def grammar(self) -> _native.HhmmGrammar:
        """The tables as the kernel takes them."""
        progeny = self.progeny
        with kernel_errors("preparing the store model"):
            return _native.HhmmGrammar(
                symbols=len(self.rules.symbols),
                phrasal=self.rules.phrasal,
                end=self.rules.end,
                depth=self.depth,
                rules=self.rules.rules,
                left=self.left,
                right=self.right,
                row_of=progeny.row_of,
                row_start=progeny.row_start,
                row_symbol=progeny.symbol,
                row_value=progeny.value,
                word_start=self.words.start,
                word_tag=self.words.tag,
                word_value=self.words.value,
                unigram=self.words.unigram,
                end_share=self.words.end_share,
            )

    def check(self, vocabulary_size: int) -> None:
        """Refuse tables that do not fit together.

        Raises:
            EstimationError: ``E_GRAMMAR`` or ``E_MODEL_TABLES``.
        """
        rules = self.rules
        rules.check()
        shape = (self.depth + 1, len(rules.rules))
        parent = rules.rules[:, 0]
        for table in (self.left, self.right):
            if table.shape != shape or not (np.isfinite(table) & (table >= 0)).all():
                raise _wrong("the probabilities of rules are missing or no probabilities")
            for row in table:
                sums = np.bincount(parent, row, minlength=rules.phrasal)
                if (np.minimum(np.abs(sums - 1), sums) > TOLERANCE).any():
                    raise _wrong("the probabilities of a category do not add up to 1")
        self._check_words(vocabulary_size)

    def _check_words(self, vocabulary_size: int) -> None:
        words = self.words
        starts, size = words.start, len(words.tag)
        if starts.shape != (vocabulary_size + 1,) or words.unigram.shape != (vocabulary_size,):
            raise _wrong("there is not one entry for each word")
        if starts[0] != 0 or starts[-1] != size or (np.diff(starts) < 0).any():
            raise _wrong("the tags of words are out of order")
        tags = words.tag
        if (
            words.value.shape != (size,)
            or not (np.isfinite(words.value) & (words.value >= 0)).all()
        ):
            raise _wrong("the probabilities of words are missing or no probabilities")
        if size and not (self.rules.phrasal <= tags.min() and tags.max() < self.rules.end):
            raise _wrong("a word has something that is no tag")
        sums = np.bincount(tags, words.value, minlength=len(self.rules.symbols))
        used = np.bincount(tags, minlength=len(self.rules.symbols)) > 0
        if (np.abs(sums - 1)[used] > TOLERANCE).any():
            raise _wrong("the words of a tag do not add up to 1")
        if not (abs(float(words.unigram.sum()) - 1) <= TOLERANCE and (words.unigram >= 0).all()):
            raise _wrong("the frequencies of words do not add up to 1")
        counts = words.tag_counts
        if counts.shape != (len(self.rules.symbols),) or not (counts >= 0).all():
            raise _wrong("the counts of tags are missing or no counts")
        if not 0 <= words.end_share <= 1:
            raise _wrong("the share of sentence ends is no probability")

    # -- files ------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays by name; symbols and endings are text and not among them."""
        arrays: dict[str, npt.NDArray[Any]] = {
            "rules": self.rules.rules,
            "rule_probabilities": self.rules.probabilities,
            "left": self.left,
            "right": self.right,
            "word_start": self.words.start,
            "word_tag": self.words.tag,
            "word_value": self.words.value,
            "unigram": self.words.unigram,
            "tag_counts": self.words.tag_counts,
            "end_share": np.array([self.words.end_share]),
            "phrasal": np.array([self.rules.phrasal], np.int32),
            "fitting_share": np.array([self.fitting_share]),
        }
        if self.suffixes is not None:
            arrays["suffix_start"] = self.suffixes.start
            arrays["suffix_tag"] = self.suffixes.tag
            arrays["suffix_value"] = self.suffixes.value
        return arrays

    @classmethod
    def from_arrays(
        cls,
        tables: Mapping[str, npt.NDArray[Any]],
        symbols: tuple[str, ...],
        endings: tuple[str, ...] | None,
        vocabulary_size: int,
    ) -> StoreTables:
        """Return tables from arrays that nobody vouches for.

        Raises:
            ModelFileError: ``E_MODEL_TABLES`` if they are no tables of this model.
            EstimationError: if they do not fit together.
        """

        def array(name: str, kind: type[np.generic], dimensions: int = 1) -> npt.NDArray[Any]:
            found = tables.get(name)
            if found is None or found.dtype != kind or found.ndim != dimensions:
                raise ModelFileError(
                    f'the table "{name}" is missing or of another kind', code="E_MODEL_TABLES"
                )
            return found

        two = {"rules", "left", "right"}
        parts = {name: array(name, kind, 1 + (name in two)) for name, kind in _KINDS.items()}
        numbers = {name: parts[name] for name in ("end_share", "phrasal", "fitting_share")}
        if any(each.shape != (1,) for each in numbers.values()) or not symbols:
            raise _wrong("a single number is none")
        if symbols[-1] != END or len(set(symbols)) < len(symbols) or parts["rules"].shape[1] != 3:
            raise _wrong("the symbols do not end with the end of the sentence")
        if len(parts["left"]) < 2 or parts["left"].shape != parts["right"].shape:
            raise _wrong("the probabilities of rules are missing")
        rules = BinaryRules(
            symbols, int(numbers["phrasal"][0]), parts["rules"], parts["rule_probabilities"]
        )
        if len(rules.probabilities) != len(rules.rules):
            raise _wrong("the probabilities of rules are missing")
        words = Observations(
            parts["word_start"],
            parts["word_tag"],
            parts["word_value"],
            parts["unigram"],
            parts["tag_counts"],
            float(numbers["end_share"][0]),
        )
        suffixes = None
        if endings is not None:
            found = [array(name, kind) for name, kind in _SUFFIX_KINDS.items()]
            suffixes = _checked_suffixes(SuffixTags(endings, *found), rules)
        share = float(numbers["fitting_share"][0])
        made = cls(rules, parts["left"], parts["right"], share, words, suffixes)
        made.check(vocabulary_size)
        return made


def _checked_suffixes(suffixes: SuffixTags, rules: BinaryRules) -> SuffixTags:
    starts, tags, values = suffixes.start, suffixes.tag, suffixes.value
    if (
        starts.shape != (len(suffixes.endings) + 1,)
        or starts[0] != 0
        or starts[-1] != len(tags)
        or (np.diff(starts) < 0).any()
        or values.shape != tags.shape
        or not ((values >= 0) & (values <= 1)).all()
        or (len(tags) and not (rules.phrasal <= tags.min() and tags.max() < rules.end))
    ):
        raise _wrong("the endings of unknown words do not fit the tags")
    inside = np.ones(len(tags), np.bool_)
    inside[starts[:-1][np.diff(starts) > 0]] = False
    if (np.diff(tags, prepend=-1)[inside] <= 0).any():
        raise _wrong("the tags of an ending are out of order")
    return suffixes


def _wrong(what: str) -> EstimationError:
    return EstimationError(f"{what}.", code="E_MODEL_TABLES")
