"""Ctrl-C inside every long kernel: heard at once, by one thread and by several."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.command_line import PATIENCE, SANITIZED

#: Each would run for minutes with a small model; they are given a model and a number of threads.
WORKS = {
    "prefixes": ("pcfg", "model.score_batch([words(3000)], threads=threads)"),
    "inside": ("pcfg", "model.sentence_log_probs([words(3000)] * 2, threads=threads)"),
    "latent": ("pcfg_la", "model.sentence_log_probs([words(3000)] * 2, threads=threads)"),
    "pruned": ("pcfg_la", "model.pruned().score(words(3000))"),
    "parse": ("pcfg", "model.parse_many([words(3000)] * 2, options=whole, threads=threads)"),
    "viterbi": ("pcfg", "model.parse_many([words(1000)] * 99, options=viterbi, threads=threads)"),
    "k-best": ("pcfg_la", "model.k_best_many([words(200)] * 99, 10**6, threads=threads)"),
    "forests": ("pcfg", "model.forests_many([words(3000)] * 2, options=whole, threads=threads)"),
    "stacks": ("hhmm", "model.score_batch([words(10**5)] * 60, threads=threads)"),
    "best stacks": (
        "hhmm",
        "model.parse_many([words(10**5)] * 20, options=whole, threads=threads)",
    ),
    "heads": ("slm", "model.score_batch([words(10**5)] * 2, threads=threads)"),
    "topics": ("composite", "model.score_batch([words(10**5)] * 2, threads=threads)"),
    "weights": ("lsvm", "model.margins([words(3000)] * 2, threads=threads)"),
    "decoder": ("hhmm", "list(decoder().translate([words(3000)] * 9, threads=threads))"),
    "mixture": ("interpolated", "model.score_batch([words(10**5)] * 60, threads=threads)"),
}
#: Processor time after which nothing is prepared any more.
_BEFORE = 1.0 if SANITIZED else 0.3
#: A sanitizer has nothing to find in one thread that is not in two.
_THREADS = [2] if SANITIZED else [1, 2]

CHILD = """
import itertools, signal, sys
from treelm.grammar.parser_options import ParserOptions
from treelm.models.registry import load

signal.signal(signal.SIGINT, signal.default_int_handler)
folder, work, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
text = open("train.txt", encoding="utf-8").read().split()
words = lambda count: tuple(itertools.islice(itertools.cycle(text), count))
whole = ParserOptions(max_words=10**9)
viterbi = ParserOptions(max_words=10**9, decoding="viterbi", pruning="none")
model = load(folder).with_max_words(10**9)

def decoder():
    from treelm.corpus.files import Content
    from treelm.translation.decoder import Decoder, DecoderConfig
    from treelm.translation.phrase_table import PhraseTable
    from treelm.translation.weights import Weights

    table = "".join(f"{word} ||| {word} ||| 0.5\\n" for word in sorted(set(text)))
    names = "Distortion LM WordPenalty PhrasePenalty TranslationModel UnknownWordPenalty"
    weights = Weights({f"{name}0": (1.0,) for name in names.split()})
    phrases = PhraseTable.read(Content("table", table.encode()))
    return Decoder(phrases, [model], weights, DecoderConfig(stack_size=None, beam_threshold=0.0))

print("begun", flush=True)
try:
    eval(work)
except KeyboardInterrupt:
    sys.exit(7)
"""


def _processor_seconds(child: subprocess.Popen[bytes]) -> float:
    fields = Path(f"/proc/{child.pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(sys.platform != "linux", reason="the processor time of a child is in /proc")
@pytest.mark.parametrize("threads", _THREADS)
@pytest.mark.parametrize("work", WORKS)
def test_ctrl_c_is_heard_inside_every_long_kernel(work: str, threads: int, models: Path) -> None:
    system, code = WORKS[work]
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, system, code, str(threads)],
        cwd=models,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"begun\n"
        begun = _processor_seconds(child)
        while (used := _processor_seconds(child)) < begun + _BEFORE:  # it is in the kernel now
            assert child.poll() is None, "it ended too soon"
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.stderr is not None
        assert (child.returncode, child.stderr.read()) == (7, b"")
        assert usage.ru_utime + usage.ru_stime - used < 2 * threads * PATIENCE
    finally:
        child.kill()
        child.wait()
        for stream in (child.stdout, child.stderr):
            assert stream is not None
            stream.close()
