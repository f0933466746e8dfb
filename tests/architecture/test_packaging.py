"""What a package index shows of treelm."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_pictures_and_links_of_the_readme_work_outside_the_repository() -> None:
    text = metadata("treelm")["Description"]
    shown = re.findall(r"!\[[^\]]*\]\(([^)]*)\)|<img src=\"([^\"]*)\"", text)
    pictures = [one or other for one, other in shown]
    assert len(pictures) >= 3
    assert all(picture.startswith("https://") for picture in pictures)
    links = re.findall(r"(?<!!)\[[^\]]*\]\(([^)]*)\)", text)
    assert links
    assert all(link.startswith(("https://", "#")) for link in links)


def test_pictures_and_links_of_the_readme_are_files() -> None:
    home = "https://github.com/treelm/treelm/blob/main/"
    raw = "https://raw.githubusercontent.com/treelm/treelm/main/"
    text = metadata("treelm")["Description"]
    found = re.findall(rf"(?:{re.escape(home)}|{re.escape(raw)})([^)\"#]+)", text)
    assert len(found) > 5
    assert [name for name in found if not (ROOT / name).exists()] == []


def test_every_version_of_python_has_its_classifier() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    known = metadata("treelm").get_all("Classifier") or []
    versions = [line.rsplit(" ", 1)[1] for line in known if re.search(r"Python :: 3\.\d+$", line)]
    assert project["requires-python"] == f">={versions[0]}"
    assert versions == [f"3.{minor}" for minor in range(11, 11 + len(versions))]
    links = dict(line.split(", ", 1) for line in metadata("treelm").get_all("Project-URL") or [])
    assert {"Homepage", "Documentation", "Changelog", "Issues"} <= links.keys()
