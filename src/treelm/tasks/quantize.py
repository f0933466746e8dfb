"""From a model to a smaller one, whose tables store codes instead of floats or are compact."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from treelm.corpus.encoder import encode_text
from treelm.corpus.files import Source, source_name
from treelm.errors import CorpusFormatError, UsageError, option
from treelm.estimation.layout import Layout, check_layout
from treelm.estimation.quantize import CodeBits
from treelm.grammar.coded_weights import WeightChange
from treelm.models.interface.incremental import as_incremental
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.reduction import (
    ReductionLoss,
    Rounding,
    reduction_loss,
    text_bits_per_word,
)
from treelm.models.ngram.arpa import read_arpa
from treelm.models.registry import load
from treelm.parallel.progress import SILENT, Progress
from treelm.tasks.convert import is_arpa_name
from treelm.tasks.train import check_target


@dataclass(frozen=True, eq=False)
class QuantizedModel:
    """A smaller model, and what was lost.

    Args:
        model: The model as it was saved.
        loss: What it lost on a text, if one was given.
    """

    model: LanguageModel
    loss: ReductionLoss | None

    @property
    def roundings(self) -> list[tuple[str, Rounding | WeightChange]]:
        """How far stored values moved: by number of the part, in a mixture."""
        return list(self.model.roundings)

    def costs(self) -> list[str]:
        """Return the loss, or how far values moved, for display."""
        if self.loss is not None:
            return [str(self.loss)]
        return [f"{part}{rounding}" for part, rounding in self.roundings]


def quantize_model(
    source: Source,
    target: Source,
    bits: CodeBits | None,
    *,
    layout: Layout = "hashed",
    measure: Source | None = None,
    threads: int = 1,
    progress: Progress = SILENT,
) -> QuantizedModel:
    """Save a model with codes instead of floats, with compact tables, or both.

    Args:
        source: Folder of a model with back-off tables or of a grammar, or an ARPA file.
        target: Model folder to write; checked before the work begins.
        bits: Number of bits per code; None leaves the values as they are.
        layout: How the tables lie in memory; ``compact`` ones are smaller and slower.
        measure: Text to score with both models.
        threads: Number of threads.
        progress: Progress callback.

    Raises:
        UsageError: if the target is named as an ARPA file, the model is already as small, or
            the layout cannot store such codes.
        UnsupportedTask: if it has no tables that can be made smaller.
    """
    if is_arpa_name(target):
        raise UsageError(
            f"an ARPA file has neither codes nor a layout: with {option('bits')} or "
            f"{option('layout')} the target must be a model folder, not {source_name(target)}."
        )
    try:
        check_layout(bits, layout)
    except ValueError as error:
        raise UsageError(f"{error}.") from error
    if bits is None and layout == "hashed":
        raise UsageError(f"nothing is to be done: give {option('bits')}, or layout compact.")
    check_target(target)
    model = load(source) if Path(source).is_dir() else read_arpa(source, threads=threads)
    if model.layout == "compact":
        raise UsageError(
            f"{source_name(source)} is already compact, and stays as it is. Start from the model "
            "it was made from."
        )
    if bits is not None and model.info.bits is not None:
        raise UsageError(
            f"{source_name(source)} is already quantised, to {model.info.bits} bits. Quantise the "
            "model it was made from."
        )
    small = model
    if bits is not None:
        small = small.quantized(bits, threads=threads, progress=progress)
    if layout == "compact" and small.layout != layout:
        small = small.compacted(progress=progress)
    loss = None
    if measure is not None:
        loss = _loss(model, small, measure, threads=threads, progress=progress)
        small = small.with_loss(loss)
    small.save(target)
    return QuantizedModel(small, loss)


def _loss(
    model: LanguageModel,
    small: LanguageModel,
    measure: Source,
    *,
    threads: int,
    progress: Progress,
) -> ReductionLoss:
    text = encode_text(measure, model.vocabulary, threads=threads, progress=progress)
    if not len(text):
        raise CorpusFormatError(
            f"{source_name(measure)}: contains no sentence to measure on. Is it the right file?",
            code="E_NO_DATA",
        )
    before, after = (
        text_bits_per_word(as_incremental(each), text, threads=threads) for each in (model, small)
    )
    return reduction_loss(source_name(measure), text, before, after)
