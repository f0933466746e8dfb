"""Our drawings of what the papers define: models, hypotheses, and who does what in a training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from decoder_diagrams import decoder_lattice, decoder_states
from diagram import TEAL, Diagram, Shape

import treelm
from treelm.models.composite.actions import NULL, actions_of, codes_of, trees_of
from treelm.models.composite.config import CompositeConfig
from treelm.view.chart_page import MARGIN

#: A sentence in which the words before the verb are not the head of its subject.
SUBJECT_TREE = treelm.Tree.from_string(
    "(ROOT (S (NP (NP (DT The) (NN captain)) (PP (IN of) (NP (DT the) (NN ferry))))"
    " (VP (VBD saw) (NP (DT the) (NN storm)))))"
)
_LOW = "\N{SUBSCRIPT ONE}\N{SUBSCRIPT TWO}\N{SUBSCRIPT THREE}"


# -- the HHMM ----------------------------------------------------------------------------------


def hhmm_variables() -> str:
    """What a stack, a tag and a word depend on, for stacks of up to three elements."""
    drawing = Diagram(
        "What the variables of an HHMM depend on",
        "Circles in three columns: stack, tag and word at one place of a sentence, what is "
        "complete, and stack, tag and word at the next place. Arrows lead to each circle from "
        "those that it depends on.",
    )
    top = drawing.explain(
        (
            "a/b: an element of the stack, an a that lacks a b; the first is the outermost.",
            "r: what an element has completed, if anything. Shaded: what is seen.",
            "Dashed: only with tag_context (to the tag) and word_context (to the word).",
        )
    )
    columns = (150.0, 330.0, 510.0)
    rows = [top + 60 + 92 * place for place in range(5)]
    headings = ("word t \N{MINUS SIGN} 1", "complete", "word t")
    for x, heading in zip(columns, headings, strict=True):
        drawing.text(x, top + 14, heading, "label")
    old = _variables(drawing, columns[0], rows, side=-1)
    new = _variables(drawing, columns[2], rows, side=1)
    complete = [drawing.circle(columns[1], rows[at] + 46, f"r{_LOW[at]}") for at in range(3)]
    for at in range(3):
        drawing.arrow(old[at], complete[at])
        drawing.arrow(old[at], new[at])
        drawing.arrow(complete[at], new[at])
    for at in range(2):
        drawing.arrow(old[at], complete[at + 1])
        drawing.arrow(complete[at + 1], complete[at])
        drawing.arrow(complete[at + 1], new[at])
    *_, old_tag, old_word = old
    *_, new_tag, new_word = new
    drawing.arrow(old_tag, complete[-1])
    drawing.arrow(old_tag, new[2], via=(complete[2].x, complete[2].y + 62))
    drawing.arrow(old_word, new_tag, is_dashed=True)
    drawing.arrow(old_word, new_word, is_dashed=True)
    return drawing.svg()


def _variables(drawing: Diagram, x: float, rows: Sequence[float], *, side: int) -> list[Shape]:
    """Draw the variables at one word, and what they depend on among each other."""
    shapes = [drawing.circle(x, rows[at], f"a{_LOW[at]}/b{_LOW[at]}") for at in range(3)]
    shapes.append(drawing.circle(x, rows[3], "tag", radius=22))
    shapes.append(drawing.circle(x, rows[4], "word", radius=22, is_given=True))
    for above, below in pairwise(shapes):
        drawing.arrow(above, below)
    # The deepest element decides about the tag, whichever that is.
    for at, width in ((0, 145.0), (1, 95.0)):
        beside = x + side * width, (shapes[at].y + shapes[3].y) / 2
        drawing.arrow(shapes[at], shapes[3], via=beside)
    return shapes


# -- composite models --------------------------------------------------------------------------


class Step(NamedTuple):
    """What a structured language model does at a word."""

    word: str
    tag: str
    moves: tuple[str, ...]
    built: tuple[treelm.Tree, ...]
    """The constituents when this is done, from left to right."""

    @property
    def heads(self) -> list[str]:
        """The two exposed heads, the last one first."""
        found = [_head(tree) for tree in reversed(self.built)]
        return [*found, "<s>"][:2]


def steps_of(tree: treelm.Tree) -> list[Step]:
    """Return what a structured language model does at the words of a tree."""
    binary = CompositeConfig(heads=2).pipeline().apply(treelm.find_heads(tree)).children[0]
    codes = codes_of([binary])
    actions = actions_of(binary, codes)
    steps, at = [], 0
    for count, word in enumerate(binary.words, 1):
        tag, at = codes.tags[actions[at]], at + 1
        moves: list[str] = []
        while not moves or moves[-1] != codes.moves[NULL]:
            moves.append(codes.moves[actions[at]])
            at += 1
        built = trees_of(actions[:at], binary.words[:count], codes)
        steps.append(Step(word, tag, tuple(moves), tuple(built)))
    return steps


def _head(tree: treelm.Tree) -> str:
    return f"{tree.label}: {treelm.lexical_head(tree).word}"


def composite_model() -> str:
    """What predicts a word and its tag, and what is built with it."""
    steps = steps_of(SUBJECT_TREE)
    before, now = steps[4:6]
    drawing = Diagram(
        "A 3-gram/2-SLM/PLSA model reads a word",
        "On the left the topics of a document, the words of a sentence and the phrases built of "
        "them; in the middle a topic, two words and two heads, with arrows to the predictor on the "
        "right. Heads lead to the tagger and the constructor below it, too, and the constructor to "
        "the heads at the next word.",
    )
    top = drawing.explain(
        (
            "The predictor looks at all three at once: the topic, the words and the heads before.",
            "NP: captain is a noun phrase with the head captain.",
            "Green: exposed heads, those of what is not yet part of anything larger.",
        )
    )
    rows = (top + 28, top + 112)
    document = drawing.box(
        MARGIN + drawing.width_of(["document"]) / 2, rows[0], ["document"], is_given=True
    )
    topics = drawing.box(225, rows[0], ["its topics", "p(topic | document)"])
    words = [step.word for step in steps[:5]]
    shapes, exposed = _sentence(drawing, words, before.built, rows[1])

    middle, right = 460.0, 675.0
    topic = drawing.box(middle, rows[0], ["topic", "hidden, one for each word"])
    history = drawing.box(middle, rows[1], ["two words", " ".join(words[-2:])])
    heads = drawing.box(middle, exposed.y, ["two heads", ", ".join(before.heads)], colour=TEAL)
    following = drawing.box(
        middle, exposed.y + 88, ["heads at the next word", ", ".join(now.heads)], colour=TEAL
    )
    predictor = drawing.box(right, rows[0] + 40, ["predictor", f"the next word: {now.word}"])
    tagger = drawing.box(right, exposed.y - 25, ["tagger", f"its tag: {now.tag}"])
    constructor = drawing.box(
        right, following.y, ["constructor", f"its moves: {', '.join(now.moves)}"]
    )

    drawing.arrow(document, topics)
    drawing.arrow(topics, topic)
    drawing.arrow(shapes[-1].right, history.left)
    drawing.arrow(exposed.right, heads.left, colour=TEAL)
    for context in (topic, history, heads):
        drawing.arrow(context.right, predictor)
    drawing.arrow(heads.right, tagger.left)
    drawing.arrow(heads.right, constructor.left)
    drawing.arrow(predictor, tagger, now.word)
    drawing.arrow(tagger, constructor, now.tag)
    drawing.arrow(constructor.left, following.right, colour=TEAL)
    return drawing.svg()


def _sentence(
    drawing: Diagram, words: Sequence[str], built: Sequence[treelm.Tree], y: float
) -> tuple[list[Shape], Shape]:
    """Draw words, and below them a bar for each phrase; return the words and the last bar."""
    shapes: list[Shape] = []
    left = float(MARGIN)
    for word in ("<s>", *words):
        width = drawing.width_of([word])
        is_exposed = word == "<s>"
        shapes.append(drawing.box(left + width / 2, y, [word], colour=TEAL if is_exposed else None))
        left = shapes[-1].right[0] + 6
    bar = shapes[-1]
    begin = 1
    for tree in built:
        bar = _bars(drawing, tree, shapes[begin : begin + len(tree.words)], is_exposed=True)
        begin += len(tree.words)
    return shapes, bar


def _bars(
    drawing: Diagram, tree: treelm.Tree, words: Sequence[Shape], *, is_exposed: bool = False
) -> Shape:
    """Draw a bar for a phrase below those of its parts, and return it."""
    if tree.word is not None:
        return words[0]
    parts, begin = [], 0
    for child in tree.children:
        parts.append(_bars(drawing, child, words[begin : begin + len(child.words)]))
        begin += len(child.words)
    left, right = words[0].left[0], words[-1].right[0]
    y = max(part.bottom[1] for part in parts) + 22
    return drawing.box(
        (left + right) / 2,
        y,
        [_head(tree)],
        width=right - left,
        colour=TEAL if is_exposed else None,
    )


# -- training on many machines -----------------------------------------------------------------


def clients_and_servers() -> str:
    """Who does what in a round of EM: workers that search, shards that hold counts and tables."""
    drawing = Diagram(
        "A round of EM by many workers",
        "Pieces of a text lead to workers, each worker to every shard of counts, these to the "
        "process that gives the work, and this to shards of tables, which the workers ask.",
    )
    top = drawing.explain(
        (
            "Workers are the clients of the paper, shards its servers: those of the counts with",
            "--shards, those of the tables with --shard-parameters.",
        )
    )
    rows = [top + 52 + 58 * place for place in range(3)]
    pieces = [drawing.box(70, y, [f"piece {at}"]) for at, y in enumerate(rows, 1)]
    workers = [drawing.box(225, y, [f"worker {at}"], colour=TEAL) for at, y in enumerate(rows, 1)]
    halves = [(rows[0] + rows[1]) / 2, (rows[1] + rows[2]) / 2]
    counts = [
        drawing.box(400, y, [f"shard {at}", "of the counts"]) for at, y in enumerate(halves, 1)
    ]
    giver = drawing.box(
        620,
        rows[1],
        [
            "process that gives the work",
            "builds the tables,",
            "finds the weights on",
            "held-out text",
        ],
    )
    below = rows[2] + 150
    tables = [
        drawing.box(x, below, [f"shard {at}", "of the tables"])
        for at, x in enumerate((165.0, 285.0), 1)
    ]
    drawing.frame(pieces, "text")
    all_workers = drawing.frame(workers, "search parses")
    all_counts = drawing.frame(counts, "added up by workers")
    all_tables = drawing.frame(tables, "model of the next round")
    for piece, worker in zip(pieces, workers, strict=True):
        drawing.arrow(piece, worker)
    for worker in workers:
        for shard in counts:
            drawing.arrow(worker.right, shard.left)
    drawing.arrow((all_counts.right[0], giver.y), giver.left)
    drawing.arrow(giver.bottom, all_tables.right, "tables", via=(giver.x, all_tables.y))
    ask, answer = all_workers.x - 28, all_workers.x + 28
    drawing.arrow((ask, all_workers.bottom[1]), (ask, all_tables.top[1]), "words")
    drawing.arrow((answer, all_tables.top[1]), (answer, all_workers.bottom[1]), "counts")
    return drawing.svg()


DIAGRAMS: dict[str, Callable[[], str]] = {
    "decoder-lattice": decoder_lattice,
    "decoder-states": decoder_states,
    "hhmm-variables": hhmm_variables,
    "composite-model": composite_model,
    "clients-and-servers": clients_and_servers,
}
