"""Why trees have their probabilities: the factors, one by one."""

from __future__ import annotations

from collections.abc import Iterator

from treelm.corpus.brackets import ReadOptions, read_trees
from treelm.corpus.files import Source
from treelm.models.interface.abilities import TakesTreesApart, ask_for
from treelm.models.interface.model import LanguageModel
from treelm.models.treelet.explain import Factor


def explain_trees(
    model: LanguageModel,
    source: Source,
    *,
    options: ReadOptions | None = None,
    threads: int = 1,
) -> Iterator[tuple[int, Factor]]:
    """Yield the factors of each tree of a file, with the number of the tree from 1.

    Args:
        model: A model that takes trees apart, such as a treelet model.
        source: A file of trees, as a treebank has them.
        options: How brackets are read.
        threads: Kernel threads that read.

    Raises:
        UnsupportedTask: if the model does not take trees apart.
        CorpusFormatError: at the first malformed tree.
    """
    explainer = ask_for(model, TakesTreesApart, "show the factors of trees")
    trees = read_trees(source, options or ReadOptions(), threads=threads)
    for number, tree in enumerate(trees, start=1):
        for factor in explainer.tree_factors(tree):
            yield number, factor
