"""Trees in, log probabilities out: one tree after the other, or k-best lists summed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import islice

from treelm.corpus.brackets import ReadOptions, read_trees
from treelm.corpus.files import Source, is_forest
from treelm.corpus.k_best_lists import read_packed_lists
from treelm.grammar.forest_file import ForestFile
from treelm.grammar.k_best import KBest
from treelm.grammar.k_best_arrays import k_best_of_list
from treelm.models.interface.abilities import GivesPosteriors, ask_for
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.scores import SentenceScore
from treelm.models.interface.tree_model import TreeScorer

#: Trees, and k-best lists, that are scored at once.
_TREES, _K_BEST_LISTS = 1024, 64


def tree_scorer(model: LanguageModel) -> TreeScorer:
    """Return a model if it assigns probabilities to trees.

    Raises:
        UnsupportedTask: if it does not.
    """
    return ask_for(model, TreeScorer, "give trees probabilities")


def score_trees(
    model: LanguageModel,
    source: Source,
    *,
    posterior: bool = False,
    options: ReadOptions | None = None,
    threads: int = 1,
) -> Iterator[float]:
    """Yield the joint natural log probability of each tree of a file and its words.

    Args:
        model: A model that assigns probabilities to trees.
        source: A file of trees.
        posterior: Yield the log probability of the tree given its words instead.
        options: How brackets are read.
        threads: Number of threads.

    Raises:
        UnsupportedTask: if the model does not score trees, or, for the posterior, does not sum over
        all trees of a sentence.
        CorpusFormatError: at the first malformed tree.
    """
    score = tree_scorer(model).tree_log_probs
    if posterior:
        what = "sum over all trees of a sentence, so that trees have no probability given the words"
        score = ask_for(model, GivesPosteriors, what).tree_log_posteriors
    rest = iter(read_trees(source, options or ReadOptions(), threads=threads))
    while batch := list(islice(rest, _TREES)):
        yield from score(batch, threads=threads).tolist()


def _k_best_lists(source: Source, k: int | None) -> Iterator[KBest | None]:
    with contextlib.ExitStack() as cleanup:
        lists: Iterator[KBest | None]
        if is_forest(source):
            lists = iter(cleanup.enter_context(ForestFile(source)))
        else:
            lists = map(k_best_of_list, read_packed_lists(source))
        for found in lists:
            yield found if found is None or k is None else found.first(k)


def score_k_best_lists(
    model: LanguageModel, source: Source, *, k: int | None = None, threads: int = 1
) -> Iterator[SentenceScore | None]:
    """Yield the sum over the trees of each k-best list of a file, None for one without trees.

    Args:
        model: A model that gives trees probabilities.
        source: A file of k-best lists, see `read_k_best_lists`, or of parses that treelm packed.
        k: Use only the first trees of each list.
        threads: Number of threads.
    """
    scorer = tree_scorer(model)
    rest = _k_best_lists(source, k)
    while k_best := list(islice(rest, _K_BEST_LISTS)):
        scores = scorer.score_lists([parses for parses in k_best if parses], threads=threads)
        for parses in k_best:
            yield next(scores) if parses else None
