"""Model cards: what the hub reads, what people read, and a folder that is still a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.command_line import assert_fine, treelm_inside

import treelm
from treelm.tasks.card import model_card


def head_of(card: str) -> dict[str, object]:
    """Return what stands between the first two lines of dashes."""
    _, head, _ = card.split("---\n", 2)
    return {
        name: json.loads(value)
        for name, _, value in (row.partition(": ") for row in head.splitlines())
    }


def test_card_tells_the_hub_and_people(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    text = tmp_path / "train.txt"
    text.write_text("".join(" ".join(tree.words) + "\n" for tree in treelm.sample_treebank()))
    folder = tmp_path / "boats"
    treelm.train("ngram", text, order=3).save(folder)
    words = ("card", "-m", folder, "--language", "en", "--license", "cc-by-4.0")
    done = treelm_inside(capfdbinary, *words, "-o", folder / "README.md", "-q")
    assert_fine(done)
    card = (folder / "README.md").read_text()
    assert head_of(card) == {
        "library_name": "treelm",
        "tags": ["treelm", "ngram"],
        "language": "en",
        "license": "cc-by-4.0",
    }
    model = treelm.load(folder, verify=True)
    assert "# boats\n" in card
    assert f"| {model.corpora[0].sentences} | {model.corpora[0].tokens} |" in card
    assert "| order | 3 |" in card
    assert 'model.surprisal("' in card
    # What a hub puts beside the files does not trouble the model.
    (folder / ".gitattributes").write_text("*.safetensors filter=lfs\n")
    assert treelm.load(folder).score("The boat .").log_prob == model.score("The boat .").log_prob


def test_card_of_a_file_of_another_program_says_what_is_not_known(tmp_path: Path) -> None:
    made = treelm.train("ngram", [tree.words for tree in treelm.sample_treebank()], order=2)
    assert isinstance(made, treelm.NgramModel)
    made.write_arpa(tmp_path / "lm.arpa")
    from treelm.models.ngram.arpa import read_arpa

    card = model_card(read_arpa(tmp_path / "lm.arpa"), "a|b")
    assert "Nothing is known about it" in card
    assert "license" not in head_of(card)
