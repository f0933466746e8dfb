"""The pictures of the README and of the pages are what their commands draw, and all are shown."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from tests.documentation.test_documentation import blocks, commands, run_command
from tests.scripts import load_script

REPOSITORY = Path(__file__).resolve().parents[2]


def test_the_commands_of_the_readme_draw_its_pictures(tmp_path: Path) -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    for block in blocks(readme):
        if block.language == "console":
            for command in commands(block):
                run_command(command.text, tmp_path)
    drawn = sorted(tmp_path.glob("*.svg"))
    assert [path.name for path in drawn] == ["surprisal.svg", "tree.svg"]
    for path in drawn:
        shown = REPOSITORY / "docs" / "pictures" / path.name
        assert f'src="docs/pictures/{path.name}"' in readme
        assert path.read_bytes() == shown.read_bytes(), (
            f"run the commands of the README and copy {path.name} to docs/pictures"
        )


# -- pictures of the pages ------------------------------------------------------------------


sys.path.append(str(REPOSITORY / "docs"))  # drawings are in modules of their own

MAKER = load_script(REPOSITORY / "docs" / "make_pictures.py")
#: Drawn by the commands of the README, and by hand.
_OTHERS = {"surprisal", "tree", "overview"}


def _words(picture: str) -> str:
    """Return a picture without its numbers and colours, which weights decide."""
    return re.sub(r"#[0-9a-f]{6}|[-+\N{MINUS SIGN}]?\d+(\.\d+)?", "#", picture)


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKER.PICTURES)
def test_a_picture_is_what_its_script_draws(name: str) -> None:
    if name in MAKER.FITTED:
        pytest.importorskip("sklearn")
    drawn = MAKER.PICTURES[name]()
    kept = (REPOSITORY / "docs" / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
    if name in MAKER.FITTED:
        drawn, kept = _words(drawn), _words(kept)
    assert drawn == kept, f"run `python docs/make_pictures.py {name}`, and look at it"


def test_every_picture_is_made_and_shown() -> None:
    kept = {path.stem for path in (REPOSITORY / "docs" / "pictures").iterdir()}
    assert kept == set(MAKER.PICTURES) | _OTHERS
    pages = [REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")]
    shown = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert all(f"pictures/{name}.svg" in shown for name in kept)


@pytest.mark.parametrize("path", sorted((REPOSITORY / "docs" / "pictures").glob("*.svg")))
def test_a_picture_says_what_it_shows_and_loads_nothing(path: Path) -> None:
    picture = path.read_text(encoding="utf-8")
    assert re.search(r"<title>.+</title>", picture)
    assert not re.search(r"(?:href|src)=|url\(|@import|<script", picture)
