"""The two grammars of the paper: read from a treebank, or any tree over the tags of the words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
import numpy.typing as npt

from treelm.corpus.unknown_words import UNKNOWN, Signatures
from treelm.errors import EstimationError
from treelm.models.lsvm.config import LatentSvmConfig
from treelm.transforms.markovize import markovize
from treelm.trees.heads import find_heads_all
from treelm.trees.profile import ProfileSource
from treelm.trees.tree import Tree

Ids = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

#: Tags of more word types than this are possible for a word unlike all others.
OPEN_TYPES = 50
ROOT = "ROOT"


@dataclass(frozen=True, eq=False)
class LatentGrammar:
    """Productions; features are numbered rules, tops, words, classes, in that order.

    Args:
        symbols: Labels, sorted.
        rules: Rows (A, B, C), sorted by their strings.
        tops: Symbols that may be below ROOT, ascending.
        words: Words of the treebank, sorted.
        classes: Classes of words that are not in it, sorted; the unknown class is among them.
        word_tags: Rows (tag, word), by word and tag.
        class_tags: Rows (tag, class), by class and tag.
        frequencies: Log relative frequency of every feature; zeros where the grammar has none.
    """

    symbols: tuple[str, ...]
    rules: Ids
    tops: Ids
    words: tuple[str, ...]
    classes: tuple[str, ...]
    word_tags: Ids
    class_tags: Ids
    frequencies: Floats

    @property
    def features(self) -> int:
        """Number of its productions."""
        return len(self.rules) + len(self.tops) + len(self.word_tags) + len(self.class_tags)

    @property
    def first_word(self) -> int:
        """Number of the first feature of a word."""
        return len(self.rules) + len(self.tops)

    @property
    def first_class(self) -> int:
        """Number of the first feature of a class."""
        return self.first_word + len(self.word_tags)


def read_grammar(
    trees: Iterable[Tree], config: LatentSvmConfig, profile: ProfileSource = "english"
) -> LatentGrammar:
    """Return the grammar that the options specify.

    Raises:
        EstimationError: ``E_NO_DATA`` without trees, ``E_UNARY`` for a unary production that is
            not below ROOT.
    """
    if config.grammar == "uninformed":
        return _uninformed(trees, profile)
    return _treebank(trees, config, profile)


def _with_one_top(tree: Tree) -> Tree:
    """Return the tree with one child below ROOT: several are joined by FRAG."""
    if len(tree.children) == 1:
        return tree
    return Tree(tree.label, [Tree("FRAG", tree.children)])


def markovized(trees: Iterable[Tree], config: LatentSvmConfig) -> Iterator[Tree]:
    """Yield trees in the form of the treebank grammar."""
    topped = (_with_one_top(tree) for tree in trees)
    for tree in find_heads_all(topped):
        yield markovize(
            tree,
            horizontal_order=config.horizontal_order,
            vertical_order=config.vertical_order,
        )


def _treebank(
    trees: Iterable[Tree], config: LatentSvmConfig, profile: ProfileSource
) -> LatentGrammar:
    rules: Counter[tuple[str, str, str]] = Counter()
    tops: Counter[str] = Counter()
    tagged: Counter[tuple[str, str]] = Counter()
    for tree in markovized(trees, config):
        if str(tree.label) != ROOT or len(tree.children) != 1:
            raise _no_root(tree)
        tops[str(tree.children[0].label)] += 1
        for node in tree.children[0].preorder():
            if node.word is not None:
                tagged[str(node.label), node.word] += 1
            elif len(node.children) == 2:
                left, right = node.children
                rules[str(node.label), str(left.label), str(right.label)] += 1
            else:
                raise EstimationError(
                    f'"{node.label}" has {len(node.children)} children; only ROOT may have '
                    "one child, and none more than two. Is ROOT inside a tree?",
                    code="E_UNARY",
                )
    return assemble(rules, tops, tagged, profile)


def _no_root(tree: Tree) -> EstimationError:
    return EstimationError(f'a tree has "{tree.label}" at its top, not {ROOT}.', code="E_UNARY")


def _uninformed(trees: Iterable[Tree], profile: ProfileSource) -> LatentGrammar:
    tagged: Counter[tuple[str, str]] = Counter()
    for tree in trees:
        for node in tree.preorder():
            if node.word is not None:
                tagged[str(node.label), node.word] += 1
    tags = sorted({tag for tag, _ in tagged})
    everything = [*tags, *(f"{tag}'" for tag in tags)]
    rules: Counter[tuple[str, str, str]] = Counter()
    for tag in tags:
        for other in everything:
            for child in (tag, f"{tag}'"):
                rules[f"{tag}'", child, other] = 1
                rules[f"{tag}'", other, child] = 1
    grammar = assemble(rules, Counter(everything), tagged, profile)
    return LatentGrammar(
        grammar.symbols,
        grammar.rules,
        grammar.tops,
        grammar.words,
        grammar.classes,
        grammar.word_tags,
        grammar.class_tags,
        np.zeros(grammar.features),
    )


def assemble(
    rules: Counter[tuple[str, str, str]],
    tops: Counter[str],
    tagged: Counter[tuple[str, str]],
    profile: ProfileSource,
) -> LatentGrammar:
    """Return the grammar of counted productions, with the classes of words seen once."""
    if not tagged or not tops:
        raise EstimationError("there are no trees to read a grammar from.", code="E_NO_DATA")
    tagged = Counter({pair: count for pair, count in tagged.items() if pair[1] != UNKNOWN})
    classes = class_counts(tagged, profile)
    labels = {tag for tag, _ in tagged} | set(tops)
    labels.update(label for rule in rules for label in rule)
    symbols = tuple(sorted(labels))
    ids = {symbol: number for number, symbol in enumerate(symbols)}
    listed = sorted(rules, key=lambda rule: f"{rule[0]} -> {rule[1]} {rule[2]}")
    words = tuple(sorted({word for _, word in tagged}))
    names = tuple(sorted({name for _, name in classes}))
    top_ids = sorted(ids[top] for top in tops)
    word_rows = sorted((word, ids[tag], tag) for tag, word in tagged)
    class_rows = sorted((name, ids[tag], tag) for tag, name in classes)
    totals: Counter[str] = Counter()
    for rule, count in rules.items():
        totals[rule[0]] += count
    for pairs in (tagged, classes):
        for (tag, _), count in pairs.items():
            totals[tag] += count
    all_tops = sum(tops.values())
    values = [log(rules[rule] / totals[rule[0]]) for rule in listed]
    values += [log(tops[symbols[top]] / all_tops) for top in top_ids]
    values += [log(tagged[tag, word] / totals[tag]) for word, _, tag in word_rows]
    values += [log(classes[tag, name] / totals[tag]) for name, _, tag in class_rows]
    place = {word: number for number, word in enumerate(words)}
    class_place = {name: number for number, name in enumerate(names)}
    return LatentGrammar(
        symbols,
        np.array([[ids[label] for label in rule] for rule in listed], np.int32).reshape(-1, 3),
        np.array(top_ids, np.int32),
        words,
        names,
        _rows([(tag, place[word]) for word, tag, _ in word_rows]),
        _rows([(tag, class_place[name]) for name, tag, _ in class_rows]),
        np.array(values),
    )


def _rows(pairs: Sequence[tuple[int, int]]) -> Ids:
    return np.array(pairs, np.int32).reshape(-1, 2)


def class_counts(
    tagged: Counter[tuple[str, str]], profile: ProfileSource
) -> Counter[tuple[str, str]]:
    """Return how often each tag has a word of each class, counted on words seen once."""
    signatures = Signatures(profile)
    frequency: Counter[str] = Counter()
    types: defaultdict[str, set[str]] = defaultdict(set)
    for (tag, word), count in tagged.items():
        frequency[word] += count
        types[tag].add(word)
    counts: Counter[tuple[str, str]] = Counter()
    for tag, word in tagged:
        if frequency[word] == 1:
            counts[tag, signatures(word, 1)] += 1
    open_tags = [tag for tag, words in types.items() if len(words) > OPEN_TYPES]
    for tag in open_tags or sorted({tag for tag, _ in counts}):
        counts[tag, UNKNOWN] += 1
    if not counts:  # no word was seen once: an unknown word may have any tag
        counts.update((tag, UNKNOWN) for tag in types)
    return counts
