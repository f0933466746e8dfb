"""`treelm evaluate reranking`: folds, oracle, and that no fold is tuned on itself."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from tests.command_line import assert_fine, assert_refused, treelm_inside

from treelm.corpus.nbest import NBestColumns
from treelm.errors import CorpusFormatError, UsageError
from treelm.tasks.evaluate.reranking import contiguous_folds, cross_validate, oracle_choice
from treelm.tasks.tune import TuneOptions
from treelm.translation.hypothesis_pool import pool_of_lists

Capture = pytest.CaptureFixture[bytes]


def listed(number: int, rows: list[tuple[str, str]]) -> NBestColumns:
    texts, features = zip(*rows, strict=True)
    size = len(rows)
    return NBestColumns(
        str(number), texts, features, ["0"] * size, [()] * size, range(1, size + 1), "lists"
    )


def test_folds_are_contiguous_and_nearly_equal() -> None:
    folds = contiguous_folds(23, 10)
    assert [len(each) for each in folds] == [3, 3, 3, 2, 2, 2, 2, 2, 2, 2]
    assert [*itertools.chain(*folds)] == [*range(23)]
    for number in (1, 24):
        with pytest.raises(UsageError, match="cannot be divided"):
            contiguous_folds(23, number)


def test_folds_are_not_tuned_on_themselves() -> None:
    references = ["the cat sat here", "two dogs run fast"]
    lists = [
        listed(0, [(references[0], "x= 1 0"), ("a b c d", "x= 0 1")]),
        listed(1, [("a b c d", "x= 1 0"), (references[1], "x= 0 1")]),
    ]
    found = cross_validate(lists, [references], None, TuneOptions(seed=1, restarts=5), folds=2)
    assert found.tuned == (pytest.approx(100.0), pytest.approx(100.0))
    # What is right on the one is wrong on the other.
    assert found.chosen == (1, 0)
    assert found.reranked.folds == (0.0, 0.0)
    assert found.reranked.together == 0.0
    assert found.oracle == pytest.approx(100.0)
    assert found.distinct == 2.0


def random_lists(size: int = 12) -> tuple[list[NBestColumns], list[str]]:
    source = np.random.default_rng(4)
    references, lists = [], []
    for number in range(size):
        words = [f"w{word}" for word in source.integers(0, 50, size=8)]
        references.append(" ".join(words))
        rows = []
        for _ in range(6):
            wrong = int(source.integers(0, 5))
            noise = source.normal(size=2).round(3)
            text = " ".join([*words[: 8 - wrong], *["x"] * wrong])
            rows.append((text, f"LM0= {noise[0]} Good= {noise[1] - 2 * wrong}"))
        lists.append(listed(number, rows))
    return lists, references


@pytest.mark.parametrize("method", ["mert", "mira"])
def test_a_good_feature_helps(method: str) -> None:
    lists, references = random_lists()
    options = TuneOptions(seed=1, method=method, restarts=2)  # type: ignore[arg-type]
    found = cross_validate(lists, [references], None, options, folds=4)
    assert found.first.together < found.reranked.together <= found.oracle + 1e-9
    assert found.difference.difference == pytest.approx(
        found.reranked.together - found.first.together
    )
    assert found.reranked.mean == pytest.approx(np.mean(found.reranked.folds))
    assert found.reranked.deviation == pytest.approx(np.std(found.reranked.folds, ddof=1))
    assert all(each["Good"][0] > 0 for each in found.weights)
    again = cross_validate(lists, [references], None, options, folds=4)
    assert again == found


def test_the_oracle_equals_brute_force() -> None:
    lists, references = random_lists(4)
    pool = pool_of_lists(lists, [references])
    ranges = [range(*pool.starts[place : place + 2]) for place in range(4)]
    best = max(pool.value(np.array(each)) for each in itertools.product(*ranges))
    assert pool.value(oracle_choice(pool)) == pytest.approx(best)


def test_a_sentence_without_a_list_is_refused() -> None:
    lists, references = random_lists(4)
    with pytest.raises(CorpusFormatError, match="sentence 4 has no hypothesis"):
        cross_validate(lists, [[*references, "x"]], None, TuneOptions(seed=1), folds=2)


def test_the_command(tmp_path: Path, capfdbinary: Capture) -> None:
    lists, references = random_lists()
    (tmp_path / "lists").write_text("".join(each.to_text() for each in lists))
    (tmp_path / "ref").write_text("".join(f"{line}\n" for line in references))
    call = ["evaluate", "reranking", tmp_path / "lists", "--references", tmp_path / "ref"]
    call += ["--seed", "1", "--restarts", "0", "--folds", "3"]
    done = treelm_inside(capfdbinary, *call, "--best", tmp_path / "best", "--json")
    record = json.loads(assert_fine(done))
    assert len(record["reranked"]["folds"]) == 3
    assert record["signature"].startswith("treelm|task:reranking|folds:contiguous-3|method:mert")
    assert len((tmp_path / "best").read_text().splitlines()) == 12
    text = assert_fine(treelm_inside(capfdbinary, *call)).decode()
    assert f"{record['reranked']['together']:.2f}" in text
    done = treelm_inside(capfdbinary, *call[:-1], "20")
    assert_refused(done, 2, "12 sentences cannot be divided into 20 folds")
