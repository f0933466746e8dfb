"""Small grammars with latent annotations of the packaged treebank."""

from __future__ import annotations

from functools import cache

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.sample_treebank import sample_path
from treelm.models.pcfg_la.config import PcfgLaConfig
from treelm.models.pcfg_la.model import PcfgLaModel
from treelm.models.pcfg_la.train import train_pcfg_la

#: Few iterations: what is learned does not matter here.
QUICK = {"split_iterations": 25, "merge_iterations": 3, "smooth_iterations": 2, "cycles": 2}


def sample_corpus() -> TreeCorpus:
    return TreeCorpus((sample_path(),))


@cache
def small_latent() -> PcfgLaModel:
    return train_pcfg_la(sample_corpus(), PcfgLaConfig(seed=1, **QUICK))  # type: ignore[arg-type]


@cache
def sparse_latent() -> PcfgLaModel:
    """Return a model whose words learn subcategories of their own: most rules have no weight."""
    config = PcfgLaConfig(seed=1, tie_rare_words=False, **QUICK)  # type: ignore[arg-type]
    return train_pcfg_la(sample_corpus(), config)
