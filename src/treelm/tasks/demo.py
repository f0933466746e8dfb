"""A short tour with the packaged treebank; every part of the package adds a paragraph."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from treelm.corpus.brackets import ReadOptions
from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.sample_treebank import sample_path, sample_treebank
from treelm.errors import TreelmWarning
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.train import train_ngram
from treelm.tasks.inspect.files import inspect_trees
from treelm.transforms.markovize import markovize
from treelm.transforms.pipelines import named_pipeline
from treelm.transforms.temporal_lexicon import TemporalLexicon
from treelm.transforms.treelet import TREELET_TRANSFORMS, Treelet, treelet
from treelm.trees.heads import find_heads, lexical_head
from treelm.trees.tree import Tree
from treelm.view.bars import draw_bars
from treelm.view.text import draw_text

#: Lengths of the sentences from which the one to draw is chosen.
SHOWN_LENGTHS = range(9, 13)


def demonstrate(*, width: int) -> Iterator[str]:
    """Yield the paragraphs of the demonstration, pictures at most `width` columns wide."""
    yield _statistics()
    tree = _choose_tree()
    picture = draw_text(find_heads(tree), width=width, mark_heads=True)
    yield f"One of them, with heavy lines down to each head:\n\n{picture}"
    head = lexical_head(find_heads(tree))
    yield f'Its lexical head is the {head.label} "{head.word}".'
    temporal = TemporalLexicon.collect([sample_path()]).words()
    yield (
        f"Temporal nouns of the treebank ({len(temporal)}): {' '.join(sorted(temporal))}\n"
        "After the nine treelet transforms:\n\n"
        f"{treelet(tree, temporal=temporal).draw(width=width)}"
    )
    yield f"Markovized (h = 1, v = 2) for a grammar:\n\n{markovize(find_heads(tree))}"
    pipeline = named_pipeline("right-corner")
    corner = pipeline.apply(tree)
    yield f"Right-corner transformed for incremental parsing:\n\n{corner}"
    same = pipeline.undo(corner) == tree
    yield f"... and back again: {'the same tree' if same else 'A DIFFERENT TREE'}."
    yield from _word_model(tree, width=width)
    yield "Next: treelm --help, or docs/start/first-steps.md"


def _word_model(tree: Tree, *, width: int) -> Iterator[str]:
    """Yield what an n-gram model of the treebank's words does, trained on the spot."""
    corpus = TreeCorpus((sample_path(),))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)  # so little text needs fixed discounts
        model = train_ngram(corpus, NgramConfig(order=3, smoothing="kn"))
    shown = " ".join(tree.words)
    backwards = " ".join(reversed(tree.words))
    yield (
        f"A trigram model of its {corpus.fingerprint.tokens} words, interpolated Kneser-Ney:\n"
        f"ln p = {model.score(shown).log_prob:8.2f}  {shown}\n"
        f"ln p = {model.score(backwards).log_prob:8.2f}  {backwards}"
    )
    scores = model.surprisal(shown, eos=True)
    bars = draw_bars(
        [score.word for score in scores],
        [score.surprisal for score in scores],
        width=width,
        unit="bits",
    )
    yield f"How surprising each word is, and the end of the sentence:\n\n{bars}"
    samples = "\n".join(" ".join(sample.words) for sample in model.sample(3, seed=1))
    yield f"Three sentences sampled from it:\n\n{samples}"


def _statistics() -> str:
    found = inspect_trees(sample_path(), ReadOptions())
    counts = found.statistics
    phrases = ", ".join(f"{label} {count}" for label, count in counts.phrases.most_common(8))
    return (
        f"The treebank that comes with treelm: {counts.trees} trees in {found.documents} "
        f"documents, {counts.tokens} tokens, {len(counts.words)} words, {len(counts.tags)} tags.\n"
        f"Most frequent phrases: {phrases}."
    )


def _choose_tree() -> Tree:
    """Return the sample tree that shows the most transforms in a narrow picture."""
    temporal = TemporalLexicon.collect([sample_path()]).words()
    trees = [tree for tree in sample_treebank() if len(tree.words) in SHOWN_LENGTHS]
    at_work = [0] * len(trees)
    everything = list(Treelet(temporal=temporal).apply_all(trees))
    for transform in TREELET_TRANSFORMS:
        rest = frozenset(TREELET_TRANSFORMS) - {transform}
        without = Treelet(temporal=temporal, transforms=rest).apply_all(trees)
        for index, tree in enumerate(without):
            at_work[index] += tree != everything[index]
    return trees[at_work.index(max(at_work))]
