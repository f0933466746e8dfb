"""How labels of other treebanks are read: separators, compounds, renamed categories."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treelm import Tree, find_heads, lexical_head, read_trees
from treelm.corpus.brackets import ReadOptions
from treelm.errors import ProfileError
from treelm.trees.profile import Profile, load_profile


def read(text: str, profile: object) -> str:
    """Return a tree as a profile reads it."""
    (tree,) = read_trees([text], ReadOptions(profile=profile))  # type: ignore[arg-type]
    return str(tree)


def category(label: str, profile: Profile) -> str:
    """Return what a label is read as: an oracle that tries every rule in turn."""
    reading = profile.reading
    cut = label
    if not label.startswith("-"):
        places = [at for at, each in enumerate(label) if at and each in reading.separators]
        cut = label[: places[0]] if places else label
        ends = [
            compound
            for compound in reading.compounds
            if label == compound
            or (label.startswith(compound) and label[len(compound)] in reading.separators)
        ]
        cut = max(ends, key=len, default=cut)
    if cut in reading.rename and not (cut.endswith("*") and len(cut) > 1):
        return reading.rename[cut]
    beginnings = [
        key
        for key in reading.rename
        if len(key) > 1 and key[-1] == "*" and cut.startswith(key[:-1])
    ]
    return reading.rename[max(beginnings, key=len)] if beginnings else cut


def test_icelandic_keeps_clause_types_and_cases_and_cuts_functions() -> None:
    text = "(ROOT (IP-MAT-1 (NP-SBJ (NS-N menn)) (VBPI setja) (Q+NUM-A x) (IP=2 (N-A-2 y))))"
    assert read(text, "icelandic") == (
        "(ROOT (IP-MAT (NP (NS-N menn)) (VBPI setja) (NUM x) (IP (N-A y))))"
    )


def test_spanish_reads_categories_by_their_class_and_brackets_as_others_write_them() -> None:
    text = (
        "( (S.co (sn.e-SUJ (-NONE- *0*)) (grup.nom.ms (Fpa -Fpa-) (ncms000 gas)) (S* (Fe -fe-))))"
    )
    assert read(text, "spanish") == '(ROOT (S (grup.nom (Fpa -LRB-) (nc gas)) (S (Fe "))))'


def test_japanese_cuts_at_semicolons() -> None:
    text = "(ROOT (IP-MAT (NP;*SBJ* (N 人)) (PP-TMP (P に)) (VB 見)))"
    assert read(text, "japanese") == "(ROOT (IP-MAT (NP (N 人)) (PP (P に)) (VB 見)))"


@pytest.mark.parametrize(
    ("profile", "text", "head"),
    [
        ("spanish", "(grup.verb (vai ha) (vmp dicho))", "dicho"),
        ("spanish", "(S (sn (np Ana)) (grup.verb (vmi duerme)))", "duerme"),
        ("spanish", "(sn (espec (da la)) (grup.nom (nc mesa)))", "mesa"),
        ("icelandic", "(NP (NS-N tungur) (D-N nar))", "tungur"),
        ("icelandic", "(IP-MAT (NP (PRO-N hann)) (VBDI kom))", "kom"),
        ("icelandic", "(CP-REL (C er) (IP-SUB (VBDI kom)))", "er"),
        ("japanese", "(PP (NP (N 工事)) (P を))", "を"),
        ("japanese", "(IP-MAT (PP (P は)) (VB 行っ) (AXD た) (PU 。))", "行っ"),
        ("japanese", "(NP (PP (P の)) (N 年))", "年"),
    ],
)
def test_heads_of_other_languages(profile: str, text: str, head: str) -> None:
    assert lexical_head(find_heads(Tree.from_string(text), profile)).word == head


def test_what_is_renamed_twice_is_refused() -> None:
    with pytest.raises(ProfileError, match="A becomes B, which is read as C"):
        load_profile({"name": "x", "reading": {"rename": {"A": "B", "B": "C"}}})
    with pytest.raises(ProfileError, match="IP-MAT is renamed IP"):
        load_profile({"name": "x", "reading": {"compounds": ["IP-MAT"], "rename": {"IP*": "IP"}}})


parts = st.text("AB-=.*+", min_size=1, max_size=5)


@given(st.lists(parts, max_size=3), st.dictionaries(parts, parts, max_size=3), parts, parts)
def test_labels_are_read_as_the_oracle_reads_them_and_stay_so(
    compounds: list[str], rename: dict[str, str], separators: str, label: str
) -> None:
    content = {"compounds": compounds, "rename": rename, "separators": separators}
    try:
        profile = load_profile({"name": "x", "reading": content})
    except ProfileError:
        return
    tree = f"(ROOT (X ({label} a) (Z b)))"
    found = read(tree, profile)
    names = [category(each, profile) for each in ("X", label, "Z")]
    assert found == f"(ROOT ({names[0]} ({names[1]} a) ({names[2]} b)))"
    assert read(found, profile) == found


def test_profiles_without_the_new_keys_keep_their_fingerprints() -> None:
    assert (
        load_profile({"name": "x"}).fingerprint
        == load_profile({"name": "x", "reading": {"separators": "-=|"}}).fingerprint
    )
    other = load_profile({"name": "x", "reading": {"separators": "-"}})
    assert other.fingerprint != load_profile({"name": "x"}).fingerprint
