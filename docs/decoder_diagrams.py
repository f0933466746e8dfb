"""Drawings of a decoder with an HHMM inside: its hypotheses and parser states, computed here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from diagram import RED, TEAL, Diagram

import treelm
from treelm.corpus.corpus import TextCorpus
from treelm.corpus.files import Content
from treelm.models.composite.parsed_text import without_punctuation
from treelm.translation.decoder import Decoder, DecoderConfig
from treelm.translation.phrase_table import PhraseTable
from treelm.translation.weights import Weights
from treelm.trees.profile import load_profile

SOURCE = "der Kapitän sah die Fähre"
_PHRASES = """\
der ||| The ||| 0.6
der Kapitän ||| The captain ||| 0.5
Kapitän ||| captain ||| 0.8
sah ||| saw ||| 0.8
sah ||| watched ||| 0.1
die ||| the ||| 0.6
die Fähre ||| the ferry ||| 0.5
Fähre ||| ferry ||| 0.8
"""
_WEIGHTS = {
    "Distortion0": (1.0,),
    "LM0": (0.5,),
    "LM1": (0.5,),
    "WordPenalty0": (0.0,),
    "PhrasePenalty0": (0.0,),
    "TranslationModel0": (1.0,),
    "UnknownWordPenalty0": (1.0,),
}


# -- models and a search -----------------------------------------------------------------------


@cache
def unpunctuated_trees() -> tuple[treelm.Tree, ...]:
    """Return the sample treebank without punctuation, of which stacks have short names."""
    profile = load_profile("english")
    trees = (without_punctuation(tree, profile) for tree in treelm.sample_treebank())
    return tuple(tree for tree in trees if tree is not None)


@cache
def parser() -> Any:
    """Return an incremental parser of sentences without punctuation."""
    return treelm.train("hhmm", treelm.TreeCorpus.of_trees(unpunctuated_trees()))


def state_after(words: Sequence[str]) -> tuple[Any, float]:
    """Return the parser's state after words, and the log probability of the last one."""
    log_prob, state = 0.0, parser().initial()
    for word in words:
        log_prob, state = parser().advance(state, word)
    return state, log_prob


@dataclass(frozen=True, slots=True)
class Extension:
    """A line of a search graph: how a hypothesis was made from the one before.

    Args:
        number: Its number.
        before: The number of the one before; 0 has no words.
        same_as: The hypothesis that it was merged with, if there is one.
        size: How many source words it has translated.
        phrase: The words that were added.
        words: All words.
    """

    number: int
    before: int
    same_as: int | None
    size: int
    phrase: str
    words: tuple[str, ...]


_GRAPH_LINE = re.compile(
    r"\d+ hyp=(\d+) stack=(\d+) back=(\d+).*?(?: recombined=(\d+))? fscore=.* out=(.*)"
)


@cache
def search() -> tuple[tuple[Extension, ...], frozenset[int]]:
    """Return all hypotheses that lead to a translation, and those that lead to the best one."""
    lines = [list(tree.words) for tree in unpunctuated_trees()]
    decoder = Decoder(
        PhraseTable.read(Content("phrases", _PHRASES.encode())),
        [treelm.train("ngram", TextCorpus.of_sentences(lines), order=2), parser()],
        Weights(_WEIGHTS),
        DecoderConfig(distortion_limit=0, stack_size=None, beam_threshold=0.0),
    )
    [found] = decoder.translate([SOURCE], graph=True)
    words: dict[int, tuple[str, ...]] = {0: ()}
    extensions = []
    for fields in map(_GRAPH_LINE.fullmatch, found.graph.splitlines()):
        if fields is not None:  # only the hypothesis without words is made from none
            number, size, before = map(int, fields.group(1, 2, 3))
            words[number] = (*words[before], *fields[5].split())
            same_as = int(fields[4]) if fields[4] else None
            extensions.append(Extension(number, before, same_as, size, fields[5], words[number]))
    made = {each.number: each for each in extensions if each.same_as is None}
    best, at = set(), next(n for n, each in made.items() if each.words == found.words)
    while at:
        best.add(at)
        at = made[at].before
    return tuple(extensions), frozenset(best)


# -- drawings ----------------------------------------------------------------------------------


def decoder_lattice() -> str:
    """All hypotheses of a small search, each with the state of the parser."""
    drawing = Diagram(
        f"Hypotheses of a decoder: {SOURCE}",
        "Boxes from left to right, one for each hypothesis, joined by arrows with the phrases that "
        "were added. Two ways lead to 'captain' and to each 'ferry'; hypotheses that end in 'the' "
        "after 'saw' and after 'watched' stay apart.",
    )
    top = drawing.explain(
        (
            "A box is a hypothesis: its last word, which the 2-gram looks at, and the likeliest",
            "stack of its parser state, with its probability. An arrow is a phrase.",
            "Dashed: another way to the same hypothesis. Heavy: the best translation.",
        )
    )
    extensions, best = search()
    middle = top + 190
    columns = (48.0, 165.0, 305.0, 470.0, 645.0, 800.0)
    shapes = {0: drawing.box(columns[0], middle, ["start"])}
    for each in extensions:
        if each.same_as is None:
            state, _ = state_after(each.words)
            [likeliest] = parser().stacks(state, 1)
            shapes[each.number] = drawing.box(
                columns[each.size],
                middle + _drop(each.words),
                [each.words[-1], f"{likeliest} {likeliest.weight:.2f}"],
            )
    for each in extensions:
        drawing.arrow(
            shapes[each.before].right,
            shapes[each.number if each.same_as is None else each.same_as].left,
            each.phrase,
            colour=RED if each.number in best else None,
            is_heavy=each.number in best,
            is_dashed=each.same_as is not None,
        )
    bottom = middle + 225
    for word, (left, right) in zip(SOURCE.split(), pairwise(columns), strict=True):
        drawing.text((left + right) / 2, bottom, word, "label")
    for size, x in enumerate(columns[1:], 1):
        drawing.text(x, bottom + 20, f"{size} translated")
    return drawing.svg()


def _drop(words: Sequence[str]) -> float:
    """Return how far below the middle a hypothesis is drawn: each verb has a branch of its own.

    Hypotheses in the middle of a longer phrase stand aside, so that its arrow can pass.
    """
    if len(words) < 3:
        return -85.0 if len(words) == 1 else 0.0
    return (-1 if "saw" in words else 1) * (165.0 if len(words) == 4 else 82.0)


def decoder_states() -> str:
    """Parser states: of a hypothesis, on the way through a phrase, of the next hypothesis."""
    drawing = Diagram(
        "A phrase of two words extends a hypothesis",
        "Three lists of stacks with probabilities, joined by arrows for the words 'the' and "
        "'ferry'; the frame of the list between is dashed.",
    )
    top = drawing.explain(
        (
            "A parser state: stacks with their probabilities, here the three likeliest.",
            "A/B: an A that still lacks a B. @...: a part of a phrase that binarization made.",
            "Solid: the state of a hypothesis. Dashed: passed on the way to the next one.",
        )
    )
    words, phrase = ("The", "captain", "saw"), ("the", "ferry")
    middle = top + 72
    shapes, log_probs = [], []
    for place, x in enumerate((100.0, 360.0, 630.0)):
        read = (*words, *phrase[:place])
        state, log_prob = state_after(read)
        log_probs.append(log_prob)
        stacks = [f"{stack.weight:.3f} {stack}" for stack in parser().stacks(state, 3)]
        passed = 0 < place < len(phrase)
        colour = None if passed else TEAL
        box = drawing.box(x, middle, stacks, is_list=True, is_dashed=passed, colour=colour)
        drawing.text(x, box.top[1] - 14, " ".join(read), "label")
        shapes.append(box)
    for word, log_prob, (left, right) in zip(phrase, log_probs[1:], pairwise(shapes), strict=True):
        drawing.arrow(left.right, right.left)
        gap = (left.right[0] + right.left[0]) / 2
        drawing.text(gap, middle - 14, word, "label")
        drawing.text(gap, middle + 14, _minus(log_prob), "value")
    added = " ".join([_minus(log_probs[1]), *(_minus(each, " ") for each in log_probs[2:])])
    drawing.text(
        shapes[1].x,
        shapes[1].bottom[1] + 24,
        f"die Fähre, the ferry: log probability {added} = {_minus(sum(log_probs[1:]))}",
        "value",
    )
    return drawing.svg()


def _minus(value: float, gap: str = "") -> str:
    return f"{value:.2f}".replace("-", f"\N{MINUS SIGN}{gap}")
