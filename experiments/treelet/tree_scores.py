"""Scores of sentences: every sentence is parsed once for all models that lack it."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
from model_store import TREELET, Clock, Key, ModelStore
from training_sets import replace_text

from treelm.grammar.scored_tree import ScoredTree
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.packed_tree_model import PackedTreeModel, pack_rooted
from treelm.models.interface.parser import Parser, k_best_lists
from treelm.models.interface.tree_model import log_sum
from treelm.models.interface.unigrams import unigram_log_probs
from treelm.models.pcfg.grammar_model import GrammarModel
from treelm.trees.packed import PackedTrees

Numbers = npt.NDArray[np.float64]
Sentence = tuple[str, ...]

#: Number of sentences per score file, and of sentences parsed at once.
_PIECE, _BATCH = 500, 32
#: Rows of the score file: unigram, then one for each length of the list.
_UNIGRAM, _REPEATED = "unigram", "repeated"
#: What the parser itself thinks of the sentences.
_PARSER = "parser"


@dataclass(frozen=True)
class Scores:
    """Scores of sentences by several models.

    Args:
        lengths: Number of words of each sentence.
        values: Log probabilities by model and number of trees.
        unigram: Log probabilities of the words alone by model.
        repeated: Log probabilities of TREELET without leaving out equal transformed trees.
        trees: Number of trees of each sentence.
        fallbacks: Number of sentences without a tree.
        seconds: Time of parsing and scoring.
        parser: Log probabilities of the sentences under the parser's own grammar, as far as its
            pruned charts go; NaN where they were not kept.
    """

    lengths: npt.NDArray[np.int64]
    values: dict[tuple[Key, int], Numbers]
    unigram: dict[Key, Numbers]
    repeated: Numbers
    trees: Numbers
    fallbacks: int
    seconds: dict[str, float]
    parser: Numbers

    def parser_slr(self, key: Key) -> Numbers:
        """Return the log-odds ratio of the parser, with the unigrams of a model."""
        return (self.parser - self.unigram[key]) / self.lengths

    def slr(self, key: Key, k: int) -> Numbers:
        """Return the syntactic log-odds ratio of every sentence."""
        return (self.values[key, k] - self.unigram[key]) / self.lengths


@dataclass
class ScoreStore:
    """Scores sentences and keeps the scores, a piece of a text at a time.

    Args:
        models: The models.
        parser: The parser.
        folder: Where scores are kept.
        clock: Checked before every piece.
        threads: Number of threads.
    """

    models: ModelStore
    parser: Parser
    folder: Path
    clock: Clock
    threads: int
    _done: dict[str, int] = field(default_factory=dict)

    def scores(
        self, name: str, sentences: Sequence[Sentence], keys: Sequence[Key], ks: Sequence[int]
    ) -> Scores:
        """Return the scores of sentences by models.

        Args:
            name: Name of the sentences; scores are kept under it.
            sentences: The sentences.
            keys: The models.
            ks: Lengths of the k-best lists to sum over.
        """
        starts = range(0, len(sentences), _PIECE)
        for start in starts:
            piece = sentences[start : start + _PIECE]
            folder = self.folder / name / str(start)
            missing = [key for key in keys if not _has(folder, key, ks)]
            if missing:
                self.clock.check()
                for key in missing:
                    self.models.get(*key)
                self._score(folder, piece, missing, ks)
                print(f"{name}: {start + len(piece)} of {len(sentences)}", file=sys.stderr)
        return self._read(name, sentences, keys, ks, starts)

    def _read(
        self,
        name: str,
        sentences: Sequence[Sentence],
        keys: Sequence[Key],
        ks: Sequence[int],
        starts: range,
    ) -> Scores:
        folders = [self.folder / name / str(start) for start in starts]
        found = {key: [_load(folder, key) for folder in folders] for key in keys}
        treelet = next((key for key in keys if key.model == TREELET), None)
        abouts = [json.loads((folder / "about.json").read_text()) for folder in folders]
        return Scores(
            np.array([len(words) for words in sentences]),
            {
                (key, k): np.concatenate([part[str(k)] for part in found[key]])
                for key in keys
                for k in ks
            },
            {key: np.concatenate([part[_UNIGRAM] for part in found[key]]) for key in keys},
            np.concatenate([part[_REPEATED] for part in found[treelet]])
            if treelet is not None
            else np.full(len(sentences), np.nan),
            np.concatenate([np.array(about["trees"], dtype=np.float64) for about in abouts]),
            sum(about["fallbacks"] for about in abouts),
            {
                what: round(sum(about[what] for about in abouts), 1)
                for what in ("parsing", "scoring")
            },
            np.concatenate(
                [
                    np.array(about.get(_PARSER, [np.nan] * len(about["trees"])), dtype=np.float64)
                    for about in abouts
                ]
            ),
        )

    def _score(
        self, folder: Path, sentences: Sequence[Sentence], keys: Sequence[Key], ks: Sequence[int]
    ) -> None:
        models = {key: self.models.get(*key) for key in keys}
        found: dict[Key, dict[str, list[float]]] = {
            key: {name: [] for name in (*map(str, ks), _UNIGRAM, _REPEATED)} for key in keys
        }
        about = {"parsing": 0.0, "scoring": 0.0, "fallbacks": 0}
        trees: list[int] = []
        own_log_probs: list[float] = []
        alone = {key: unigram_log_probs(model) for key, model in models.items()}
        rest = iter(sentences)
        while batch := list(islice(rest, _BATCH)):
            start = time.perf_counter()
            lists = k_best_lists(self.parser, batch, max(ks), threads=self.threads)
            about["parsing"] += time.perf_counter() - start
            start = time.perf_counter()
            about["fallbacks"] += sum(not len(own) or own[0].is_fallback for own in lists)
            trees += [len(own) for own in lists]
            own_log_probs += map(_sentence_log_prob, lists)
            ids = [models[keys[0]].vocabulary.encode(words) for words in batch]
            for key, model in models.items():
                own = found[key]
                own[_UNIGRAM] += [float(alone[key][each].sum()) for each in ids]
                self._score_batch(model, batch, lists, ks, own)
            about["scoring"] += time.perf_counter() - start
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "about.json").is_file():
            replace_text(
                folder / "about.json", json.dumps({**about, "trees": trees, _PARSER: own_log_probs})
            )
        for key, own in found.items():
            draft = folder / f"{key.file}.draft.npz"
            before = dict(_load(folder, key)) if _path(folder, key).is_file() else {}
            np.savez(draft, **before | {name: np.array(row) for name, row in own.items()})
            draft.replace(_path(folder, key))

    def _score_batch(
        self,
        model: LanguageModel,
        batch: Sequence[Sentence],
        lists: Sequence[Sequence[ScoredTree]],
        ks: Sequence[int],
        found: dict[str, list[float]],
    ) -> None:
        """Append the scores for every number of trees, all from one pass over the longest lists."""
        if isinstance(model, GrammarModel):  # exact sums would take half a second a sentence
            model = model.pruned()
        if not isinstance(model, PackedTreeModel):
            values = model.sentence_log_probs(batch, threads=self.threads).tolist()
            for k in ks:
                found[str(k)] += values
            return
        packed = [_packed(own) for own in lists]
        scored = iter(
            model.score_each([one for one in packed if one is not None], threads=self.threads)
        )
        for own, one in zip(lists, packed, strict=True):
            if one is None:  # a flat tree replaces the one that the parser did not find
                value = next(model.score_lists([own], threads=self.threads)).log_prob
                for name in (*map(str, ks), _REPEATED):
                    found[name].append(value)
                continue
            log_probs, forms = next(scored)
            for k in ks:
                _, first = np.unique(forms[:k], return_index=True)
                found[str(k)].append(log_sum(log_probs[np.sort(first)]))
            found[_REPEATED].append(log_sum(log_probs))


def _sentence_log_prob(parses: Sequence[ScoredTree]) -> float:
    """Return the log probability of the words in the parser's chart."""
    if not len(parses) or parses[0].is_fallback:
        return -math.inf
    return parses[0].sentence_log_prob


def _packed(parses: Sequence[ScoredTree]) -> PackedTrees | None:
    """Return a list of trees as the kernel takes it, None for trees outside the grammar."""
    if not len(parses) or parses[0].is_fallback:
        return None
    packed = getattr(parses, "packed", None)
    if isinstance(packed, PackedTrees):
        return packed
    return pack_rooted([parse.tree for parse in parses])


def _path(folder: Path, key: Key) -> Path:
    return folder / f"{key.file}.npz"


def _load(folder: Path, key: Key) -> dict[str, Numbers]:
    with np.load(_path(folder, key)) as stored:
        return {name: stored[name] for name in stored.files}


def _has(folder: Path, key: Key, ks: Sequence[int]) -> bool:
    path = _path(folder, key)
    if not path.is_file():
        return False
    with np.load(path) as stored:
        return {str(k) for k in ks} <= set(stored.files)
