"""The systems of the tables: each is trained once, kept in a folder, and scores all texts once."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sentences import LENGTHS, make_sentences, write_lines

import published
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.files import read_lines
from treelm.corpus.labelled import LabelledSentences
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.corpus.words import split_words
from treelm.grammar.forest_file import ForestFile
from treelm.grammar.parser_options import ParserOptions
from treelm.models.interface.cached_parser import CachedParser
from treelm.models.interface.model import LanguageModel
from treelm.models.lsvm.model import LatentSvmModel
from treelm.models.lsvm.train import Round
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.train import train_ngram
from treelm.models.registry import SYSTEMS, load
from treelm.models.run import QUIET, Event, Run
from treelm.models.tree_features.model import TreeFeaturesModel
from treelm.models.treelet.config import TreeletConfig
from treelm.models.treelet.train import train_treelet
from treelm.tasks.evaluate.slr import slr_scores
from treelm.tasks.parse_file import parse_into_file, parser_fingerprint
from treelm.tasks.train import train_and_save

Floats = npt.NDArray[np.float64]
Scores = dict[str, Floats]

#: Options of the latent SVMs.
LATENT: dict[str, dict[str, object]] = {
    published.MLE: {"start": "mle", "rounds": 0},
    published.LATENT_MLE: {"start": "mle"},
    published.GT: {"start": "zero"},
    published.GX: {"start": "zero", "grammar": "uninformed"},
    published.NO_MEMORY: {"start": "mle", "memory": False},
    published.FIXED: {"start": "mle", "fixed_trees": True},
}
TREES: dict[str, str] = {published.CFG: "cfg", published.TSG: "tsg", published.RERANK: "rerank"}
#: References and translations: name of a set -> the two files below mt/.
TRANSLATIONS = {
    "multi30k, Moses": ("multi30k/test_2016_flickr.en", "multi30k/test_2016_flickr.moses.en"),
    "ted, phrase-based": ("ted/ref.en", "ted/sys1.en"),
    "ted, neural": ("ted/ref.en", "ted/sys2.en"),
}
LABELS = ("pos", "neg")


class Systems:
    """Everything that is trained and scored, kept in a folder so that a run can be resumed.

    Args:
        arguments: Options of the recipe.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.data: Path = arguments.data
        self.work: Path = arguments.work
        self.threads: int = arguments.threads
        self.seed: int = arguments.seed
        self.parser: str | None = arguments.parser
        self.trees: list[str] = arguments.trees
        self.fragments: list[str] = arguments.fragments
        self.latent: dict[str, object] = {
            "regularization": arguments.regularization,
            "rounds": arguments.rounds,
            "patience": arguments.patience,
            "parts": arguments.parts,
            "horizontal_order": arguments.horizontal_order,
            "vertical_order": arguments.vertical_order,
        }
        self.k: int = arguments.k
        self.counts = make_sentences(
            self.data / f"text/{arguments.text}.txt.xz",
            self.work / "data",
            train=arguments.train,
            held=arguments.held,
            generator=arguments.generator,
            seed=self.seed,
        )
        for folder in ("models", "scores", "rounds", "parses"):
            (self.work / folder).mkdir(exist_ok=True)

    # -- texts ------------------------------------------------------------------------------

    def file(self, label: str, part: str) -> Path:
        """Return the good (pos) or bad (neg) sentences of a part."""
        return self.work / "data" / f"{label}_{part}.txt"

    @cached_property
    def texts(self) -> dict[str, Path]:
        """Texts that every system scores: dev and test sentences, references and translations."""
        texts = {
            f"{label}_{part}": self.file(label, part)
            for part in ("dev", "test")
            for label in LABELS
        }
        for name, files in TRANSLATIONS.items():
            paths = [self.data / "mt" / file for file in files]
            if not all(path.is_file() for path in paths):
                continue
            lines = [[split_words(line) for line in read_lines(path)] for path in paths]
            pairs = [
                pair
                for pair in zip(*lines, strict=True)
                if pair[0] != pair[1] and all(0 < len(words) <= LENGTHS[1] for words in pair)
            ]
            for place, side in enumerate(("ref", "mt")):
                key = f"{name}, {side}"
                texts[key] = self.work / "data" / f"{key.replace(', ', '-')}.txt"
                if not texts[key].is_file():
                    write_lines(texts[key], (" ".join(pair[place]) for pair in pairs))
        return texts

    def sentences(self, text: str) -> list[tuple[str, ...]]:
        """Return the sentences of a text."""
        return list(TextCorpus((self.texts[text],)))

    def treebank(self, part: str = "train", names: Sequence[str] = ()) -> TreeCorpus:
        """Return the trees of the grammar, or of other treebanks."""
        files = [self.data / f"treebanks/{name}/{part}.mrg" for name in names or self.trees]
        return TreeCorpus(tuple(files), on_error="skip", threads=self.threads)

    def parses(self, text: str, path: Path, k: int = 1) -> Path:
        """Return the parse file of a text; it is made or resumed if needed."""
        if self.parser is None:
            raise SystemExit("this needs --parser")
        forest = self.work / "parses" / f"{text.replace(', ', '-')}-{k}.forest"
        done = forest.with_suffix(".done")
        if not done.is_file():
            parse_into_file(
                load(self.parser),
                [(path, read_lines(path))],
                forest,
                fingerprint=parser_fingerprint(Path(self.parser)),
                k=k,
                options=ParserOptions(pruning="fast"),
                threads=self.threads,
            )
            done.touch()
        return forest

    def all_parses(self) -> Path:
        """Return one parse file of all sentences that need tree features."""
        together = self.work / "data" / "all.txt"
        if not together.is_file():
            files = [self.file(label, "train") for label in LABELS] + list(self.texts.values())
            write_lines(
                together, dict.fromkeys(line for file in files for line in read_lines(file))
            )
        return self.parses("all", together)

    # -- models -----------------------------------------------------------------------------

    def _once(self, name: str, make: Callable[[Path], object]) -> LanguageModel:
        folder = self.work / "models" / name.replace(" ", "-")
        if not (folder / "manifest.json").is_file():
            start = time.perf_counter()
            make(folder)
            self.note(name, seconds=round(time.perf_counter() - start, 1))
        return load(folder)

    def note(self, name: str, **facts: object) -> None:
        """Keep facts about a system, one JSON object per line."""
        with (self.work / "rounds" / f"{name.replace(' ', '-')}.jsonl").open("a") as out:
            out.write(json.dumps(facts) + "\n")

    def facts(self, name: str) -> list[dict[str, Any]]:
        """Return the facts kept about a system."""
        path = self.work / "rounds" / f"{name.replace(' ', '-')}.jsonl"
        return (
            [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
        )

    def model(self, name: str) -> LanguageModel:
        """Return a trained system."""
        train, dev = (
            LabelledSentences(
                TextCorpus((self.file("pos", part),)), TextCorpus((self.file("neg", part),))
            )
            for part in ("train", "dev")
        )
        if name in LATENT:
            options = {**self.latent, **LATENT[name]}
            start = time.perf_counter()

            def watch(event: Event) -> None:
                assert isinstance(event.value, Round)  # the only events of this training
                since = round(time.perf_counter() - start, 1)
                self.note(name, since=since, **asdict(event.value))

            return self._once(
                name,
                lambda folder: train_and_save(
                    SYSTEMS["lsvm"],
                    {"data": train, "tuning": dev, "trees": self.treebank()},
                    folder,
                    options,
                    run=Run(resume=True, threads=self.threads, event=watch),
                ),
            )
        if name in {published.LINEAR, published.POLY}:
            kernel = {
                "kernel": "linear" if name == published.LINEAR else "poly",
                "seed": self.seed,
            }
            inputs = {"data": train, "tuning": dev}
            return self._once(
                name,
                lambda folder: train_and_save(
                    SYSTEMS["trigram_svm"], inputs, folder, kernel, run=QUIET
                ),
            )
        if name == published.PARSER:
            if self.parser is None:
                raise SystemExit("this needs --parser")
            return load(self.parser)
        if name in TREES:
            trees = {"features": TREES[name], "seed": self.seed}
            forest = self.all_parses()
            model = self._once(
                name,
                lambda folder: train_and_save(
                    SYSTEMS["tree_features"],
                    {
                        "data": train,
                        "tuning": dev,
                        "parser": CachedParser(ForestFile(forest)),
                        "trees": self.treebank(names=self.fragments) if self.fragments else None,
                    },
                    folder,
                    trees,
                    run=Run(threads=self.threads),
                ),
            )
            assert isinstance(model, TreeFeaturesModel)
            return model.with_parser(CachedParser(ForestFile(forest)))
        return self._once(name, self._generative(name))

    def _generative(self, name: str) -> Callable[[Path], object]:
        positives = self.file("pos", "train")
        text = TextCorpus((positives,))
        vocabulary = build_vocabulary(text, VocabularyRule(name="stream", seed=self.seed))

        def ngram(folder: Path) -> None:
            train_ngram(text, NgramConfig(order=5), vocabulary=vocabulary).save(folder)

        def treelet(folder: Path) -> None:
            forest = ForestFile(self.all_parses())
            parser = CachedParser(forest)
            brackets = self.work / "parses" / "pos_train.mrg"
            trees = parser.parse_many([split_words(line) for line in read_lines(positives)])
            write_lines(brackets, (str(found.tree) for found in trees if found is not None))
            corpus = TreeCorpus((brackets,))
            train_treelet(corpus, TreeletConfig(), vocabulary=vocabulary).save(folder)

        return ngram if name == published.NGRAM else treelet

    # -- scores -----------------------------------------------------------------------------

    def scores(self, name: str) -> Scores:
        """Return a system's scores of all texts: margins, log probabilities or ratios."""
        path = self.work / "scores" / f"{name.replace(' ', '-')}.npz"
        if not path.is_file():
            source = published.MLE if name == published.MLE_LENGTH else name
            model = self.model(source)
            found = {text: self._score(source, model, text) for text in self.texts}
            part = path.with_suffix(".part.npz")
            np.savez(part, **found)  # type: ignore[arg-type]
            part.rename(path)
        with np.load(path) as stored:
            return {text: stored[text] for text in stored.files}

    def _score(self, name: str, model: LanguageModel, text: str) -> Floats:
        sentences = self.sentences(text)
        if name == published.NGRAM:
            return slr_scores(model, sentences, threads=self.threads)
        if name == published.TREELET:
            path = self.parses(f"{text}-list", self.texts[text], self.k)
            parser = CachedParser(ForestFile(path))
            return slr_scores(model.with_parser(parser, self.k), sentences)  # type: ignore[attr-defined]
        if name == published.PARSER:
            parsed = ForestFile(self.parses(text, self.texts[text]))
            return np.array([-np.inf if own is None else own.log_prob for own in parsed])
        return model.sentence_log_probs(sentences, threads=self.threads)

    def latent_model(self, name: str) -> LatentSvmModel:
        """Return one of the latent SVMs."""
        model = self.model(name)
        assert isinstance(model, LatentSvmModel)
        return model
