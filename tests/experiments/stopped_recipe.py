"""Run a recipe that is killed after every few files it keeps, and started again until it ends.

Usage: python stopped_recipe.py FILES RECIPE OPTIONS...

Prints how often it was killed.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path

from treelm.models import registry  # noqa: F401 (imported once for all lives of the recipe)

_KILLED = 75


def kill_after(files: int) -> None:
    """End this process at once, as a kill would, after so many new files have their names."""
    kept = 0

    def watched(move: Callable[..., None]) -> Callable[..., None]:
        def rename(source: str, target: str, **options: object) -> None:
            nonlocal kept
            is_new = not Path(target).exists()
            move(source, target, **options)
            # Files inside a model that is being saved get their names with the model.
            if is_new and ".treelm-save-" not in str(target):
                kept += 1
                if kept == files:
                    os._exit(_KILLED)

        return rename

    os.replace = watched(os.replace)  # type: ignore[assignment]
    os.rename = watched(os.rename)  # type: ignore[assignment]


def main() -> None:
    """Run the recipe again and again."""
    files, recipe = int(sys.argv[1]), sys.argv[2]
    kills = 0
    while True:
        child = os.fork()
        if child == 0:
            kill_after(files)
            sys.argv = sys.argv[2:]
            sys.path.insert(0, str(Path(recipe).parent))
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            runpy.run_path(recipe, run_name="__main__")
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code != _KILLED:
            break
        kills += 1
    if code:
        sys.exit(f"{recipe} ended with {code} after {kills} kills")
    sys.stdout.write(f"{kills}\n")


if __name__ == "__main__":
    main()
