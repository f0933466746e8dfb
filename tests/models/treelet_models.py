"""Small treelet and headlex models, and the slow reference of the first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.reference import backoff as reference

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.sample_treebank import sample_path
from treelm.models.headlex.config import HeadlexConfig
from treelm.models.headlex.events import KINDS, HeadlexCounts
from treelm.models.headlex.model import HeadlexModel
from treelm.models.headlex.train import train_headlex
from treelm.models.treelet.config import WIDTHS, TreeletConfig
from treelm.models.treelet.model import TreeletModel
from treelm.models.treelet.train import train_treelet
from treelm.trees.tree import Tree

#: The trees of backoff-estimation.md 7.4.
TWO_TREES = ("(ROOT (S (N dogs) (V bark)))", "(ROOT (S (N cats) (V bark)))")


def trees_of(texts: Iterable[str]) -> list[Tree]:
    return [Tree.from_string(text) for text in texts]


def corpus_of(folder: Path, trees: Iterable[object], **options: Any) -> TreeCorpus:
    path = folder / "trees.mrg"
    path.write_text("".join(f"{tree}\n" for tree in trees))
    return TreeCorpus((path,), **options)


def sample_trees(count: int | None = None) -> list[Tree]:
    return list(TreeCorpus((sample_path(),)))[:count]


def small_treelet(
    folder: Path, trees: Iterable[object] | None = None, **options: Any
) -> TreeletModel:
    corpus = corpus_of(folder, sample_trees(60) if trees is None else trees)
    # The trees have lost their function tags, so there are no temporal nouns to find.
    return train_treelet(corpus, TreeletConfig(**{"temporal": (), **options}))


def small_headlex(
    folder: Path, trees: Iterable[object] | None = None, **options: Any
) -> HeadlexModel:
    corpus = corpus_of(folder, sample_trees(60) if trees is None else trees)
    return train_headlex(corpus, HeadlexConfig(**options))


def two_trees(folder: Path) -> TreeletModel:
    return small_treelet(
        folder, TWO_TREES, transforms=(), discount=0.5, unknown_symbol=False, precision="double"
    )


def nested(tree: Tree) -> reference.Tree:
    if tree.word is not None:
        return (str(tree.label), tree.word)
    return (str(tree.label), *(nested(child) for child in tree.children))


class ReferenceTreelet:
    """treelet.md over dictionaries and fractions."""

    def __init__(
        self, trees: Sequence[Tree], variant: str, words: Iterable[str], discount: Fraction
    ) -> None:
        self.widths = WIDTHS[variant]
        given = [nested(tree) for tree in trees]

        def half(events: Any, chain: Any, base: Any) -> reference.CountModel:
            fixed = [discount] * len(chain.levels)
            return reference.fixed_discounts(events, chain, base, fixed)

        self.base = reference.YieldBase(reference.tree_rules(given), half)
        phrases, tags = reference.nonterminal_chain(), reference.terminal_chain()
        self.phrases = half(
            self._cut(reference.nonterminal_events(given), self.widths[0]),
            reference.Chain(phrases.levels[3 - self.widths[0] :]),
            self.base,
        )
        self.words = half(
            self._cut(reference.terminal_events(given), self.widths[1]),
            reference.Chain(
                tags.levels[5 - self.widths[1] :],
                {at: pad for at, pad in tags.pads.items() if at < self.widths[1]},
            ),
            reference.UniformBase({*words, reference.UNKNOWN}),
        )

    @staticmethod
    def _cut(events: Iterable[Any], width: int) -> list[Any]:
        return [(context[:width], outcome) for context, outcome in events]

    def log_prob(self, tree: Tree) -> float:
        total = 0.0
        for event in reference.treelet_events(nested(tree)):
            model, width = (
                (self.phrases, self.widths[0])
                if event.kind == "N"
                else (self.words, self.widths[1])
            )
            total += math.log(model.probability(event.context[:width], event.outcome))
        return total


def event_texts(counts: HeadlexCounts, kind: str) -> list[str]:
    """Return the events of a kind in words, each as often as it was counted."""
    words = (*counts.vocabulary.symbols, "<none>")
    names = ("word" if kind.endswith("word") else "label", *KINDS[kind][0])

    def text(name: str, value: int) -> str:
        if name == "side":
            return "LR"[value]
        return words[value] if "word" in name else counts.labels[value]

    found = []
    for row, count in zip(
        counts.events[kind].rows.tolist(), counts.events[kind].counts, strict=True
    ):
        first, *rest = (text(name, value) for name, value in zip(names, row, strict=True))
        found += [f"{first}|{' '.join(rest)}"] * int(count)
    return found


def head_events(tree: Tree) -> list[tuple[str, tuple[object, ...], str]]:
    """Return (kind, context, outcome) of everything that headlex draws, as treelet.md 5 says."""
    events: list[tuple[str, tuple[object, ...], str]] = []

    def head_word(node: Tree) -> str:
        return node.word if node.word is not None else head_word(node.children[node.head or 0])

    def visit(node: Tree, *, top: bool) -> None:
        if node.word is not None:
            return
        label, children = str(node.label), node.children
        place = node.head or 0
        own, h = str(children[place].label), head_word(node)
        if top:
            events.append(("top_label", (label,), own))
            events.append(("top_word", (own,), h))
        else:
            events.append(("head_label", (label, h), own))
        for side, part in (("L", children[:place][::-1]), ("R", children[place + 1 :])):
            before: tuple[str, str] = ("START", "<none>")
            for child in part:
                symbol, word = str(child.label), head_word(child)
                given = (label, own, side, h, *before)
                events.append(("modifier", given, symbol))
                events.append(("word", (symbol, *given), word))
                before = (symbol, word)
            events.append(("modifier", (label, own, side, h, *before), "STOP"))
        for child in children:
            visit(child, top=False)

    visit(tree, top=True)
    return events
