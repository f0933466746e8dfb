"""`treelm train treelet` and `treelm train headlex`."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from treelm.cli.options import CommonOptions, NewModel, TreeOptions, memory_limit, settle_reading
from treelm.cli.terminal import write_record
from treelm.corpus.brackets import ReadReport
from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.files import source_name
from treelm.errors import UsageError
from treelm.estimation.quantize import CodeBits
from treelm.models.headlex.config import HeadlexConfig
from treelm.models.headlex.model import HeadlexModel
from treelm.models.treelet.config import TreeletConfig, Variant
from treelm.models.treelet.model import TreeletModel
from treelm.tasks.train_trees import (
    Settle,
    train_counted_treelet_model,
    train_headlex_model,
    train_treelet_model,
)
from treelm.transforms.treelet import transforms_without

#: Trees of a sentence.
TreesOfSentence = Annotated[int, Parameter(name=["--k", "-k"])]


def tree_corpus(trees: list[str] | None, reading: TreeOptions) -> TreeCorpus:
    """Return files of trees as a corpus; malformed ones are left out and reported later."""
    return TreeCorpus(
        tuple(trees or ()),
        reading.read_options(),
        on_error=reading.on_error,
        threads=reading.thread_count,
    )


def settler(trees: list[str] | None, common: CommonOptions) -> Settle:
    """Return what reports malformed trees, and refuses too many."""

    def settle(report: ReadReport) -> None:
        settle_reading(report, common, " ".join(map(source_name, trees or ["parsed text"])))

    return settle


def treelet(
    *,
    trees: list[str] | None = None,
    text: list[str] | None = None,
    counts: list[str] | None = None,
    output: NewModel,
    variant: Variant | None = None,
    without: list[str] | None = None,
    untransformed: bool = False,
    temporal: str | None = None,
    smoothing: Literal["kn", "mkn", "jm", "none"] = "kn",
    held_out: list[str] | None = None,
    yield_weight: float = 0.9,
    base_counts: Literal["tokens", "types"] = "tokens",
    min_count: int = 1,
    bits: CodeBits | None = None,
    vocabulary: str | None = None,
    parser: str | None = None,
    k: TreesOfSentence = 1000,
    memory: str | None = None,
    temporary: str | None = None,
    json: bool = False,
    reading: TreeOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Train a treelet model (Pauls and Klein 2012).

    Args:
        trees: Files of trees, as a treebank has them; they are transformed here.
        text: Files of tokenized text, which the parser gives trees; they are added to the trees.
        counts: Folders of counts that `treelm counts build --treelets` made, instead of trees.
        output: Model folder to write.
        variant: full, rule (no words before), trans (labels alone) or pcfg (labels of plain
            trees). Default: full, or that of the counts.
        without: Transforms to leave out.
        untransformed: Leave all transforms out.
        temporal: Lexicon of temporal nouns, or a treebank with function tags. Default: they are
            collected from the trees.
        smoothing: kn, mkn (modified Kneser-Ney), jm (Jelinek-Mercer) or none.
        held_out: Trees on which jm finds its weights.
        yield_weight: Weight of the parent's own 4-grams below rules that were never seen.
        base_counts: Whether these 4-grams count a rule as often as it was seen (tokens), or once
            (types), which lowers perplexity.
        min_count: Smallest count of an event with three or more columns of context that is kept.
        bits: Store probabilities and back-off weights as codes of 8 or 16 bits.
        vocabulary: Vocabulary file; default: all words of the trees are known.
        parser: Model folder of a parser; the model is saved with it and scores sentences by it.
        k: Trees of a sentence that are asked of the parser.
        memory: How much memory may be used, such as 4G; what does not fit is sorted on disk, with
            the same result. Default: as much as it takes.
        temporary: Folder for what does not fit; default: that of the output. Nothing is left there.
        json: One JSON object instead of lines.
        reading: Reading.
        common: Common.
    """
    reading, common = reading or TreeOptions(), common or CommonOptions()
    options: dict[str, object] = {
        "smoothing": smoothing,
        "yield_weight": yield_weight,
        "base_counts": base_counts,
        "min_count": min_count,
        "bits": bits,
        "k": k,
    }
    limit = memory_limit(memory, temporary, output)
    if counts is not None:
        others = (trees, text, variant, without, temporal, held_out, vocabulary)
        if untransformed or any(other is not None for other in others):
            raise UsageError(
                "--counts stands instead of --trees and --text and of everything that says how "
                "they are counted: variant, transforms, vocabulary."
            )
        model = train_counted_treelet_model(
            counts,
            output,
            options,
            parser=parser,
            threads=reading.thread_count,
            memory=limit,
            progress=common.progress,
        )
    else:
        model = train_treelet_model(
            _some_trees(trees, text, reading),
            output,
            treelet_config(options, variant, without, untransformed=untransformed),
            texts=text or (),
            parser=parser,
            vocabulary=vocabulary,
            held_out=None if held_out is None else tree_corpus(held_out, reading),
            temporal=temporal,
            settle=settler(trees, common),
            threads=reading.thread_count,
            memory=limit,
            progress=common.progress,
        )
    write_record(
        {
            "system": model.system,
            "variant": model.config.variant,
            "transforms": list(model.config.applied),
            "labels": len(model.tables.symbols.labels) - 4,
            "rules": len(model.tables.symbols.rules) - 1,
            **_size_of(model),
            **({} if bits is None else {"bits": bits}),
        },
        as_json=json,
    )


def treelet_config(
    options: dict[str, object],
    variant: Variant | None,
    without: list[str] | None,
    *,
    untransformed: bool,
) -> TreeletConfig:
    """Return checked options, the transforms among them."""
    chosen = dict(options)
    if variant is not None:
        chosen["variant"] = variant
    if untransformed:
        chosen["transforms"] = ()
    elif without is not None:
        chosen["transforms"] = transforms_without(without)
    config = TreeletModel.make_config(chosen)
    assert isinstance(config, TreeletConfig)  # what a treelet model makes of options
    return config


def _some_trees(
    trees: list[str] | None, text: list[str] | None, reading: TreeOptions
) -> TreeCorpus:
    if trees is None and text is None:
        raise UsageError("give --trees, or --text with a --parser, or both.")
    return tree_corpus(trees, reading)


def _size_of(model: TreeletModel | HeadlexModel) -> dict[str, object]:
    return {
        "words": len(model.vocabulary) - 1,
        "sentences": sum(record.sentences for record in model.corpora),
        "tokens": sum(record.tokens for record in model.corpora),
        "vocabulary": model.vocabulary.fingerprint,
    }


def headlex(
    *,
    trees: list[str] | None = None,
    text: list[str] | None = None,
    output: NewModel,
    smoothing: Literal["kn", "mkn"] = "kn",
    vocabulary: str | None = None,
    parser: str | None = None,
    k: TreesOfSentence = 1000,
    memory: str | None = None,
    temporary: str | None = None,
    json: bool = False,
    reading: TreeOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Train a head-lexicalised model, after Collins's first.

    Args:
        trees: Files of trees.
        text: Files of tokenized text, which the parser gives trees; they are added to the trees.
        output: Model folder to write.
        smoothing: kn or mkn (modified Kneser-Ney).
        vocabulary: Vocabulary file; default: all words of the trees are known.
        parser: Model folder of a parser; the model is saved with it and scores sentences by it.
        k: Trees of a sentence that are asked of the parser.
        memory: How much memory may be used, such as 4G; what does not fit is sorted on disk, with
            the same result. Default: as much as it takes.
        temporary: Folder for what does not fit; default: that of the output. Nothing is left there.
        json: One JSON object instead of lines.
        reading: Reading.
        common: Common.
    """
    reading, common = reading or TreeOptions(), common or CommonOptions()
    config = HeadlexModel.make_config({"smoothing": smoothing, "k": k})
    assert isinstance(config, HeadlexConfig)  # what a headlex model makes of options
    model = train_headlex_model(
        _some_trees(trees, text, reading),
        output,
        config,
        texts=text or (),
        parser=parser,
        vocabulary=vocabulary,
        settle=settler(trees, common),
        threads=reading.thread_count,
        memory=memory_limit(memory, temporary, output),
        progress=common.progress,
    )
    write_record(
        {"system": model.system, "labels": len(model.labels) - 3, **_size_of(model)}, as_json=json
    )
