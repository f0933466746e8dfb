"""Kills trainings and writers of every kind at random moments, and looks at what they leave.

    python tests/fuzz/kill_campaign.py --tries 2000 --seed 1 --minutes 20 --output findings.jsonl

After a kill the old result is there or the new one, whole. The same command, resumed where it can
be, then gives what it gives undisturbed, and leaves nothing else behind, in the folder or in the
place for temporary files. Anything else is a finding, and the exit code is 77.
"""

from __future__ import annotations

import random
import re
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

if __name__ == "__main__":  # run as a script, whose folder is all that Python looks into
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.every_system import TRAININGS
from tests.fuzz.forked_program import Campaign, run_campaign, run_program

from treelm.models.registry import find_system

#: Writers that are no trainings: all that is typed, and what is written.
_WRITERS = {
    "vocabulary --text train.txt --min-count=1": "made.vocabulary",
    "counts build --text train.txt --order 3": "made.counts",
    "counts build --treelets full --trees train.mrg": "made.treelets",
    "convert ngram made.arpa": "made.arpa",
    "convert ngram made.arpa.gz": "made.arpa.gz",
    "score -m ngram train.txt": "made.scores",
    "surprisal -m hhmm dev.txt": "made.tsv",
    "parse -m pcfg dev.txt": "made.mrg",
    "parse -m pcfg -k 3 dev.txt": "made.forest",
    "transform --pipeline treelet train.mrg": "made.transformed",
    "corrupt noisy --trees dev.mrg --seed 1": "made.noisy",
    "sample -m ngram -n 50 --seed 1": "made.sample",
}
#: Makes one try in a folder of models.
Attempt = Callable[[random.Random, Path, Campaign], None]
_DATES = re.compile(rb"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?")


def _commands() -> dict[str, tuple[list[str], str, bool]]:
    """Return what is typed, what it writes, and whether it can be resumed, by a name."""
    found = {}
    for name, line in TRAININGS.items():
        words = line.split()
        words[-1] = "made"
        found[f"train {name}"] = (["train", *words, "-q"], "made", find_system(name).is_resumable)
    for line, target in _WRITERS.items():
        words = line.split()
        named = [] if target in words else ["-o", target]
        quiet = ["-q"] if words[0] not in ("vocabulary", "sample") else []
        found[line] = ([*words, *named, *quiet], target, False)
    return found


COMMANDS = _commands()


def contents(path: Path) -> dict[str, bytes] | None:
    """Return the bytes of a file or of the files of a folder, without dates; None for nothing."""
    if not path.exists():
        return None
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    return {str(each.relative_to(path)): _DATES.sub(b"DATE", each.read_bytes()) for each in files}


def copy_data(folder: Path, work: Path) -> set[str]:
    """Link data and models into a folder of one try, and return their names."""
    work.mkdir()
    for path in folder.iterdir():
        if path.name != work.name:
            (work / path.name).symlink_to(path)
    return {path.name for path in work.iterdir()}


@cache
def undisturbed(name: str, folder: Path) -> tuple[dict[str, bytes], float]:
    """Return what a command writes, and how long it takes."""
    arguments, target, _ = COMMANDS[name]
    work = folder / "undisturbed"
    copy_data(folder, work)
    done = run_program(arguments, work)
    written = contents(work / target)
    shutil.rmtree(work)
    if done.code or written is None:
        raise RuntimeError(f"{name}: {done.stderr.decode()}")
    return written, done.seconds


def attempt(choose: random.Random, folder: Path, campaign: Campaign) -> None:
    """Kill one command, then run it again."""
    name = choose.choice(list(COMMANDS))
    arguments, target, resumable = COMMANDS[name]
    new, seconds = undisturbed(name, folder)
    work = folder / "work"
    known = copy_data(folder, work)
    temporary = work / "temporary"
    temporary.mkdir()
    old = None
    if choose.random() < 0.5 and not target.endswith(".forest"):
        _put_old(work / target, is_folder=set(new) != {"."})
        old = contents(work / target)
    variables = {"TMPDIR": str(temporary)}
    kills = choose.choice((1, 1, 1, 2, 3))
    moments = [choose.random() * 1.05 * seconds for _ in range(kills)]
    resuming = ["--resume"] if resumable else []
    more = ["--force"] if old is not None and "--force" in arguments else []
    fault, ends = None, []
    for turn, moment in enumerate(moments):
        line = [*arguments, *more, *(resuming if turn else [])]
        killed = run_program(line, work, variables=variables, kill_after=moment)
        ends.append(killed.code)
        found = contents(work / target)
        unfinished = target.endswith(".forest")  # stays, for the next attempt
        if found not in (old, new) and not unfinished:
            fault = fault or f"neither old nor new after a kill at {moment:.3f} s"
        if killed.code not in (-9, 0):
            fault = fault or f"exit code {killed.code}: {killed.stderr[-300:]!r}"
    again = run_program([*arguments, *more, *resuming], work, variables=variables)
    if fault is None and again.code:
        fault = f"afterwards: exit code {again.code}: {again.stderr[-300:]!r}"
    if fault is None and contents(work / target) != new:
        fault = "afterwards: another result than undisturbed"
    left = {path.name for path in work.iterdir()} - known - {target, temporary.name}
    left |= {f"TMPDIR/{path.name}" for path in temporary.iterdir()}
    if fault is None and left:
        fault = f"left behind: {sorted(left)}"
    shutil.rmtree(work)
    end = "killed" if -9 in ends else "too late to be killed"
    campaign.note(name.split(" --")[0], end, fault, line=arguments, moments=moments, old=bool(old))


def _put_old(target: Path, *, is_folder: bool) -> None:
    """Put another result where the new one goes."""
    if is_folder:
        shutil.copytree(target.with_name("ngram").resolve(), target)
    else:
        target.write_text("old\n")


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign and return the exit code."""
    return run_campaign("Kill trainings and writers.", attempt, arguments, tries=2000)


if __name__ == "__main__":
    sys.exit(main())
