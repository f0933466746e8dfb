"""Why trees have their probabilities: the factors, one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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


def factor_lines(factors: Iterable[tuple[int, Factor]]) -> Iterator[str]:
    """Yield the lines of a table with a row for each factor, and the number of its tree."""
    header: str | None = "tree\tkind\tlabel\toutcome\tlog_prob\tword_log_prob\tgiven"
    for number, factor in factors:
        if header is not None:  # not before the first row, which may fail
            yield header
            header = None
        alone = "" if factor.word_log_prob is None else f"{factor.word_log_prob:.6f}"
        given = ", ".join(f"{name}={value}" for name, value in factor.given)
        columns = (str(number), factor.kind, factor.label, factor.outcome)
        yield "\t".join((*columns, f"{factor.log_prob:.6f}", alone, given))
