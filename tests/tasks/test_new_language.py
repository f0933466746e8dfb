"""Profiles proposed from treebanks: what is found, what is said to be open, and that they work."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.command_line import treelm

import treelm as package
from treelm.corpus.brackets import ReadOptions, read_trees
from treelm.corpus.sample_treebank import sample_path
from treelm.errors import CorpusFormatError
from treelm.tasks.new_language.propose import Proposal, propose_profile
from treelm.trees.heads import find_heads
from treelm.trees.profile import load_profile

HELSINKI = """
(IP-MAT-1 (NP-SBJ (NS-N menn)) (VBDI sögðu) (NP-OB1 (N-A sögu)) (CP-REL (C er) (IP-SUB=2 (NP-SBJ (N-N maður)) (VBDI kunni))) (. .))
(IP-MAT (NP-SBJ (N-N maður)) (VBDI kom) (PP (P til) (NP (N-G lands))) (NP (* *T*-1)) (ONE+Q-N einnhver) (. .))
"""


def propose(tmp_path: Path, text: str, times: int = 1) -> Proposal:
    """Return the proposal for a treebank."""
    file = tmp_path / "trees.mrg"
    file.write_text(text * times, encoding="utf-8")
    return propose_profile([file], "own")


def head_agreement(proposal: Proposal, path: Path) -> float:
    """Return the share of the phrases with a choice whose heads are those of the English profile."""
    seen: Counter[bool] = Counter()
    for tree in read_trees(path):
        ours = find_heads(tree, proposal.profile).preorder()
        for mine, right in zip(ours, find_heads(tree, "english").preorder(), strict=True):
            if len(mine.children) > 1:
                seen[mine.head == right.head] += 1
    return seen[True] / seen.total()


def test_english_sample_is_read_as_the_hand_made_profile_reads_it() -> None:
    proposal = propose_profile([sample_path()], "own")
    profile, english = proposal.profile, load_profile("english")
    tags = {str(tag) for tree in package.sample_treebank() for tag in tree.tags}
    assert set(profile.punctuation.tags) == tags & set(english.punctuation.tags)
    assert "CC" in profile.heads.coordinators
    assert {"DT", "PRP"} <= set(profile.closed_class.tags)
    assert profile.treelet.noun_phrases == ("NP",)
    assert profile.treelet.number_tags in ((), ("CD",))
    assert head_agreement(proposal, sample_path()) > 0.85


def test_categories_that_never_occur_bare_keep_what_follows(tmp_path: Path) -> None:
    proposal = propose(tmp_path, HELSINKI, times=30)
    reading = proposal.profile.reading
    assert {"IP-MAT", "IP-SUB", "N-N", "N-A", "N-G"} <= set(reading.compounds)
    assert "NP-SBJ" not in reading.compounds
    assert set(reading.root_labels) == {"TOP", "ROOT", "S1", "VROOT"}
    assert reading.rename == {"ONE+Q": "ONE_Q"}
    assert reading.empty_tags == ("-NONE-", "*")
    (first, _) = list(read_trees([HELSINKI], ReadOptions(profile=proposal.profile)))
    assert str(first).startswith("(ROOT (IP-MAT (NP (NS-N menn)) (VBDI sögðu) (NP (N-A sögu))")


def test_semicolons_separate_and_dots_are_left_to_the_user(tmp_path: Path) -> None:
    text = "(S (sn (nc a)) (sn;*X* (nc b)) (sn.co (nc c)) (sn.co (nc d)) (sn (nc e)))\n"
    proposal = propose(tmp_path, text, times=10)
    assert ";" in proposal.profile.reading.separators
    assert "." not in proposal.profile.reading.separators
    (note,) = [note for note in proposal.notes if "'.'" in note.evidence]
    assert not note.sure
    assert "rename" in note.evidence


def test_every_note_has_a_place_in_the_file(tmp_path: Path) -> None:
    proposal = propose(tmp_path, HELSINKI, times=30)
    flat = " ".join(line.strip("# ") for line in proposal.text.splitlines())
    for note in proposal.notes:
        assert " ".join(note.evidence.split())[:40] in " ".join(flat.split()), note.key
    assert proposal.text.count("CHECK: ") == len(proposal.unsure)


def test_command_writes_a_profile_that_every_command_takes(tmp_path: Path) -> None:
    profile = tmp_path / "own.toml"
    done = treelm("new-language", sample_path(), "-o", profile, "--name", "own", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["profile"] == "own"
    assert {note["key"] for note in found["notes"]} >= {"punctuation.tags", "heads.default"}
    assert b"to check" in done.stderr
    for command in (
        ("inspect", profile),
        ("transform", sample_path(), "--profile", profile),
        ("transform", sample_path(), "--profile", profile, "--pipeline", "right-corner"),
        ("draw", sample_path(), "--profile", profile, "--heads", "--limit", "1"),
        ("train", "treelet", "--trees", sample_path(), "--profile", profile, "-o", tmp_path / "t"),
        ("train", "hhmm", "--trees", sample_path(), "--profile", profile, "-o", tmp_path / "h"),
    ):
        done = treelm(*command)
        assert done.returncode == 0, done.stderr


def test_command_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    done = treelm("new-language", sample_path(), "--json")
    assert done.returncode == 2
    assert b"--json needs --output" in done.stderr
    assert treelm("new-language", "-").returncode == 2
    empty = tmp_path / "empty.mrg"
    empty.write_text("")
    assert treelm("new-language", empty).returncode == 3
    with pytest.raises(CorpusFormatError) as caught:
        propose_profile([empty], "own")
    assert caught.value.code == "E_NO_DATA"


labels = st.text("AB\"'.-=|;+*\\#%é", min_size=1, max_size=5)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(labels, labels, labels), min_size=1, max_size=5))
def test_profile_of_any_labels_can_be_read_again(
    tmp_path_factory: pytest.TempPathFactory, found: list[tuple[str, str, str]]
) -> None:
    text = "".join(f"(S ({mother} ({tag} a) ({other} b)))\n" for mother, tag, other in found)
    folder = tmp_path_factory.mktemp("any")
    proposal = propose(folder, text, times=12)
    file = folder / "own.toml"
    file.write_text(proposal.text, encoding="utf-8")
    assert load_profile(file) == proposal.profile
