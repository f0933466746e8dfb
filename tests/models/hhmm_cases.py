"""Grammars of the worked examples, and small HHMMs for tests."""

from __future__ import annotations

import warnings
from functools import cache

from treelm.corpus.sample_treebank import sample_treebank
from treelm.errors import TreelmWarning
from treelm.models.hhmm.config import HhmmConfig
from treelm.models.hhmm.model import HhmmModel
from treelm.models.hhmm.train import model_from_grammar, train_hhmm

#: Read off the example tree of Schwartz et al. (2011), figure 2.
PRESIDENT = """
TOP -> S </s> 1
S -> NP VP 1
NP -> DT NN 1
VP -> VP PP 1/2
VP -> VB NP 1/2
PP -> IN NP~T 1
DT -> The 1/2
DT -> the 1/2
NN -> president 1/2
NN -> board 1/2
VB -> meets 1
IN -> on 1
NP~T -> Friday 1
""".splitlines()

#: Left recursion in NP and VP.
RECURSIVE = """
TOP -> S </s> 1
S -> NP VP 1
NP -> D N 3/4
NP -> NP PP 1/4
VP -> V NP 3/4
VP -> VP PP 1/4
PP -> P NP 1
D -> the 1
N -> dog 1/2
N -> cat 1/2
V -> saw 1
P -> near 1
""".splitlines()

#: Two roots, one of them a tag.
ROOTS = """
TOP -> S </s> 3/4
TOP -> x </s> 1/4
S -> x S 1/3
S -> S y 1/6
S -> x y 1/2
x -> p 2/3
x -> q 1/3
y -> p 1/4
y -> q 3/4
""".splitlines()


def exact_model(lines: list[str], depth: int, **options: object) -> HhmmModel:
    """Return the model of a grammar with nothing pruned and nothing rounded."""
    config: dict[str, object] = {
        "depth": depth,
        "beam_width": None,
        "robust_epsilon": 0.0,
        "precision": "exact",
        **options,
    }
    return model_from_grammar(lines, HhmmConfig.model_validate(config))


@cache
def sample_model(**options: object) -> HhmmModel:
    """Return a model of the packaged treebank."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TreelmWarning)  # some trees are deeper than small stacks
        return train_hhmm(sample_treebank(), HhmmConfig.model_validate(options))
