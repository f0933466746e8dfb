"""`treelm train`."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import App, Parameter

from treelm.cli.corpus_options import corpus_of
from treelm.cli.options import CommonOptions, TreeOptions, memory_limit, thread_count
from treelm.cli.terminal import write_record
from treelm.models.ngram.model import NgramModel
from treelm.tasks.train import train_mixture, train_ngram_model

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
    output: NewModel,
    order: int = 5,
    smoothing: Literal["kn", "mkn", "jm", "berkeley"] = "mkn",
    min_count: list[int] | None = None,
    lmplz: bool = False,
    vocabulary: str | None = None,
    held_out: str | None = None,
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
        output: Model folder to write.
        order: Words in an n-gram, the predicted one included.
        smoothing: kn, mkn (modified Kneser-Ney), jm (Jelinek-Mercer) or berkeley.
        min_count: Smallest counts of n-grams that are kept, from unigrams up; the last one holds
            for the rest. Default: all are kept.
        lmplz: Give the numbers that KenLM's lmplz gives.
        vocabulary: Vocabulary file; default: all words of the text are known.
        held_out: Text on which jm finds its weights.
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
        "order": order,
        "smoothing": smoothing,
        "lmplz": lmplz,
        "seed": seed,
    }
    if min_count is not None:
        options["min_count"] = min_count
    config = NgramModel.make_config(options)
    model = train_ngram_model(
        corpus_of(text, trees, reading, common),
        output,
        config,
        vocabulary=vocabulary,
        held_out=held_out,
        threads=reading.thread_count,
        memory=memory_limit(memory, temporary, output),
        progress=common.progress,
    )
    write_record(
        {
            "system": model.system,
            "order": model.config.order,
            "smoothing": model.config.smoothing,
            "words": len(model.vocabulary) - 1,
            "sentences": sum(record.sentences for record in model.corpora),
            "tokens": sum(record.tokens for record in model.corpora),
            "vocabulary": model.vocabulary.fingerprint,
        },
        as_json=json,
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
