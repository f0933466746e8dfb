"""Factorial designs: conditions, effects, interactions."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from tests.models.ngram_models import small_ngram

from treelm.errors import CorpusFormatError, UsageError
from treelm.tasks.evaluate.designs import Factor, Region, draw_design, evaluate_design
from treelm.tasks.surprisal.stimuli import Stimuli, read_stimuli

MODEL = small_ngram(order=3)
HARBOURS = {
    ("1", "old", "left"): "The old ferry left the harbour .",
    ("1", "old", "came"): "The old ferry came the harbour .",
    ("1", "new", "left"): "The new ferry left the harbour .",
    ("1", "new", "came"): "The new ferry came the harbour .",
    ("2", "old", "left"): "The old boat left .",
    ("2", "old", "came"): "The old boat came .",
    ("2", "new", "left"): "The new boat left .",
    ("2", "new", "came"): "The new boat came .",
    ("3", "old", "left"): "The old frumious left .",
}
FACTORS = [Factor("age"), Factor("verb", ("left", "came"))]


def whole_sentences(folder: Path) -> Stimuli:
    path = folder / "items.tsv"
    rows = ["item\tage\tverb\tcritical\tsentence"]
    rows += ["\t".join((*key, "4", sentence)) for key, sentence in HARBOURS.items()]
    path.write_text("\n".join(rows) + "\n")
    return read_stimuli(path)


def bits(item: str, age: str, verb: str, place: int = 3) -> float:
    return MODEL.surprisal(HARBOURS[item, age, verb])[place].surprisal


def test_interaction_is_a_difference_of_differences(tmp_path: Path) -> None:
    found = evaluate_design(MODEL, whole_sentences(tmp_path), FACTORS, Region(None, "critical"))
    assert found.items == ("1", "2")
    assert found.left_out == ("3",)
    wanted = [
        (bits(item, "new", "came") - bits(item, "new", "left"))
        - (bits(item, "old", "came") - bits(item, "old", "left"))
        for item in "12"
    ]
    effect = found.effects["interaction"]
    assert effect.mean == pytest.approx(np.mean(wanted))
    assert min(wanted) <= effect.interval.low <= effect.mean <= effect.interval.high <= max(wanted)
    verb = [
        np.mean([bits(item, age, "came") - bits(item, age, "left") for age in ("old", "new")])
        for item in "12"
    ]
    assert found.effects["verb"].mean == pytest.approx(np.mean(verb))
    assert found.conditions["new", "left"].mean == pytest.approx(
        np.mean([bits(item, "new", "left") for item in "12"])
    )
    assert not found.unknown.any()
    assert ET.fromstring(draw_design({"3-gram": found}, "verbs")).tag.endswith("svg")


def test_regions_are_summed(tmp_path: Path) -> None:
    path = tmp_path / "items.tsv"
    rows = ["item\tverb\tregion\tword"]
    for verb in ("left", "came"):
        rows += [
            f"1\t{verb}\t1\tThe old ferry",
            f"1\t{verb}\t2\t{verb} the",
            f"1\t{verb}\t3\tsea .",
        ]
    path.write_text("\n".join(rows) + "\n")
    stimuli = read_stimuli(path, ["item", "verb"])
    found = evaluate_design(MODEL, stimuli, [Factor("verb")], Region("2"))
    score = MODEL.surprisal("The old ferry left the sea .")
    assert found.conditions["left",].mean == pytest.approx(score[3].surprisal + score[4].surprisal)
    assert list(found.effects) == ["verb: came - left"]
    two = evaluate_design(MODEL, whole_sentences(tmp_path), FACTORS, Region(None, "critical", 2))
    assert two.conditions["old", "left"].mean == pytest.approx(
        np.mean([bits(i, "old", "left") + bits(i, "old", "left", 4) for i in "12"])
    )


@pytest.mark.parametrize(
    ("factors", "region", "message"),
    [
        ([Factor("size")], Region(None, "critical"), 'no column "size"'),
        ([Factor("age", ("old", "blue"))], Region(None, "critical"), 'has no "blue"'),
        ([Factor("age", ("old",))], Region(None, "critical"), "two different levels"),
        (FACTORS, Region(), "either"),
        (FACTORS, Region("2"), 'no column "region"'),
        (FACTORS, Region(None, "verb"), "number of a word"),
        ([Factor("age")], Region(None, "critical"), "has two sentences in the condition old"),
        ([Factor("item"), Factor("age")], Region(None, "critical"), "two with two levels each"),
    ],
)
def test_designs_that_make_no_sense_are_refused(
    tmp_path: Path, factors: list[Factor], region: Region, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        evaluate_design(MODEL, whole_sentences(tmp_path), factors, region)


def test_a_design_without_whole_items_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "items.tsv"
    path.write_text("item\tverb\tcritical\tsentence\n1\ta\t1\tThe boat\n2\tb\t1\tThe boat\n")
    with pytest.raises(CorpusFormatError, match="no item has the region in all conditions"):
        evaluate_design(MODEL, read_stimuli(path), [Factor("verb")], Region(None, "critical"))
