"""Draw the pictures of the pages: ``python docs/make_pictures.py``.

Those of systems are drawn by `treelm.view`, from models trained on the treebank that comes with
treelm; drawings of definitions are in `paper_diagrams`.
With names of pictures as arguments only these are drawn.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from paper_diagrams import DIAGRAMS

import treelm
from treelm.corpus.corpus import TextCorpus
from treelm.corpus.sample_treebank import sample_path
from treelm.models.composite.config import CompositeConfig
from treelm.models.interface.score_explanation import ScoreExplanation
from treelm.seeds import random_uniform
from treelm.tasks.inspect.topics import draw_topics, inspect_topics
from treelm.tasks.surprisal.parser_states import parser_states
from treelm.transforms.binarize import binarize
from treelm.transforms.right_corner import right_corner
from treelm.transforms.unary_chains import merge_unary_chains
from treelm.view.bar_charts import draw_bar_chart, draw_grouped_bars
from treelm.view.bracket_tree import draw_bracket_tree
from treelm.view.chart_data import Bar
from treelm.view.parser_states import draw_parser_states_svg
from treelm.view.surprisal_chart import WordBar, draw_surprisal
from treelm.view.svg import draw_svg, stack_svg
from treelm.view.weighted_tree import draw_weighted_tree

FOLDER = Path(__file__).resolve().parent / "pictures"

SENTENCE = "The captain saw the ferry ."
TREE = treelm.Tree.from_string(
    "(ROOT (S (NP (DT The) (NN captain)) (VP (VBD saw) (NP (DT the) (NN ferry))) (. .)))"
)
#: The tree of Figure 1 of Pauls and Klein (2012), before their transforms.
INDEX_TREE = treelm.Tree.from_string(
    "(ROOT (S (NP (DT The) (NN index)) (VP (VBD fell) (NP (CD 109.85)) (NP (NNP Monday))) (. .)))"
)
#: A sentence whose last phrase can belong to the verb or to the noun before it.
_ATTACHED = "The leader of the expedition was Clara Voss , a doctor from the city ."
#: What is predicted, what it is predicted from, everything else.
_OUTCOME, _CONTEXT, _OTHER = "#c2410c", "#1d4ed8", "#94a3b8"
#: Sentences that train; the others are new.
_TRAINING = 260


# -- what several pictures need ----------------------------------------------------------------


@cache
def trees() -> tuple[treelm.Tree, ...]:
    """Return the trees of the sample treebank."""
    return tuple(treelm.sample_treebank())


def sentences() -> list[str]:
    """Return its sentences."""
    return [" ".join(tree.words) for tree in trees()]


def text(lines: Sequence[str]) -> TextCorpus:
    """Return sentences as a corpus."""
    return TextCorpus.of_sentences([line.split() for line in lines])


@cache
def grammar() -> Any:
    """Return a treebank grammar."""
    return treelm.train("pcfg", sample_path())


@cache
def right_corner_parser() -> Any:
    """Return an incremental parser."""
    return treelm.train("hhmm", sample_path())


def good_and_bad(*, tuning: bool = False) -> dict[str, TextCorpus]:
    """Return good sentences and bad ones: every fifth, or all others."""
    good = [line for number, line in enumerate(sentences()) if (number % 5 == 0) is tuning]
    return {"good": text(good), "bad": text([_exchanged(line) for line in good])}


def _exchanged(line: str) -> str:
    """Return a sentence in which every two neighbours have changed places."""
    words = line.split()[:-1]
    pairs = [words[at : at + 2][::-1] for at in range(0, len(words), 2)]
    return " ".join([word for pair in pairs for word in pair] + line.split()[-1:])


def bars_of(model: Any, sentence: str) -> list[WordBar]:
    """Return the surprisal of the words of a sentence."""
    return [WordBar(row.word, row.surprisal) for row in model.surprisal(sentence)]


def largest_steps(explanation: ScoreExplanation, count: int) -> list[Bar]:
    """Return the steps of a margin that weigh most, the heaviest first."""
    steps = sorted(explanation.steps, key=lambda step: (-abs(step.value), step.what))
    return [Bar(step.what, step.value) for step in steps[:count]]


# -- one picture for each system ---------------------------------------------------------------


def ngram() -> str:
    """The next word after contexts of two, one and no words."""
    model = treelm.train("ngram", text(sentences()), order=3)
    groups = {}
    for word in ("harbour", "village", "of"):
        shown = []
        for context in ("left the", "the", ""):
            found = model.continuation(word, context, bos=False)
            label = f"after '{context}'" if context else "after nothing"
            shown.append(Bar(label, found.words[0].probability))
        groups[word] = shown
    return draw_grouped_bars(
        groups, title="The next word, by the words before it", axis="probability", digits=3
    )


def treelet() -> str:
    """What a phrase and a word are predicted from."""
    tree = treelm.treelet(INDEX_TREE, temporal={"Monday"})
    labels = [str(node.label) for node in tree.preorder()]
    phrase = _coloured(labels, outcome=("VBD", "CD-DC", "NNTP"), context=(
        "VP-VBD^S", "S-VBD^ROOT", "NP-NN", "."))  # fmt: skip
    word = _coloured(labels, outcome=(), context=("VBD", "CD-DC", "VP-VBD^S", "NNTP"))
    return stack_svg(
        [
            draw_svg(tree, colours=phrase, title="Children (red) given the rule above (blue)"),
            draw_svg(tree, colours=word, title="fell, given its tag and the rule above (blue)"),
        ],
        title="What a treelet model predicts a phrase and a word from",
    )


def _coloured(
    labels: Sequence[str], *, outcome: Sequence[str], context: Sequence[str]
) -> list[str]:
    kinds = {**dict.fromkeys(context, _CONTEXT), **dict.fromkeys(outcome, _OUTCOME)}
    return [kinds.get(label, _OTHER) for label in labels]


def headlex() -> str:
    """A tree with its heads."""
    return draw_svg(treelm.find_heads(INDEX_TREE), mark_heads=True)


def hhmm() -> str:
    """A binary tree and its right-corner transform."""
    binary = binarize(merge_unary_chains(TREE))
    return stack_svg(
        [
            draw_svg(binary, title="A binary tree"),
            draw_svg(right_corner(binary), title="Its right-corner transform"),
        ],
        title="A binary tree, and its right-corner transform",
    )


def hhmm_stacks() -> str:
    """The stacks of the parser after every word."""
    states = parser_states(right_corner_parser(), SENTENCE.split(), count=3)
    return draw_parser_states_svg(states, title=f"Parser states: {SENTENCE}")


def slm() -> str:
    """A binary tree whose labels carry head words."""
    binary = CompositeConfig(heads=2).pipeline().apply(treelm.find_heads(TREE))
    return draw_svg(_with_head_words(binary), mark_heads=True, title="Exposed heads")


def _with_head_words(tree: treelm.Tree) -> treelm.Tree:
    def named(node: treelm.Tree, below: list[treelm.Tree]) -> treelm.Tree:
        if node.word is not None:
            return treelm.Tree(str(node.label), node.word)
        label = f"{node.label}: {treelm.lexical_head(node).word}"
        return treelm.Tree(label, below, head=node.head)

    return tree.fold(named)


def composite() -> str:
    """The same sentence read by a bigram model, by exposed heads, and by both at once."""
    lines = trees()
    corpus = treelm.TreeCorpus.of_trees(lines[:_TRAINING])
    held_out = treelm.TreeCorpus.of_trees(lines[_TRAINING:])
    series = []
    for name, order, heads in (("2-gram", 2, 0), ("2-SLM", 1, 2), ("2-gram/2-SLM", 2, 2)):
        model = treelm.train(
            "composite", corpus, held_out=held_out, order=order, heads=heads, iterations=0,
            follow_up=0,
        )  # fmt: skip
        series.append((name, bars_of(model, SENTENCE)))
    return draw_surprisal(series, title=SENTENCE)


def plsa() -> str:
    """The topics of documents about two things."""
    with TemporaryDirectory() as folder:
        documents = Path(folder, "documents.txt")
        documents.write_text("\n".join(map(_document, range(120))), encoding="utf-8")
        treelm.train("plsa", documents, topics=2, order=2, seed=1).save(Path(folder, "model"))
        return draw_topics(inspect_topics(Path(folder, "model"), words=6))


def _document(number: int) -> str:
    themes = ("cat dog cow purrs barks eats", "sun moon star shines rises sets")
    words = themes[number % 3 > 0].split()
    drawn = [words[int(random_uniform(1, number, place) * 6)] for place in range(40)]
    return "".join(f"the {' '.join(drawn[at : at + 4])} .\n" for at in range(0, 40, 4))


def pcfg() -> str:
    """A tree with the probability of the rule below each label."""
    model = treelm.train("treelet", sample_path(), variant="pcfg", smoothing="none")
    chances = [math.exp(factor.log_prob) for factor in model.tree_factors(TREE)]
    return draw_bracket_tree(TREE, chances, title="Each label with the probability of its rule")


def pcfg_la() -> str:
    """The words of the kinds of determiners that a latent grammar has found."""
    model = treelm.train("pcfg_la", sample_path(), cycles=2, split_iterations=20, seed=1)
    groups = {
        f"{kind.name}, {kind.share:.0%} of all": [Bar(word.name, word.share) for word in kind.words]
        for kind in model.subcategories("DT", limit=4)
    }
    return draw_grouped_bars(groups, title="Kinds of determiners", axis="share of the kind")


def lsvm() -> str:
    """The tree behind a decision, with the weights of its productions."""
    model = treelm.train(
        "lsvm", good_and_bad(), tuning=good_and_bad(tuning=True), trees=sample_path(),
        start="mle", rounds=3, regularization=1.0,
    )  # fmt: skip
    found = model.explain(SENTENCE)
    return draw_weighted_tree(found.tree, found.weights)


def trigram_svm() -> str:
    """The n-grams that weigh most in a decision."""
    model = treelm.train(
        "trigram_svm", good_and_bad(), tuning=good_and_bad(tuning=True), regularization=0.1
    )
    bad = _exchanged(SENTENCE)
    return draw_bar_chart(
        largest_steps(model.explain_score(bad), 8), title=bad, axis="part of the margin"
    )


def tree_features() -> str:
    """The best tree of a bad sentence, with the weights of its rules."""
    model = treelm.train(
        "tree_features", good_and_bad(), tuning=good_and_bad(tuning=True), parser=grammar(),
        features="cfg", min_sentences=2,
    )  # fmt: skip
    found = model.explain(_exchanged(SENTENCE))
    return draw_weighted_tree(found.tree, found.weights)


def tree_ranker() -> str:
    """What speaks for the tree that a ranker chooses, and against that of the parser."""
    ranker = treelm.train(
        "tree_ranker", trees()[:_TRAINING], parser=grammar(), k=10, min_sentences=2,
        regularization=1.0,
    )  # fmt: skip
    best, chosen = (
        ranker.weights_of(parser.parse(_ATTACHED)[0].tree) for parser in (grammar(), ranker)
    )
    differences = {name: chosen.get(name, 0) - best.get(name, 0) for name in best | chosen}
    largest = sorted(differences.items(), key=lambda pair: (-abs(pair[1]), pair[0]))[:8]
    return draw_bar_chart(
        [Bar(name, value) for name, value in largest],
        title="a doctor from the city: one phrase, or two",
        axis="what it adds to the first, in nats",
    )


def interpolated() -> str:
    """The surprisal of two models and of their mixture."""
    parser = right_corner_parser()
    trigrams = treelm.train("ngram", text(sentences()), order=3, vocabulary=parser.vocabulary)
    mixture = treelm.interpolate([trigrams, parser], [0.5, 0.5])
    named = (("3-gram", trigrams), ("HHMM", parser), ("half of each", mixture))
    return draw_surprisal(
        [(name, bars_of(model, SENTENCE)) for name, model in named], title=SENTENCE
    )


def interpolated_sentences() -> str:
    """The log probabilities of whole sentences."""
    bigrams = treelm.train("ngram", text(sentences()), order=2)
    treelets = treelm.train(
        "treelet", sample_path(), vocabulary=bigrams.vocabulary, parser=grammar(), k=100
    )
    mixture = treelm.interpolate([bigrams, treelets], [0.5, 0.5])
    named = (("2-gram", bigrams), ("treelets", treelets), ("half of each", mixture))
    shown = ("The captain saw the ferry .", "The judge left the old village .")
    groups = {
        line: [Bar(name, model.score(line).log_prob) for name, model in named] for line in shown
    }
    return draw_grouped_bars(groups, title="Sentences", axis="log probability", digits=1)


PICTURES: dict[str, Callable[[], str]] = {
    "ngram": ngram,
    "treelet": treelet,
    "headlex": headlex,
    "hhmm": hhmm,
    "hhmm-stacks": hhmm_stacks,
    "slm": slm,
    "composite": composite,
    "plsa": plsa,
    "pcfg": pcfg,
    "pcfg-la": pcfg_la,
    "lsvm": lsvm,
    "trigram-svm": trigram_svm,
    "tree-features": tree_features,
    "tree-ranker": tree_ranker,
    "interpolated": interpolated,
    "interpolated-sentences": interpolated_sentences,
    **DIAGRAMS,
}
#: Pictures whose numbers come from scikit-learn, and may differ from one version to another.
FITTED = frozenset({"lsvm", "trigram-svm", "tree-features"})


def main(names: Sequence[str]) -> None:
    """Draw pictures, all unless some are named."""
    for name in names or PICTURES:
        (FOLDER / f"{name}.svg").write_text(PICTURES[name](), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
