"""A small training of every registered system, as Python and as the command line spell it.

All files are named relative to one folder of small data, so that both ways record the same names.
"""

from __future__ import annotations

import contextlib
import random
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.sample_treebank import sample_path
from treelm.corpus.vocabulary_file import save_vocabulary
from treelm.errors import TreelmWarning
from treelm.models.interface.model import LanguageModel
from treelm.models.registry import SYSTEMS, train
from treelm.models.treelet.config import TreeletConfig
from treelm.tasks.counts import build_counts
from treelm.tasks.treelet_counts import build_treelet_counts

#: Trees for training; the others are held out.
TRAINING = 240
#: Trees for systems that take longer.
FEW = 60
#: Sentences that classifiers are trained and tuned on.
LABELLED, TUNING = 60, 20
DOCUMENTS = 5


@dataclass(frozen=True)
class Recipe:
    """A small training.

    Args:
        system: The system.
        data: What it is trained on, as `treelm.train` takes it.
        arguments: The same for ``treelm train SYSTEM``, as one line.
        options: Everything else that `treelm.train` is given.
        name: What tells it from the other recipes of its system.
    """

    system: str
    data: Any
    arguments: str
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""

    def __str__(self) -> str:
        return f"{self.system}-{self.name}" if self.name else self.system

    def train(self, **how: Any) -> LanguageModel:
        """Return the model, trained in Python in the folder of the data."""
        with quietly():
            return train(self.system, self.data, **self.options, **how)


#: The first one of a system is its plainest.
RECIPES: tuple[Recipe, ...] = (
    Recipe("ngram", "train.txt", "--text train.txt --order 3", {"order": 3}),
    Recipe(
        "ngram",
        ["train.mrg", "dev.mrg"],
        "--trees train.mrg dev.mrg --order 2 --smoothing kn --vocabulary words.txt --memory 64M",
        {"order": 2, "smoothing": "kn", "vocabulary": "words.txt", "memory": "64M"},
        "trees",
    ),
    Recipe(
        "ngram",
        "train.txt",
        "--text train.txt --order 2 --smoothing jm --held-out dev.txt",
        {"order": 2, "smoothing": "jm", "held_out": "dev.txt"},
        "held-out",
    ),
    Recipe(
        "ngram",
        "train.txt",
        "--text train.txt --order 3 --min-count 1 1 2 --bits 8",
        {"order": 3, "min_count": (1, 1, 2), "bits": 8},
        "smaller",
    ),
    Recipe(
        "ngram",
        "train.txt",
        "--text train.txt --order 3 --bits 16 --measure dev.txt",
        {"order": 3, "bits": 16, "measure": "dev.txt"},
        "measured",
    ),
    Recipe(
        "ngram",
        "train.txt",
        "--text train.txt --order 3 --layout compact",
        {"order": 3, "layout": "compact"},
        "compact",
    ),
    Recipe(
        "ngram",
        "train.txt",
        "--text train.txt --order 3 --unknown spelling --vocabulary words.txt",
        {"order": 3, "unknown": "spelling", "vocabulary": "words.txt"},
        "spelling",
    ),
    Recipe("ngram", "counts", "--counts counts", name="counts"),
    Recipe("pcfg", "train.mrg", "--trees train.mrg"),
    Recipe(
        "pcfg",
        "train.mrg",
        "--trees train.mrg --lexicon closed --vocabulary words.txt --vertical-order 2",
        {"lexicon": "closed", "vocabulary": "words.txt", "vertical_order": 2},
        "closed",
    ),
    Recipe(
        "pcfg_la",
        "train.mrg",
        "--trees train.mrg --cycles 2 --split-iterations 3 --merge-iterations 2 --seed 1",
        {"cycles": 2, "split_iterations": 3, "merge_iterations": 2, "seed": 1},
    ),
    Recipe(
        "pcfg_la",
        "train.mrg",
        "--trees train.mrg --held-out dev.mrg --lexicon closed --cycles 1 --split-iterations 2 "
        "--merge-iterations 1 --smooth-iterations 1 --seed 2",
        {
            "held_out": "dev.mrg",
            "lexicon": "closed",
            "cycles": 1,
            "split_iterations": 2,
            "merge_iterations": 1,
            "smooth_iterations": 1,
            "seed": 2,
        },
        "held-out",
    ),
    Recipe(
        "pcfg_la",
        "train.mrg",
        "--trees train.mrg --dictionary dev.mrg --dictionary-min-count 1 --cycles 1 "
        "--split-iterations 2 --merge-iterations 1 --smooth-iterations 1 --seed 4",
        {
            "dictionary": "dev.mrg",
            "dictionary_min_count": 1,
            "cycles": 1,
            "split_iterations": 2,
            "merge_iterations": 1,
            "smooth_iterations": 1,
            "seed": 4,
        },
        "dictionary",
    ),
    Recipe(
        "pcfg_la",
        "train.mrg",
        "--trees train.mrg --copies bare unpunctuated --copy-share 0.5 --cycles 1 "
        "--split-iterations 2 --merge-iterations 1 --smooth-iterations 1 --seed 3",
        {
            "copies": ("bare", "unpunctuated"),
            "copy_share": 0.5,
            "cycles": 1,
            "split_iterations": 2,
            "merge_iterations": 1,
            "smooth_iterations": 1,
            "seed": 3,
        },
        "copies",
    ),
    Recipe(
        "hhmm",
        "few.mrg",
        "--trees few.mrg --depth 2 --beam-width 20",
        {"depth": 2, "beam_width": 20},
    ),
    Recipe(
        "hhmm",
        "few.mrg",
        "--trees few.mrg --depth 2 --beam-width 20 --word-context 2 --tag-context 1",
        {"depth": 2, "beam_width": 20, "word_context": 2, "tag_context": 1},
        "words",
    ),
    Recipe(
        "hhmm",
        "few.mrg",
        "--trees few.mrg --depth 2 --beam-width 20 --unknown spelling",
        {"depth": 2, "beam_width": 20, "unknown": "spelling"},
        "spelling",
    ),
    Recipe(
        "slm",
        "few.mrg",
        "--trees few.mrg --held-out fewer.mrg --iterations 1 --follow-up 0 --n-best 2",
        {"held_out": "fewer.mrg", "iterations": 1, "follow_up": 0, "n_best": 2},
    ),
    Recipe(
        "composite",
        "few.mrg",
        "--trees few.mrg --held-out fewer.mrg --order 2 --heads 1 --topics 3 --keep-topics 2 "
        "--iterations 0 --follow-up 1 --seed 4",
        {
            "held_out": "fewer.mrg",
            "order": 2,
            "heads": 1,
            "topics": 3,
            "keep_topics": 2,
            "iterations": 0,
            "follow_up": 1,
            "seed": 4,
        },
    ),
    Recipe(
        "plsa",
        "train.txt",
        "--text train.txt --topics 3 --order 2 --iterations 2 --seed 3",
        {"topics": 3, "order": 2, "iterations": 2, "seed": 3},
    ),
    Recipe(
        "plsa",
        "train.mrg",
        "--trees train.mrg --held-out dev.txt --topics 3 --no-adaptation",
        {"held_out": "dev.txt", "topics": 3, "adapt": False},
        "held-out",
    ),
    Recipe(
        "treelet",
        "train.mrg",
        "--trees train.mrg --parser grammar --k 3",
        {"parser": "grammar", "k": 3},
    ),
    Recipe("treelet", "train.mrg", "--trees train.mrg --memory 64M", {"memory": "64M"}, "temporal"),
    Recipe(
        "treelet",
        "train.mrg",
        "--trees train.mrg --text more.txt --parser grammar",
        {"text": "more.txt", "parser": "grammar"},
        "parsed",
    ),
    Recipe(
        "treelet",
        None,
        "--text more.txt --parser grammar --variant rule",
        {"text": "more.txt", "parser": "grammar", "variant": "rule"},
        "only-parsed",
    ),
    Recipe(
        "treelet",
        "train.mrg",
        "--trees train.mrg --smoothing jm --held-out dev.mrg --temporal nouns.txt "
        "--vocabulary words.txt",
        {
            "smoothing": "jm",
            "held_out": "dev.mrg",
            "temporal": "nouns.txt",
            "vocabulary": "words.txt",
        },
        "held-out",
    ),
    Recipe("treelet", "treelets", "--counts treelets", name="counts"),
    Recipe(
        "headlex",
        "train.mrg",
        "--trees train.mrg --parser grammar -k 3",
        {"parser": "grammar", "k": 3},
    ),
    Recipe(
        "headlex",
        "train.mrg",
        "--trees train.mrg --text more.txt --parser grammar --smoothing mkn",
        {"text": "more.txt", "parser": "grammar", "smoothing": "mkn"},
        "parsed",
    ),
    Recipe(
        "lsvm",
        ("good.txt", "bad.txt"),
        "--good good.txt --bad bad.txt --dev-good dev-good.txt --dev-bad dev-bad.txt "
        "--trees few.mrg --rounds 2 --regularization 0.1",
        {
            "tuning": ("dev-good.txt", "dev-bad.txt"),
            "trees": "few.mrg",
            "rounds": 2,
            "regularization": 0.1,
        },
    ),
    Recipe(
        "lsvm",
        {"good": "good.txt", "bad": "bad.txt"},
        "--good good.txt --bad bad.txt --dev-good dev-good.txt --dev-bad dev-bad.txt "
        "--trees few.mrg --rounds 1 --regularization 0.1 --grammar uninformed",
        {
            "tuning": {"good": "dev-good.txt", "bad": "dev-bad.txt"},
            "trees": "few.mrg",
            "rounds": 1,
            "regularization": 0.1,
            "grammar": "uninformed",
        },
        "uninformed",
    ),
    Recipe(
        "trigram_svm",
        ("good.txt", "bad.txt"),
        "--good good.txt --bad bad.txt --regularization 0.1",
        {"regularization": 0.1},
    ),
    Recipe(
        "trigram_svm",
        ("good.txt", "bad.txt"),
        "--good good.txt --bad bad.txt --dev-good dev-good.txt --dev-bad dev-bad.txt "
        "--kernel poly --components 20",
        {"tuning": ("dev-good.txt", "dev-bad.txt"), "kernel": "poly", "components": 20},
        "tuned",
    ),
    Recipe(
        "tree_features",
        ("good.txt", "bad.txt"),
        "--good good.txt --bad bad.txt --features cfg --parser grammar --min-sentences 2 "
        "--regularization 0.1",
        {"features": "cfg", "parser": "grammar", "min_sentences": 2, "regularization": 0.1},
    ),
    Recipe(
        "tree_features",
        ("good.txt", "bad.txt"),
        "--good good.txt --bad bad.txt --features tsg --parser grammar --min-sentences 2 "
        "--regularization 0.1 --trees dev.mrg --sweeps 2 --seed 5",
        {
            "features": "tsg",
            "parser": "grammar",
            "min_sentences": 2,
            "regularization": 0.1,
            "trees": "dev.mrg",
            "sweeps": 2,
            "seed": 5,
        },
        "fragments",
    ),
    Recipe(
        "tree_ranker",
        "train.mrg",
        "--trees train.mrg --parser grammar --k 5 --folds 2 --min-sentences 2 --regularization 1",
        {"parser": "grammar", "k": 5, "folds": 2, "min_sentences": 2, "regularization": 1.0},
    ),
    Recipe(
        "tree_ranker",
        "dev.mrg",
        "--trees dev.mrg --parser grammar --k 3 --folds 1 --min-sentences 1 --iterations 5",
        {"parser": "grammar", "k": 3, "folds": 1, "min_sentences": 1, "iterations": 5},
        "unseen",
    ),
    Recipe(
        "interpolated",
        ["bigrams", "unigrams"],
        "--models bigrams unigrams --held-out dev.txt",
        {"held_out": "dev.txt"},
    ),
    Recipe(
        "interpolated",
        ["bigrams", "sentences"],
        "--models bigrams sentences --weights 0.25 0.75",
        {"weights": (0.25, 0.75)},
        "sentences",
    ),
    Recipe(
        "interpolated_sentences",
        ["bigrams", "unigrams"],
        "--models bigrams unigrams --held-out dev.txt",
        {"held_out": "dev.txt"},
    ),
)


def recipe_of(system: str) -> Recipe:
    """Return the plainest recipe of a system."""
    for recipe in RECIPES:
        if recipe.system == system:
            return recipe
    raise AssertionError(
        f'the system "{system}" has no small recipe; add one to RECIPES in {Path(__file__).name}, '
        "and the contract and parity tests will cover it."
    )


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Leave out warnings about small data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)
        yield


def make_data(folder: Path) -> None:
    """Write everything that the recipes name: trees, texts, classes, counts and small models."""
    trees = sample_path().read_text().splitlines()
    _write(folder / "train.mrg", trees[:TRAINING])
    _write(folder / "dev.mrg", trees[TRAINING:])
    _write(folder / "few.mrg", trees[:FEW])
    _write(folder / "fewer.mrg", trees[-FEW // 2 :])
    _write(folder / "nouns.txt", ["morning", "noon"])
    sentences = [list(tree.words) for tree in TreeCorpus(str(folder / "train.mrg"))]
    unseen = [list(tree.words) for tree in TreeCorpus(str(folder / "dev.mrg"))]
    size = -(-len(sentences) // DOCUMENTS)
    documents = [sentences[start : start + size] for start in range(0, len(sentences), size)]
    (folder / "train.txt").write_text("\n".join(map(_lines, documents)))
    (folder / "dev.txt").write_text(_lines(unseen))
    short = [words for words in unseen if len(words) < 10][:20]
    (folder / "more.txt").write_text(_lines(short))
    brief = sorted(sentences, key=len)[: LABELLED + TUNING]
    random.Random(7).shuffle(brief)
    _classes(folder, "", brief[:LABELLED])
    _classes(folder, "dev-", brief[LABELLED:])
    with quietly(), contextlib.chdir(folder):
        _make_models()


def _make_models() -> None:
    bigrams = train("ngram", "train.txt", order=2)
    bigrams.save("bigrams")
    save_vocabulary(bigrams.vocabulary, Path("words.txt"))
    train("ngram", "train.txt", order=1, vocabulary="words.txt").save("unigrams")
    parts = ["bigrams", "unigrams"]
    train("interpolated_sentences", parts, weights=(0.5, 0.5)).save("sentences")
    train("pcfg", "train.mrg").save("grammar")
    build_counts(TextCorpus("train.txt"), "counts", order=3)
    build_treelet_counts(TreeCorpus("train.mrg"), "treelets", TreeletConfig())


def _write(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines))


def _lines(sentences: Sequence[Sequence[str]]) -> str:
    return "".join(" ".join(words) + "\n" for words in sentences)


def _classes(folder: Path, prefix: str, sentences: Sequence[list[str]]) -> None:
    """Write good sentences, and the same words in another order as bad ones."""
    order = random.Random(len(sentences))
    bad = [order.sample(words, len(words)) for words in sentences]
    (folder / f"{prefix}good.txt").write_text(_lines(sentences))
    (folder / f"{prefix}bad.txt").write_text(_lines(bad))


def missing_recipes() -> set[str]:
    """Return the registered systems without a recipe."""
    return set(SYSTEMS) - {recipe.system for recipe in RECIPES}
