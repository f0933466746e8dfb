"""The models of the tables, each trained once and kept in a folder."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from training_sets import ALL, TREEBANKS, TrainingSets, replace_text

from treelm.corpus.corpus import TreeCorpus
from treelm.models.headlex.config import HeadlexConfig
from treelm.models.headlex.train import train_headlex
from treelm.models.interface.model import LanguageModel
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.train import train_ngram
from treelm.models.registry import load, train
from treelm.models.run import Run
from treelm.models.treelet.config import TreeletConfig
from treelm.models.treelet.train import train_treelet
from treelm.transforms.treelet import TREELET_TRANSFORMS

FIVE_GRAM, TREELET, RULE, TRANS, PCFG = "5-GRAM", "TREELET", "TREELET-RULE", "TREELET-TRANS", "PCFG"
PLAIN, HEADLEX, MIXTURE = "TREELET, plain trees", "HEADLEX", "TREELET + 5-GRAM"
#: The parser's own grammar as a language model; it is given, not trained here.
LATENT = "PCFG-LA"
#: A latent grammar over the words of the other models, trained on the treebanks alone.
SAME_WORDS = "PCFG-LA, same words"
BEST_SMOOTHING = "TREELET, plain trees, modified Kneser-Ney"

#: Options of the treelet models of the tables.
TREELETS: dict[str, dict[str, object]] = {
    PCFG: {"variant": "pcfg"},
    TRANS: {"variant": "trans"},
    RULE: {"variant": "rule"},
    TREELET: {},
    PLAIN: {"transforms": ()},
}
#: The models of every table, in order.
MODELS = (*TREELETS, HEADLEX, FIVE_GRAM)

#: One change each (evaluation recipes, section 9).
ABLATIONS: dict[str, dict[str, object]] = {
    **{
        f"without {name}": {"transforms": [x for x in TREELET_TRANSFORMS if x != name]}
        for name in TREELET_TRANSFORMS
    },
    "lambda 0": {"yield_weight": 0.0},
    "lambda 0.5": {"yield_weight": 0.5},
    "lambda 1": {"yield_weight": 1.0},
    "modified Kneser-Ney": {"smoothing": "mkn"},
    "Jelinek-Mercer": {"smoothing": "jm"},
    "rule types below rules": {"base_counts": "types"},
    "min count 2": {"min_count": 2},
    "codes of 8 bits": {"bits": 8},
    BEST_SMOOTHING: {"transforms": (), "smoothing": "mkn", "base_counts": "types"},
}


class Stopped(Exception):
    """The time limit is reached; the same command resumes from here."""


@dataclass
class Clock:
    """Tells when to stop between two pieces of work.

    Args:
        minutes: Time limit; None for no limit.
        started: Start time, by the monotonic clock.
    """

    minutes: float | None = None
    started: float = field(default_factory=time.monotonic)

    def check(self) -> None:
        """Stop here if the time limit is reached.

        Raises:
            Stopped: if it is.
        """
        if self.minutes is not None and time.monotonic() - self.started > 60 * self.minutes:
            raise Stopped


class Key(NamedTuple):
    """A model and what it is trained on."""

    training: str
    model: str

    @property
    def file(self) -> str:
        """A name for files."""
        return f"{self.training}.{self.model}".replace("/", "_").replace(" ", "-").replace(",", "")


@dataclass
class ModelStore:
    """Trains models on demand, and keeps them.

    Args:
        sets: What they are trained on.
        folder: Where they are kept.
        clock: Checked before every training.
        cycles: Split-merge cycles of the latent grammar.
    """

    sets: TrainingSets
    folder: Path
    clock: Clock
    cycles: int = 0
    _opened: dict[Key, LanguageModel] = field(default_factory=dict)

    def get(self, training: str, model: str) -> LanguageModel:
        """Return a model, trained now if missing."""
        key = Key(training, model)
        if key not in self._opened:
            path = self.folder / key.file
            if not path.is_dir():
                self.clock.check()
                start = time.perf_counter()
                made = self._train(key)
                seconds = round(time.perf_counter() - start, 2)
                self.folder.mkdir(parents=True, exist_ok=True)
                made.save(path)
                replace_text(self.folder / f"{key.file}.json", json.dumps({"seconds": seconds}))
            self._opened[key] = load(path)
        return self._opened[key]

    def seconds(self, training: str, model: str) -> float:
        """Return how long a training took."""
        path = self.folder / f"{Key(training, model).file}.json"
        return float(json.loads(path.read_text())["seconds"]) if path.is_file() else float("nan")

    def _train(self, key: Key) -> LanguageModel:
        corpus = self.sets.corpus(key.training)
        vocabulary, threads = self.sets.vocabulary(key.training), self.sets.threads
        trains: Mapping[str, Callable[[], LanguageModel]] = {
            FIVE_GRAM: lambda: train_ngram(
                corpus, NgramConfig(order=5), vocabulary=vocabulary, run=Run(threads=threads)
            ),
            HEADLEX: lambda: train_headlex(
                corpus, HeadlexConfig(), vocabulary=vocabulary, run=Run(threads=threads)
            ),
            SAME_WORDS: lambda: train(
                "pcfg_la",
                corpus,
                vocabulary=vocabulary,
                lexicon="closed",
                cycles=self.cycles,
                seed=self.sets.seed,
                held_out=self._held_out,
                threads=threads,
            ),
        }
        if key.model in trains:
            return trains[key.model]()
        options = {**TREELETS, **ABLATIONS}[key.model]
        config = TreeletConfig.model_validate({"temporal": self.sets.temporal, **options})
        return train_treelet(
            corpus,
            config,
            vocabulary=vocabulary,
            held_out=self._held_out if config.smoothing == "jm" else None,
            run=Run(threads=threads),
        )

    @property
    def _held_out(self) -> TreeCorpus:
        files = (self.sets.data / f"treebanks/{name}/dev.mrg" for name in TREEBANKS)
        return TreeCorpus(tuple(files), on_error="skip", threads=self.sets.threads)


def main_keys(training: str = ALL) -> list[Key]:
    """Return the models of the tables, trained on one set."""
    return [Key(training, name) for name in MODELS]
