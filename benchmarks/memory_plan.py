"""What `treelm em plan` says a training will take, beside what it takes.

The plan of an options file is made, and then the training that it plans is run; its largest memory
is compared with that of the plan. Plans are to be within 20 % for tables of more than 1 GiB.

    python benchmarks/memory_plan.py --text documents.txt --lines 400000
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path

from measuring import run_program

OPTIONS = {"order": 3, "topics": 10, "keep_topics": 5, "plsa_iterations": 2, "iterations": 1}


def plan_file(text: Path) -> str:
    """Return the options file of a training on a text."""
    lines = [f"{name} = {value}" for name, value in OPTIONS.items()]
    return "\n".join(
        ('system = "plsa"', "[corpus]", f"text = [{json.dumps(str(text))}]", "[model]", *lines)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare a memory plan with what is used.")
    parser.add_argument("--text", type=Path, required=True, help="tokenized text in documents")
    parser.add_argument("--lines", type=int, help="lines of it; all by default")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    program = [sys.executable, "-m", "treelm"]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        text = folder / "text"
        with given.text.open(encoding="utf-8") as source, text.open("w", encoding="utf-8") as out:
            out.writelines(islice(source, given.lines))
        (folder / "em.toml").write_text(plan_file(text))
        command = [*program, "em", "plan", "--config", str(folder / "em.toml"), "--json", "-q"]
        planned = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        options = [
            part
            for name, value in OPTIONS.items()
            for part in (f"--{name.replace('_', '-')}", str(value))
        ]
        threads = ["--threads", str(given.threads)]
        model = ["--text", text, "-o", folder / "model", "-q", *threads]
        used = run_program([*program, "train", "plsa", *options, *model], log=folder / "log")
        tables = (folder / "model" / "tables.safetensors").stat().st_size
    found = {
        "tokens": planned["tokens"],
        "planned_table_bytes": planned["table_bytes"],
        "stored_table_bytes": tables,
        "planned_peak_bytes": planned["peak_bytes"],
        "peak_bytes": int(used.megabytes * (1 << 20)),
        "plan_over_use": planned["peak_bytes"] / (used.megabytes * (1 << 20)),
        "processor_seconds": used.seconds,
    }
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
