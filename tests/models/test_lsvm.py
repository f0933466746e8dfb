"""Latent support vector machines: oracles, exact parsing, training, files."""

from __future__ import annotations

import pickle
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from treelm import _native
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.labelled import LabelledSentences
from treelm.corpus.sample_treebank import sample_path
from treelm.errors import EstimationError, UsageError
from treelm.models.interface.calibration import Calibration
from treelm.models.lsvm.checkpoint import LatentCheckpoint
from treelm.models.lsvm.config import LatentSvmConfig
from treelm.models.lsvm.features import FeatureVectors, LatentFeatures
from treelm.models.lsvm.grammar import read_grammar
from treelm.models.lsvm.memory import TrainingState
from treelm.models.lsvm.model import LatentSvmModel
from treelm.models.lsvm.solve import objective, solve
from treelm.models.lsvm.train import train_lsvm
from treelm.models.registry import load
from treelm.models.run import Event, Run
from treelm.trees.tree import Tree

GX = LatentSvmConfig(grammar="uninformed", start="zero")


def vectors(rows: list[list[float]]) -> FeatureVectors:
    width = len(rows[0])
    starts = np.arange(len(rows) + 1, dtype=np.int64) * width
    features = np.tile(np.arange(width, dtype=np.int32), len(rows))
    return FeatureVectors(starts, features, np.array(rows, np.float64).ravel())


def test_objective_of_the_specification() -> None:
    labels = np.array([1, -1, -1], np.int8)
    value = objective(np.array([1.0, -2.0]), np.array([0.5, -0.2, -1.5]), labels, 0.1)
    assert value == pytest.approx(1.8, abs=1e-12)


def test_one_point() -> None:
    point, labels = vectors([[1.0]]), np.array([1], np.int8)
    weights = solve(point, labels, 1.0, start=np.zeros(1), tolerance=1e-6)
    assert weights == pytest.approx([0.5], abs=1e-4)
    assert objective(weights, point.times(weights), labels, 1.0) == pytest.approx(0.75, abs=1e-4)


def test_every_remembered_structure_is_a_point() -> None:
    points, labels = vectors([[1.0, 0.0], [0.0, 1.0]]), np.array([-1, -1], np.int8)
    weights = solve(points, labels, 0.5, start=np.zeros(2), tolerance=1e-6)
    assert weights == pytest.approx([-1.0, -1.0], abs=1e-4)
    assert objective(weights, points.times(weights), labels, 0.5) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(("tags", "rules"), [(1, 4), (2, 24), (45, 16020)])
def test_size_of_uninformed_grammars(tags: int, rules: int) -> None:
    trees = [Tree("ROOT", [Tree(f"T{number}", f"w{number}")]) for number in range(tags)]
    grammar = read_grammar(trees, GX)
    assert len(grammar.rules) == rules
    assert len(grammar.tops) == 2 * tags


def test_ties_branch_to_the_right() -> None:
    tree = Tree("ROOT", [Tree("X", [Tree("X", word) for word in "abcd"])])
    features = LatentFeatures(read_grammar([tree], GX))
    model = LatentSvmModel(features, np.zeros(len(features)), GX, Calibration(1.0, 0.0))
    found = model.hidden_trees([tuple("abcd")])
    assert str(found[0]) == "(ROOT (X' (X a) (X' (X b) (X' (X c) (X d)))))"


def test_many_sentences_get_the_trees_of_the_plain_chart() -> None:
    generator = np.random.default_rng(3)
    symbols = 5
    for _ in range(20):
        rules = np.array(
            [rule for rule in product(range(symbols), repeat=3) if generator.random() < 0.25],
            np.int32,
        ).reshape(-1, 3)
        weights = generator.integers(-2, 3, len(rules)).astype(np.float64)
        tops = np.where(generator.random(symbols) < 0.5, 0.0, -np.inf)
        sizes = generator.integers(0, 8, 12)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        lists = [np.flatnonzero(generator.random(symbols) < 0.4) for _ in range(starts[-1])]
        tag_starts = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
        tags = np.concatenate([*lists, np.zeros(0)]).astype(np.int32)
        values = generator.integers(-2, 3, len(tags)).astype(np.float64)
        given = {
            "symbols": symbols,
            "rules": rules,
            "weights": weights,
            "root_weights": tops,
            "tags": tags,
            "tag_weights": values,
            "tag_starts": tag_starts,
            "sentence_starts": starts,
        }
        found = _native.best_weighted_trees(**given, threads=2)
        plain = _native.best_weighted_trees(**given, threads=1, plain=True)
        for one, two in zip(found, plain, strict=True):
            assert one.tolist() == two.tolist()


def test_frequencies_of_a_left_side_add_up_to_one() -> None:
    grammar = read_grammar(TreeCorpus((sample_path(),)), LatentSvmConfig())
    totals = np.zeros(len(grammar.symbols))
    chances = np.exp(grammar.frequencies)
    np.add.at(totals, grammar.rules[:, 0], chances[: len(grammar.rules)])
    words, classes = grammar.first_word, grammar.first_class
    np.add.at(totals, grammar.word_tags[:, 0], chances[words:classes])
    np.add.at(totals, grammar.class_tags[:, 0], chances[classes:])
    assert totals == pytest.approx(np.ones(len(totals)))


def sentences(folder: Path, name: str, lines: list[str]) -> TextCorpus:
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines))
    return TextCorpus((path,))


def toy(folder: Path) -> tuple[LabelledSentences, LabelledSentences, TreeCorpus]:
    trees = folder / "trees.mrg"
    nouns, verbs = ["dog", "cat", "bird"], ["sees", "likes", "finds"]
    good = [f"the {a} {v} the {b}" for a in nouns for v in verbs for b in nouns]
    bad = [" ".join(reversed(line.split())) for line in good]
    with trees.open("w") as out:
        for line in good:
            d, a, v, e, b = line.split()
            noun = f"(NP (DT {e}) (NN {b}))"
            out.write(f"( (S (NP (DT {d}) (NN {a})) (VP (VBZ {v}) {noun})) )\n")
            out.write(f"( (FRAG (NN {b}) (NP (NN {a}) (DT {e})) (VBZ {v}) (DT {d})) )\n")
            out.write(f"( (FRAG (NN {b}) (DT {e}) (VBZ {v}) (NN {a}) (DT {d})) )\n")
    data = LabelledSentences(
        sentences(folder, "good", good[::2]), sentences(folder, "bad", bad[::2])
    )
    tuning = LabelledSentences(
        sentences(folder, "good-dev", good[1::2]), sentences(folder, "bad-dev", bad[1::2])
    )
    return data, tuning, TreeCorpus((trees,))


@pytest.mark.parametrize(
    "options",
    [
        {"start": "mle"},
        {"start": "zero"},
        {"start": "zero", "memory": False},
        {"start": "mle", "parts": 3},
        {"start": "zero", "memory": False, "parts": 2},
        {"fixed_trees": True},
        {"grammar": "uninformed", "start": "zero"},
    ],
)
def test_training_tells_sentences_apart(tmp_path: Path, options: dict[str, object]) -> None:
    data, tuning, trees = toy(tmp_path)
    config = LatentSvmConfig.model_validate({"regularization": 0.1, "rounds": 4, **options})
    rounds: list[Event] = []
    model = train_lsvm(data, config, tuning=tuning, trees=trees, run=Run(event=rounds.append))
    assert max(model.accuracies) > 0.9
    if config.memory:
        points = [event.value.points for event in rounds]
        assert points == sorted(points)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again, LatentSvmModel)
    given = tuning.sentences
    margins = model.margins(given)
    assert again.margins(given, threads=2).tolist() == margins.tolist()
    assert pickle.loads(pickle.dumps(again)).margins(given).tolist() == margins.tolist()
    assert again.decision("the dog sees the cat") > 0
    assert again.score("the dog sees the cat").exactness == "margin"
    chances = again.probabilities(margins)
    assert np.all((chances >= 0) & (chances <= 1))
    added = sum(again.weight_of("the dog sees the cat").values())
    assert added == pytest.approx(again.decision("the dog sees the cat"))


@pytest.mark.parametrize("parts", [1, 3])
def test_resumed_training_gives_the_same_weights(tmp_path: Path, parts: int) -> None:
    data, tuning, trees = toy(tmp_path)
    options = {
        "grammar": "uninformed",
        "start": "zero",
        "regularization": 0.1,
        "parts": parts,
    }
    whole = LatentSvmConfig.model_validate({**options, "rounds": 3})
    part = LatentSvmConfig.model_validate({**options, "rounds": 1})
    checkpoint = LatentCheckpoint.beside(tmp_path / "model")
    kept = Run(checkpoint=checkpoint.folder)
    again = Run(checkpoint=checkpoint.folder, resume=True)
    train_lsvm(data, part, tuning=tuning, trees=trees, run=kept)
    resumed = train_lsvm(data, whole, tuning=tuning, trees=trees, run=again)
    expected = train_lsvm(data, whole, tuning=tuning, trees=trees)
    assert len(expected.accuracies) == 3
    assert resumed.weights.tolist() == expected.weights.tolist()
    other = LatentSvmConfig.model_validate({**options, "seed": 1})
    with pytest.raises(UsageError) as caught:
        train_lsvm(data, other, tuning=tuning, trees=trees, run=again)
    assert caught.value.code == "E_CHECKPOINT"


def test_the_last_tree_of_a_good_sentence_counts() -> None:
    state = TrainingState.begin(np.zeros(2), 1.0)
    state.take_good(vectors([[1, 0], [2, 0]]), np.array([0, 4]))
    state.take_good(vectors([[0, 3], [0, 5]]), np.array([2, 4]))
    assert state.good_owners.tolist() == [0, 2, 4]
    assert state.good.times(np.array([1.0, 10.0])).tolist() == [1, 30, 50]
    state.remember(vectors([[1, 1]]), np.array([3]), keep=True)
    state.remember(vectors([[1, 1], [1, 1]]), np.array([3, 1]), keep=True)
    assert state.owners.tolist() == [3, 1]  # what is known is not stored again
    state.remember(vectors([[2, 2]]), np.array([3]), keep=False)
    assert state.owners.tolist() == [1, 3]
    points, labels = state.points()
    assert points.times(np.array([1.0, 0.0])).tolist() == [1, 0, 0, 1, 2]
    assert labels.tolist() == [1, 1, 1, -1, -1]


def test_one_class_is_refused(tmp_path: Path) -> None:
    data, tuning, trees = toy(tmp_path)
    alone = LabelledSentences(data.good, sentences(tmp_path, "nothing", []))
    with pytest.raises(EstimationError):
        train_lsvm(alone, LatentSvmConfig(regularization=1.0), tuning=tuning, trees=trees)


def test_impossible_options_are_refused() -> None:
    for options in ({"regularization": 0.0}, {"grammar": "uninformed", "start": "mle"}):
        with pytest.raises(UsageError):
            LatentSvmModel.make_config(options)
