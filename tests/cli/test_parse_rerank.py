"""`treelm parse --rerank`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.command_line import assert_fine, assert_refused, treelm

from treelm.models.registry import load

TEXT = b"The old ferry left the harbour .\n\nBirds sing in the morning .\nOpen the door\n"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory, sample_file: Path) -> tuple[Path, Path]:
    path = tmp_path_factory.mktemp("models")
    for system in ("pcfg", "treelet"):
        assert_fine(treelm("train", system, "--trees", sample_file, "-o", path / system))
    return path / "pcfg", path / "treelet"


def test_trees_and_scores_are_those_of_python(models: tuple[Path, Path]) -> None:
    parser, treelets = models
    rerank = ("--rerank", treelets, "--rerank-weight", "2", "--rerank-k", "15")
    done = treelm("parse", "-m", parser, "-k", "3", *rerank, stdin=TEXT)
    written = assert_fine(done, None).decode()
    assert b"plus 2 times its natural log probability in the treelet model" in done.stderr
    ranked = load(parser).with_reranker(load(treelets), weight=2.0, k=15)
    lists = [ranked.parse(line.split(), 3) for line in TEXT.decode().splitlines()]
    assert written == "".join(
        "".join(f"{each.score!r}\t{each.tree}\n" for each in best) + "\n" for best in lists
    )
    alone = assert_fine(treelm("parse", "-m", parser, *rerank, stdin=TEXT)).decode()
    assert alone.splitlines() == [str(best[0].tree) if best else "" for best in lists]


def test_several_models_are_given_one_by_one(models: tuple[Path, Path], tmp_path: Path) -> None:
    parser, treelets = models
    text = tmp_path / "x.txt"
    text.write_bytes(TEXT)
    both = ("--rerank", treelets, "--rerank", parser)
    for weights, given in (((), 0.75), (("1.5", "0.5"), (1.5, 0.5)), (("0.2",), 0.2)):
        options = [part for weight in weights for part in ("--rerank-weight", weight)]
        done = treelm("parse", "-m", parser, "-k", "2", *options, *both, text)
        ranked = load(parser).with_reranker(load(treelets), load(parser), weight=given)
        lists = [ranked.parse(line.split(), 2) for line in TEXT.decode().splitlines()]
        assert assert_fine(done, None).decode() == "".join(
            "".join(f"{each.score!r}\t{each.tree}\n" for each in best) + "\n" for best in lists
        )
    path = tmp_path / "x.forest"
    assert_fine(treelm("parse", "-m", parser, *both, "-q", "-o", path, text))
    for other in (both[:2], (*both, "--rerank-weight", "0.75", "--rerank-weight", "0.7")):
        done = treelm("parse", "-m", parser, *other, "-o", path, text)
        assert_refused(done, 2, "a different model")
    three = ("--rerank-weight", "1") * 3
    done = treelm("parse", "-m", parser, *both, *three, text)
    assert_refused(done, 2, "2 models to rerank with and 3 weights")


def test_a_consensus_is_that_of_python(models: tuple[Path, Path], tmp_path: Path) -> None:
    parser, treelets = models
    options = ("--rerank", treelets, "--consensus", "--rerank-k", "9")
    done = treelm("parse", "-m", parser, "-k", "3", *options, stdin=TEXT)
    written = assert_fine(done, None).decode()
    assert b"expected F1 in the opinion of 2 models" in done.stderr
    made = load(parser).with_consensus(load(treelets), k=9)
    lists = [made.parse(line.split(), 3) for line in TEXT.decode().splitlines()]
    assert written == "".join(
        "".join(f"{each.score!r}\t{each.tree}\n" for each in best) + "\n" for best in lists
    )
    path = tmp_path / "x.forest"
    assert_fine(treelm("parse", "-m", parser, *options, "-q", "-o", path, stdin=TEXT))
    rerank = ("--rerank", treelets, "--rerank-weight", "1", "--rerank-k", "9")
    done = treelm("parse", "-m", parser, *rerank, "-o", path, stdin=TEXT)
    assert_refused(done, 2, "a different model")
    done = treelm("parse", "-m", parser, "--consensus", stdin=TEXT)
    assert_refused(done, 2, "--consensus is used with --rerank only")


def test_workers_and_files_of_parses_give_the_same(
    models: tuple[Path, Path], tmp_path: Path
) -> None:
    parser, treelets = models
    rerank = ("--rerank", treelets, "-k", "4", "-q")
    expected = assert_fine(treelm("parse", "-m", parser, *rerank, stdin=TEXT))
    workers = ("--engine", "processes", "--workers", "2")
    assert assert_fine(treelm("parse", "-m", parser, *rerank, *workers, stdin=TEXT)) == expected
    path = tmp_path / "x.forest"
    assert_fine(treelm("parse", "-m", parser, *rerank, "-o", path, stdin=TEXT))
    assert assert_fine(treelm("parse", "--from", path, "-k", "4")) == expected
    # A file that was begun with another reranker, or none, is not continued.
    for other in (("-k", "4"), (*rerank, "--rerank-weight", "3"), (*rerank, "--rerank-k", "60")):
        done = treelm("parse", "-m", parser, *other, "-o", path, stdin=TEXT)
        assert_refused(done, 2, "a different model")


def test_what_cannot_be_combined_is_refused(models: tuple[Path, Path], tmp_path: Path) -> None:
    parser, treelets = models
    done = treelm("parse", "-m", parser, "--rerank-weight", "2", stdin=TEXT)
    assert_refused(done, 2, "--rerank-weight is used with --rerank only")
    forests = ("--forests", "-o", tmp_path / "f.forest")
    done = treelm("parse", "-m", parser, "--rerank", treelets, *forests, stdin=TEXT)
    assert_refused(done, 2, "--rerank cannot be combined with --forests")
    done = treelm("parse", "-m", parser, "--rerank", treelets, "--rerank-weight", "0", stdin=TEXT)
    assert_refused(done, 2, "--rerank-weight")
    done = treelm("parse", "-m", treelets, "--rerank", parser, stdin=TEXT)
    assert_refused(done, 2)
    done = treelm("parse", "--from", tmp_path / "x.forest", "--rerank", treelets)
    assert_refused(done, 2, "--from cannot be combined")
