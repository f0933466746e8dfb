"""`treelm tune`: rounds of decoding, fixed lists, and resuming after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.command_line import assert_fine, assert_refused, treelm_inside

from treelm.corpus.nbest import NBestColumns
from treelm.errors import CorpusFormatError, UsageError
from treelm.tasks.tune import (
    Round,
    TuneOptions,
    Tuning,
    TuningCheckpoint,
    starting_weights,
    tune,
    tune_on_lists,
    vector_of,
)
from treelm.translation.weights import Weights

Capture = pytest.CaptureFixture[bytes]

REFERENCES = [
    "the cat sat on a mat .",
    "two dogs run over the green grass .",
    "a man is reading a newspaper .",
    "children play with a red ball .",
]
LAYOUT = (("Distortion0", 1), ("LM0", 1), ("Own0", 2))
START = starting_weights(LAYOUT)
FEW = TuneOptions(seed=1, restarts=2, rounds=6)


def everything() -> list[list[tuple[str, np.ndarray]]]:
    """Return the whole search space: hypotheses with features of which some are telling."""
    source = np.random.default_rng(7)
    found = []
    for reference in REFERENCES:
        words = reference.split()
        rows = []
        for _ in range(80):
            kept = [word if source.random() < 0.7 else "x" for word in words]
            right = sum(a == b for a, b in zip(kept, words, strict=True))
            values = source.normal(size=4).round(4)
            values[2] += right / 2
            rows.append((" ".join(kept), values))
        found.append(rows)
    return found


SPACE = everything()


def decode(weights: Weights, n: int = 10) -> Iterator[NBestColumns]:
    """Give the best hypotheses of the space: a decoder without search errors."""
    vector = vector_of(weights)
    for number, rows in enumerate(SPACE):
        scores = np.array([values @ vector for _, values in rows])
        chosen = np.argsort(-scores, kind="stable")[:n].tolist()
        yield NBestColumns(
            str(number),
            [rows[place][0] for place in chosen],
            [
                "Distortion0= {!r} LM0= {!r} Own0= {!r} {!r}".format(*rows[place][1].tolist())
                for place in chosen
            ],
            [repr(float(scores[place])) for place in chosen],
            [()] * n,
            range(1, n + 1),
            "decoder",
        )


def write_lists(path: Path) -> Path:
    path.write_text("".join(each.to_text() for each in decode(START, 40)))
    return path


def test_rounds_add_hypotheses_until_nothing_is_new() -> None:
    seen: list[Round] = []
    found = tune(decode, [REFERENCES], START, FEW, on_round=seen.append)
    assert tuple(seen) == found.rounds
    assert found.rounds[0].new == 40
    for before, after in zip(found.rounds, found.rounds[1:], strict=False):
        assert after.hypotheses == before.hypotheses + after.new
    first, last = found.rounds[0], found.rounds[-1]
    assert last.decoded > first.decoded
    assert found.weights["Own0"][0] > 0
    assert np.abs(vector_of(found.weights)).sum() == pytest.approx(1)
    if not last.new:
        assert found.stopped == "decoding found nothing new"
        assert last.decoded == pytest.approx(found.rounds[-2].tuned)
    assert tune(decode, [REFERENCES], START, FEW) == found


def test_without_rest_the_best_decoded_weights_are_returned() -> None:
    found = tune(decode, [REFERENCES], START, TuneOptions(seed=3, restarts=0, rounds=2))
    if found.rounds[-1].new:
        assert found.stopped == "2 rounds are done"
        assert found.weights == found.rounds[0].weights


@pytest.mark.parametrize("method", ["mert", "mira"])
def test_fixed_lists(method: str, tmp_path: Path) -> None:
    options = TuneOptions(seed=1, method=method, fixed=frozenset({"LM0"}))  # type: ignore[arg-type]
    found = tune_on_lists(list(decode(START, 40)), [REFERENCES], None, options)
    (only,) = found.rounds
    assert only.tuned >= only.decoded
    assert found.weights["LM0"] == START["LM0"]
    assert found.weights["Own0"][0] > 0
    with pytest.raises(UsageError, match='there is no feature "LM7" to fix'):
        tune_on_lists(
            decode(START), [REFERENCES], None, TuneOptions(seed=1, fixed=frozenset({"LM7"}))
        )
    with pytest.raises(CorpusFormatError, match="sentence 4 has no hypothesis"):
        tune_on_lists(decode(START), [[*REFERENCES, "one more"]], None, FEW)


def test_new_features_start_at_zero() -> None:
    assert dict(START) == {"Distortion0": (0.3,), "LM0": (0.5,), "Own0": (0.0, 0.0)}
    given = Weights({"LM0": [2.0], "UnknownWordPenalty0": [1.0]})
    assert starting_weights(LAYOUT, given)["LM0"] == (2.0,)
    with pytest.raises(CorpusFormatError, match="there is no such feature"):
        starting_weights(LAYOUT, Weights({"TM0": [1.0]}))


class Stopped(Exception):
    """Stands for the end of a process."""


def stopping(monkeypatch: pytest.MonkeyPatch, after: int) -> Callable[[], None]:
    """Stop after so many checkpoints; return what lets things continue."""
    write = TuningCheckpoint.write
    written = []

    def stop(self: TuningCheckpoint, *arguments: object, **notes: str) -> None:
        write(self, *arguments, **notes)  # type: ignore[arg-type]
        written.append(1)
        if len(written) == after:
            raise Stopped

    monkeypatch.setattr(TuningCheckpoint, "write", stop)
    return lambda: monkeypatch.setattr(TuningCheckpoint, "write", write)


@pytest.mark.parametrize("method", ["mert", "mira"])
def test_stopped_after_any_round_the_result_is_the_same(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = TuneOptions(seed=1, method=method, restarts=1, epochs=9, rounds=4)  # type: ignore[arg-type]
    whole = tune(decode, [REFERENCES], START, options)
    for number in range(1, len(whole.rounds) + 1):
        folder = tmp_path / f"{method}{number}"
        go_on = stopping(monkeypatch, number)
        with pytest.raises(Stopped):
            tune(decode, [REFERENCES], START, options, checkpoint=(folder, "key"))
        go_on()
        calls = []

        def counting(weights: Weights, calls: list[int] = calls) -> Iterator[NBestColumns]:
            calls.append(1)
            return decode(weights)

        again = tune(
            counting, [REFERENCES], START, options, checkpoint=(folder, "key"), resume=True
        )
        assert again == whole
        assert len(calls) == len(whole.rounds) - number
        assert not folder.exists()


def test_the_checkpoint_of_another_tuning_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = stopping(monkeypatch, 1)
    with pytest.raises(Stopped):
        tune(decode, [REFERENCES], START, FEW, checkpoint=(tmp_path / "w", "key"))
    go_on()
    with pytest.raises(UsageError, match="checkpoint of another training") as seen:
        tune(decode, [REFERENCES], START, FEW, checkpoint=(tmp_path / "w", "other"), resume=True)
    assert seen.value.code == "E_CHECKPOINT"


TABLE = """\
das ||| the ||| 0.6 0.5
das ||| that ||| 0.4 0.5
haus ||| house ||| 0.7 0.5
haus ||| home ||| 0.3 0.6
ist ||| is ||| 1.0 0.9
klein ||| small ||| 0.5 0.4
klein ||| little ||| 0.5 0.6
das haus ||| the house ||| 0.5 0.7
"""
SOURCE = "das haus ist klein\ndas ist das haus\n\nist das klein\n"
TARGET = "the house is little\nthat is the house\n\nis that little\n"

KILLED = """
import os, signal, sys
from treelm.tasks.tune import TuningCheckpoint
from treelm.cli.main import run
write = TuningCheckpoint.write
def kill(self, *arguments, **notes):
    write(self, *arguments, **notes)
    os.kill(os.getpid(), signal.SIGKILL)
TuningCheckpoint.write = kill
run(sys.argv[1:])
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in (("table", TABLE), ("source", SOURCE), ("target", TARGET)):
        (tmp_path / name).write_text(text)
    return tmp_path


def tune_call(files: Path, output: str, *more: str) -> list[str]:
    return [
        *("tune", "--phrase-table", str(files / "table"), "--source", str(files / "source")),
        *("--references", str(files / "target"), "--seed", "1", "-o", str(files / output)),
        *("--restarts", "2", "--n-best", "5", "--quiet", *more),
    ]


def test_killed_and_resumed_the_weights_are_the_same(files: Path, capfdbinary: Capture) -> None:
    whole = treelm_inside(capfdbinary, *tune_call(files, "whole.json"))
    assert b"round 2:" in assert_fine(whole)
    code = subprocess.run(
        [sys.executable, "-c", KILLED, *tune_call(files, "killed.json")], env=os.environ
    ).returncode
    assert code == -signal.SIGKILL
    assert not (files / "killed.json").exists()
    assert (files / "killed.json.training").is_dir()
    again = treelm_inside(capfdbinary, *tune_call(files, "killed.json", "--resume"))
    assert assert_fine(again) == whole.stdout
    assert (files / "killed.json").read_bytes() == (files / "whole.json").read_bytes()
    assert not (files / "killed.json.training").exists()


def test_the_command_tunes_on_lists(tmp_path: Path, capfdbinary: Capture) -> None:
    lists = write_lists(tmp_path / "dev.nbest")
    (tmp_path / "ref").write_text("".join(f"{line}\n" for line in REFERENCES))
    call = ["tune", "--nbest", lists, "--references", tmp_path / "ref", "--seed", "1"]
    done = treelm_inside(
        capfdbinary, *call, "-o", tmp_path / "w.json", "--method", "mira", "--json"
    )
    record = json.loads(assert_fine(done))
    assert record["weights"] == json.loads((tmp_path / "w.json").read_text())
    assert record["stopped"] == "the lists are fixed"
    assert record["bleu"] == record["rounds"][0]["tuned_bleu"] > record["rounds"][0]["decoded_bleu"]


def test_the_command_doubts_weights_that_win_nothing(tmp_path: Path, capfdbinary: Capture) -> None:
    lists = write_lists(tmp_path / "dev.nbest")
    (tmp_path / "ref").write_text("das ist ganz etwas anderes\n" * len(REFERENCES))
    call = ["tune", "--n-best-lists", lists, "--references", tmp_path / "ref", "--seed", "1"]
    done = treelm_inside(capfdbinary, *call, "-o", tmp_path / "w.json", "--method", "mira")
    assert done.returncode == 0
    assert b"Do the references belong to these sentences" in done.stderr


def test_the_command_refuses_what_does_not_fit(
    files: Path, tmp_path: Path, capfdbinary: Capture
) -> None:
    lists = write_lists(tmp_path / "dev.nbest")
    (tmp_path / "one").write_text("a b c\n")
    seed = ["--seed", "1", "-o", tmp_path / "w.json"]
    for code, words, parts in (
        (2, ["--references", tmp_path / "one", *seed], ["--n-best-lists, or --phrase-table"]),
        (
            2,
            ["--n-best-lists", lists, "--references", tmp_path / "one", "--resume", *seed],
            ["not decoded again"],
        ),
        (
            3,
            ["--n-best-lists", lists, "--references", tmp_path / "one", *seed],
            ["dev.nbest:41: there is no sentence 1: there are 1"],
        ),
        (
            3,
            [
                *("--phrase-table", files / "table", "--source", files / "source"),
                *("--references", tmp_path / "one", *seed),
            ],
            ["has 4 lines, but", "has 1"],
        ),
    ):
        assert_refused(treelm_inside(capfdbinary, "tune", *words), code, *parts)
    assert not (tmp_path / "w.json").exists()


def test_tuning_is_a_value() -> None:
    found = tune_on_lists(decode(START), [REFERENCES], None, FEW)
    assert isinstance(found, Tuning)
    assert found.to_record()["bleu"] == found.rounds[0].tuned
