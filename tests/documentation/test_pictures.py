"""The pictures of the README are what its commands draw."""

from __future__ import annotations

from pathlib import Path

from tests.documentation.test_documentation import blocks, commands, run_command

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
