"""n-gram models side by side with KenLM: training, size, scoring of known and of unseen text.

    python benchmarks/ngram.py --kenlm FOLDER [--text FILE] [--unseen FILE] [--order 5] [--core 0]

FOLDER contains KenLM's programs lmplz, build_binary and query. Everything runs on one core and is
measured in processor seconds, KenLM and treelm in turns; printed are the median, the smallest and
the largest of --rounds. Training is measured from the text to a model that can be loaded. Blank
lines, which lmplz counts as sentences, are taken out for both. If the package kenlm is installed,
its calls are measured beside ours, from the same Python strings. --share 0.25 takes a quarter of
the training text, --lines so many lines of each text for scoring.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from measuring import Spread, Use, call_seconds, in_turns, run_program

from treelm.corpus.encoder import encode_text
from treelm.corpus.files import read_lines
from treelm.models.ngram.model import NgramModel
from treelm.models.registry import load

DATA = Path(__file__).resolve().parents[2] / "shared/data/text"
PROGRAM = Path(sys.executable).with_name("treelm")
#: Forms of KenLM's models: name, options of build_binary.
KENLM_FORMS = {
    "probing": ("probing",),
    "trie": ("trie",),
    "trie -a 255": ("-a", "255", "trie"),
    "trie -q 8 -b 8 -a 255": ("-q", "8", "-b", "8", "-a", "255", "trie"),
}
#: Forms of our models: name, options of `treelm convert`.
OUR_FORMS: dict[str, tuple[str, ...]] = {
    "default": (),
    "8 bits": ("--bits", "8"),
    "compact": ("--layout", "compact"),
    "compact, 8 bits": ("--layout", "compact", "--bits", "8"),
}


@dataclass(frozen=True)
class Setting:
    """What all measurements have in common."""

    programs: Path
    folder: Path
    order: int
    memory: str
    core: str
    rounds: int

    def kenlm(self, form: str = "probing") -> Path:
        """Return the file of a form of KenLM's model."""
        return self.folder / f"kenlm {form}"

    def ours(self, form: str = "default") -> Path:
        """Return the folder of a form of our model."""
        return self.folder / f"treelm {form}"

    def run(self, *command: str | Path, stdin: Path | None = None) -> Use:
        """Run a program and return what it took."""
        return run_program(command, cores=self.core, stdin=stdin)


def write_lines(source: Path, target: Path, share: float = 1.0, most: int | None = None) -> Path:
    """Write the lines that have words, or a share of them, to a plain file."""
    lines = [line for line in read_lines(source) if line.strip()]
    lines = lines[: round(len(lines) * share)][:most]
    target.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return target


def folder_megabytes(path: Path) -> float:
    """Return the size of a file, or of all files of a folder."""
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return sum(each.stat().st_size for each in files) / 1e6


def train(text: Path, setting: Setting, rounds: int) -> dict[str, Any]:
    """Train both, in turns, and return seconds and memory."""
    memory: dict[str, float] = {}
    arpa = setting.folder / "kenlm.arpa"

    def treelm() -> float:
        command = [PROGRAM, "train", "ngram", "--order", str(setting.order), "--smoothing", "mkn"]
        command += ["--text", text, "-o", setting.ours(), "--threads", "1"]
        used = setting.run(*command, "--memory", setting.memory)
        memory["treelm"] = used.megabytes
        return used.seconds

    def kenlm() -> float:
        command = [setting.programs / "lmplz", "-o", str(setting.order), "--discount_fallback"]
        command += ["-S", setting.memory, "-T", setting.folder, "--text", text, "--arpa", arpa]
        used = setting.run(*command)
        memory["kenlm"] = used.megabytes
        return used.seconds + build("probing")

    def build(form: str) -> float:
        command = [setting.programs / "build_binary", "-T", setting.folder, *KENLM_FORMS[form]]
        return setting.run(*command, arpa, setting.kenlm(form)).seconds

    seconds = in_turns({"treelm": treelm, "kenlm": kenlm}, rounds)
    for form in list(KENLM_FORMS)[1:]:
        build(form)
    arpa.unlink()
    for form, options in list(OUR_FORMS.items())[1:]:
        setting.run(PROGRAM, "convert", setting.ours(), *options, "-o", setting.ours(form))
    return {
        "train_seconds": seconds,
        "train_megabytes": memory,
        "megabytes": {
            "treelm": {form: folder_megabytes(setting.ours(form)) for form in OUR_FORMS},
            "kenlm": {form: folder_megabytes(setting.kenlm(form)) for form in KENLM_FORMS},
        },
    }


def from_files(text: Path, events: int, setting: Setting) -> dict[str, Spread]:
    """Return words and ends per second that are read and scored from a file.

    "in process" is without the start of the program and the loading of the model: KenLM's query
    takes the same time for an empty input, which is taken off. The commands are whole.
    """
    works: dict[str, Callable[[], float]] = {}
    for form in OUR_FORMS:
        model = load(setting.ours(form))
        assert isinstance(model, NgramModel)

        def in_process(model: NgramModel = model) -> float:
            def score() -> None:
                encoded = encode_text(text, model.vocabulary)
                model.score_ids(encoded.ids, encoded.starts)

            return call_seconds(score)

        works[f"treelm {form}, in process"] = in_process
    for form in KENLM_FORMS:
        query = (setting.programs / "query", "-v", "summary", setting.kenlm(form))

        def without_loading(query: tuple[str | Path, ...] = query) -> float:
            return setting.run(*query, stdin=text).seconds - setting.run(*query).seconds

        works[f"kenlm {form}, in process"] = without_loading
    command = (PROGRAM, "score", "-m", setting.ours(), "--quiet", "--threads", "1", text)
    works["treelm score"] = lambda: setting.run(*command).seconds
    sentences = (setting.programs / "query", "-v", "sentence", setting.kenlm())
    works["kenlm query"] = lambda: setting.run(*sentences, stdin=text).seconds
    seconds = in_turns(works, setting.rounds)
    return {name: spread.rate(events) for name, spread in seconds.items()}


def from_strings(text: Path, setting: Setting) -> dict[str, Spread]:
    """Return words per second of calls with Python strings, beside the package kenlm."""
    lines = list(read_lines(text))
    model = load(setting.ours())
    assert isinstance(model, NgramModel)
    words = [line.split() for line in lines]
    few = words[: len(words) // 10]
    events = sum(map(len, words)) + len(words)
    advances = sum(map(len, few))

    def advance() -> None:
        start = model.initial()
        for sentence in few:
            state = start
            for word in sentence:
                state = model.advance(state, word).state

    works: dict[str, tuple[int, Callable[[], object]]] = {
        "treelm score_many": (
            events,
            lambda: sum(score.log_prob for score in model.score_many(lines)),
        ),
        "treelm score(line)": (events, lambda: sum(model.score(line).log_prob for line in lines)),
        "treelm advance": (advances, advance),
    }
    try:
        import kenlm
    except ImportError:
        pass
    else:
        theirs = kenlm.Model(str(setting.kenlm()))

        def base_score() -> None:
            for sentence in few:
                before, after = kenlm.State(), kenlm.State()
                theirs.BeginSentenceWrite(before)
                for word in sentence:
                    theirs.BaseScore(before, word, after)
                    before, after = after, before

        works["kenlm score(line)"] = events, lambda: sum(map(theirs.score, lines))
        works["kenlm BaseScore"] = advances, base_score
    seconds = in_turns(
        {name: lambda call=call: call_seconds(call) for name, (_, call) in works.items()},
        setting.rounds,
    )
    return {name: seconds[name].rate(number) for name, (number, _) in works.items()}


def one_sentence(text: Path, setting: Setting) -> dict[str, Spread]:
    """Return the processor seconds of scoring one sentence from the shell."""
    line = setting.folder / "one.txt"
    line.write_text(next(iter(read_lines(text))) + "\n", encoding="utf-8")
    query = (setting.programs / "query", "-v", "sentence", setting.kenlm())
    ours = (PROGRAM, "score", "-m", setting.ours(), line)
    return in_turns(
        {
            "treelm score": lambda: setting.run(*ours).seconds,
            "kenlm query": lambda: setting.run(*query, stdin=line).seconds,
        },
        max(setting.rounds, 5),
    )


def measure(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Measure everything and return what is printed."""
    setting = Setting(
        arguments.kenlm,
        folder,
        arguments.order,
        arguments.memory,
        str(arguments.core),
        arguments.rounds,
    )
    os.sched_setaffinity(0, {arguments.core})
    text = write_lines(arguments.text, folder / "text.txt", arguments.share)
    found: dict[str, Any] = train(text, setting, arguments.training_rounds)
    found["threads"] = 1
    most = arguments.lines
    for name, source in (("training", arguments.text), ("unseen", arguments.unseen)):
        sample = write_lines(source, folder / f"{name}.txt", most=most)
        lines = list(read_lines(sample))
        events = sum(len(line.split()) for line in lines) + len(lines)
        few = folder / f"{name} few.txt"
        few.write_text("".join(f"{line}\n" for line in islice(lines, most // 10)), "utf-8")
        found[name] = {
            "events": events,
            "events_per_second": from_files(sample, events, setting),
            "python_events_per_second": from_strings(few, setting),
        }
    found["one_sentence_seconds"] = one_sentence(text, setting)
    return found


def main() -> None:
    """Measure both and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kenlm", type=Path, required=True)
    parser.add_argument("--text", type=Path, default=DATA / "un-debates.txt.xz")
    parser.add_argument("--unseen", type=Path, default=DATA / "eltec.txt.xz")
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--memory", default="4G", help="memory limit for both sides")
    parser.add_argument("--share", type=float, default=1.0, help="share of the lines of the text")
    parser.add_argument("--lines", type=int, default=300_000, help="lines of each text scored")
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--training-rounds", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(arguments, Path(folder))
    print(json.dumps(found, indent=1, default=asdict))


if __name__ == "__main__":
    main()
