"""What models say about sentences: every sentence is parsed once for all models that lack it."""

from __future__ import annotations

import json
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
from treelm.models.model import LanguageModel
from treelm.models.packed_tree_model import PackedTreeModel
from treelm.models.tree_model import GivesTrees, k_best_lists
from treelm.tasks.evaluate.slr import unigram_log_probs

Numbers = npt.NDArray[np.float64]
Sentence = tuple[str, ...]

#: Sentences whose scores are kept in one file, and sentences parsed at once.
_PIECE, _BATCH = 500, 32
#: Rows of the file of scores: unigram, then one for each length of the list.
_UNIGRAM, _REPEATED = "unigram", "repeated"


@dataclass(frozen=True)
class Scores:
    """What models say about sentences.

    Args:
        lengths: Words of each sentence.
        values: Log probabilities by model and number of trees.
        unigram: Log probabilities of the words alone by model.
        repeated: Log probabilities of TREELET without leaving out equal transformed trees.
        trees: Number of trees of each sentence.
        fallbacks: Sentences without a tree.
        seconds: What parsing and scoring took.
    """

    lengths: npt.NDArray[np.int64]
    values: dict[tuple[Key, int], Numbers]
    unigram: dict[Key, Numbers]
    repeated: Numbers
    trees: Numbers
    fallbacks: int
    seconds: dict[str, float]

    def slr(self, key: Key, k: int) -> Numbers:
        """Return the syntactic log-odds ratio of every sentence."""
        return (self.values[key, k] - self.unigram[key]) / self.lengths


@dataclass
class ScoreStore:
    """Scores sentences and keeps what was found, a piece of a text at a time.

    Args:
        models: The models.
        parser: What gives sentences their trees.
        folder: Where scores are kept.
        clock: Asked before every piece.
        threads: Kernel threads.
    """

    models: ModelStore
    parser: GivesTrees
    folder: Path
    clock: Clock
    threads: int
    _done: dict[str, int] = field(default_factory=dict)

    def scores(
        self, name: str, sentences: Sequence[Sentence], keys: Sequence[Key], ks: Sequence[int]
    ) -> Scores:
        """Return the scores of sentences by models.

        Args:
            name: What the sentences are called; scores are kept under it.
            sentences: The sentences.
            keys: The models.
            ks: Lengths of the lists that are summed over.
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
        treelet = next((key for key in keys if _REPEATED in found[key][0]), None)
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
        )

    def _score(
        self, folder: Path, sentences: Sequence[Sentence], keys: Sequence[Key], ks: Sequence[int]
    ) -> None:
        models = {key: self.models.get(*key) for key in keys}
        found: dict[Key, dict[str, list[float]]] = {
            key: {name: [] for name in (*map(str, ks), _UNIGRAM)} for key in keys
        }
        about = {"parsing": 0.0, "scoring": 0.0, "fallbacks": 0}
        trees: list[int] = []
        alone = {key: unigram_log_probs(model) for key, model in models.items()}
        rest = iter(sentences)
        while batch := list(islice(rest, _BATCH)):
            start = time.perf_counter()
            lists = k_best_lists(self.parser, batch, max(ks), threads=self.threads)
            about["parsing"] += time.perf_counter() - start
            start = time.perf_counter()
            about["fallbacks"] += sum(not len(own) or own[0].is_fallback for own in lists)
            trees += [len(own) for own in lists]
            ids = [models[keys[0]].vocabulary.encode(words) for words in batch]
            for key, model in models.items():
                own = found[key]
                own[_UNIGRAM] += [float(alone[key][each].sum()) for each in ids]
                self._score_batch(model, batch, lists, ks, own)
                if key.model == TREELET:
                    own.setdefault(_REPEATED, [])
                    own[_REPEATED] += [_with_repeats(model, each, self.threads) for each in lists]
            about["scoring"] += time.perf_counter() - start
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "about.json").is_file():
            replace_text(folder / "about.json", json.dumps({**about, "trees": trees}))
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
        if not isinstance(model, PackedTreeModel):
            values = model.sentence_log_probs(batch, threads=self.threads).tolist()
            for k in ks:
                found[str(k)] += values
            return
        for k in ks:
            cut = [first_trees(own, k) for own in lists]
            scores = model.score_lists(cut, threads=self.threads)
            found[str(k)] += [score.log_prob for score in scores]


def first_trees(parses: Sequence[ScoredTree], k: int) -> Sequence[ScoredTree]:
    """Return the best trees of a list, as arrays where the list is one of arrays."""
    cut = getattr(parses, "first", None)
    return parses[:k] if cut is None else cut(k)


def _with_repeats(model: LanguageModel, parses: Sequence[ScoredTree], threads: int) -> float:
    packed = getattr(parses, "packed", None)
    if packed is None or not len(parses) or not isinstance(model, PackedTreeModel):
        return float("nan")
    starts = np.array([0, len(packed)], dtype=np.uint64)
    log_probs, _ = model.score_packed(packed, starts, threads=threads)
    return float(np.logaddexp.reduce(log_probs))


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
