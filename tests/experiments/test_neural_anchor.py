"""The recipe that trains neural models of the same text, where there is a PyTorch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.command_line import run_script
from tests.experiments.small_data import RECIPES, train_parser, write_data, write_zorro
from tests.scripts import load_script

torch = pytest.importorskip("torch")

TEXT = [np.array(words, np.int64) for words in ([3, 1], [0], [], [4, 4, 2], [1, 1, 0, 2, 3])]


@pytest.fixture(scope="module")
def networks():  # type: ignore[no-untyped-def]
    return load_script(RECIPES / "neural_anchor/networks.py")


@pytest.mark.parametrize("kind", ["LSTM", "Transformer"])
def test_outcomes_of_a_network_sum_to_one(networks, kind: str) -> None:
    """Every next word or end of every prefix, however sentences are put together."""
    sizes = networks.Sizes(embedding=8, width=8)
    counts = np.array([5, 1, 3, 0, 2])
    model = networks.new_model(kind, counts, sizes, longest=6, seed=1, device="cpu")
    assert sorted(model.ranks) == list(range(6))
    assert model.ranks[-1] == 0  # nothing is as frequent as ends
    whole = model.scores(TEXT)
    alone = np.concatenate([model.scores([words]) for words in TEXT])
    assert whole == pytest.approx(alone, abs=1e-4)
    given = torch.tensor([[0, 2, 5]])
    model.network.eval()
    total = sum(
        model.network.log_probs(given, torch.full((1, 3), outcome), torch.tensor([3])).exp()
        for outcome in range(6)
    )
    assert total.tolist() == pytest.approx([1, 1, 1], abs=1e-5)


@pytest.mark.parametrize("kind", ["LSTM", "Transformer"])
def test_a_network_learns_and_resumes(networks, kind: str, tmp_path: Path) -> None:
    sizes = networks.Sizes(embedding=8, width=8, dropout=0.0, rate=0.05, epochs=60)
    said: list[str] = []

    def learned(name: str, stop_after: int | None = None):  # type: ignore[no-untyped-def]
        model = networks.new_model(
            kind, np.array([5, 1, 3, 0, 2]), sizes, longest=6, seed=1, device="cpu"
        )

        def tell(line: str) -> None:
            said.append(line)
            if line.startswith(f"epoch {stop_after}:"):
                raise KeyboardInterrupt

        given = {"seed": 1, "checkpoint": tmp_path / name, "tell": tell}
        model.learn(TEXT * 20, TEXT, sizes, **given)
        return model.scores(TEXT)

    before = networks.new_model(
        kind, np.array([5, 1, 3, 0, 2]), sizes, longest=6, seed=1, device="cpu"
    ).scores(TEXT)
    found = learned("whole.pt")
    assert found.sum() > 0.6 * before.sum()
    with pytest.raises(KeyboardInterrupt):
        learned("parts.pt", stop_after=3)
    said.clear()
    assert learned("parts.pt") == pytest.approx(found, abs=1e-3)
    assert said[0].startswith("epoch 3:")


def test_networks_beside_other_models(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    write_data(data)
    write_zorro(data, "irregular-verb")
    (data / "text-open").mkdir()
    parser = train_parser(data, tmp_path)
    common = ["--data", str(data), "--threads", "1", "--parser", str(parser), "-k", "3"]
    common += ["--parsed", "1"]
    texts, report = tmp_path / "texts", tmp_path / "report"
    run_script(RECIPES / "parsed_text/run.py", *common, "--output", str(texts), "--parts", "4")
    options = ["--output", str(report), "--parsed-text", str(texts), "--parts", "1"]
    run_script(RECIPES / "neural_anchor/run.py", *common, *options, "--epochs", "3")
    rows = json.loads((report / "results.json").read_text())["results"]
    perplexity = {
        row["model"]: row["value"]
        for row in rows
        if row["table"] == "Perplexity" and row["data"] == "gum dev"
    }
    assert len(perplexity) == 4 + 1 + 4 + 2
    for name in ("LSTM", "Transformer"):
        assert 1 < perplexity[name] < 1000
        # A mixture with weights of other sentences is hardly worse than what it mixes.
        assert perplexity[f"{name} + 5-gram + TREELET"] < 1.05 * perplexity["5-gram"]
    accuracy = {(row["model"], row["data"]) for row in rows if row["table"] == "Accuracy"}
    assert ("LSTM", "BLiMP") in accuracy
    assert ("Transformer + 5-gram + TREELET", "Zorro, second halves") in accuracy
    tables = (report / "tables.md").read_text()
    assert "processor seconds of training" in tables
