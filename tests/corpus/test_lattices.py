"""Lattices of Kaldi and HTK: scores, words, order of nodes, and files that are malformed."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from treelm.corpus.lattices import Arc, Lattice, LatticeFormat, read_lattices, read_symbols
from treelm.errors import CorpusFormatError, TreelmWarning

COMPACT = """\
utt-1
0 1 the 2.5,100.25,4_5
0 1 a 3,99,4_5
1 2 boat 1.5,50
1 3 <eps>
3 2 coat 0.5,51
4 2 dead 0,0
2 0.5,1,7

utt-2
0 1 12 sleep 1,2
1

"""
SLF = """\
VERSION=1.0
UTTERANCE=one
lmscale=9.5 wdpenalty=0
N=4 L=4
I=0 t=0.00
I=1 t=0.50 W=the
I=2 t=0.50 W="a"
I=3 t=1.00 W=!SENT_END
J=0 S=0 E=1 a=-100.5 l=-2
J=1 S=0 E=2 a=-101 l=-1.5
J=2 S=1 E=3 a=-5
J=3 S=2 E=3 a=-6 W=it\\'s
"""


def read(text: str, form: LatticeFormat, tmp_path: Path, **options: object) -> list[Lattice]:
    path = tmp_path / "one.lat"
    path.write_text(text)
    return list(read_lattices(path, form, **options))  # type: ignore[arg-type]


def test_kaldi_lattices(tmp_path: Path) -> None:
    first, second = read(COMPACT, "kaldi", tmp_path)
    assert first == Lattice(
        "utt-1",
        (
            Arc(0, 1, "the", -100.25, -2.5),
            Arc(0, 1, "a", -99.0, -3.0),
            Arc(1, 2, None),
            Arc(1, 3, "boat", -50.0, -1.5),
            Arc(2, 3, "coat", -51.0, -0.5),
        ),
        4,
        {3: (-1.0, -0.5)},
    )
    assert second == Lattice("utt-2", (Arc(0, 1, "sleep", -2.0, -1.0),), 2, {1: (0.0, 0.0)})


def test_kaldi_lattices_with_numbers_need_a_symbol_table(tmp_path: Path) -> None:
    text = "u\n0 1 7 1,2\n0 1 0 1,2\n1\n"
    with pytest.warns(TreelmWarning, match="are numbers"):
        (found,) = read(text, "kaldi", tmp_path)
    assert [arc.word for arc in found.arcs] == ["7", None]
    (tmp_path / "words").write_text("<eps> 0\nboat 7\n")
    symbols = read_symbols(tmp_path / "words")
    (found,) = read(text, "kaldi", tmp_path, symbols=symbols)
    assert [arc.word for arc in found.arcs] == ["boat", None]
    with pytest.raises(CorpusFormatError, match='no word "7"'):
        read(text, "kaldi", tmp_path, symbols={"0": "<eps>"})
    (tmp_path / "words").write_text("boat\n")
    with pytest.raises(CorpusFormatError, match="words:1: "):
        read_symbols(tmp_path / "words")


@pytest.mark.parametrize(("base", "factor"), [("", 1.0), ("base=10\n", math.log(10))])
def test_htk_lattices(base: str, factor: float, tmp_path: Path) -> None:
    text = SLF.replace("N=4", f"{base}N=4")
    (found, again) = read(text + text.replace("UTTERANCE=one\n", ""), "slf", tmp_path)
    assert (found.name, again.name, found.nodes) == ("one", "one", 4)
    assert [arc[:3] for arc in found.arcs] == [
        (0, 1, "the"),
        (0, 2, "a"),
        (1, 3, None),
        (2, 3, "it's"),
    ]
    assert found.arcs[0][3:] == pytest.approx((-100.5 * factor, -2 * factor))
    assert found.ends == {3: (0.0, 0.0)}


def test_htk_lattices_may_have_probabilities(tmp_path: Path) -> None:
    text = re.sub(r"([al])=-\d+[.\d]*", r"\1=0.6", SLF).replace("N=4", "base=0\nN=4")
    (found,) = read(text, "slf", tmp_path)
    assert found.arcs[3].acoustic == pytest.approx(math.log(0.6))
    assert found.arcs[3].graph == 0.0


def test_lattice_marks_of_noise_are_no_words(tmp_path: Path) -> None:
    first, _ = read(COMPACT, "kaldi", tmp_path, skipped=["the", "boat"])
    assert [arc.word for arc in first.arcs] == [None, "a", None, None, "coat"]


@pytest.mark.parametrize(
    ("form", "text", "told"),
    [
        ("kaldi", "u\n0 1 a 1,x\n1\n", ':2: "x" is not a score'),
        ("kaldi", "u\n0 1 a 1,2\n", ":1: .*no path"),
        ("kaldi", "u\n0 1 a 1,2\n1 0 b 1,2\n1\n", ":1: .*a cycle"),
        ("kaldi", "u\n0 1 a 1,2\n1 2 b 1,2\n2 1 c 1,2\n2\n", ":1: .*a cycle"),
        ("kaldi", "0 1 a 1,2\n1\n", ":1: .*name of its utterance"),
        ("kaldi", "u\n0 1 2 a 1,2 9\n1\n", ":2: 6 columns"),
        ("kaldi", SLF, ":1: .*of HTK.*--format slf"),
        ("slf", "VERSION=1.0\nJ=0 S=0 E=1\n", ":2: .*no node S="),
        ("slf", "VERSION=1.0\nword\n", ':2: "word" is not a field'),
        ("slf", "I=0\nI=1\nI=2\nJ=0 S=0 E=2\nJ=1 S=1 E=2\n", ":1: 2 nodes may be the start"),
        ("slf", "base=1\nI=0\nI=1\nJ=0 S=0 E=1\n", ":1: base=1 is no base"),
        ("slf", "base=0\nI=0\nI=1\nJ=0 S=0 E=1 a=0\n", ":4: 0 is no probability"),
    ],
)
def test_lattice_that_is_malformed_is_refused(
    form: LatticeFormat, text: str, told: str, tmp_path: Path
) -> None:
    with pytest.raises(CorpusFormatError, match=f"one.lat{told}") as caught:
        read(text, form, tmp_path)
    assert caught.value.code == "E_LATTICE"
