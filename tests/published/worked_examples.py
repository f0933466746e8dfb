"""Worked examples of trees-and-transforms.md 6.10: trees before and after the nine transforms."""

from __future__ import annotations

ORACLES = {
    "F1": (
        "(ROOT (S (NP (DT The) (NN index)) (VP (VBD fell) (NP (CD 109.85)) (NP (NNP Monday)))"
        " (. .)))",
        "(ROOT (S-VBD^ROOT (NP-NN (DT-the The) (NN index)) (VP-VBD^S (VBD fell) (CD-DC 109.85)"
        " (NNTP Monday)) (. .)))",
    ),
    "F2": (
        "(ROOT (S (NP (PRP He)) (VP (VB reset) (NP (JJ opening) (NNS arguments)) (PP (IN for)"
        " (NP (NN today)))) (. .)))",
        "(ROOT (S-VB^ROOT (PRP-he He) (VP-VB^S (VB reset) (NP-NNS (JJ opening) (NNS arguments))"
        " (PP-for (IN-for for) (NNT today))) (. .)))",
    ),
    "E3": (
        "(ROOT (S (NP (NP (NN stock) (NNS sales)) (PP (IN by) (NP (NNS traders)))) (VP (MD will)"
        " (VP (VB be) (VP (VBN reported) (NP (JJ next) (NN week))))) (. .)))",
        "(ROOT (S-MD^ROOT (NP-NNS (NN stock) (NNS sales) (PP-by (IN-by by) (NNS traders)))"
        " (VP-VBN^S (MD will) (VB-be be) (VBN reported) (NP-NNT (JJ next) (NNT week))) (. .)))",
    ),
    "E4": (
        "(ROOT (S (NP (NP (NNP Smith)) (, ,) (NP (NP (DT the) (NN head)) (PP (IN of) (NP (NNP"
        " Acme)))) (, ,)) (VP (VBD said) (SBAR (IN that) (S (NP (PRP she)) (VP (VBD wanted)"
        " (S (VP (TO to) (VP (VB leave)))))))) (. .)))",
        "(ROOT (S-VBD^ROOT (NP-NNP (NNP Smith) (, ,) (NP-NN (DT-the the) (NN head) (PP-of"
        " (IN-of of) (NNP Acme))) (, ,)) (VP-VBD^S (VBD said) (SBAR-that (IN-that that)"
        " (PRP-she she) (VP-VBD^SBAR (VBD wanted) (VP-VB^S (TO-to to) (VB leave))))) (. .)))",
    ),
    "E5": (
        "(ROOT (S (NP (NP (DT The) (NN man)) (SBAR (WHNP (WP who)) (S (VP (VBZ sings))))) (VP"
        " (VP (VBZ eats)) (CC and) (VP (VBZ is) (VP (VBG drinking)))) (. .)))",
        "(ROOT (S-VBZ^ROOT (NP-NN (DT-the The) (NN man) (SBAR-who-GAP (WP-who who) (VBZ sings)))"
        " (VP-VBZ^S (VBZ eats) (CC-and and) (VP-VBG^VP (VBZ-is is) (VBG drinking))) (. .)))",
    ),
    "E6": (
        "(ROOT (S (VP (VB Stop)) (. .)))",
        "(ROOT (S-VB-GAP^ROOT (VB Stop) (. .)))",
    ),
}
