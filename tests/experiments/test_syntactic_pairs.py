"""The recipe that judges minimal pairs by several models, alone and together."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.command_line import run_script
from tests.experiments.small_data import PHENOMENA, RECIPES, write_data, write_zorro
from tests.models.ngram_models import small_ngram
from tests.scripts import load_script


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    write_zorro(folder, "filler-gap-wh_question", "irregular-verb")
    (folder / "grammaticality/zorro/LICENSE").write_text("MIT\n", encoding="utf-8")
    return folder


def test_models_judge_alone_and_together(data: Path, tmp_path: Path) -> None:
    for order in (1, 2):
        small_ngram(order=order).save(tmp_path / f"order{order}")
    report = tmp_path / "report"
    models = [f"{order}-gram={tmp_path / f'order{order}'}" for order in (1, 2)]
    options = ("--data", str(data), "--output", str(report), "--threads", "1")
    assert run_script(RECIPES / "blimp/syntactic.py", *options, *models).strip() == str(report)
    rows = json.loads((report / "results.json").read_text())["results"]
    found = {(row["model"], row["data"]): (row["value"], row["n"]) for row in rows}
    # The words of a pair are the same, so that their counts cannot tell its sentences apart.
    assert found["1-gram", "BLiMP"] == (0.0, 40)
    assert found["2-gram", "BLiMP"] == (1.0, 40)
    assert found["2-gram", "Zorro, second halves"] == (1.0, 2)
    for which in ("half", "the other phenomena"):
        assert found[f"together, weights from {which}", "BLiMP, second halves"] == (1.0, 20)
    assert ("together, weights from half", "BLiMP") not in found
    tables = (report / "tables.md").read_text()
    assert all(f"| {name} | 10 | 0.000 | 1.000 |" in tables for name in PHENOMENA)
    assert "| filler-gap | 1 |" in tables
    assert len(list((tmp_path / "report.work").glob("*.npy"))) == 4


def test_weights_are_learnt_from_the_pairs_that_are_named() -> None:
    combining = load_script(RECIPES / "blimp/combining.py")
    assert combining.first_half("aababb").tolist() == [True, False, True, True, False, True]
    random = np.random.default_rng(1)
    right, noise = random.normal(1.0, 1.0, 4000), random.normal(0.0, 5.0, 4000)
    both = np.column_stack([right, noise])
    half = np.arange(4000) < 2000
    scores, weights = combining.combined_scores(both, half)
    assert weights[0] > 10 * abs(weights[1])
    assert (scores[~half] > 0).mean() == pytest.approx((right[~half] > 0).mean(), abs=0.02)
    # What is not learnt from has no part in the weights, be it ever so odd.
    both[~half] = -np.inf
    again, same = combining.combined_scores(both, half)
    assert same.tolist() == weights.tolist()
    assert np.isfinite(again).all()
