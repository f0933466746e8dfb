"""Check the site that ``make docs`` has built: ``python docs/check_site.py site``.

A site is whole if every link inside it leads to a page, and to a place on it; if its search index
is there and knows every page; and if no page loads anything from another host, so that it can be
read without a network.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Elements that a browser loads without being asked, and where they say from.
_LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
    "object": "data",
}
_LOADED_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "dns-prefetch"}
#: Pages that nobody searches for.
_NOT_SEARCHED = {"404.html"}


class _Page(HTMLParser):
    """The links of a page, what it loads, and the places that links may lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and set(given.get("rel", "").split()) & _LOADED_LINKS:
            self.loaded.append(given.get("href", ""))
        if tag in _LOADED and _LOADED[tag] in given:
            self.loaded.append(given[_LOADED[tag]])


@cache
def _page(path: Path) -> _Page:
    return _Page(path.read_text(encoding="utf-8"))


def problems(site: Path) -> Iterator[str]:
    """Yield what is wrong with a built site, one line each."""
    pages = sorted(site.rglob("*.html"))
    if not pages:
        yield f"{site}: no pages; run `make docs`"
        return
    index = "".join(
        path.read_text(encoding="utf-8") for path in (site / "search.json", site / "search.js")
        if path.exists()
    )  # fmt: skip
    if not index:
        yield f"{site}: no search index"
    known = set(re.findall(r'"location": ?"([^"#]*)', index))
    for path in pages:
        name = path.relative_to(site).as_posix()
        page = _page(path)
        for source in page.loaded:
            if urlsplit(source).netloc:
                yield f"{name}: loads {source} from another host"
        if name not in _NOT_SEARCHED:
            for link in page.links:
                if not _leads_somewhere(site, path, link):
                    yield f"{name}: {link} leads nowhere"
            if index and not {name, name.removesuffix("index.html")} & known:
                yield f"{name}: not in the search index"


def _leads_somewhere(site: Path, page: Path, link: str) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = page if not parts.path else (page.parent / unquote(parts.path)).resolve()
    if target.is_dir():
        target /= "index.html"
    if not target.exists() or not target.is_relative_to(site.resolve()):
        return False
    if not parts.fragment or target.suffix != ".html" or parts.fragment.startswith("__"):
        return True
    return unquote(parts.fragment) in _page(target).places


def main(arguments: list[str]) -> int:
    """Print all problems; 1 if there are any."""
    site = Path(arguments[0] if arguments else "site").resolve()
    found = list(problems(site))
    whole = f"{len(list(site.rglob('*.html')))} pages, all whole"
    sys.stdout.write("\n".join(found or [whole]) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
