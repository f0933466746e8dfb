"""The program `treelm`, which ``python -m treelm`` is too."""

from __future__ import annotations

from treelm.cli.process import run_process


def main() -> None:
    """Run the program and exit with its status."""
    run_process(_run)


def _run() -> int:
    # Here, so that Ctrl-C is answered in the same way while the program is still being loaded.
    from treelm.cli.main import program

    return program()


if __name__ == "__main__":
    main()
