"""The event list of treelet.md 2.1: Figure 1 of Pauls & Klein (2012)."""

from __future__ import annotations

from tests.events.test_extract import packed, texts
from tests.published.worked_examples import ORACLES

from treelm.events.extract import TreeEvents
from treelm.events.template import TREELET_NONTERMINAL, TREELET_TERMINAL

S_RULE = "S-VBD^ROOT -> NP-NN VP-VBD^S ."
NP_RULE = "NP-NN -> DT-the NN"
VP_RULE = "VP-VBD^S -> VBD CD-DC NNTP"


def test_events_of_figure_1() -> None:
    events = TreeEvents([TREELET_NONTERMINAL, TREELET_TERMINAL])
    nonterminal, terminal = events.extract(packed([ORACLES["F1"][1]]))
    assert texts(events, TREELET_NONTERMINAL, nonterminal) == [
        ("S-VBD^ROOT", "ROOT", "<top>", "<top>"),
        ("NP-NN VP-VBD^S .", "S-VBD^ROOT", "ROOT", "ROOT -> S-VBD^ROOT"),
        ("DT-the NN", "NP-NN", "S-VBD^ROOT", S_RULE),
        ("VBD CD-DC NNTP", "VP-VBD^S", "S-VBD^ROOT", S_RULE),
    ]
    assert texts(events, TREELET_TERMINAL, terminal) == [
        ("The", "DT-the", "NN", NP_RULE, "<s>", "<s>"),
        ("index", "NN", "<none>", NP_RULE, "The", "<s>"),
        ("fell", "VBD", "CD-DC", VP_RULE, "index", "The"),
        ("109.85", "CD-DC", "NNTP", VP_RULE, "fell", "index"),
        ("Monday", "NNTP", "<none>", VP_RULE, "109.85", "fell"),
        (".", ".", "<none>", S_RULE, "Monday", "109.85"),
    ]
