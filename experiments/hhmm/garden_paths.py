"""Sentences that lead readers astray, rewritten with words that the models know.

Each item has an ambiguous sentence and one that differs in what makes it unambiguous; the published
expectation is a higher surprisal of the critical word in the first.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from treelm.corpus.corpus import TreeCorpus, TreeSentences
from treelm.models.hhmm.model import HhmmModel
from treelm.models.ngram.model import NgramModel
from treelm.tasks.beliefs import beliefs
from treelm.tasks.report.report import Report
from treelm.view.plots import Bar, draw_grouped_bars
from treelm.view.store_drawing import draw_beliefs_svg
from treelm.view.surprisal_chart import WordBar, draw_surprisal

#: Words seen less often in the training trees are not used.
LEAST_SEEN = 5


class Item(NamedTuple):
    """A pair of sentences with the place of the critical word in each, counted from 0."""

    kind: str
    source: str
    ambiguous: str
    clear: str
    critical: tuple[int, int]


ITEMS = (
    Item(
        "main verb or reduced relative",
        "Bever 1970",
        "The cells found in the study showed this .",
        "The cells seen in the study showed this .",
        (6, 6),
    ),
    Item(
        "main verb or reduced relative, with a relative pronoun",
        "Ferreira and Clifton 1986",
        "The people asked about the case left .",
        "The people who were asked about the case left .",
        (6, 8),
    ),
    Item(
        "object or subject of the main clause",
        "Frazier and Rayner 1982",
        "When they changed the system was used .",
        "When they changed , the system was used .",
        (5, 6),
    ),
    Item(
        "object or sentential complement",
        "Pickering and Traxler 1998",
        "The study found the gene was expressed .",
        "The study found that the gene was expressed .",
        (5, 6),
    ),
    Item(
        "noun phrase or sentence coordination",
        "Hoeks et al. 2002",
        "He saw the man and the woman left the house .",
        "He saw the man , and the woman left the house .",
        (7, 8),
    ),
    Item(
        "verb phrase or noun phrase attachment",
        "Rayner et al. 1983",
        "She put the book on the table in the box .",
        "She put the book that was on the table in the box .",
        (7, 9),
    ),
    Item(
        "object or subject relative",
        "Gibson 1998",
        "The man that the woman saw left the house .",
        "The man that saw the woman left the house .",
        (5, 3),
    ),
)


def report_garden_paths(
    report: Report, store: HhmmModel, ngram: NgramModel, trees: TreeCorpus
) -> None:
    """Report the surprisal of critical words, with a picture of every item."""
    seen = Counter(word for words in TreeSentences(trees) for word in words)
    rows, groups = [], {}
    for item in ITEMS:
        words = [sentence.split() for sentence in (item.ambiguous, item.clear)]
        rare = sorted({word for both in words for word in both if seen[word] < LEAST_SEEN})
        if rare:
            report.warn(f"{item.kind}: seen less than {LEAST_SEEN} times: {', '.join(rare)}")
        bars = []
        for name, model in (("HHMM", store), ("5-gram", ngram)):
            one, two = (
                model.surprisal(each)[place].surprisal
                for each, place in zip(words, item.critical, strict=True)
            )
            rows.append(
                (
                    item.kind,
                    item.source,
                    words[0][item.critical[0]],
                    name,
                    f"{one:.2f}",
                    f"{two:.2f}",
                    f"{one - two:+.2f}",
                    "yes" if one > two else "no",
                )
            )
            bars += [Bar(f"{name}, ambiguous", one), Bar(f"{name}, clear", two)]
        groups[f"{item.kind}: {words[0][item.critical[0]]}"] = bars
        for sentence in (item.ambiguous, item.clear):
            series = [
                (name, [WordBar(row.word, row.surprisal) for row in model.surprisal(sentence)])
                for name, model in (("HHMM", store), ("5-gram", ngram))
            ]
            report.add_figure(draw_surprisal(series, title=sentence), f"{item.kind}: {sentence}")
        picture = draw_beliefs_svg(beliefs(store, item.ambiguous), title=item.ambiguous)
        report.add_figure(picture, f"{item.kind}: what the parser believes")
    columns = ("kind", "after", "word", "model", "ambiguous", "clear", "difference", "peak")
    report.add_table("Surprisal of the critical word, in bits", columns, rows)
    report.add_figure(
        draw_grouped_bars(groups, title="Surprisal of the critical word", axis="bits"),
        "All items",
    )
