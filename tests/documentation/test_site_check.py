"""The check of the built site finds dead links, pages without search, and what other hosts serve."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from tests.scripts import load_script

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def check() -> ModuleType:
    return load_script(REPOSITORY / "docs" / "check_site.py")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site of two pages that is whole."""
    (tmp_path / "search.json").write_text(
        '{"items": [{"location": "index.html"}, {"location": "a.html#top"}]}', encoding="utf-8"
    )
    (tmp_path / "style.css").write_text("", encoding="utf-8")
    (tmp_path / "index.html").write_text(
        '<link rel="stylesheet" href="style.css"><h1 id="home">x</h1>'
        '<a href="a.html#top">a</a> <a href="https://example.org/">out</a>',
        encoding="utf-8",
    )
    (tmp_path / "a.html").write_text(
        '<h1 id="top">a</h1><a href="./#home">back</a>', encoding="utf-8"
    )
    return tmp_path


def test_a_whole_site_has_no_problems(check: ModuleType, site: Path) -> None:
    assert list(check.problems(site)) == []
    assert check.main([str(site)]) == 0


@pytest.mark.parametrize(
    ("added", "problem"),
    [
        ('<a href="b.html">b</a>', "a.html: b.html leads nowhere"),
        ('<a href="index.html#gone">b</a>', "a.html: index.html#gone leads nowhere"),
        ('<a href="../index.html">b</a>', "a.html: ../index.html leads nowhere"),
        ('<a href="#gone">b</a>', "a.html: #gone leads nowhere"),
        (
            '<script src="https://cdn.example.org/x.js"></script>',
            "a.html: loads https://cdn.example.org/x.js from another host",
        ),
        (
            '<link rel="stylesheet" href="//cdn.example.org/x.css">',
            "a.html: loads //cdn.example.org/x.css from another host",
        ),
        ('<img src="http://example.org/x.png">', "a.html: loads http://example.org/x.png from another host"),
    ],
)  # fmt: skip
def test_a_problem_is_named_with_its_page(
    check: ModuleType, site: Path, added: str, problem: str
) -> None:
    page = site / "a.html"
    page.write_text(page.read_text(encoding="utf-8") + added, encoding="utf-8")
    assert list(check.problems(site)) == [problem]
    assert check.main([str(site)]) == 1


def test_search_must_be_there_and_know_every_page(check: ModuleType, site: Path) -> None:
    (site / "new.html").write_text("<p>new</p>", encoding="utf-8")
    assert list(check.problems(site)) == ["new.html: not in the search index"]
    (site / "search.json").unlink()
    assert list(check.problems(site)) == [f"{site}: no search index"]


def test_a_folder_without_pages_is_no_site(check: ModuleType, tmp_path: Path) -> None:
    assert len(list(check.problems(tmp_path))) == 1
