"""`treelm convert`."""

from __future__ import annotations

from treelm.cli.options import CommonOptions, InputFile, OutputFile, thread_count
from treelm.errors import UsageError
from treelm.estimation.quantize import CodeBits
from treelm.tasks import convert as task
from treelm.tasks.quantize import quantize_model


def convert(
    source: InputFile,
    /,
    target: OutputFile,
    *,
    bits: CodeBits | None = None,
    measure: str | None = None,
    threads: int | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Write an n-gram model as an ARPA file, an ARPA file as a model, or a model as a smaller one.

    Args:
        source: Model folder, or ARPA file (.arpa, .arpa.gz).
        target: ARPA file, or model folder.
        bits: Store probabilities and back-off weights as codes of 8 or 16 bits; the target is a
            model folder. How far stored values moved is said on standard error.
        measure: With --bits: text on which bits per word and perplexity of both models are
            measured, and said instead.
        threads: Threads; default: the cores available. Results do not depend on it.
        common: Common.
    """
    common = common or CommonOptions()
    if bits is None:
        if measure is not None:
            raise UsageError("--measure is about what --bits costs; give that too.")
        task.convert(source, target)
        return
    quantized = quantize_model(
        source,
        target,
        bits,
        measure=measure,
        threads=thread_count(threads),
        progress=common.progress,
    )
    for line in quantized.costs():
        common.note(f"{line}.")
