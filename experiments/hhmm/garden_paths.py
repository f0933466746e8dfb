"""Garden-path sentences, rewritten with words that the models know.

Each item has an ambiguous sentence and an unambiguous version of it; the published
expectation is a higher surprisal of the critical word in the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from readings import count_readings

from treelm.corpus.corpus import TreeCorpus, TreeSentences
from treelm.models.hhmm.model import HhmmModel
from treelm.models.ngram.model import NgramModel
from treelm.tasks.report.report import Report
from treelm.tasks.surprisal.parser_states import parser_states
from treelm.view.parser_states import draw_parser_states_svg
from treelm.view.plots import Bar, draw_grouped_bars
from treelm.view.surprisal_chart import WordBar, draw_surprisal

#: Words, and readings of the ambiguous word, seen less often in the training trees are not used.
LEAST_SEEN = 5


class Item(NamedTuple):
    """A pair of sentences.

    Args:
        kind: What is ambiguous.
        source: Who published sentences of this kind.
        ambiguous: The garden-path sentence.
        clear: The unambiguous version.
        critical: Place of the critical word in each, counted from 0.
        word: The word with two readings.
        readings: The one that readers prefer at first, and the correct one.
    """

    kind: str
    source: str
    ambiguous: str
    clear: str
    critical: tuple[int, int]
    word: str
    readings: tuple[str, str]


ITEMS = (
    Item(
        "main verb or reduced relative, another participle",
        "Bever 1970",
        "The cells found in the study showed this .",
        "The cells seen in the study showed this .",
        (6, 6),
        "found",
        ("past tense", "participle"),
    ),
    Item(
        "main verb or reduced relative",
        "Ferreira and Clifton 1986",
        "The people asked about the case left .",
        "The people who were asked about the case left .",
        (6, 8),
        "asked",
        ("past tense", "participle"),
    ),
    Item(
        "object or subject of the main clause",
        "Frazier and Rayner 1982",
        "When they started the system was used .",
        "When they started , the system was used .",
        (5, 6),
        "started",
        ("with an object", "without an object"),
    ),
    Item(
        "object or sentential complement",
        "Pickering and Traxler 1998",
        "The study found the gene was expressed .",
        "The study found that the gene was expressed .",
        (5, 6),
        "found",
        ("with an object", "with a clause"),
    ),
    Item(
        "noun phrase or sentence coordination",
        "Hoeks et al. 2002",
        "He saw the man and the woman left the house .",
        "He saw the man , and the woman left the house .",
        (7, 8),
        "and",
        ("between noun phrases", "between clauses"),
    ),
    Item(
        "verb phrase or noun phrase attachment",
        "Rayner et al. 1983",
        "She put the book on the table in the box .",
        "She put the book that was on the table in the box .",
        (7, 9),
        "on",
        ("below a verb phrase", "below a noun phrase"),
    ),
    Item(
        "object or subject relative",
        "Gibson 1998",
        "The man that the woman saw left the house .",
        "The man that saw the woman left the house .",
        (5, 3),
        "that",
        ("subject relative", "object relative"),
    ),
)


def report_words(report: Report, trees: TreeCorpus) -> None:
    """Report how often the words of the items were seen, and warn about rare ones."""
    seen = Counter(word for words in TreeSentences(trees) for word in words)
    readings = count_readings(trees, [item.word for item in ITEMS])
    rows = []
    for item in ITEMS:
        words = sorted(
            {*item.ambiguous.split(), *item.clear.split()}, key=lambda word: (seen[word], word)
        )
        rare = [word for word in words if seen[word] < LEAST_SEEN]
        rare += [
            f"{item.word} {reading}"
            for reading in item.readings
            if readings[item.word, reading] < LEAST_SEEN
        ]
        if rare:
            report.warn(f"{item.kind}: seen less than {LEAST_SEEN} times: {', '.join(rare)}")
        counts = [f"{reading} {readings[item.word, reading]}" for reading in item.readings]
        rows.append((item.kind, f"{words[0]} {seen[words[0]]}", item.word, *counts))
    columns = ("kind", "rarest word", "ambiguous word", "first reading", "right reading")
    report.add_table("How often words were seen in the training trees", columns, rows)


def report_garden_paths(
    report: Report, hhmm: HhmmModel, ngram: NgramModel, trees: TreeCorpus
) -> None:
    """Report the surprisal of critical words, with a picture of every item."""
    report_words(report, trees)
    rows: list[Sequence[str]] = []
    groups = {}
    for item in ITEMS:
        words = [sentence.split() for sentence in (item.ambiguous, item.clear)]
        bars = []
        for name, model in (("HHMM", hhmm), ("5-gram", ngram)):
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
                for name, model in (("HHMM", hhmm), ("5-gram", ngram))
            ]
            report.add_figure(draw_surprisal(series, title=sentence), f"{item.kind}: {sentence}")
        picture = draw_parser_states_svg(parser_states(hhmm, item.ambiguous), title=item.ambiguous)
        report.add_figure(picture, f"{item.kind}: the parser states")
    columns = ("kind", "after", "word", "model", "ambiguous", "clear", "difference", "peak")
    report.add_table("Surprisal of the critical word, in bits", columns, rows)
    report.add_figure(
        draw_grouped_bars(groups, title="Surprisal of the critical word", axis="bits"),
        "All items",
    )
