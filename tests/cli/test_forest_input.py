"""Files of parses wherever trees are read: the same results as with their best trees in brackets."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from tests.command_line import assert_fine, assert_refused, treelm

from treelm import TreeCorpus, read_trees, train
from treelm.corpus.files import read_blocks
from treelm.grammar.forest_file import ForestFile


@pytest.fixture(scope="module")
def parses(tmp_path_factory: pytest.TempPathFactory, sample_file: Path) -> Path:
    """A folder with a grammar, k-best lists and packed forests of some sentences, and gold trees."""
    folder = tmp_path_factory.mktemp("parses")
    gold = list(read_trees(sample_file))[:60]
    (folder / "gold.mrg").write_text("".join(f"{tree}\n" for tree in gold))
    (folder / "text").write_text("".join(" ".join(tree.words) + "\n" for tree in gold))
    assert_fine(treelm("train", "pcfg", "--trees", sample_file, "-o", folder / "pcfg"))
    parse = ("parse", "-m", folder / "pcfg", folder / "text", "-q")
    assert_fine(treelm(*parse, "-k", "5", "-o", folder / "lists.forest"))
    assert_fine(treelm(*parse, "--forests", "-k", "5", "-o", folder / "packed.forest"))
    assert_fine(treelm(*parse, "-o", folder / "best.mrg"))
    return folder


@pytest.fixture(params=["lists.forest", "packed.forest"])
def forest(parses: Path, request: pytest.FixtureRequest) -> Path:
    return parses / str(request.param)


@pytest.mark.parametrize(
    "command",
    [
        ["draw", "TREES"],
        ["transform", "TREES"],
        ["score", "-m", "MODEL", "--trees", "TREES"],
        ["evaluate", "parses", "GOLD", "TREES"],
        ["evaluate", "parses", "TREES", "GOLD", "--json"],
        ["evaluate", "oracle", "TREES", "LISTS", "--json"],
        ["corrupt", "noisy", "--trees", "TREES", "--seed", "1"],
        ["transform", "GOLD", "--temporal", "TREES"],
    ],
    ids=" ".join,
)
def test_commands_read_the_best_trees(parses: Path, forest: Path, command: list[str]) -> None:
    def output(trees: Path) -> bytes:
        names = {
            "TREES": trees,
            "GOLD": parses / "gold.mrg",
            "MODEL": parses / "pcfg",
            "LISTS": parses / "lists.forest",
        }
        return assert_fine(treelm(*(names.get(part, part) for part in command)), None)

    assert output(forest) == output(parses / "best.mrg")


@pytest.mark.parametrize("command", [["train", "treelet"], ["vocabulary"]])
def test_trainings_read_the_best_trees(parses: Path, tmp_path: Path, command: list[str]) -> None:
    # The files have the same name, which is recorded: what a file is does not depend on its name.
    found = []
    for kind in ("lists.forest", "best.mrg"):
        trees = tmp_path / kind / "trees.mrg"
        trees.parent.mkdir()
        trees.write_bytes((parses / kind).read_bytes())
        target = tmp_path / "made" / kind
        target.parent.mkdir(exist_ok=True)
        arguments = ("--trees", trees.name, "-o", target)
        done = treelm(*command, *arguments, cwd=trees.parent)
        found.append(assert_fine(done, None))
        files = [target] if target.is_file() else sorted(target.rglob("*"))
        content = {
            str(file.relative_to(target)): file.read_bytes()
            for file in files
            if file.is_file() and file.suffix != ".json"
        }
        assert content
        found.append(content)
    assert found[1] == found[3]


@pytest.mark.filterwarnings("ignore:no temporal nouns")
@pytest.mark.parametrize("system", ["pcfg", "hhmm", "headlex", "treelet"])
def test_every_system_trains_on_the_best_trees(parses: Path, system: str) -> None:
    kinds = parses / "lists.forest", parses / "best.mrg"
    models = [train(system, TreeCorpus((kind,))) for kind in kinds]
    trees = list(read_trees(parses / "gold.mrg"))[:5]
    if system in ("headlex", "treelet"):  # models that score trees, not sentences without a parser
        scores = [model.tree_log_probs(trees).tolist() for model in models]  # type: ignore[attr-defined]
    else:
        scores = [[model.score(tree.words).log_prob for tree in trees] for model in models]
    assert scores[0] == scores[1]


def test_inspect_says_what_a_file_of_parses_is(forest: Path) -> None:
    record = json.loads(assert_fine(treelm("inspect", forest, "--json")))
    assert record["parses"] == ("forests" if forest.name == "packed.forest" else "trees")
    assert record["sentences"] == record["trees"] == 60
    assert record["trees_per_sentence"] == 5
    assert record["finished"] is True


def test_convert_writes_the_best_trees(parses: Path, forest: Path, tmp_path: Path) -> None:
    for name in ("x.mrg", "x.mrg.gz"):
        done = treelm("convert", forest, tmp_path / name)
        assert assert_fine(done, None) == b""
        assert b"best trees of 60 sentences" in done.stderr
        assert b"".join(read_blocks(tmp_path / name)) == (parses / "best.mrg").read_bytes()
    for wrong in ("model", "x.arpa", "y.forest"):
        assert_refused(treelm("convert", forest, tmp_path / wrong), 2, "named .mrg")


def test_python_reads_files_of_parses_with_the_hash_of_their_trees(
    parses: Path, forest: Path
) -> None:
    assert list(read_trees(forest)) == list(read_trees(parses / "best.mrg"))
    corpora = TreeCorpus(forest), TreeCorpus(parses / "best.mrg")  # type: ignore[arg-type]
    assert corpora[0].fingerprint == corpora[1].fingerprint


def test_sentences_without_words_are_no_trees(parses: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("\n\nThe old ferry left .\n\nWe stayed .\n")
    target = tmp_path / "x.forest"
    assert_fine(treelm("parse", "-m", parses / "pcfg", text, "-q", "-o", target))
    assert json.loads(assert_fine(treelm("inspect", target, "--json")))["trees"] == 2
    assert assert_fine(treelm("draw", target)).count(b"ROOT") == 2


def test_what_cannot_be_read_as_a_file_of_parses_is_said(parses: Path, tmp_path: Path) -> None:
    data = (parses / "lists.forest").read_bytes()
    assert_refused(treelm("draw", stdin=data), 3, "give its name")
    with gzip.open(tmp_path / "x.forest.gz", "wb") as file:
        file.write(data)
    assert_refused(treelm("draw", tmp_path / "x.forest.gz"), 3, "Decompress it")
    (tmp_path / "cut.forest").write_bytes(data[:100])
    assert_refused(treelm("draw", tmp_path / "cut.forest"), 3, "damaged")


def test_an_unfinished_file_of_parses_gives_what_it_has(parses: Path, tmp_path: Path) -> None:
    with ForestFile(parses / "lists.forest") as file:
        end = file.end
    unfinished = tmp_path / "x.forest"
    unfinished.write_bytes((parses / "lists.forest").read_bytes()[:end])
    done = treelm("score", "-m", parses / "pcfg", "--trees", unfinished)
    assert len(assert_fine(done, None).splitlines()) == 60
    assert b"not finished" in done.stderr
