"""Runs one fuzz target: many inputs, one process, and every finding kept as a file.

The arguments are those of libFuzzer, as for the native targets:

    python -m tests.fuzz.fuzz_manifest -runs=20000 -seed=1 -max_len=4096 [FOLDER or FILE ...]

Folders hold inputs to start from, beside those of the target; files are run once each, and nothing
else is. A finding is any exception but a refusal, a broken promise, or an input that takes more than
two seconds of the processor; the input is written to ``-artifact_prefix`` and the exit code is 77.
"""

from __future__ import annotations

import argparse
import hashlib
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.mutation import Random, mutate_bytes

from treelm.errors import TreelmError

FINDING = 77
MAX_SECONDS = 2.0
FORGED = 3  # one in so many inputs


class TooSlow(Exception):
    """An input took too long."""


@dataclass(frozen=True)
class Target:
    """A reader to be attacked.

    Args:
        name: What it is called in messages and names of files.
        read: Reads an input and checks what must hold of it; raises `TreelmError` to refuse it.
        seeds: Good inputs.
        tokens: What stands in such inputs.
        forge: Makes an input that keeps the form, so that it is not refused at the door.
    """

    name: str
    read: Callable[[bytes], None]
    seeds: Sequence[bytes]
    tokens: Sequence[bytes]
    forge: Callable[[Random], bytes]


def inputs(
    target: Target, corpus: Sequence[bytes], runs: int, seed: int, max_length: int
) -> Iterator[bytes]:
    """Yield the corpus and then inputs made from it, `runs` in all."""
    yield from corpus[:runs]
    forged = corpus[0]
    for execution in range(len(corpus), runs):
        random = Random(seed, execution)
        if execution % FORGED:  # what was forged serves a few times more, with changed bytes
            source = forged if random.chance(2) else random.pick(corpus)
            data = mutate_bytes(source, random, target.tokens, corpus, max_length)
        else:
            data = forged = target.forge(random)[:max_length]
        yield data


def attack(target: Target, data: bytes) -> bool:
    """Run one input; return whether it was accepted.

    Raises:
        Exception: for a finding.
    """
    signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
    try:
        target.read(data)
        return True
    except TreelmError as refusal:
        message = str(refusal)
        if not message.isprintable() or len(message) > 1000:
            raise AssertionError(f"a message unfit for a terminal: {message!r}") from refusal
        return False
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def run_program(target: Target, arguments: Sequence[str] | None = None) -> int:
    """Run a target as a program and return its exit code."""
    parser = argparse.ArgumentParser(description=f"Fuzz the reader of {target.name}.")
    parser.add_argument("-runs", type=int, default=20_000)
    parser.add_argument("-seed", type=int, default=1)
    parser.add_argument("-max_len", type=int, default=4096)
    parser.add_argument("-artifact_prefix", default="./")
    parser.add_argument("corpus", nargs="*", type=Path)
    options = parser.parse_args(arguments)
    files = [path for path in options.corpus if not path.is_dir()]
    found = [p for path in options.corpus if path.is_dir() for p in path.iterdir() if p.is_file()]
    corpus = [*target.seeds, *(path.read_bytes() for path in sorted(found))]
    made: Iterator[bytes] = (path.read_bytes() for path in files)
    if not files:
        made = inputs(target, corpus, options.runs, options.seed, options.max_len)
    signal.signal(signal.SIGPROF, _too_slow)
    started = time.perf_counter()
    count = accepted = 0
    for data in made:
        try:
            accepted += attack(target, data)
        except Exception:
            path = f"{options.artifact_prefix}{target.name}-{hashlib.sha256(data).hexdigest()[:16]}"
            Path(path).write_bytes(data)
            traceback.print_exc()
            sys.stderr.write(f"{target.name}: a finding at execution {count}, kept in {path}\n")
            return FINDING
        count += 1
    seconds = time.perf_counter() - started
    sys.stdout.write(
        f"{target.name}: {count} executions in {seconds:.1f} s ({count / seconds:.0f} a second), "
        f"{accepted} accepted, no finding\n"
    )
    return 0


def _too_slow(number: int, frame: object) -> None:
    raise TooSlow
