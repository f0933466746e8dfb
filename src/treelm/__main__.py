"""``python -m treelm`` is the program `treelm`."""

from __future__ import annotations

from treelm.cli.main import main

if __name__ == "__main__":
    main()
