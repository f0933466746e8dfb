"""Grammars and models of trees on the command line: score, sample, surprisal, perplexity."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from tests.command_line import assert_fine, assert_refused, treelm
from tests.models.latent_models import QUICK, sample_corpus

from treelm.corpus.brackets import read_trees
from treelm.models.pcfg.model import PcfgModel
from treelm.models.pcfg_la.config import PcfgLaConfig
from treelm.models.pcfg_la.train import train_pcfg_la
from treelm.models.registry import load, train

SENTENCES = b"The old ferry left .\n\nThe ferry left the harbour .\n"


@pytest.fixture(scope="module")
def pcfg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grammars") / "pcfg"
    train("pcfg", sample_corpus(), lexicon="closed").save(folder)
    return folder


@pytest.fixture(scope="module")
def latent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grammars") / "latent"
    options = {**QUICK, "cycles": 1}
    config = PcfgLaConfig(seed=1, lexicon="closed", **options)  # type: ignore[arg-type]
    train_pcfg_la(sample_corpus(), config).save(folder)
    return folder


def numbers(done: object) -> list[float]:
    lines = assert_fine(done).decode().splitlines()  # type: ignore[arg-type]
    return [math.nan if not line else float(line) for line in lines]


def test_sentences_are_scored_exactly_or_by_bounds(latent: Path) -> None:
    exact = numbers(treelm("score", "-m", latent, stdin=SENTENCES))
    assert exact[0] == pytest.approx(load(latent).score("The old ferry left .").log_prob)
    assert math.isnan(exact[1])
    done = treelm("score", "-m", latent, "--pruning", "fast", "--floor", "0.5", stdin=SENTENCES)
    assert b"not exact: lower bounds" in done.stderr
    assert done.returncode == 0
    assert float(done.stdout.split()[0]) > exact[0] + math.log(0.5) - 0.1


def test_scores_of_a_lexicon_that_does_not_sum_to_one_are_named(tmp_path: Path) -> None:
    train("pcfg", sample_corpus(), lexicon="berkeley").save(tmp_path / "model")
    done = treelm("score", "-m", tmp_path / "model", stdin=SENTENCES)
    assert b"these scores are not probabilities that sum to 1" in done.stderr
    assert float(assert_fine(done, None).split()[0]) < 0


def test_trees_are_scored(pcfg: Path, sample_file: Path, tmp_path: Path) -> None:
    model = load(pcfg)
    assert isinstance(model, PcfgModel)
    trees = list(read_trees(sample_file))[:5]
    path = tmp_path / "trees.mrg"
    path.write_text("".join(f"{tree}\n" for tree in trees) + "(ROOT (NEW (DT the)))\n")
    joint = numbers(treelm("score", "-m", pcfg, "--trees", path))
    assert joint[:5] == pytest.approx(model.tree_log_probs(trees).tolist())
    assert joint[5] == -math.inf
    posterior = numbers(treelm("score", "-m", pcfg, "--trees", path, "--posterior", "--limit", "5"))
    assert posterior == pytest.approx(model.tree_log_posteriors(trees).tolist())
    assert all(value <= 1e-9 for value in posterior)


def test_k_best_lists_are_summed(pcfg: Path, tmp_path: Path) -> None:
    lists = tmp_path / "lists.gz"
    done = treelm("parse", "-m", pcfg, "-k", "5", "-q", "-o", lists, stdin=SENTENCES)
    assert assert_fine(done) == b""
    model = load(pcfg)
    assert isinstance(model, PcfgModel)
    found = numbers(treelm("score", "-m", pcfg, "--k-best", lists))
    trees = [parse.tree for parse in model.parse("The old ferry left .", 5)]
    sum_of_all = np.logaddexp.reduce(model.tree_log_probs(trees))
    assert found[0] == pytest.approx(sum_of_all)
    assert math.isnan(found[1])
    assert len(found) == 3
    # The spelling of older versions.
    best = numbers(treelm("score", "-m", pcfg, f"--kbest={lists}", "-k", "1"))
    assert best[0] == pytest.approx(float(model.tree_log_probs(trees[:1])[0]))


def test_perplexity_of_grammars(pcfg: Path, latent: Path, text_file: Path) -> None:
    found = {}
    for folder, options in ((pcfg, ()), (latent, ()), (latent, ("--pruning", "default"))):
        done = treelm(
            *("evaluate", "perplexity", text_file, "-m", folder, "--json", "--limit", "40"),
            *("--allow-overlap", *options),
        )
        record = json.loads(assert_fine(done))
        found[record["signature"]] = record
        assert record["without_parse"] == 0
    plain, exact, bound = found.values()
    assert (plain["exactness"], exact["exactness"]) == ("exact", "exact")
    assert bound["exactness"] == "lower_bound"
    assert bound["perplexity"] >= exact["perplexity"] - 1e-6
    assert plain["perplexity_without_eos"] > 1
    assert exact["perplexity_without_eos"] is None


def test_sentences_without_a_parse_are_said(pcfg: Path) -> None:
    text = b"The ferry left .\n" + b"' " * 3 + b"\n"
    done = treelm("evaluate", "perplexity", "-m", pcfg, "--json", stdin=text)
    record = json.loads(done.stdout)
    if record["without_parse"]:
        assert record["perplexity"] is None
        assert b"--floor 0.001" in done.stderr
    floored = treelm("evaluate", "perplexity", "-m", pcfg, "--json", "--floor", "0.001", stdin=text)
    again = json.loads(floored.stdout)
    assert again["without_parse"] == record["without_parse"]
    assert again["perplexity"] > 1


def test_surprisal_of_a_grammar_adds_up(pcfg: Path) -> None:
    done = treelm("surprisal", "-m", pcfg, "--eos", stdin=b"The old ferry left .\n")
    rows = [line.split("\t") for line in assert_fine(done).decode().splitlines()[1:]]
    total = sum(float(row[5]) for row in rows)
    assert [row[3] for row in rows] == ["The", "old", "ferry", "left", ".", "</s>"]
    assert total == pytest.approx(load(pcfg).score("The old ferry left .").log_prob)


def test_samples_come_with_trees(latent: Path) -> None:
    options = ("-n", "6", "--seed", "3", "--min-words", "3", "--max-words", "9")
    done = treelm("sample", "-m", latent, "--with-trees", *options)
    assert done.returncode == 0
    rows = [line.split("\t") for line in done.stdout.decode().splitlines()]
    assert len(rows) == 6
    for words, tree in rows:
        assert next(read_trees([tree])).words == tuple(words.split())
        assert 3 <= len(words.split()) <= 9
    assert b"were left out" in done.stderr
    plain = treelm("sample", "-m", latent, *options, "-q")
    assert assert_fine(plain).decode().splitlines() == [words for words, _ in rows]


def test_wrong_use_is_refused(pcfg: Path, ngram_folder: Path, tmp_path: Path) -> None:
    bad = tmp_path / "lists"
    bad.write_text("-1\t(ROOT (DT the))\n-2\t(ROOT (DT the)\n")
    assert_refused(treelm("score", "-m", pcfg, "--k-best", bad), 3, "lists:2: ")
    assert_refused(treelm("score", "-m", pcfg, "--posterior", stdin=b"a\n"), 2, "--trees")
    done = treelm("score", "-m", pcfg, "--trees", bad, "--floor", "0.1")
    assert_refused(done, 2, "for sentences")
    assert_refused(treelm("score", "-m", pcfg, "--trees", bad, "--k-best", bad), 2, "give one of")
    assert_refused(treelm("sample", "-m", ngram_folder, "--with-trees"), 2, "samples no trees")
