"""Language profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from treelm.errors import ProfileError, UsageError
from treelm.trees import profile as profile_module
from treelm.trees.heads import find_heads, lexical_head
from treelm.trees.packaged_profiles import FINGERPRINTS, packaged_profiles
from treelm.trees.profile import Profile, load_profile
from treelm.trees.tree import Tree

GERMAN = """
name = "german"
[heads]
default = "right"
[heads.rules]
VP = { default = "right", steps = [{ from = "right", any = ["VVFIN", "VVPP"] }] }
NP = { default = "left", steps = [{ from = "left", priority = ["NN", "NE"] }] }
NX = { same_as = "NP" }
"""


def test_packaged_profiles_load() -> None:
    assert packaged_profiles() == ("english", "neutral", "spanish", "icelandic", "japanese")
    for name in packaged_profiles():
        profile = load_profile(name)
        assert profile.name == name
        assert profile.native is profile.native
        assert load_profile(profile.to_config()) == profile
    for short, name in {"en": "english", "es": "spanish", "is": "icelandic"}.items():
        assert load_profile(short) is load_profile(name)
    assert load_profile(None).name == "neutral"


def test_packaged_profiles_are_all_listed_with_their_fingerprints() -> None:
    folder = Path(profile_module.__file__).with_name("profiles")
    assert {file.stem for file in folder.glob("*.toml")} == set(FINGERPRINTS)
    for name, fingerprint in FINGERPRINTS.items():
        assert load_profile(name).fingerprint == fingerprint, (
            f"{name}.toml has changed: put its fingerprint into trees/packaged_profiles.py"
        )


def test_profile_of_ones_own_drives_heads_and_survives_its_description(tmp_path: Path) -> None:
    file = tmp_path / "german.toml"
    file.write_text(GERMAN, encoding="utf-8")
    profile = load_profile(file)
    tree = Tree.from_string("(VP (NP (ART den) (NN Hund)) (VVPP gesehen) (X hat))")
    assert find_heads(tree, profile).head == 1
    assert lexical_head(find_heads(tree, profile)[0]).word == "Hund"
    stored = profile.to_config()
    assert isinstance(stored, dict)
    assert load_profile(stored) == profile
    assert load_profile(stored).fingerprint == profile.fingerprint
    assert profile.fingerprint != load_profile("english").fingerprint


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("name = ", "not valid TOML"),
        ("", "name"),
        ('name = "x"\nheadz = 1', "headz"),
        ('name = "x"\n[heads.rules.NP]\nsteps = [{ from = "up", any = ["NN"] }]', "from"),
        ('name = "x"\n[heads.rules.NP]\nsteps = [{ any = ["NN"], last = ["NN"] }]', "exactly one"),
        ('name = "x"\n[heads.rules]\nNP = { same_as = "NX" }', "same_as"),
        ('name = "x"\n[punctuation]\ntags = "no list"', "punctuation.tags"),
    ],
)
def test_broken_profiles_say_where(tmp_path: Path, text: str, fragment: str) -> None:
    file = tmp_path / "broken.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ProfileError, match=r"broken\.toml") as caught:
        load_profile(file)
    assert fragment in str(caught.value)


@pytest.mark.parametrize("name", ["klingon", "missing.toml"])
def test_missing_profile_names_those_there_are(name: str) -> None:
    with pytest.raises(ProfileError) as caught:
        load_profile(name)
    assert caught.value.code == "E_NO_PROFILE"


def test_neutral_profile_knows_punctuation_by_the_word() -> None:
    tree = Tree.from_string("(S (Fc ,) (sn casa) (Fp .))")
    assert find_heads(tree, "neutral").head == 1
    assert find_heads(Tree.from_string("(S (Fc ,) (Fp .))"), "neutral").head == 0


def test_lexical_head_asks_for_heads() -> None:
    with pytest.raises(UsageError, match="find_heads") as caught:
        lexical_head(Tree.from_string("(NP (DT a) (NN b))"))
    assert caught.value.code == "E_NO_HEAD"


def test_profile_copy_is_compiled_anew() -> None:
    profile = load_profile("english")
    tree = Tree.from_string("(X (NN a) (NN b))")
    assert find_heads(tree, profile).head == 1
    heads = profile.heads.model_copy(update={"rules": {}})
    copy = profile.model_copy(update={"heads": heads})
    assert find_heads(tree, copy).head == 0
    assert copy.native is not profile.native
    assert copy.fingerprint != profile.fingerprint


def test_profile_is_frozen() -> None:
    profile = load_profile("english")
    assert isinstance(profile, Profile)
    with pytest.raises(ValueError, match="frozen"):
        profile.name = "other"  # type: ignore[misc]
