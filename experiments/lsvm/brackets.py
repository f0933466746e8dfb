"""Table 3: unlabelled brackets of the hidden trees against the gold trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from systems import Systems

from published import GT, GX, LATENT_MLE, MLE, TABLE_3
from treelm.corpus.brackets import EVALUATION_OPTIONS
from treelm.corpus.corpus import TreeCorpus
from treelm.models.interface.calibration import Calibration
from treelm.models.lsvm.config import LatentSvmConfig
from treelm.models.lsvm.features import LatentFeatures
from treelm.models.lsvm.grammar import read_grammar
from treelm.models.lsvm.model import LatentSvmModel
from treelm.tasks.evaluate.parse_accuracy import evaluate_parses
from treelm.trees.counted_brackets import ignored_positions
from treelm.trees.profile import load_profile
from treelm.trees.tree import Tree

SHORT = 10
RIGHT = "right-branching"


@dataclass(frozen=True)
class Brackets:
    """Unlabelled F1 of a system, in percent.

    Args:
        system: What made the trees.
        short: On sentences of at most 10 words without punctuation.
        all: On the other set, of any length.
        sizes: Number of sentences of both.
        unparsed: Number of sentences without a tree.
    """

    system: str
    short: float
    all: float
    sizes: tuple[int, int]
    unparsed: int


def right_branching(words: Sequence[str]) -> Tree:
    """Return the tree over all words, punctuation included, that is purely right-branching."""
    tree = Tree("X", words[-1])
    for word in reversed(words[:-1]):
        tree = Tree("X", [Tree("X", word), tree])
    return Tree("ROOT", [tree])


def _gold(corpus: TreeCorpus) -> list[Tree]:
    """Return the trees as evalb reads them, with every phrase that has words."""
    return [tree for tree in replace(corpus, options=EVALUATION_OPTIONS) if tree.words]


def measure_brackets(systems: Systems, names: Sequence[str]) -> list[Brackets]:
    """Return the rows of Table 3: the trees of trained models, and those before training.

    The short sentences are those of the whole treebank, the others those of its test part.
    """
    profile = load_profile("english")
    parts = {part: _gold(systems.treebank(part)) for part in ("train", "dev", "test")}
    short = [
        tree
        for part in parts.values()
        for tree in part
        if 0 < len(tree.words) - len(ignored_positions(tree, profile)) <= SHORT
    ]
    sets = (short, parts["test"])
    rows = [_row(RIGHT, sets, [[right_branching(tree.words) for tree in gold] for gold in sets])]
    config = LatentSvmConfig.model_validate({**systems.latent, "start": "zero"})
    grammar = read_grammar(systems.treebank(), config)
    features = LatentFeatures(grammar)
    machines = {
        f"{GT}, before training": LatentSvmModel(
            features, grammar.frequencies * 0.0, config, Calibration(1.0, 0.0)
        )
    }
    for name in (GX, GT, LATENT_MLE, MLE):
        if name in names:
            machines[name] = systems.latent_model(name)
    for name, model in machines.items():
        trees = [
            model.hidden_trees([tree.words for tree in gold], threads=systems.threads)
            for gold in sets
        ]
        rows.append(_row(name, sets, trees))
    return rows


def _row(
    name: str, sets: Sequence[Sequence[Tree]], trees: Sequence[Sequence[Tree | None]]
) -> Brackets:
    found = [evaluate_parses(gold, guess) for gold, guess in zip(sets, trees, strict=True)]
    return Brackets(
        name,
        100 * found[0].unlabelled_f1,
        100 * found[1].unlabelled_f1,
        (found[0].sentences, found[1].sentences),
        found[0].unparsed + found[1].unparsed,
    )


def bracket_rows(found: Sequence[Brackets]) -> list[tuple[str, ...]]:
    """Return the lines of the table, with the published numbers beside ours."""
    rows = []
    for row in found:
        published = TABLE_3.get(row.system)
        beside = ("-", "-") if published is None else tuple(f"{value:.2f}" for value in published)
        own = (f"{row.short:.2f}", f"{row.all:.2f}", str(row.unparsed))
        rows.append((row.system, *own, *beside))
    return rows
