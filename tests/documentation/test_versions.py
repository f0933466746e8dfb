"""The version is the same wherever it is written."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
VERSION: str = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]["version"]


def test_citation_names_the_version() -> None:
    citation = (REPOSITORY / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [VERSION]


def test_changelog_begins_with_the_version_or_what_comes_after_it() -> None:
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(.+?)\]", changelog, re.MULTILINE)
    assert VERSION in versions[:2]
    assert len(set(versions)) == len(versions)
