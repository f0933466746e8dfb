"""The documentation is true: examples run, links lead somewhere, nothing is left undocumented."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import os
import pkgutil
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from cyclopts import App
from pydantic import BaseModel
from tests.packages.installed_package import as_installed
from tests.program_server import ProgramServer

import treelm
from treelm.cli.main import app
from treelm.cli.reference import reference
from treelm.models.ready import ready_models
from treelm.trees.profile import HeadRule, HeadStep, Profile

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
#: Pages with examples and links; the README is one of them.
TEXTS = [REPOSITORY / "README.md", *PAGES]

MODULES = sorted(
    found.name
    for found in pkgutil.walk_packages(treelm.__path__, "treelm.")
    if found.name not in ("treelm.__main__", "treelm._native")
)


def page_name(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


# -- doctests of the package ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["treelm", *MODULES])
def test_docstring_examples(name: str) -> None:
    if name == "treelm.testing.strategies":
        pytest.importorskip("hypothesis")
    result = doctest.testmod(importlib.import_module(name), optionflags=0)
    assert result.failed == 0, f"{result.failed} of {result.attempted} examples failed"


# -- examples of the pages ------------------------------------------------------------------

_FENCE = re.compile(r"^( *)```(\w+)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `line` is that of its first line, counted from 1."""

    language: str
    line: int
    text: str


@dataclass(frozen=True)
class Command:
    """A shell command of a console block and the lines it must print."""

    line: int
    text: str
    expected: tuple[str, ...]


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page that name their language, without their indentation."""
    found = []
    for match in _FENCE.finditer(page):
        indent, language, text = match.groups()
        line = page.count("\n", 0, match.start(3)) + 1
        found.append(Block(language, line, re.sub(f"^{indent}", "", text, flags=re.MULTILINE)))
    return found


def commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a console block: ``$ `` lines with their here-documents."""
    lines = block.text.splitlines()
    assert lines, "a console block is empty"
    assert lines[0].startswith("$ "), f"a console block starts with {lines[0]!r}, not with a prompt"
    at = 0
    while at < len(lines):
        first = at
        text = [lines[at].removeprefix("$ ")]
        while text[-1].endswith("\\"):
            at += 1
            text.append(lines[at])
        heredoc = _HEREDOC.search("\n".join(text))
        while heredoc and text[-1] != heredoc[1]:
            at += 1
            text.append(lines[at])
        at += 1
        start = at
        while at < len(lines) and not lines[at].startswith("$ "):
            at += 1
        yield Command(block.line + first, "\n".join(text), tuple(lines[start:at]))


#: A command of the program alone, and perhaps the file that its output goes to.
_PLAIN = re.compile(r"""treelm ((?:[^|<>&;$`"'\\*?~{}()\[\]#]|'[^']*')+?)(?:\s>\s*([\w.]+))?""")


#: What a page says whose examples need the English models.
_NEEDS_MODELS = "<!-- with treelm-en -->"


@cache
def models_folder() -> Path:
    """Return the folder in which the English models are as if they were installed."""
    return as_installed("treelm-en", Path(tempfile.mkdtemp(prefix="treelm-models-")))


@cache
def page_variables(*, models: bool = False) -> dict[str, str]:
    """Return the environment in which the commands of pages run: that of a reader."""
    variables = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "80",
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "PYTHONWARNINGS": "default",
    }
    variables.pop("PYTHONPATH", None)
    return variables | ({"PYTHONPATH": str(models_folder())} if models else {})


@cache
def page_server(*, models: bool = False) -> ProgramServer:
    return ProgramServer(page_variables(models=models))


def run_command(command: str, folder: Path, *, models: bool = False) -> str:
    """Return what a command prints to standard output; it must succeed.

    What needs no shell is run by a process that has loaded the packages.
    """
    plain = _PLAIN.fullmatch(command.strip())
    if plain is not None:
        code, out, err = page_server(models=models).call(
            shlex.split(plain[1]), b"", folder=str(folder), timeout=120
        )
        printed, errors = out.decode(), err.decode()
        if plain[2] is not None:
            (folder / plain[2]).write_text(printed, encoding="utf-8", newline="")
            printed = ""
    else:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=page_variables(models=models),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
        )
        code, printed, errors = done.returncode, done.stdout, done.stderr
    assert code == 0, f"exit code {code}: {command}\n{errors}"
    return printed


def matches(expected: tuple[str, ...], printed: str) -> bool:
    """Return whether output is as expected, where a line ``...`` stands for any number of lines."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in expected
    )
    complete = printed if not printed or printed.endswith("\n") else printed + "\n"
    return re.fullmatch(pattern, complete) is not None


def run_session(block: Block, name: str, namespace: dict[str, object]) -> None:
    """Run a block of ``>>>`` lines."""
    examples = doctest.DocTestParser().get_examples(block.text)
    assert examples, f"{name}:{block.line}: a python block without >>> is never run"
    report: list[str] = []
    test = doctest.DocTest(examples, namespace, name, name, block.line - 1, block.text)
    runner = doctest.DocTestRunner(optionflags=0)
    runner.run(test, out=report.append, clear_globs=False)
    assert not runner.failures, "".join(report)
    namespace.update(test.globs)


@pytest.fixture
def kenlm_stays() -> Iterator[None]:
    """Puts the module back in whose place a page puts ours, for the tests that come after."""
    before = sys.modules.get("kenlm")
    yield
    if before is not None:
        sys.modules["kenlm"] = before
    else:
        sys.modules.pop("kenlm", None)


@contextlib.contextmanager
def english_models() -> Iterator[None]:
    """The English models are as if they were installed, in this process."""
    sys.path.insert(0, str(models_folder()))
    ready_models.cache_clear()
    try:
        yield
    finally:
        sys.path.remove(str(models_folder()))
        ready_models.cache_clear()


@pytest.mark.slow
@pytest.mark.usefixtures("kenlm_stays")
@pytest.mark.parametrize("path", TEXTS, ids=page_name)
def test_page_examples(path: Path, tmp_path: Path) -> None:
    """Run the python and console blocks of a page in order, in one folder and one namespace."""
    name = page_name(path)
    text = path.read_text(encoding="utf-8")
    namespace: dict[str, object] = {"__name__": "__main__"}
    models = _NEEDS_MODELS in text
    with contextlib.chdir(tmp_path), english_models() if models else contextlib.nullcontext():
        for block in blocks(text):
            if block.language == "python":
                run_session(block, name, namespace)
            if block.language != "console":
                continue
            for command in commands(block):
                printed = run_command(command.text, tmp_path, models=models)
                assert matches(command.expected, printed), (
                    f"{name}:{command.line}: $ {command.text}\n"
                    f"-- expected\n{chr(10).join(command.expected)}\n-- printed\n{printed}"
                )


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        (("a", "b"), "a\nb\n", True),
        (("a", "b"), "a\nb", True),
        (("a",), "a\nb\n", False),
        (("a", "..."), "a\n", True),
        (("a", "...", "d"), "a\nb\nc\nd\n", True),
        (("a", "...", "d"), "a\nb\nc\n", False),
        (("a.c",), "abc\n", False),
        ((), "", True),
        ((), "a\n", False),
    ],
)
def test_matches_knows_the_ellipsis(expected: tuple[str, ...], printed: str, same: bool) -> None:
    assert matches(expected, printed) is same


def test_commands_keeps_here_documents_and_continuations_whole() -> None:
    text = "$ cat > a <<'EOF'\n$ no prompt\nEOF\n$ cat \\\n  a\n$ no prompt\n"
    found = list(commands(Block("console", 10, text.replace("\n$ no prompt\n", "\n$\n"))))
    assert [command.text for command in found] == ["cat > a <<'EOF'\n$\nEOF", "cat \\\n  a"]
    assert [command.line for command in found] == [10, 13]
    assert found[1].expected == ("$",)


# -- links and navigation -------------------------------------------------------------------

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)


def anchors(page: str) -> set[str]:
    """Return the anchors that the site generator gives to the headings of a page."""
    prose = _FENCE.sub("", page)
    return {
        re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())
        for heading in _HEADING.findall(prose)
    }


@pytest.mark.parametrize("path", TEXTS, ids=page_name)
def test_links_lead_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    prose = _FENCE.sub("", text)
    broken = []
    for target in _LINK.findall(prose):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        page = (path.parent / file).resolve() if file else path
        is_broken = not page.exists() or (
            anchor and anchor not in anchors(page.read_text(encoding="utf-8"))
        )
        if is_broken:
            broken.append(target)
    assert not broken


def test_navigation_names_every_page() -> None:
    listed = re.findall(r"([\w./-]+\.md)$", read("mkdocs.yml"), re.MULTILINE)
    assert sorted(listed) == sorted(path.relative_to(DOCS).as_posix() for path in PAGES)


# -- nothing is left undocumented -----------------------------------------------------------


def read(path: str) -> str:
    return (REPOSITORY / path).read_text(encoding="utf-8")


def sections(page: str, level: str = "##") -> dict[str, str]:
    """Return the text under each heading of a level, by heading without its backquotes."""
    parts = re.split(rf"^{level} +(.*)$", page, flags=re.MULTILINE)
    return dict(zip((title.replace("`", "") for title in parts[1::2]), parts[2::2], strict=True))


def test_every_error_code_is_documented_and_no_other() -> None:
    sources = [*(REPOSITORY / "src").rglob("*.py"), REPOSITORY / "native/core/base/error.h"]
    defined = {
        code
        for source in sources
        for code in re.findall(r'"(E_[A-Z_]+)"', source.read_text(encoding="utf-8"))
    }
    documented = set(
        re.findall(r"^\| `(E_[A-Z_]+)`", read("docs/reference/errors.md"), re.MULTILINE)
    )
    assert documented == defined


def test_every_error_family_is_documented() -> None:
    families = set(re.findall(r"^class (\w+)\(", read("src/treelm/errors.py"), re.MULTILINE))
    assert families <= set(re.findall(r"`(\w+)`", read("docs/reference/errors.md")))


def command_options(command: App) -> set[str]:
    """Return the options of a command as they are typed."""
    arguments = command.assemble_argument_collection(default_parameter=app.default_parameter)
    return {
        name
        for argument in arguments
        if argument.show
        for name in argument.names
        if name.startswith("-")
    }


def command_apps() -> dict[str, App]:
    """Return every command that does something, by the words that call it."""
    found = {"treelm": app}
    for name in app:
        if name.startswith("-"):
            continue
        below = [inner for inner in app[name] if not inner.startswith("-")]
        found |= {f"treelm {name} {inner}": app[name][inner] for inner in below}
        if not below:
            found[f"treelm {name}"] = app[name]
    return found


COMMANDS = command_apps()


def test_the_page_about_the_command_line_is_that_of_the_program() -> None:
    assert read("docs/reference/command-line.md") == reference(), "run `make reference`"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented_and_no_other(name: str) -> None:
    page = sections(read("docs/reference/command-line.md"))
    shared = sections(page["Shared options"], "###")
    links = re.findall(r"\]\(#([\w-]+)\)\B", page[name].rpartition("\nAnd the ")[2])
    documented = table_options(page[name]).union(
        *(
            table_options(shared[title])
            for title in shared
            if next(iter(anchors(f"# {title}"))) in links
        )
    )
    assert documented == command_options(COMMANDS[name])


def table_options(section: str) -> set[str]:
    """Return the options named in the first column of the tables of a section."""
    rows = re.findall(r"^\|([^|]*)\|", section, re.MULTILINE)
    return {option for row in rows for option in re.findall(r"`(--?[a-z][a-z-]*)", row)}


def profile_keys() -> Iterator[tuple[str, str]]:
    """Yield (heading of docs/formats/profile.md, key) for everything that a profile may say."""
    for key, field in Profile.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from ((f"[{key}]", name) for name in inner.model_fields)
        else:
            yield "Top level", key
    for title, model in (("A head rule", HeadRule), ("A head step", HeadStep)):
        for name, field in model.model_fields.items():
            yield title, field.alias or name


PROFILE_KEYS = list(profile_keys())


@pytest.mark.parametrize(("heading", "key"), PROFILE_KEYS)
def test_every_profile_key_is_documented(heading: str, key: str) -> None:
    page = sections(read("docs/formats/profile.md"))
    assert re.search(rf"^\| `{key}` ", page[heading], re.MULTILINE)


def test_every_profile_key_of_the_page_exists() -> None:
    page = sections(read("docs/formats/profile.md"))
    documented = {
        (heading, key)
        for heading, text in page.items()
        for key in re.findall(r"^\| `(\w+)` ", text, re.MULTILINE)
        if heading in {title for title, _ in PROFILE_KEYS}
    }
    assert documented == set(PROFILE_KEYS)
