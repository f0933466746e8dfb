"""Language profiles that are broken, hostile or huge."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.command_line import assert_fine, assert_refused, treelm, treelm_inside

GOOD = b"(S (NP (PRP I)) (VP (VBP sleep)))\n"
Capture = pytest.CaptureFixture[bytes]

#: What is wrong, the file, and what the message must name.
BROKEN = {
    "no toml": ("this is no TOML\n", "not valid TOML"),
    "unclosed table": ('name = "x"\n[heads\n', "line 2"),
    "twice": ('name = "x"\nname = "y"\n', "line 2"),
    "empty": ("", "name"),
    "a list": ("[[name]]\n", "name"),
    "name is a number": ("name = 5\n", "name"),
    "unknown key": ('name = "x"\ncolour = "red"\n', "colour"),
    "unknown section": ('name = "x"\n[haeds]\ndefault = "left"\n', "haeds"),
    "unknown key below": ('name = "x"\n[heads]\ndefualt = "left"\n', "heads.defualt"),
    "side": ('name = "x"\n[heads]\ndefault = "middle"\n', "heads.default"),
    "tags are a string": ('name = "x"\n[punctuation]\ntags = "."\n', "punctuation.tags"),
    "tags are numbers": ('name = "x"\n[punctuation]\ntags = [1, 2]\n', "punctuation.tags.0"),
    "flag is a word": ('name = "x"\n[punctuation]\nby_word = "maybe"\n', "punctuation.by_word"),
    "flatten is a list": ('name = "x"\n[reading]\nflatten = ["NML"]\n', "reading.flatten"),
    "rules are a list": ('name = "x"\n[heads]\nrules = []\n', "heads.rules"),
    "two kinds": (
        'name = "x"\n[heads.rules]\nNP = { steps = [{ priority = ["A"], any = ["B"] }] }\n',
        "NP.steps.0",
    ),
    "no kind": ('name = "x"\n[heads.rules]\nNP = { steps = [{ from = "left" }] }\n', "NP.steps.0"),
    "same as itself": ('name = "x"\n[heads.rules]\nA = { same_as = "A" }\n', "same_as"),
    "same as in a loop": (
        'name = "x"\n[heads.rules]\nA = { same_as = "B" }\nB = { same_as = "A" }\n',
        "same_as",
    ),
    "same as in a chain": (
        'name = "x"\n[heads.rules]\nA = { same_as = "B" }\nB = { same_as = "C" }\nC = {}\n',
        "same_as",
    ),
    "same as nothing": ('name = "x"\n[heads.rules]\nA = { same_as = "B" }\n', "same_as"),
    "triples": ('name = "x"\n[treelet]\nclause_flattening = [["A", "B", "C"]]\n', "flattening"),
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("command", ["transform", "inspect"])
def test_hostile_profiles_broken(
    tmp_path: Path, capfdbinary: Capture, kind: str, command: str
) -> None:
    text, part = BROKEN[kind]
    profile, trees, target = tmp_path / "mine.toml", tmp_path / "a.mrg", tmp_path / "out.mrg"
    profile.write_text(text)
    trees.write_bytes(GOOD)
    arguments = {
        "transform": ["transform", trees, "--profile", profile, "-o", target],
        "inspect": ["inspect", profile],
    }[command]
    done = treelm_inside(capfdbinary, *arguments)
    assert_refused(done, 3, f"{profile}: ", part)
    assert done.stdout == b""
    assert not target.exists()


@pytest.mark.parametrize("content", [b"\xff\xfe", b'name = "\xff"\n', b"\0\0\0\0", b"\x1f\x8b"])
def test_hostile_profiles_binary(tmp_path: Path, capfdbinary: Capture, content: bytes) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_bytes(content)
    assert_refused(treelm_inside(capfdbinary, "inspect", profile), 3, str(profile))


def test_hostile_profiles_missing_or_folder(tmp_path: Path, capfdbinary: Capture) -> None:
    trees, folder = tmp_path / "a.mrg", tmp_path / "folder.toml"
    trees.write_bytes(GOOD)
    folder.mkdir()
    for name in (tmp_path / "missing.toml", folder):
        done = treelm_inside(capfdbinary, "draw", trees, "--profile", name)
        assert_refused(done, 3, str(name))
    for word in ("klingon", "", "../english", "english.tml", "/etc/passwd"):
        done = treelm_inside(capfdbinary, "draw", trees, "--profile", word)
        assert_refused(done, 3, f'"{word}"', "english, neutral")


def labels(count: int) -> str:
    return ", ".join(f'"L{i}"' for i in range(count))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (
            f'name = "x"\n[heads.rules]\nNP = {{ steps = [{{ priority = [{labels(300)}] }}] }}\n',
            "254 labels",
        ),
        (f'name = "x"\n[punctuation]\ntags = [{labels(100_000)}]\n', "mine.toml"),
    ],
    ids=["300 labels in a rule", "100000 labels"],
)
@pytest.mark.parametrize("command", ["transform", "draw", "inspect", "evaluate"])
def test_hostile_profiles_more_than_a_kernel_takes(
    tmp_path: Path, capfdbinary: Capture, text: str, part: str, command: str
) -> None:
    profile, trees = tmp_path / "mine.toml", tmp_path / "a.mrg"
    profile.write_text(text)
    trees.write_bytes(GOOD)
    arguments = {
        "transform": ["transform", "--pipeline", "clean", trees],
        "draw": ["draw", trees],
        "inspect": ["inspect", trees],
        "evaluate": ["evaluate", "parses", trees, trees],
    }[command]
    done = treelm_inside(capfdbinary, *arguments, "--profile", profile)
    assert_refused(done, 3, part)
    assert done.stdout == b""


def test_hostile_profiles_as_many_labels_as_a_kernel_takes(
    tmp_path: Path, capfdbinary: Capture
) -> None:
    profile, trees = tmp_path / "mine.toml", tmp_path / "a.mrg"
    rule = f"{{ steps = [{{ priority = [{labels(254)}] }}] }}"
    profile.write_text(f'name = "x"\n[heads.rules]\nS = {rule}\n')
    trees.write_bytes(b"(S (A a) (L253 b) (L252 c) (B d))\n")
    done = treelm_inside(
        capfdbinary, "transform", "--pipeline", "lexicalize", trees, "--profile", profile
    )
    assert b"S[c]" in assert_fine(done)


@pytest.mark.parametrize(
    "text",
    ["a = " + "[" * 100_000 + "]" * 100_000, 'name = "x"\na = ' + "9" * 100_000],
    ids=["nested", "long number"],
)
def test_hostile_profiles_that_break_the_toml_reader(
    tmp_path: Path, capfdbinary: Capture, text: str
) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_text(text)
    assert_refused(treelm_inside(capfdbinary, "inspect", profile), 3, str(profile))


def test_hostile_profiles_of_quadratic_time(tmp_path: Path) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_text("a." * 20_000 + "b = 1\n")
    assert_refused(treelm("inspect", profile, processor_seconds=4), 3, str(profile))


def test_hostile_profiles_huge_file(tmp_path: Path) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_text('name = "x"\n' + "# a comment\n" * 800_000 + "colour = 1\n")
    assert_refused(treelm("inspect", profile), 3, str(profile))


@pytest.mark.parametrize(
    "text", ['name = "\\u001b[31mred"\n', 'name = "x"\n"\\u001b[31mred" = 1\n']
)
def test_hostile_profiles_escape_sequences(tmp_path: Path, capfdbinary: Capture, text: str) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_text(text)
    done = treelm_inside(capfdbinary, "inspect", profile)
    assert done.returncode in (0, 3)
    assert b"\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize("label", ["(", ")", "A B", "", "\\n"])
def test_hostile_profiles_labels_that_break_brackets(
    tmp_path: Path, capfdbinary: Capture, label: str
) -> None:
    profile, trees = tmp_path / "mine.toml", tmp_path / "a.mrg"
    profile.write_text(f'name = "x"\n[reading]\nflatten = {{ NP = "{label}" }}\n')
    trees.write_bytes(b"((NP (A a) (B b)))\n")
    done = treelm_inside(
        capfdbinary, "transform", "--pipeline", "clean", trees, "--profile", profile
    )
    assert_refused(done, 3, str(profile), "reading.flatten")
