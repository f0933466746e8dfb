"""`treelm train hhmm`."""

from __future__ import annotations

from typing import Literal

from treelm.cli.corpus_options import trees_of
from treelm.cli.options import CommonOptions, NewModel, TreeOptions
from treelm.cli.terminal import write_record
from treelm.models.hhmm.model import HhmmModel
from treelm.tasks.train import train_store_model


def hhmm(
    *,
    trees: list[str],
    output: NewModel,
    depth: int = 4,
    vocabulary: str | None = None,
    binarization: Literal["right", "left", "head"] = "right",
    horizontal_order: int = 2,
    vertical_order: int = 1,
    unary: Literal["join", "top"] = "join",
    estimation: Literal["conditioned", "counts"] = "conditioned",
    kappa: float = 20.0,
    observation: Literal["unk", "signature", "bayes"] = "unk",
    min_count: int = 2,
    open_types: int = 50,
    beam_width: int = 2000,
    precision: Literal["fast", "exact"] = "fast",
    json: bool = False,
    reading: TreeOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Train an incremental right-corner parser as a language model.

    Args:
        trees: Files of trees.
        output: Model folder to write.
        depth: Incomplete constituents that the store holds, 1 to 6.
        vocabulary: Vocabulary file; default: words seen at least --min-count times.
        binarization: Way in which nodes of more than two children branch.
        horizontal_order: Sisters that an intermediate node remembers.
        vertical_order: 2 for labels that remember their parent.
        unary: Unary chains become one node, with all labels or with the top one only.
        estimation: The grammar conditioned on trees that fit the store, or counts by depth.
        kappa: With counts: how many observations the conditioned grammar is worth.
        observation: What stands for unknown words: unk, signature (classes by their form) or bayes
            (tags guessed from endings; scores only, no perplexity).
        min_count: Words seen less often are unknown, where no vocabulary is given.
        open_types: Tags with more word types than this may emit words never seen.
        beam_width: Stores kept after a word, unless a command says otherwise.
        precision: Weights of stores in 32 bits (fast) or 64 (exact).
        json: One JSON object instead of lines.
        reading: Reading.
        common: Common.
    """
    reading, common = reading or TreeOptions(), common or CommonOptions()
    config = HhmmModel.make_config(
        {
            "depth": depth,
            "binarization": binarization,
            "horizontal_order": horizontal_order,
            "vertical_order": vertical_order,
            "unary": unary,
            "estimation": estimation,
            "kappa": kappa,
            "observation": observation,
            "min_count": min_count,
            "open_types": open_types,
            "beam_width": beam_width,
            "precision": precision,
        }
    )
    model = train_store_model(
        trees_of(trees, reading, common), output, config, vocabulary=vocabulary
    )
    write_record(
        {
            "system": model.system,
            "depth": model.config.depth,
            "symbols": len(model.tables.rules.symbols),
            "rules": len(model.tables.rules.rules),
            "fitting_share": model.tables.fitting_share,
            "words": len(model.vocabulary) - 1,
            "sentences": sum(record.sentences for record in model.corpora),
            "tokens": sum(record.tokens for record in model.corpora),
            "vocabulary": model.vocabulary.fingerprint,
        },
        as_json=json,
    )
