"""Optional packages: an extra is offered only for a package that something imports."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import treelm
from treelm.extras import EXTRAS

REPOSITORY = Path(__file__).resolve().parents[2]
OFFERED: dict[str, list[str]] = tomllib.loads(
    (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
)["project"]["optional-dependencies"]

#: Packages whose modules are not named like them, and what they bring along.
_MODULES = {"scikit-learn": {"sklearn", "scipy"}, "lm-eval": {"lm_eval"}}


def imported_extras() -> Iterator[str]:
    """Yield the packages that `import_extra` is called with."""
    for path in Path(*treelm.__path__).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "import_extra":
                assert isinstance(node.args[0], ast.Constant)
                yield str(node.args[0].value).partition(".")[0]


def modules_of(requirement: str) -> set[str]:
    name = re.split(r"[<>=\[]", requirement)[0]
    return _MODULES.get(name, {name})


def test_every_extra_brings_what_something_imports() -> None:
    used = set(imported_extras())
    for extra, requirements in OFFERED.items():
        if extra != "all":
            assert all(modules_of(requirement) & used for requirement in requirements), extra


def test_every_imported_extra_has_a_name_to_install_it_by() -> None:
    assert set(EXTRAS) == set(imported_extras())
    for module, extra in EXTRAS.items():
        assert any(module in modules_of(requirement) for requirement in OFFERED[extra])


def test_all_is_all_extras() -> None:
    (everything,) = OFFERED["all"]
    names = everything.removeprefix("treelm[").removesuffix("]").split(",")
    # Ray is for those who have many machines; it and the others are larger than all the rest.
    large = {"cluster", "harness", "neural", "spacy", "stanza"}
    assert sorted(names) == sorted(set(OFFERED) - {"all", *large})
