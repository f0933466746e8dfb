"""Runs the notebooks of the documentation and keeps what they print, without Jupyter.

The code cells of a notebook run in order in one namespace and in a folder of their own. What a
cell prints, and the text of its last expression, becomes its output; pictures are left out, so
that the files stay small.

    python docs/run_notebooks.py            runs all of them and writes their outputs
    python docs/run_notebooks.py --check    fails if an output is not the one that is kept
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "notebooks"
#: Characters of an output that are kept.
LONGEST = 6000


def run_notebook(path: Path) -> dict[str, Any]:
    """Return a notebook with the outputs that its cells give now."""
    notebook: dict[str, Any] = json.loads(path.read_text("utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for number, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] != "code":
                continue
            count += 1
            cell["execution_count"] = count
            source = "".join(cell["source"])
            cell["outputs"] = run_cell(source, f"{path.name}, cell {number}", namespace, count)
    return notebook


def run_cell(source: str, name: str, namespace: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Return the outputs of a cell: what it prints, and the text of its last expression."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(tree, name, "exec"), namespace)
        if last is not None:
            expression = ast.Expression(last.value)  # type: ignore[attr-defined]  # an Expr
            value = eval(compile(expression, name, "eval"), namespace)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        lines = printed.getvalue()[:LONGEST].splitlines(keepends=True)
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines})
    if value is not None:
        lines = repr(value)[:LONGEST].splitlines(keepends=True)
        outputs.append(
            {
                "data": {"text/plain": lines},
                "execution_count": count,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return outputs


def as_text(notebook: dict[str, Any]) -> str:
    """Return a notebook as its file has it."""
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def main(arguments: list[str]) -> int:
    """Run all notebooks, and write or check them."""
    wrong = []
    for path in sorted(FOLDER.glob("*.ipynb")):
        made = as_text(run_notebook(path))
        if "--check" not in arguments:
            path.write_text(made, "utf-8")
        elif made != path.read_text("utf-8"):
            wrong.append(path.name)
    for name in wrong:
        sys.stderr.write(f"{name}: its outputs have changed; run docs/run_notebooks.py\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
