"""Why a tree has its probability: the factors of a treelet model, one by one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from treelm.estimation.backoff_table import NO_ID, BackoffTable, Floats
from treelm.events.counts import Ids
from treelm.events.extract import EventSymbols
from treelm.models.interface.unigrams import unigram_log_probs
from treelm.transforms.unary_chains import TAG_MARK
from treelm.trees.tree import Tree

if TYPE_CHECKING:
    from treelm.models.treelet.model import TreeletModel

#: Two probabilities are the same if their logarithms differ by no more than arithmetic does.
_SAME = 1e-9


@dataclass(frozen=True)
class Factor:
    """One step of the generative story.

    Args:
        kind: Whether the children of a phrase are generated, or a word.
        label: The label above the outcome.
        outcome: The children's labels, or the word.
        log_prob: Natural log of its probability.
        given: The part of the context that was used, names and values: the longest after which this
            outcome was seen in training. Empty if never seen after this label.
        word_log_prob: For words, natural log of the share of this word among all words.
    """

    kind: Literal["phrase", "word"]
    label: str
    outcome: str
    log_prob: float
    given: tuple[tuple[str, str], ...]
    word_log_prob: float | None = None


class TreeletExplainer:
    """Splits the score of a tree into factors.

    Args:
        model: The model that scores.

    Examples:
        >>> from treelm.corpus.sample_treebank import sample_path
        >>> from treelm.models.registry import train
        >>> model = train("treelet", sample_path(), variant="pcfg")
        >>> tree = Tree.from_string("(ROOT (NP (DT the) (NN dog)))")
        >>> for each in model.tree_factors(tree):
        ...     print(each.kind, each.label, "->", each.outcome)
        phrase ROOT -> NP
        phrase NP -> DT NN
        word DT -> the
        word NN -> dog
    """

    def __init__(self, model: TreeletModel) -> None:
        self._model = model
        self._symbols = model.tables.symbols
        self._marked = frozenset(model.config.marked_tags)
        self._word_log_probs = unigram_log_probs(model)

    def factors(self, tree: Tree) -> list[Factor]:
        """Return the factors of a treebank tree, in the order of the generative story."""
        [transformed] = self._model.transform.apply_all([tree])
        words = list(transformed.words)
        return list(self._walk(transformed, self._model.vocabulary.encode(words).tolist()))

    @cached_property
    def _yields(self) -> dict[tuple[int, ...], int]:
        labels, starts = self._symbols.yield_labels.tolist(), self._symbols.yield_starts.tolist()
        return {
            tuple(labels[first:last]): index for index, (first, last) in enumerate(pairwise(starts))
        }

    @cached_property
    def _rules(self) -> dict[tuple[int, int], int]:
        pairs = self._symbols.rules.tolist()
        return {(label, right): index for index, (label, right) in enumerate(pairs)}

    def _text(self, node: Tree) -> str:
        label = str(node.label)
        return label + TAG_MARK if node.is_preterminal and label in self._marked else label

    def _label(self, text: str | None) -> int:
        if text is None:
            return EventSymbols.NO_SIBLING
        return self._symbols.label_ids.get(text, NO_ID)

    def _walk(self, tree: Tree, words: list[int]) -> Iterator[Factor]:
        before = [len(self._model.vocabulary) + 1] * 2  # padding before the first word
        texts = ["<s>", "<s>"]
        place = 0
        # Node, label and rule above it, the sibling to its right.
        waiting: list[tuple[Tree, tuple[int, str], tuple[int, str], str | None]] = [
            (tree, (EventSymbols.TOP, "<top>"), (EventSymbols.TOP_RULE, "<top>"), None)
        ]
        while waiting:
            node, above, rule, right = waiting.pop()
            label = self._text(node)
            own = self._label(label)
            if node.word is not None:
                context = [own, self._label(right), rule[0], *before]
                shown = [label, right or "<none>", rule[1], *texts]
                yield self._word(node.word, words[place], context, shown)
                before, texts = [words[place], before[0]], [node.word, texts[0]]
                place += 1
                continue
            children = [self._text(child) for child in node.children]
            outcome = self._yields.get(tuple(map(self._label, children)), NO_ID)
            yield self._phrase(
                children, outcome, [own, above[0], rule[0]], [label, above[1], rule[1]]
            )
            inner = (self._rules.get((own, outcome), NO_ID), f"{label} -> {' '.join(children)}")
            rights = [*children[1:], None]
            waiting.extend(
                reversed(
                    [
                        (child, (own, label), inner, sibling)
                        for child, sibling in zip(node.children, rights, strict=True)
                    ]
                )
            )

    def _phrase(
        self, children: list[str], outcome: int, context: list[int], shown: list[str]
    ) -> Factor:
        table = self._model.tables.nonterminal
        row = np.array([[outcome, *context[: table.context_columns]]], dtype=np.uint32)
        found = -math.inf
        if outcome != NO_ID:
            found = float(table.log_probabilities(row, base=np.zeros(1))[0])
        used = 0
        if math.isfinite(found):
            used = _columns_used(table, row, np.zeros(1))
        else:
            labels = [self._label(child) for child in children]
            base = self._model.tables.base.log_probability(context[0], labels)
            found = float(table.log_probabilities(row, base=np.ones(1))[0]) + base
        names = self._model.config.nonterminal_template.context
        given = tuple(zip(names, shown, strict=False))[:used]
        return Factor("phrase", shown[0], " ".join(children), found, given)

    def _word(self, word: str, outcome: int, context: list[int], shown: list[str]) -> Factor:
        table = self._model.tables.terminal
        row = np.array([[outcome, *context[: table.context_columns]]], dtype=np.uint32)
        names = self._model.config.terminal_template.context
        return Factor(
            "word",
            shown[0],
            word,
            float(table.log_probabilities(row)[0]),
            tuple(zip(names, shown, strict=False))[: _columns_used(table, row, None)],
            float(self._word_log_probs[outcome]),
        )


def _columns_used(table: BackoffTable, row: Ids, base: Floats | None) -> int:
    """Return the number of context columns of the longest level that has seen the outcome."""
    for level, width in enumerate(table.widths[:-1]):
        own, lower = (
            float(table.log_probabilities(row, level=each, base=base)[0])
            for each in (level, level + 1)
        )
        weight = float(table.backoff_weights(row[:, 1:], level=level)[0])
        if weight <= 0 or own > lower + math.log(weight) + _SAME:
            return width
    return table.widths[-1]


def factor_lines(factors: Iterable[tuple[int, Factor]]) -> Iterator[str]:
    """Yield the lines of a table with a row for each factor, and the number of its tree."""
    yield "tree\tkind\tlabel\toutcome\tlog_prob\tword_log_prob\tgiven"
    for number, factor in factors:
        alone = "" if factor.word_log_prob is None else f"{factor.word_log_prob:.6f}"
        given = ", ".join(f"{name}={value}" for name, value in factor.given)
        columns = (str(number), factor.kind, factor.label, factor.outcome)
        yield "\t".join((*columns, f"{factor.log_prob:.6f}", alone, given))
