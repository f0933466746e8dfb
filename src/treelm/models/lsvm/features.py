"""Sentences of a latent grammar: tags of words, best trees, counts of productions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.unknown_words import UNKNOWN, Signatures
from treelm.kernel_errors import kernel_errors
from treelm.models.lsvm.grammar import Floats, Ids, LatentGrammar
from treelm.models.run import QUIET, Run
from treelm.parallel.progress import Progress, kernel_report, shared_step
from treelm.trees.profile import ProfileSource, load_profile

Places = npt.NDArray[np.int64]
#: A lexical node: its tag, its feature, and the feature of the word itself or -1.
Entry = tuple[int, int, int]

_NO_RULE = 0xFFFFFFFF
#: Number of sentences that a worker parses at a time.
SENTENCES_A_SHARD = 128


@dataclass(frozen=True, eq=False)
class FeatureVectors:
    """Counts of features, row after row.

    Args:
        starts: Where each row begins, and their number at the end.
        features: Numbers of features, ascending within a row.
        counts: How often each occurs.
    """

    starts: Places
    features: Ids
    counts: Floats

    def __len__(self) -> int:
        return len(self.starts) - 1

    def key(self, row: int) -> bytes:
        """Return bytes that are equal only for equal rows."""
        part = slice(self.starts[row], self.starts[row + 1])
        return self.features[part].tobytes() + b"|" + self.counts[part].tobytes()

    def take(self, rows: Places) -> FeatureVectors:
        """Return some rows, in the order given."""
        sizes = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        index = np.repeat(self.starts[rows] - starts[:-1], sizes) + np.arange(starts[-1])
        return FeatureVectors(starts, self.features[index], self.counts[index])

    def times(self, weights: Floats) -> Floats:
        """Return the weighted sum of every row."""
        rows = np.repeat(np.arange(len(self)), np.diff(self.starts))
        values = self.counts * weights[self.features]
        sums: Floats = np.bincount(rows, values, len(self)).astype(np.float64)
        return sums


def joined(parts: Sequence[FeatureVectors]) -> FeatureVectors:
    """Return the rows of several, one after the other."""
    sizes = np.concatenate([np.diff(part.starts) for part in parts])
    return FeatureVectors(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.counts for part in parts]),
    )


@dataclass(frozen=True, eq=False)
class Parses:
    """Best trees of sentences; those without a tree have the score minus infinity.

    Args:
        scores: Score of each.
        starts: First node of each tree.
        symbols: Labels of nodes, in preorder.
        rules: Rules of nodes; all ones at tags.
        is_second: Which sentences needed the second lexicon.
    """

    scores: Floats
    starts: Places
    symbols: npt.NDArray[np.uint32]
    rules: npt.NDArray[np.uint32]
    is_second: npt.NDArray[np.bool_]


class _Tagged(NamedTuple):
    """The words of sentences with their tags, as the kernel takes them."""

    tags: Ids
    tag_weights: Floats
    tag_starts: Places
    sentence_starts: Places

    def parts(self, size: int) -> Iterator[_Tagged]:
        """Yield so many sentences at a time; one part without any if there are none."""
        count = len(self.sentence_starts) - 1
        for first in range(0, max(1, count), max(1, size)):
            sentences = self.sentence_starts[first : first + max(1, size) + 1]
            words = self.tag_starts[int(sentences[0]) : int(sentences[-1]) + 1]
            own = slice(int(words[0]), int(words[-1]))
            yield _Tagged(
                self.tags[own],
                self.tag_weights[own],
                words - words[0],
                sentences - sentences[0],
            )


@dataclass(frozen=True, eq=False)
class _BestTrees:
    """Parses some sentences.

    Args:
        symbols: Number of labels.
        rules: Productions.
        weights: Weight of each.
        tops: Weight of each label at the top.
        threads: Number of threads.
        progress: Progress callback.
    """

    symbols: int
    rules: Ids
    weights: Floats
    tops: Floats
    threads: int
    progress: Progress

    def __call__(self, shard: _Tagged) -> _Trees:
        with (
            self.progress.step("parsing", unit="sentences") as step,
            kernel_errors("parsing sentences"),
        ):
            scores, _, starts, symbols, rules = _native.best_weighted_trees(
                symbols=self.symbols,
                rules=self.rules,
                weights=self.weights,
                root_weights=self.tops,
                tags=shard.tags,
                tag_weights=shard.tag_weights,
                tag_starts=shard.tag_starts,
                sentence_starts=shard.sentence_starts,
                threads=self.threads,
                progress=kernel_report(step),
            )
        return _Trees(scores, starts, symbols, rules)


class _Trees(NamedTuple):
    """The best trees of some sentences."""

    scores: Floats
    starts: Places
    symbols: npt.NDArray[np.uint32]
    rules: npt.NDArray[np.uint32]


def _in_order(parts: Sequence[Parses]) -> Parses:
    """Return the trees of sentences that stand one after the other."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.concatenate([np.diff(part.starts) for part in parts])
    return Parses(
        np.concatenate([part.scores for part in parts]),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([part.symbols for part in parts]),
        np.concatenate([part.rules for part in parts]),
        np.concatenate([part.is_second for part in parts]),
    )


class LatentFeatures:
    """Productions of a grammar and the words that training has added to it.

    Args:
        grammar: The productions.
        added: Pairs of a tag and a word outside the treebank, in the order of their features.
        profile: Language profile of the classes.
    """

    def __init__(
        self,
        grammar: LatentGrammar,
        added: Sequence[tuple[int, str]] = (),
        profile: ProfileSource = "english",
    ) -> None:
        self.grammar = grammar
        self.profile = profile
        self.added = list(added)
        self._added = {pair: grammar.features + place for place, pair in enumerate(self.added)}
        self._signatures = Signatures(profile)
        self._words = self._tags_of(grammar.words, grammar.word_tags, grammar.first_word)
        self._classes = self._tags_of(grammar.classes, grammar.class_tags, grammar.first_class)
        self._top_features = np.full(len(grammar.symbols), -1, np.int64)
        self._top_features[grammar.tops] = np.arange(len(grammar.tops)) + len(grammar.rules)

    @staticmethod
    def _tags_of(names: Sequence[str], rows: Ids, first: int) -> dict[str, list[tuple[int, int]]]:
        found: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for place, (tag, name) in enumerate(rows.tolist()):
            found[names[name]].append((tag, first + place))
        return dict(found)

    def __reduce__(self) -> tuple[object, ...]:
        profile = load_profile(self.profile).to_config()
        return type(self), (self.grammar, self.added, profile)

    def __len__(self) -> int:
        return self.grammar.features + len(self.added)

    def knows(self, word: str) -> bool:
        """Return whether a word occurs in the treebank."""
        return word in self._words

    def _class_tags(self, word: str) -> list[tuple[int, int]]:
        return self._classes.get(self._signatures(word, 1)) or self._classes.get(UNKNOWN, [])

    def entries(self, word: str, *, second: bool = False) -> list[Entry]:
        """Return the tags of a word with the features that fire.

        Args:
            word: The word.
            second: Whether a word of the treebank may also have the tags of its class.
        """
        own = self._words.get(word)
        if own is None:
            added = self._added
            return [
                (tag, feature, added.get((tag, word), -1))
                for tag, feature in self._class_tags(word)
            ]
        found = [(tag, feature, -1) for tag, feature in own]
        if second:
            seen = {tag for tag, _ in own}
            others = self._class_tags(word)
            found += [(tag, feature, -1) for tag, feature in others if tag not in seen]
        return found

    def add(self, pairs: set[tuple[int, str]]) -> None:
        """Add features of tags and words outside the treebank, sorted by their strings."""
        symbols = self.grammar.symbols
        for tag, word in sorted(pairs, key=lambda pair: f"{symbols[pair[0]]} -> {pair[1]}"):
            if (tag, word) not in self._added:
                self._added[tag, word] = len(self)
                self.added.append((tag, word))

    def sentences(self, sentences: Sequence[Sequence[str]]) -> LatentSentences:
        """Return sentences ready to be parsed."""
        return LatentSentences(self, sentences)


class LatentSentences:
    """Sentences of a latent grammar, ready to be parsed repeatedly.

    Args:
        features: The features.
        sentences: Each a sequence of words.
    """

    def __init__(self, features: LatentFeatures, sentences: Sequence[Sequence[str]]) -> None:
        self.features = features
        ids: dict[str, int] = {}
        tokens = [ids.setdefault(word, len(ids)) for words in sentences for word in words]
        self.types = tuple(ids)
        self.tokens = np.array(tokens, np.int64)
        sizes = np.fromiter(map(len, sentences), np.int64, len(sentences))
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        # Sentences without a tree under the first lexicon; weights do not change that.
        self._failed: Places | None = None
        self._tables: dict[bool, tuple[int, Places, npt.NDArray[np.int64]]] = {}

    def __len__(self) -> int:
        return len(self.starts) - 1

    def _table(self, *, second: bool) -> tuple[Places, npt.NDArray[np.int64]]:
        """Return where the entries of each type begin, and all entries (tag, feature, feature)."""
        version = len(self.features)
        if second not in self._tables or self._tables[second][0] != version:
            lists = [self.features.entries(word, second=second) for word in self.types]
            sizes = np.fromiter(map(len, lists), np.int64, len(lists))
            rows = [entry for entries in lists for entry in entries]
            table = np.array(rows, np.int64).reshape(-1, 3)
            first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
            self._tables[second] = version, first, table
        return self._tables[second][1:]

    def parse(self, weights: Floats, *, run: Run = QUIET) -> Parses:
        """Return the best tree of each sentence.

        Args:
            weights: One per feature.
            run: Who does it.
        """
        rows = np.arange(len(self))
        if self._failed is not None:
            rows = np.delete(rows, self._failed)
        parts = [(rows, self._parse(rows, weights, run))]
        if self._failed is None:
            missing = np.isneginf(parts[0][1].scores)
            self._failed = np.flatnonzero(missing & (np.diff(self.starts) > 0))
        if len(self._failed):
            again = self._parse(self._failed, weights, run, second=True)
            parts.append((self._failed, again))
        return _together(len(self), parts)

    def _parse(self, chosen: Places, weights: Floats, run: Run, *, second: bool = False) -> Parses:
        grammar = self.features.grammar
        first, table = self._table(second=second)
        sizes = np.diff(self.starts)[chosen]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        places = np.repeat(self.starts[chosen] - starts[:-1], sizes) + np.arange(starts[-1])
        types = self.tokens[places]
        entries = np.diff(first)[types]
        tag_starts = np.concatenate([[0], np.cumsum(entries)]).astype(np.int64)
        index = np.repeat(first[types] - tag_starts[:-1], entries) + np.arange(tag_starts[-1])
        padded = np.append(weights, 0.0)
        values = padded[table[:, 1]] + padded[table[:, 2]]
        tops = np.full(len(grammar.symbols), -np.inf)
        tops[grammar.tops] = weights[len(grammar.rules) : grammar.first_word]
        whole = _Tagged(table[index, 0].astype(np.int32), values[index], tag_starts, starts)
        size = len(chosen) if run.executor.threads is None else SENTENCES_A_SHARD
        with shared_step(
            run.executor, run.progress, "parsing", total=len(chosen), unit="sentences"
        ) as (within, finished):
            work = _BestTrees(
                len(grammar.symbols),
                np.ascontiguousarray(grammar.rules),
                np.ascontiguousarray(weights[: len(grammar.rules)]),
                tops,
                run.worker_threads,
                within,
            )
            parts = []
            for found in run.executor.map(work, whole.parts(size)):
                finished(len(found.scores))
                parts.append(Parses(*found, np.isfinite(found.scores) & second))
        return _in_order(parts)

    def _leaves(self, parses: Parses) -> tuple[Places, npt.NDArray[np.int64]]:
        """Return the tokens below the tags of all trees, and the tags, in the order of nodes."""
        is_tag = parses.rules == _NO_RULE
        parsed = np.flatnonzero(np.diff(parses.starts) > 0)
        sizes = np.diff(self.starts)[parsed]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        tokens = np.repeat(self.starts[parsed] - starts[:-1], sizes) + np.arange(starts[-1])
        return tokens, parses.symbols[is_tag].astype(np.int64)

    def new_words(self, parses: Parses) -> set[tuple[int, str]]:
        """Return the tags of words outside the treebank in the trees."""
        tokens, tags = self._leaves(parses)
        size = len(self.features.grammar.symbols)
        pairs = np.unique(self.tokens[tokens] * size + tags).tolist()
        found = ((pair % size, self.types[pair // size]) for pair in pairs)
        return {(tag, word) for tag, word in found if not self.features.knows(word)}

    def _lexical(self, parses: Parses) -> npt.NDArray[np.int64]:
        """Return the two features of each word in the trees, -1 for no second one."""
        size = len(self.features.grammar.symbols)
        tokens, tags = self._leaves(parses)
        first, table = self._table(second=True)
        owner = np.repeat(np.arange(len(self.types)), np.diff(first))
        keys = owner * size + table[:, 0]
        order = np.argsort(keys)
        place = order[np.searchsorted(keys[order], self.tokens[tokens] * size + tags)]
        found: npt.NDArray[np.int64] = table[place, 1:]
        return found

    def node_weights(self, parses: Parses, weights: Floats) -> Floats:
        """Return the weight of the production below every node of the trees, ROOT included."""
        padded = np.append(weights, 0.0)
        values = padded[np.where(parses.rules == _NO_RULE, 0, parses.rules)]
        values[parses.rules == _NO_RULE] = padded[self._lexical(parses)].sum(axis=1)
        parsed = parses.starts[:-1][np.diff(parses.starts) > 0]
        tops = padded[self.features._top_features[parses.symbols[parsed]]]
        return np.insert(values, parsed, tops)

    def vectors(self, parses: Parses) -> FeatureVectors:
        """Return the counts of the productions of every tree; no entries where there is none."""
        lexical = self._lexical(parses)
        sentence_of_node = np.repeat(np.arange(len(self)), np.diff(parses.starts))
        is_tag = parses.rules == _NO_RULE
        parsed = np.flatnonzero(np.diff(parses.starts) > 0)
        tops = self.features._top_features[parses.symbols[parses.starts[parsed]]]
        leaf_sentence = sentence_of_node[is_tag]
        extra = lexical[:, 1] >= 0
        rows = np.concatenate(
            [sentence_of_node[~is_tag], parsed, leaf_sentence, leaf_sentence[extra]]
        )
        columns = np.concatenate(
            [
                parses.rules[~is_tag].astype(np.int64),
                tops,
                lexical[:, 0],
                lexical[extra, 1],
            ]
        )
        width = len(self.features)
        pairs, counts = np.unique(rows * width + columns, return_counts=True)
        return FeatureVectors(
            np.searchsorted(pairs // width, np.arange(len(self) + 1)).astype(np.int64),
            (pairs % width).astype(np.int32),
            counts.astype(np.float64),
        )


def _together(count: int, parts: Sequence[tuple[Places, Parses]]) -> Parses:
    """Return the parses of sentences that were parsed in parts; later ones replace earlier ones."""
    scores, second = np.full(count, -np.inf), np.zeros(count, np.bool_)
    sizes = np.zeros(count, np.int64)
    for rows, parses in parts:
        scores[rows], second[rows] = parses.scores, parses.is_second
        sizes[rows] += np.diff(parses.starts)  # non-zero in one part only
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    symbols, rules = np.empty(starts[-1], np.uint32), np.empty(starts[-1], np.uint32)
    for rows, parses in parts:
        shift = np.repeat(starts[rows] - parses.starts[:-1], np.diff(parses.starts))
        index = shift + np.arange(parses.starts[-1])
        symbols[index], rules[index] = parses.symbols, parses.rules
    return Parses(scores, starts, symbols, rules, second)
