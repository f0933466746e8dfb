"""What training does to the hidden trees (Section 5.5): tags of words, brackets, and Figure 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from systems import Systems

from published import GX, LATENT_MLE, MLE
from treelm.tasks.evaluate.parse_accuracy import evaluate_parses
from treelm.tasks.evaluate.significance import bootstrap_mean_interval
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result
from treelm.trees.tree import Tree
from treelm.view.svg import draw_svg

TABLE = "Hidden trees before and after training (Section 5.5)"
#: The sentence of Figure 1.
SENTENCE = ("The", "committee", "will", "hold", "a", "hearing", "next", "Tuesday")
#: Sentences of each kind that are parsed.
LIMIT = 500
#: Changes of a tag that are listed.
_LISTED = 12

Pairs = list[tuple[Tree, Tree]]


def tags(tree: Tree) -> list[str]:
    """Return the tags of the words of a tree, without what grammars add to them.

    Examples:
        >>> tags(Tree.from_string("(ROOT (S^ROOT (NP^S (DT^NP the) (NN^NP dog)) (VP^S+VBD ran)))"))
        ['DT', 'NN', 'VBD']
    """
    return [str(tag).split("+")[-1].split("^")[0] for tag in tree.tags]


def report_retagging(report: Report, systems: Systems, names: Sequence[str]) -> None:
    """Report how trees of LSVM-MLE differ from those of MLE, and draw a tree of LSVM-Gx."""
    if {MLE, LATENT_MLE} <= set(names):
        changes: Counter[tuple[str, str]] = Counter()
        used: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        for kind, text in (("good sentences", "pos_test"), ("bad sentences", "neg_test")):
            pairs = _parsed(systems, systems.sentences(text)[:LIMIT])
            _add_shares(report, kind, pairs, systems.seed)
            for before, after in pairs:
                both = tags(before), tags(after)
                changes.update(pair for pair in zip(*both, strict=True) if pair[0] != pair[1])
                for counter, own in zip(used, both, strict=True):
                    counter.update(own)
        report.add_table(
            "Tags that change most often",
            ("tag of MLE", f"tag of {LATENT_MLE}", "words"),
            [(*pair, number) for pair, number in changes.most_common(_LISTED)],
        )
        report.add_table(
            "How often tags are used",
            ("tag", MLE, LATENT_MLE),
            [(tag, used[0][tag], used[1][tag]) for tag, _ in used[0].most_common(25)]
            + [("FW", used[0]["FW"], used[1]["FW"])],
        )
    if GX in names:
        found = systems.latent_model(GX).hidden_trees([SENTENCE])[0]
        if found is not None:
            report.add_figure(draw_svg(found), f"{GX}: {' '.join(SENTENCE)} (Figure 1)")
            report.add_table("A tree of LSVM-Gx (Figure 1)", ("tree",), [(str(found),)])


def _parsed(systems: Systems, sentences: Sequence[tuple[str, ...]]) -> Pairs:
    """Return the trees of sentences before and after training, where there are both."""
    before, after = (
        systems.latent_model(name).hidden_trees(sentences, threads=systems.threads)
        for name in (MLE, LATENT_MLE)
    )
    return [
        (one, other)
        for one, other in zip(before, after, strict=True)
        if one is not None and other is not None
    ]


def _add_shares(report: Report, kind: str, pairs: Pairs, seed: int) -> None:
    moved = []
    f1 = []
    for before, after in pairs:
        both = zip(tags(before), tags(after), strict=True)
        moved.append(float(np.mean([one != other for one, other in both])))
        f1.append(evaluate_parses([before], [after]).unlabelled_f1)
    for metric, values in (
        ("share of the words of a sentence with another tag", moved),
        ("unlabelled F1 of a sentence's tree against that of MLE", f1),
    ):
        report.add_result(
            Result(
                table=TABLE,
                model=LATENT_MLE,
                metric=metric,
                data=kind,
                value=float(np.mean(values)),
                n=len(values),
                interval=bootstrap_mean_interval(values, seed=seed),
                digits=3,
            )
        )
