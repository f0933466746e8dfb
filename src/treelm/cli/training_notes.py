"""What is said on standard error while a grammar is trained."""

from __future__ import annotations

from treelm.cli.options import CommonOptions
from treelm.grammar.split_merge import Iteration
from treelm.models.interface.model import Config
from treelm.models.pcfg_la.config import PcfgLaConfig
from treelm.models.pcfg_la.train import TrainingWatch


def latent_watch(config: Config, common: CommonOptions) -> TrainingWatch:
    """Return a watch that shows progress, and says a line after every phase."""
    assert isinstance(config, PcfgLaConfig)
    last = {
        "split": config.split_iterations,
        "merge": config.merge_iterations,
        "smooth": config.smooth_iterations,
    }

    def said(done: Iteration) -> None:
        if not common.verbose and done.number != last[done.phase]:
            return
        held_out = "" if done.held_out is None else f", held out {done.held_out:.1f}"
        common.note(
            f"cycle {done.cycle}, {done.phase} {done.number}: log likelihood "
            f"{done.log_likelihood:.1f}{held_out}, {done.substates} subcategories"
        )

    return TrainingWatch(progress=common.progress, iteration=said, note=common.note)
