"""Models of the worked examples of backoff-estimation.md."""

from __future__ import annotations

import pytest
from tests.reference.backoff import (
    CountModel,
    UniformBase,
    YieldBase,
    kneser_ney,
    ngram_chain,
    ngram_events,
    nonterminal_chain,
    nonterminal_events,
    terminal_chain,
    terminal_events,
    tree_rules,
)
from tests.reference.backoff_cases import (
    CHAIN_72,
    CORPUS_71,
    EVENTS_72,
    TREES_74,
    V_71,
    V_72,
    V_74,
    halves,
)


@pytest.fixture(scope="session")
def bigram() -> CountModel:
    return kneser_ney(ngram_events(CORPUS_71, 2), ngram_chain(2), UniformBase(V_71))


@pytest.fixture(scope="session")
def chain_model() -> CountModel:
    return halves(EVENTS_72, CHAIN_72, UniformBase(V_72))


@pytest.fixture(scope="session")
def terminals() -> CountModel:
    return halves(terminal_events(TREES_74), terminal_chain(), UniformBase(V_74))


@pytest.fixture(scope="session")
def yield_base() -> YieldBase:
    return YieldBase(tree_rules(TREES_74), halves, usym=False)


@pytest.fixture(scope="session")
def nonterminals(yield_base: YieldBase) -> CountModel:
    return halves(nonterminal_events(TREES_74), nonterminal_chain(), yield_base)
