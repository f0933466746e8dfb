"""Everything the search needs, as arrays: made by training, kept in the model folder, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.errors import EstimationError
from treelm.estimation.quantize import CodeBits
from treelm.kernel_errors import kernel_errors
from treelm.models.hhmm.bounded import BoundedGrammar
from treelm.models.hhmm.config import HhmmConfig
from treelm.models.hhmm.contexts import NO_CONTEXTS, WordContexts
from treelm.models.hhmm.observation import Observations, SuffixTags
from treelm.models.hhmm.progeny import LeftProgeny, left_progeny
from treelm.models.hhmm.rules import END, TOLERANCE, BinaryRules, Floats
from treelm.pickling import PickledFields
from treelm.store.schema import (
    Tensor,
    ascending_within,
    distribution,
    ids,
    non_negative,
    offsets,
    probabilities,
    read_tensors,
)

#: Values of so many bits are floats, not codes.
_FLOAT_BITS = 32
_PHRASAL = Tensor("phrasal", np.int32, (1,))
_SCHEMA = (
    _PHRASAL,
    Tensor("rules", np.int32, ("rules", 3)),
    Tensor("rule_probabilities", np.float64, ("rules",)),
    Tensor("left", np.float64, ("depth+1", "rules"), non_negative),
    Tensor("right", np.float64, ("depth+1", "rules"), non_negative),
    Tensor("word_start", np.int64, ("words+1",), offsets("entries")),
    Tensor("word_tag", np.int32, ("entries",), ids("end", start="phrases")),
    Tensor("word_value", np.float64, ("entries",), non_negative),
    Tensor("unigram", np.float64, ("words",), distribution),
    Tensor("tag_counts", np.float64, ("end+1",), non_negative),
    Tensor("end_share", np.float64, (1,), probabilities),
    Tensor("fitting_share", np.float64, (1,), non_negative),
)
_SUFFIXES = (
    Tensor("suffix_start", np.int64, ("endings+1",), offsets("guesses")),
    Tensor(
        "suffix_tag",
        np.int32,
        ("guesses",),
        ids("end", start="phrases"),
        ascending_within("suffix_start"),
    ),
    Tensor("suffix_value", np.float64, ("guesses",), probabilities),
)


@dataclass(frozen=True, eq=False)
class HhmmTables(PickledFields):
    """A grammar for each side and depth of the stack, and the words of its tags.

    Args:
        rules: The grammar before it was bounded.
        left: Rule probabilities on left branches, rows by depth.
        right: The same on right branches.
        fitting_share: The probability that a tree of the grammar fits the stack.
        words: The words of each tag.
        suffixes: What tells the tags of unknown words, with ``bayes``.
        contexts: What words before tell; None for nothing.
        tag_power: How much they count for the next tag.
    """

    rules: BinaryRules
    left: Floats
    right: Floats
    fitting_share: float
    words: Observations
    suffixes: SuffixTags | None = None
    contexts: WordContexts | None = None
    tag_power: float = 1.0

    @classmethod
    def of(
        cls,
        bounded: BoundedGrammar,
        words: Observations,
        suffixes: SuffixTags | None = None,
        contexts: WordContexts | None = None,
        tag_power: float = 1.0,
    ) -> HhmmTables:
        """Return the tables of a bounded grammar."""
        share = bounded.fitting_share
        rules = (bounded.rules, bounded.left, bounded.right, share)
        return cls(*rules, words, suffixes, contexts, tag_power)

    @property
    def depth(self) -> int:
        """Elements of the stack."""
        return len(self.left) - 1

    @property
    def code_bits(self) -> CodeBits | None:
        """Bits of the codes in the tables of words before; None for floats."""
        table = self.contexts.table if self.contexts else None
        bits = table.shape.value_bits if table else _FLOAT_BITS
        return cast("CodeBits", bits) if bits < _FLOAT_BITS else None

    @property
    def is_compact(self) -> bool:
        """Whether the tables of words before are compact."""
        table = self.contexts.table if self.contexts else None
        return table is not None and table.shape.compact

    def are_of(self, config: HhmmConfig) -> bool:
        """Return whether these can be the tables of a model with these options."""
        contexts = self.contexts or NO_CONTEXTS
        return (
            self.depth == config.depth
            and (config.observation == "bayes") == (self.suffixes is not None)
            and contexts.lengths == (config.word_context, config.tag_context)
            and (contexts.tags is None or self.tag_power == config.tag_power)
        )

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
        contexts = self.contexts or NO_CONTEXTS
        with kernel_errors("preparing the HHMM"):
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
                word_table=contexts.words.native if contexts.words else None,
                tag_table=contexts.tags.native if contexts.tags else None,
                tag_shares=contexts.tag_shares,
                tag_power=self.tag_power,
            )

    def check(self) -> None:
        """Refuse probabilities that do not add up to 1.

        Raises:
            EstimationError: ``E_GRAMMAR`` or ``E_MODEL_TABLES``.
        """
        rules, words = self.rules, self.words
        rules.check()
        for table in (self.left, self.right):
            for row in table:
                sums = np.bincount(rules.rules[:, 0], row, minlength=rules.phrasal)
                if (np.minimum(np.abs(sums - 1), sums) > TOLERANCE).any():
                    raise _wrong("the probabilities of a category do not add up to 1")
        sums = np.bincount(words.tag, words.value, minlength=len(rules.symbols))
        used = np.bincount(words.tag, minlength=len(rules.symbols)) > 0
        if (np.abs(sums - 1)[used] > TOLERANCE).any():
            raise _wrong("the words of a tag do not add up to 1")

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
        return arrays | (self.contexts.to_tensors() if self.contexts else {})

    @classmethod
    def from_arrays(
        cls,
        tables: Mapping[str, npt.NDArray[Any]],
        symbols: tuple[str, ...],
        endings: tuple[str, ...] | None,
        *,
        config: HhmmConfig,
        words: int,
    ) -> HhmmTables:
        """Return tables from arrays that nobody vouches for.

        Args:
            tables: The arrays.
            symbols: Names of symbols, the end of the sentence last.
            endings: Endings of unknown words, with ``bayes``.
            config: Options of the model.
            words: How many words there are.

        Raises:
            ModelFileError: ``E_MODEL_TABLES`` if they are no tables of this model.
            EstimationError: if they do not fit together.
        """
        if not symbols or symbols[-1] != END or len(set(symbols)) < len(symbols):
            raise _wrong("the symbols do not end with the end of the sentence, or one occurs twice")
        phrasal = int(read_tensors(tables, (_PHRASAL,)).number("phrasal"))
        found = read_tensors(
            tables,
            _SCHEMA if endings is None else (*_SCHEMA, *_SUFFIXES),
            depth=config.depth,
            words=words,
            phrases=phrasal,
            end=len(symbols) - 1,
            endings=len(endings or ()),
        )
        observed = Observations(
            found["word_start"],
            found["word_tag"],
            found["word_value"],
            found["unigram"],
            found["tag_counts"],
            found.number("end_share"),
        )
        suffixes = None
        if endings is not None:
            suffixes = SuffixTags(endings, *(found[item.name] for item in _SUFFIXES))
        made = cls(
            BinaryRules(symbols, phrasal, found["rules"], found["rule_probabilities"]),
            found["left"],
            found["right"],
            found.number("fitting_share"),
            observed,
            suffixes,
            WordContexts.from_tensors(tables, config, tags=len(symbols) - phrasal),
            config.tag_power,
        )
        made.check()
        return made


def _wrong(what: str) -> EstimationError:
    return EstimationError(f"{what}.", code="E_MODEL_TABLES")
