"""The house keeps its order: imports point upwards only, and starting up stays light."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import treelm

#: A module may import from its own layer and from those above it in this list.
LAYERS = (
    (
        "errors",
        "version",
        "characters",
        "extras",
        "kernel_errors",
        "limits",
        "pickling",
        "seeds",
        "signature",
        "_native",
    ),
    ("parallel",),
    ("trees",),
    ("corpus",),
    ("store",),
    ("transforms",),
    ("events",),
    ("estimation",),
    ("grammar",),
    ("models",),
    ("translation",),
    ("interop", "view"),
    ("tasks", "evaluate"),
    ("testing",),
    ("cli", "web", "__main__"),
)

#: Arrows that point down on purpose, each with its reason.
EXCEPTIONS = {
    # A tree reads, converts and draws itself; the imports stand inside the methods.
    ("treelm.trees.tree", "treelm.corpus.brackets"),
    ("treelm.trees.tree", "treelm.interop.nltk_trees"),
    ("treelm.trees.tree", "treelm.view.text"),
    ("treelm.trees.tree", "treelm.view.svg"),
    # Results show themselves in notebooks; the imports stand inside the methods.
    ("treelm.grammar.grammar", "treelm.view.notebook"),
    ("treelm.models.hhmm.state", "treelm.view.notebook"),
    ("treelm.models.interface.abilities", "treelm.view.notebook"),
    ("treelm.models.interface.model", "treelm.view.notebook"),
    ("treelm.models.interface.partial_parses", "treelm.view.partial_parses_page"),
    ("treelm.models.interface.score_explanation", "treelm.view.score_explanation"),
    ("treelm.models.interface.scores", "treelm.view.notebook"),
    # Whatever reads trees reads files of parses too; the import stands inside the function.
    ("treelm.corpus.brackets", "treelm.grammar.forest_file"),
    # What a killed run left is removed by the next one; the import stands inside the method.
    ("treelm.parallel.processes", "treelm.corpus.temporary"),
}

PACKAGE = Path(importlib.util.find_spec("treelm").submodule_search_locations[0])  # type: ignore
MODULES = sorted(
    (".".join(("treelm", *path.relative_to(PACKAGE).with_suffix("").parts)), path)
    for path in PACKAGE.rglob("*.py")
    if path.name != "__init__.py"
)
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "base", "tools"}
#: Files with more lines are pointed out.
LONG_FILE = 600
HEAVY = (
    "ray",
    "fsspec",
    "sklearn",
    "nltk",
    "matplotlib",
    "fastapi",
    "uvicorn",
    "polars",
    "scipy",
    "sacrebleu",
    "hypothesis",
)


def layer_of(module: str) -> int:
    """Return the index of the layer a module belongs to."""
    part = module.split(".")[1]
    for index, names in enumerate(LAYERS):
        if part in names:
            return index
    raise AssertionError(f"{module} belongs to no layer; add its package to LAYERS")


def imports_of(path: Path) -> set[str]:
    """Return the treelm modules a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("treelm.")}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            if node.module == "treelm":
                found |= {f"treelm.{alias.name}" for alias in node.names}
            elif node.module.startswith("treelm."):
                found.add(node.module)
    return found


def test_there_are_modules_to_check() -> None:
    assert len(MODULES) > 30


@pytest.mark.parametrize(("module", "path"), MODULES, ids=[name for name, _ in MODULES])
def test_imports_point_upwards(module: str, path: Path) -> None:
    here = layer_of(module)
    wrong = {
        target
        for target in imports_of(path)
        if layer_of(target) > here and (module, target) not in EXCEPTIONS
    }
    assert not wrong, f"{module} imports from below: {sorted(wrong)}"


def test_exceptions_are_still_needed() -> None:
    files = dict(MODULES)
    for module, target in EXCEPTIONS:
        assert target in imports_of(files[module]), f"{module} no longer imports {target}"


@pytest.mark.parametrize(("module", "path"), MODULES, ids=[name for name, _ in MODULES])
def test_file_names_say_what_is_inside(module: str, path: Path) -> None:
    assert path.stem not in FORBIDDEN_NAMES


@pytest.mark.filterwarnings("default:long file")
def test_long_files_are_pointed_out() -> None:
    """A file is split where there are two ideas in it, not where a page ends: this only warns."""
    lengths = {
        module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in MODULES
    }
    assert min(lengths.values()) > 0
    for module, length in lengths.items():
        if length > LONG_FILE:
            warnings.warn(f"long file: {module} has {length} lines", stacklevel=1)


def loaded_modules(statement: str) -> set[str]:
    """Return the top-level modules in memory after a fresh interpreter ran `statement`."""
    code = f"{statement}\nimport sys\nprint(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "statement",
    [
        "import treelm",
        "import treelm; treelm.Tree.from_string('(NN dog)'); treelm.read_trees, treelm.treelet",
        "from treelm.cli.main import run; run(['--help'])",
        "from treelm.cli.main import run; run(['transform', '--help'])",
    ],
)
def test_start_up_loads_nothing_heavy(statement: str) -> None:
    assert not loaded_modules(statement) & set(HEAVY)


def test_help_loads_neither_numpy_nor_pydantic() -> None:
    loaded = loaded_modules("from treelm.cli.main import run; run(['--help'])")
    assert not loaded & {"numpy", "pydantic"}


#: What neither loading an n-gram model nor scoring text by it needs.
NOT_FOR_NGRAMS = (
    "tomllib",
    "treelm.corpus.k_best_lists",
    "treelm.corpus.nbest",
    "treelm.corpus.score_files",
    "treelm.corpus.temporary",
    "treelm.corpus.tokenize",
    "treelm.grammar",
    "treelm.interop",
    "treelm.models.interface.parser",
    "treelm.models.interface.perplexity",
    "treelm.models.interface.scoring_views",
    "treelm.models.interface.tree_model",
    "treelm.models.open_parser",
    "treelm.models.treelet",
    "treelm.store.staging",
    "treelm.tasks.evaluate",
    "treelm.tasks.explain_trees",
    "treelm.tasks.inspect.files",
    "treelm.tasks.score_trees",
    "treelm.tasks.surprisal.pictures",
    "treelm.transforms",
    "treelm.trees.profile",
    "treelm.view",
    "treelm.version",
)


@pytest.fixture(scope="module")
def ngram_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a small n-gram model, beside a file of text."""
    folder = tmp_path_factory.mktemp("ngram") / "model"
    text = [["the", "ferry", "left", "."], ["the", "old", "ferry", "came", "back", "."]]
    treelm.train("ngram", text, order=2, smoothing="kn").save(folder)
    folder.with_name("text.txt").write_text("the ferry came .\n\nrain\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("command", ["score", "surprisal", "inspect"])
def test_commands_load_only_what_an_ngram_model_needs(command: str, ngram_folder: Path) -> None:
    text = str(ngram_folder.with_name("text.txt"))
    arguments = (
        ["inspect", str(ngram_folder)]
        if command == "inspect"
        else [command, "-m", str(ngram_folder), text]
    )
    code = (
        f"from treelm.cli.main import run\nimport sys\nassert run({arguments!r}) == 0\n"
        "print(*sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "treelm.models.ngram.model" in loaded
    needless = {
        name
        for name in loaded
        if any(name == other or name.startswith(f"{other}.") for other in NOT_FOR_NGRAMS)
    }
    assert not needless


def test_options_are_read_before_pydantic_is_loaded(ngram_folder: Path) -> None:
    """With pydantic in memory, cyclopts builds a validator of it for every option."""
    code = (
        "import sys\nfrom treelm.cli.main import run\n"
        f"assert run(['score', '-m', {str(ngram_folder)!r}, '--limit', 'x']) == 2\n"
        "print(*sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert "pydantic" not in done.stdout.splitlines()[-1].split()


def test_public_names_are_listed_and_exist() -> None:
    assert treelm.__all__ == sorted(treelm.__all__)
    assert set(treelm._HOME) == set(treelm.__all__)
    for name in treelm.__all__:
        assert getattr(treelm, name) is not None
    with pytest.raises(AttributeError, match="frobnicate"):
        treelm.frobnicate  # noqa: B018


def test_native_module_is_typed() -> None:
    from treelm import _native

    stub = ast.parse((PACKAGE / "_native.pyi").read_text(encoding="utf-8"))
    declared = {
        node.name for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))
    }
    present = {name for name in dir(_native) if not name.startswith("_")}
    assert declared <= present
    assert present - declared == {"CORE_VERSION", "ERROR_SENTENCES", "NO_ID"}


def test_native_parameters_are_those_of_the_stub() -> None:
    """stubtest cannot look into nanobind functions, so their own signatures are compared."""
    from treelm import _native

    stub = ast.parse((PACKAGE / "_native.pyi").read_text(encoding="utf-8"))
    checked = 0
    for owner in (stub, *(node for node in stub.body if isinstance(node, ast.ClassDef))):
        holder = _native if isinstance(owner, ast.Module) else getattr(_native, owner.name)
        for node in owner.body:
            if not isinstance(node, ast.FunctionDef) or node.decorator_list:
                continue
            runtime = getattr(holder, node.name)
            if not hasattr(runtime, "__nb_signature__"):
                continue
            signature = runtime.__nb_signature__[0][0]
            plain = re.sub(r"numpy\.ndarray\[[^\]]*\]", "object", re.sub(r"\\\d+", "0", signature))
            declared = ast.parse(f"{plain}: ...").body[0]
            assert isinstance(declared, ast.FunctionDef)
            names = [[a.arg for a in f.args.args + f.args.kwonlyargs] for f in (declared, node)]
            starts_with_self = [arguments[:1] == ["self"] for arguments in names]
            assert starts_with_self[0] == starts_with_self[1]
            if "arg" not in names[0]:  # unnamed parameters of operators such as __len__
                assert names[0] == names[1], f"{owner} {node.name}"
            checked += 1
    assert checked > 10
