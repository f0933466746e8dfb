"""Answers about words: surprisal by several models, and two sentences side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from itertools import islice

from treelm.characters import visible
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.scores import WordScore
from treelm.tasks.text_check import NO_SENTENCE, TextCheck
from treelm.view.difference_chart import Pair, draw_difference
from treelm.view.latex import escape_latex
from treelm.view.surprisal_chart import WordBar, draw_surprisal
from treelm.web.answers import (
    CompareAnswer,
    Comparison,
    PairAnswer,
    Series,
    SurprisalAnswer,
    SurprisalSentence,
)
from treelm.web.limits import ServerLimits
from treelm.web.offered_models import OfferedModels
from treelm.web.questions import CompareQuestion, Question, SurprisalQuestion
from treelm.web.texts import Sentence, read_sentence, read_text
from treelm.web.work_queue import Ticket

#: Sentences that are drawn; of longer texts the figures are there alone.
MOST_DRAWN = 20
#: Unknown words that are named.
_MOST_NAMED = 12

Named = Sequence[tuple[str, LanguageModel]]


def answer_surprisal(
    question: SurprisalQuestion, models: OfferedModels, limits: ServerLimits, ticket: Ticket
) -> SurprisalAnswer:
    """Return the surprisal of every word of a text, by each model."""
    chosen = models.several(question.models, "surprisal")
    text = read_text(
        question.text,
        tokenized=question.tokenized,
        words=limits.words,
        sentence_words=limits.sentence_words,
    )
    found = [
        surprisal_of(words, chosen, question, ticket, eos=question.eos, drawn=place < MOST_DRAWN)
        for place, words in enumerate(text)
    ]
    return SurprisalAnswer(sentences=found, notes=unknown_notes(text, chosen, question))


def surprisal_of(
    words: Sentence,
    chosen: Named,
    question: Question,
    ticket: Ticket,
    *,
    eos: bool = False,
    drawn: bool = True,
) -> SurprisalSentence:
    """Return the surprisal of every word of a sentence, by each model."""
    scores = []
    for name, model in chosen:
        ticket.check()
        scores.append((name, model.surprisal(words, eos=eos)))
    shown = [each.word for each in scores[0][1]]
    svg = latex = None
    if drawn and "svg" in question.formats:
        svg = draw_surprisal(
            [(name, list(map(_bar, each))) for name, each in scores],
            title=" ".join(words),
            widest=question.width,
        )
    if drawn and "latex" in question.formats:
        latex = surprisal_table(shown, scores)
    series = [_series(name, each) for name, each in scores]
    return SurprisalSentence(words=shown, series=series, svg=svg, latex=latex)


def unknown_notes(text: Iterable[Sentence], chosen: Named, question: Question) -> list[str]:
    """Return what there is to say about words that models do not know."""
    notes: list[str] = []
    sentences = list(text)
    for name, model in chosen:
        known = model.vocabulary
        words = dict.fromkeys(word for words in sentences for word in words if word not in known)
        if words:
            shown = ", ".join(visible(word[:40]) for word in islice(words, _MOST_NAMED))
            rest = len(words) - _MOST_NAMED
            notes.append(f"Unknown to {name}: {shown}{f' and {rest} more' if rest > 0 else ''}.")
        check = TextCheck(known, tokenized=not question.tokenized, has_option=False, model=name)
        for sentence in sentences:
            check.look(sentence)
        notes += (said for said in check.messages() if said != NO_SENTENCE)
    return notes


def finite(number: float) -> float | None:
    """Return a number as JSON has it: None for infinity, and for what is no number."""
    return number if math.isfinite(number) else None


def _bar(score: WordScore) -> WordBar:
    return WordBar(score.word, score.surprisal, score.oov)


def _series(name: str, scores: Sequence[WordScore]) -> Series:
    return Series(
        model=name,
        surprisal=[finite(each.surprisal) for each in scores],
        unknown=[each.oov for each in scores],
        total=finite(math.fsum(each.surprisal for each in scores)),
    )


def surprisal_table(words: Sequence[str], scores: Sequence[tuple[str, Sequence[WordScore]]]) -> str:
    r"""Return the surprisal of words as a LaTeX table, a column for each model.

    Examples:
        >>> print(surprisal_table(["50%"], [("ngram", [WordScore("50%", math.log(0.25))])]))
        \begin{tabular}{lr}
        word & ngram \\ \hline
        50\% & 2.00 \\
        \end{tabular}
    """
    lines = [rf"\begin{{tabular}}{{l{'r' * len(scores)}}}"]
    lines.append(" & ".join(["word", *(escape_latex(name) for name, _ in scores)]) + r" \\ \hline")
    for place, word in enumerate(words):
        cells = [_latex_number(each[place].surprisal) for _, each in scores]
        lines.append(" & ".join([escape_latex(word), *cells]) + r" \\")
    return "\n".join([*lines, r"\end{tabular}"])


def _latex_number(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else r"$\infty$"


def difference_table(pairs: Sequence[Pair]) -> str:
    r"""Return two sentences and the difference of their words as a LaTeX table.

    Examples:
        >>> print(difference_table([Pair(WordBar("a", 1.0), WordBar("b", 3.5)), Pair(None, None)]))
        \begin{tabular}{lrlrr}
        first & bits & second & bits & difference \\ \hline
        a & 1.00 & b & 3.50 & $+2.50$ \\
        -- & -- & -- & -- & -- \\
        \end{tabular}
    """
    lines = [r"\begin{tabular}{lrlrr}", r"first & bits & second & bits & difference \\ \hline"]
    for pair in pairs:
        cells: list[str] = []
        for bar in pair:
            cells += (
                ["--", "--"] if bar is None else [escape_latex(bar.word), _latex_number(bar.value)]
            )
        cells.append("--" if pair.difference is None else f"${pair.difference:+.2f}$")
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\end{tabular}"])


# -- two sentences ------------------------------------------------------------------------------


def answer_compare(
    question: CompareQuestion, models: OfferedModels, limits: ServerLimits, ticket: Ticket
) -> CompareAnswer:
    """Return two sentences side by side, by each model."""
    chosen = models.several(question.models, "surprisal")
    both = [
        read_sentence(text, tokenized=question.tokenized, sentence_words=limits.sentence_words)
        for text in (question.first, question.second)
    ]
    places = aligned(*both)
    found = []
    for name, model in chosen:
        ticket.check()
        first, second = (model.surprisal(words) for words in both)
        pairs = [
            Pair(
                None if i is None else _bar(first[i]),
                None if j is None else _bar(second[j]),
            )
            for i, j in places
        ]
        svg = latex = None
        if "latex" in question.formats:
            latex = difference_table(pairs)
        if "svg" in question.formats:
            svg = draw_difference(("first", "second"), pairs, title=name, widest=question.width)
        totals = [math.fsum(each.surprisal for each in scores) for scores in (first, second)]
        found.append(
            Comparison(
                model=name,
                pairs=list(map(_pair, pairs)),
                first_total=finite(totals[0]),
                second_total=finite(totals[1]),
                difference=finite(totals[1] - totals[0]),
                svg=svg,
                latex=latex,
            )
        )
    return CompareAnswer(comparisons=found, notes=unknown_notes(both, chosen, question))


def aligned(first: Sentence, second: Sentence) -> list[tuple[int | None, int | None]]:
    """Return which words of two sentences stand at the same place.

    Words that both have are paired as far as their order allows. Between them, words are paired one
    by one where there are as many on both sides, and stand alone where there are not.

    Examples:
        >>> aligned(("a", "dog", "ran"), ("a", "big", "cat", "ran"))
        [(0, 0), (1, None), (None, 1), (None, 2), (2, 3)]
        >>> aligned(("a", "dog", "ran"), ("a", "cat", "ran"))
        [(0, 0), (1, 1), (2, 2)]
    """
    found: list[tuple[int | None, int | None]] = []
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    for _, i, i_end, j, j_end in matcher.get_opcodes():
        if i_end - i == j_end - j:
            found += zip(range(i, i_end), range(j, j_end), strict=True)
        else:
            found += [(place, None) for place in range(i, i_end)]
            found += [(None, place) for place in range(j, j_end)]
    return found


def _pair(pair: Pair) -> PairAnswer:
    return PairAnswer(
        first=None if pair.first is None else pair.first.word,
        second=None if pair.second is None else pair.second.word,
        first_surprisal=None if pair.first is None else finite(pair.first.value),
        second_surprisal=None if pair.second is None else finite(pair.second.value),
        difference=pair.difference,
    )
