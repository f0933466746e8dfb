"""`treelm train`."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import App, Parameter

from treelm.cli.corpus_options import corpus_of
from treelm.cli.options import CommonOptions, TreeOptions, memory_limit, thread_count
from treelm.cli.terminal import write_record
from treelm.errors import UsageError
from treelm.estimation.quantize import CodeBits
from treelm.models.model import Config
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.model import NgramModel
from treelm.tasks.train import train_counted_model, train_mixture, train_ngram_model

#: The folder of the model that is made.
NewModel = Annotated[str, Parameter(name=["--output", "-o"])]

train = App(
    name="train",
    help="Train a model and save it as a folder.",
    help_epilogue="Example: `treelm train ngram --order 3 --text train.txt -o model`",
    default_parameter=Parameter(negative=(), consume_multiple=True),
    version_flags=[],
)


@train.command
def ngram(
    *,
    text: list[str] | None = None,
    trees: list[str] | None = None,
    counts: str | None = None,
    output: NewModel,
    order: int | None = None,
    smoothing: Literal["kn", "mkn", "jm", "berkeley"] = "mkn",
    min_count: list[int] | None = None,
    lmplz: bool = False,
    vocabulary: str | None = None,
    held_out: str | None = None,
    bits: CodeBits | None = None,
    measure: str | None = None,
    no_measure: bool = False,
    memory: str | None = None,
    temporary: str | None = None,
    seed: int = 0,
    json: bool = False,
    reading: TreeOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Train an n-gram model.

    Args:
        text: Files of tokenized text, one sentence a line.
        trees: Files of trees, whose words are the text; give either text or trees.
        counts: Folder of counts that `treelm counts` made, instead of text or trees.
        output: Model folder to write.
        order: Words in an n-gram, the predicted one included. Default: 5, or that of the counts.
        smoothing: kn, mkn (modified Kneser-Ney), jm (Jelinek-Mercer) or berkeley.
        min_count: Smallest counts of n-grams that are kept, from unigrams up; the last one holds
            for the rest. Default: all are kept. What that costs is measured and said on standard
            error: see --measure.
        lmplz: Give the numbers that KenLM's lmplz gives.
        vocabulary: Vocabulary file; default: all words of the text are known.
        held_out: Text on which jm finds its weights.
        bits: Store probabilities and back-off weights as codes of 8 or 16 bits, with codebooks for
            every order. What that costs is measured as for --min-count.
        measure: With --min-count or --bits: text on which bits per word and perplexity of the
            whole model and of the saved one are measured. Default: the training text. For this
            the whole model is estimated too.
        no_measure: Do not measure what --min-count and --bits cost; saves time and memory.
        memory: How much memory may be used, such as 4G; what does not fit is sorted on disk, with
            the same result. Default: as much as it takes.
        temporary: Folder for what does not fit; default: that of the output. Nothing is left there.
        seed: Seed of random choices, where there are any.
        json: One JSON object instead of lines.
        reading: Reading.
        common: Common.
    """
    reading, common = reading or TreeOptions(), common or CommonOptions()
    options: dict[str, object] = {
        "smoothing": smoothing,
        "lmplz": lmplz,
        "seed": seed,
        "bits": bits,
    }
    if order is not None:
        options["order"] = order
    if min_count is not None:
        options["min_count"] = min_count
    config = NgramModel.make_config(options)
    _check_measure(config, measure, no_measure=no_measure)
    limit = memory_limit(memory, temporary, output)
    if counts is not None:
        if text is not None or trees is not None or vocabulary is not None:
            raise UsageError("--counts stands instead of --text, --trees and --vocabulary.")
        model = train_counted_model(
            counts,
            output,
            options,
            held_out=held_out,
            measure=measure,
            threads=reading.thread_count,
            memory=limit,
            progress=common.progress,
        )
    else:
        model = train_ngram_model(
            corpus_of(text, trees, reading, common),
            output,
            config,
            vocabulary=vocabulary,
            held_out=held_out,
            measure=measure,
            measured=not no_measure,
            threads=reading.thread_count,
            memory=limit,
            progress=common.progress,
        )
    loss = model.config.loss
    if cost := loss or model.config.rounding:
        common.note(f"{cost}.")
    write_record(
        {
            "system": model.system,
            "order": model.config.order,
            "smoothing": model.config.smoothing,
            "words": len(model.vocabulary) - 1,
            "sentences": sum(record.sentences for record in model.corpora),
            "tokens": sum(record.tokens for record in model.corpora),
            "vocabulary": model.vocabulary.fingerprint,
            **({} if bits is None else {"bits": bits}),
            **({} if loss is None else {"loss": loss.to_record()}),
        },
        as_json=json,
    )


def _check_measure(config: Config, measure: str | None, *, no_measure: bool) -> None:
    if measure is None and not no_measure:
        return
    if measure is not None and no_measure:
        raise UsageError("--measure and --no-measure exclude each other.")
    if isinstance(config, NgramConfig) and not config.prunes and config.bits is None:
        raise UsageError(
            "--measure and --no-measure are about what --min-count and --bits cost; give one of "
            "these. `treelm evaluate perplexity` measures any model."
        )


@train.command(
    help_epilogue="Example: `treelm train interpolated --models a b --held-out dev.txt -o mixture`"
)
def interpolated(
    *,
    models: list[str],
    held_out: str,
    output: NewModel,
    threads: int | None = None,
    json: bool = False,
    common: CommonOptions | None = None,
) -> None:
    """Mix models; the weights are found on held-out text.

    Args:
        models: Model folders, all with the same vocabulary.
        held_out: Text that none of them was trained on.
        output: Model folder to write; it holds copies of the parts.
        threads: Threads; default: the cores available. Results do not depend on it.
        json: One JSON object instead of lines.
        common: Common.
    """
    del common
    mixture = train_mixture(models, output, held_out, threads=thread_count(threads))
    write_record(
        {
            "system": mixture.system,
            "weights": list(mixture.weights),
            "log_likelihood": mixture.config.log_likelihood,
            "vocabulary": mixture.vocabulary.fingerprint,
        },
        as_json=json,
    )
