"""`treelm convert`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from treelm.cli.options import CommonOptions, File, Files, InputFile, NewPath, ThreadOptions
from treelm.cli.ranges import Range, within
from treelm.corpus.files import is_forest, source_name
from treelm.errors import UsageError
from treelm.estimation.layout import Layout
from treelm.estimation.quantize import CodeBits
from treelm.tasks import convert as task
from treelm.tasks.quantize import quantize_model


def convert(
    source: InputFile,
    /,
    target: Annotated[
        NewPath,
        Parameter(
            metavar="PATH",
            help="ARPA file, model folder, file of trees (.mrg), or phrase table (.safetensors), "
            "to write.",
        ),
    ],
    *,
    bits: CodeBits | None = None,
    layout: Layout | None = None,
    oov_log_prob: Annotated[float | None, within(Range(below=0))] = None,
    measure: File | None = None,
    reordering_table: File | None = None,
    allow_deletion: bool = False,
    share_parts: bool = False,
    dictionary: Files | None = None,
    threads: ThreadOptions = ThreadOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Write an n-gram model as an ARPA file, an ARPA file as a model, or a model as a smaller one.

    A file of parses (.forest) is written as trees, the best of each sentence, one per line. A
    phrase table of Moses is written as a file (.safetensors) that treelm decode and tune use where
    it lies, instead of reading all of it.

    Args:
        source: Model folder, ARPA file (.arpa, .arpa.gz), file of parses (.forest), or phrase
            table.
        bits: Store probabilities and back-off weights as codes of 8 or 16 bits, or of 4 to 8 or 16
            with --layout compact; those of grammars as codes of 8. The target is then a model
            folder. How far the stored values moved is written to standard error.
        layout: With compact the tables are smaller, scoring is slower, and the numbers are the
            same; the target is then a model folder. Default: hashed.
        oov_log_prob: Natural log probability of unknown words, before back-off weights, if an ARPA
            file has no <unk>. Default: -230.259, which is KenLM's -100 in base 10.
        measure: With --bits: text on which bits per word and perplexity of both models are
            measured, and reported instead.
        reordering_table: With a phrase table: its table of orientations, msd-bidirectional-fe,
            which is written into the same file.
        allow_deletion: With a phrase table: take phrases that are translated by nothing.
        share_parts: Leave out the parts, such as the parser of a treelet model, that lie beside the
            target as model folders of their own, and name those instead: for packages of models.
        dictionary: Files of trees of a parser, from which a pcfg-la model learns the tags of words
            that it does not know, or hardly; as in training. Use --bits afterwards.
    """
    about_phrases = reordering_table is not None or allow_deletion
    if about_phrases and not task.is_phrase_table_name(target):
        raise UsageError(
            "--reordering-table and --allow-deletion are about phrase tables, which are written to "
            f"a file named .safetensors, not to {source_name(target)}."
        )
    if about_phrases and (share_parts or dictionary is not None):
        raise UsageError(
            "--reordering-table and --allow-deletion are about phrase tables, --share-parts and "
            "--dictionary about models."
        )
    if dictionary is not None:
        if share_parts or any(given is not None for given in (bits, layout, oov_log_prob, measure)):
            raise UsageError("--dictionary comes first: convert what it gives again.")
        new = task.add_dictionary(source, target, dictionary)
        common.note(f"{source_name(target)}: {new} new words.")
        return
    if share_parts:
        if any(given is not None for given in (bits, layout, oov_log_prob, measure)):
            raise UsageError("--share-parts comes last: use --bits or --layout before.")
        shared = task.share_model_parts(source, target)
        what = (
            f"shares {', '.join(shared)}" if shared else "shares nothing: it stores all its parts"
        )
        common.note(f"{source_name(target)}: {what}.")
        return
    if task.is_phrase_table_name(target):
        if any(given is not None for given in (bits, layout, oov_log_prob, measure)):
            raise UsageError(
                f"{source_name(target)}: this is the name of a phrase table, and --bits, --layout, "
                "--oov-log-prob and --measure are about models."
            )
        pairs = task.save_phrase_table(
            source,
            target,
            reordering=reordering_table,
            allow_deletion=allow_deletion,
            progress=common.progress,
        )
        common.note(f"{source_name(target)}: {pairs} phrase pairs.")
        return
    if bits is None and layout is None:
        if measure is not None:
            raise UsageError("--measure shows what --bits costs; it needs --bits.")
        if is_forest(source):
            sentences = task.write_best_trees(source, target)
            common.note(f"{source_name(target)}: the best trees of {sentences} sentences.")
            return
        task.convert(source, target, oov_log_prob=oov_log_prob, note=common.note)
        return
    if oov_log_prob is not None:
        raise UsageError(
            "--oov-log-prob cannot be combined with --bits or --layout: convert twice."
        )
    if measure is not None and bits is None:
        raise UsageError("--measure shows what --bits costs; --layout alone costs nothing.")
    quantized = quantize_model(
        source,
        target,
        bits,
        layout=layout or "hashed",
        measure=measure,
        threads=threads.thread_count,
        progress=common.progress,
    )
    for line in quantized.costs():
        common.note(f"{line}.")
