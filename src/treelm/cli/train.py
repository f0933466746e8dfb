"""`treelm train`."""

from __future__ import annotations

from typing import Literal

from cyclopts import App, Parameter

from treelm.cli.corpus_options import corpus_of, trees_of
from treelm.cli.options import CommonOptions, NewModel, ThreadOptions, TreeOptions, memory_limit
from treelm.cli.terminal import write_record
from treelm.cli.training_notes import latent_watch
from treelm.errors import UsageError
from treelm.estimation.quantize import CodeBits
from treelm.models.interface.model import Config
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.model import NgramModel
from treelm.models.pcfg.model import PcfgModel
from treelm.models.pcfg_la.model import PcfgLaModel
from treelm.tasks.train import (
    train_counted_model,
    train_grammar,
    train_latent_grammar,
    train_mixture,
    train_ngram_model,
)

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


@train.command(help_epilogue="Example: `treelm train pcfg --trees train.mrg -o model`")
def pcfg(
    *,
    trees: list[str],
    output: NewModel,
    binarization: Literal["left", "right", "head"] = "left",
    horizontal_order: int = 0,
    vertical_order: int = 1,
    merge_unary: bool = False,
    lexicon: Literal["berkeley", "closed"] = "berkeley",
    rare: int = 20,
    vocabulary: str | None = None,
    json: bool = False,
    reading: TreeOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Read a grammar off a treebank.

    Args:
        trees: Files of trees.
        output: Model folder to write.
        binarization: Way in which nodes of more than two children branch; head: outward from it.
        horizontal_order: Sisters that an intermediate node remembers.
        vertical_order: Ancestors that a label remembers, the node itself included.
        merge_unary: Make one node of every unary chain.
        lexicon: berkeley for parsing any text, closed for probabilities that add up to one.
        rare: Words seen so often or less teach what unknown words look like.
        vocabulary: Vocabulary file for the closed lexicon; default: all words of the trees.
        json: One JSON object instead of lines.
        reading: Reading.
        common: Common.
    """
    reading, common = reading or TreeOptions(), common or CommonOptions()
    config = PcfgModel.make_config(
        {
            "binarization": binarization,
            "horizontal_order": horizontal_order,
            "vertical_order": vertical_order,
            "merge_unary": merge_unary,
            "lexicon": lexicon,
            "rare": rare,
        }
    )
    corpus = corpus_of(None, trees, reading, common)
    model = train_grammar(corpus, output, config, vocabulary=vocabulary)
    write_record(
        {
            "system": model.system,
            "symbols": len(model.grammar.symbols),
            "rules": len(model.grammar.unary_rules) + len(model.grammar.binary_rules),
            "words": len(model.vocabulary) - 1,
            "sentences": sum(record.sentences for record in model.corpora),
            "tokens": sum(record.tokens for record in model.corpora),
        },
        as_json=json,
    )


@train.command(
    name="pcfg-la",
    help_epilogue="Example: `treelm train pcfg-la --trees train.mrg --cycles 5 --seed 1 -o model`",
)
def pcfg_la(
    *,
    trees: list[str],
    output: NewModel,
    seed: int,
    cycles: int = 6,
    held_out: list[str] | None = None,
    resume: bool = False,
    lexicon: Literal["berkeley", "closed"] = "berkeley",
    rare: int = 20,
    vocabulary: str | None = None,
    split_iterations: int = 50,
    merge_iterations: int = 20,
    smooth_iterations: int = 10,
    merge_fraction: float = 0.5,
    json: bool = False,
    reading: TreeOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Learn the subcategories of a treebank grammar by splitting and merging.

    Args:
        trees: Files of trees.
        output: Model folder to write; OUTPUT.training beside it keeps the last complete cycle.
        seed: Seed of the noise that tells the halves of a split apart.
        cycles: Cycles of splitting and merging; 5 are enough for small treebanks.
        held_out: Trees on which the best grammar of each phase is chosen; default: the last one.
        resume: Go on after the last complete cycle of an interrupted training.
        lexicon: berkeley for parsing any text, closed for probabilities that add up to one.
        rare: Words seen so often or less teach what unknown words look like.
        vocabulary: Vocabulary file for the closed lexicon; default: all words of the trees.
        split_iterations: Iterations of expectation-maximization after a split.
        merge_iterations: Iterations after a merge.
        smooth_iterations: Iterations with smoothing.
        merge_fraction: Share of the splits that is undone.
        json: One JSON object instead of lines.
        reading: Reading.
        common: Common.
    """
    reading, common = reading or TreeOptions(), common or CommonOptions()
    config = PcfgLaModel.make_config(
        {
            "seed": seed,
            "cycles": cycles,
            "lexicon": lexicon,
            "rare": rare,
            "split_iterations": split_iterations,
            "merge_iterations": merge_iterations,
            "smooth_iterations": smooth_iterations,
            "merge_fraction": merge_fraction,
        }
    )
    model = train_latent_grammar(
        trees_of(trees, reading, common),
        output,
        config,
        vocabulary=vocabulary,
        held_out=None if held_out is None else trees_of(held_out, reading, common),
        resume=resume,
        threads=reading.thread_count,
        watch=latent_watch(config, common),
    )
    write_record(
        {
            "system": model.system,
            "symbols": len(model.grammar.symbols),
            "subcategories": model.grammar.total_substates,
            "rules": len(model.grammar.unary_rules) + len(model.grammar.binary_rules),
            "words": len(model.vocabulary) - 1,
            "sentences": sum(record.sentences for record in model.corpora),
            "tokens": sum(record.tokens for record in model.corpora),
        },
        as_json=json,
    )


train.command(
    "treelm.cli.train_hhmm:hhmm",
    name="hhmm",
    help="Train an incremental right-corner parser as a language model.",
    help_epilogue="Example: `treelm train hhmm --trees train.mrg --depth 4 -o model`",
)
train.command(
    "treelm.cli.train_composite:slm",
    name="slm",
    help="Train a structured language model (Chelba and Jelinek 2000).",
    help_epilogue="Example: `treelm train slm --trees train.mrg --held-out dev.mrg -o model`",
)
train.command(
    "treelm.cli.train_composite:composite",
    name="composite",
    help="Train a composite n-gram, structured and topic model (Tan et al. 2011).",
    help_epilogue="Example: `treelm train composite --trees train.mrg --held-out dev.mrg "
    "--order 3 --heads 2 --topics 200 -o model`",
)
train.command(
    "treelm.cli.train_topics:plsa",
    name="plsa",
    help="Train a topic model (PLSA), or an n-gram/PLSA model.",
    help_epilogue="Example: `treelm train plsa --text train.txt --topics 200 --order 3 -o model`",
)
train.command(
    "treelm.cli.train_trees:treelet",
    name="treelet",
    help="Train a treelet model (Pauls and Klein 2012).",
    help_epilogue="Example: `treelm train treelet --trees train.mrg --parser grammar -o model`",
)
train.command(
    "treelm.cli.train_trees:headlex",
    name="headlex",
    help="Train a head-lexicalised model, after Collins's first.",
    help_epilogue="Example: `treelm train headlex --trees train.mrg -o model`",
)
train.command(
    "treelm.cli.train_classifiers:lsvm",
    name="lsvm",
    help="Train a latent support vector machine over hidden trees.",
    help_epilogue="Example: `treelm train lsvm --good a.txt --bad b.txt --dev-good c.txt "
    "--dev-bad d.txt --trees train.mrg -o model`",
)
train.command(
    "treelm.cli.train_classifiers:trigram_svm",
    name="trigram-svm",
    help="Train a support vector machine over n-grams of words.",
    help_epilogue="Example: `treelm train trigram-svm --good a.txt --bad b.txt -o model`",
)
train.command(
    "treelm.cli.train_classifiers:tree_features",
    name="tree-features",
    help="Train a classifier by features of one parse of each sentence.",
    help_epilogue="Example: `treelm train tree-features --features rerank --parser parser "
    "--good a.txt --bad b.txt -o model`",
)


@train.command(
    help_epilogue="Example: `treelm train interpolated --models a b --held-out dev.txt -o mixture`"
)
def interpolated(
    *,
    models: list[str],
    held_out: str,
    output: NewModel,
    threads: ThreadOptions | None = None,
    json: bool = False,
    common: CommonOptions | None = None,
) -> None:
    """Mix models; the weights are found on held-out text.

    Args:
        models: Model folders, all with the same vocabulary.
        held_out: Text that none of them was trained on.
        output: Model folder to write; it holds copies of the parts.
        threads: Threads.
        json: One JSON object instead of lines.
        common: Common.
    """
    del common
    mixture = train_mixture(
        models, output, held_out, threads=(threads or ThreadOptions()).thread_count
    )
    write_record(
        {
            "system": mixture.system,
            "weights": list(mixture.weights),
            "log_likelihood": mixture.config.log_likelihood,
            "vocabulary": mixture.vocabulary.fingerprint,
        },
        as_json=json,
    )
