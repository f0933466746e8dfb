"""N-gram models to and from ARPA files; files of parses to trees; phrase tables to mapped ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from treelm.corpus.brackets import ReadOptions, tree_blocks
from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.files import COMPRESSION, Source, source_name, write_atomically
from treelm.errors import UsageError, option, spelled
from treelm.grammar.forest_file import ForestFile
from treelm.models.interface.abilities import WritesArpa, ask_for
from treelm.models.interface.model import LanguageModel
from treelm.models.registry import load
from treelm.parallel.progress import SILENT, Progress
from treelm.store.replacement import model_at
from treelm.tasks.train import check_target


def convert(
    source: Source,
    target: Source,
    *,
    oov_log_prob: float | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> LanguageModel:
    """Write a model folder as an ARPA file, or an ARPA file as a model folder.

    Args:
        source: A model folder, or an ARPA file, perhaps compressed.
        target: The other of the two; the name of a file must end in ``.arpa``, ``.arpa.gz`` etc.
        oov_log_prob: Natural log probability of unknown words, if an ARPA file has no ``<unk>``; by
            default that of KenLM.
        note: Told which model was replaced, if there was one in the folder.

    Returns:
        The converted model.

    Raises:
        UsageError: if neither or both are ARPA files.
        UnsupportedTask: if it is not an n-gram model.
    """
    from treelm.models.ngram.arpa import OOV_LOG_PROB, read_arpa

    to_file = is_arpa_name(target)
    if Path(source).is_dir():
        if oov_log_prob is not None:
            raise UsageError(
                f"{option('oov_log_prob')} is for reading ARPA files, not for model folders."
            )
        if not to_file:
            raise UsageError(
                f"{source_name(source)} is a model folder, so the target must be an ARPA file, "
                f"named .arpa or .arpa.gz, not {source_name(target)}. "
                + spelled(
                    command_line="With --bits or --layout it must be another model folder.",
                    python="`quantize_model` writes another model folder.",
                )
            )
        model = load(source)
        ask_for(model, WritesArpa, "fit into an ARPA file").write_arpa(target)
        return model
    if to_file:
        raise UsageError(
            f"{source_name(source)} is not a model folder, so it is read as an ARPA file; the "
            f"target must then be a model folder, not {source_name(target)}."
        )
    check_target(target)
    read = read_arpa(source, oov_log_prob=OOV_LOG_PROB if oov_log_prob is None else oov_log_prob)
    replaced = model_at(Path(os.path.realpath(target)))
    read.save(target)
    if replaced is not None:
        note(f"replaced {replaced} in {source_name(target)}.")
    return read


def write_best_trees(source: Source, target: Source) -> int:
    """Write the best tree of each sentence of a file of parses, one per line.

    A sentence without a tree is a blank line, as `treelm parse` writes it.

    Args:
        source: A file of parses (``.forest``).
        target: The file to write; compressed by suffix.

    Returns:
        The number of sentences.

    Raises:
        UsageError: if the target is named as a model or a file of parses.
    """
    is_file = os.fspath(target) == "-" or Path(target).suffix not in ("", ".forest")
    if is_arpa_name(target) or not is_file:
        raise UsageError(
            f"{source_name(source)} is a file of parses, so the target must be a file of trees, "
            f"named .mrg or .mrg.gz, not {source_name(target)}."
        )
    with write_atomically(target) as out:
        for block in tree_blocks(source):
            out.write(block)
    with ForestFile(source) as file:
        return len(file)


def add_dictionary(source: Source, target: Source, trees: Sequence[Source]) -> int:
    """Save a grammar with more words: those of trees of a parser, with the tags they have there.

    Args:
        source: Model folder of a grammar with latent annotations.
        target: Model folder to write.
        trees: Files of trees, or of parses.

    Returns:
        The number of new words.

    Raises:
        UsageError: if the model takes no words.
    """
    from treelm.models.pcfg_la.model import PcfgLaModel

    check_target(target)
    model = load(source)
    plain = model.with_tokenizer(None)
    if not isinstance(plain, PcfgLaModel):
        raise UsageError(
            f"{source_name(source)} is a {model.system} model; a dictionary is for grammars with "
            "latent annotations (pcfg_la)."
        )
    corpus = TreeCorpus(tuple(trees), ReadOptions(profile=model.vocabulary.profile))
    made = plain.with_dictionary(corpus, plain.config.dictionary_options())
    made.with_tokenizer(model.tokenizer).save(target)
    return len(made.vocabulary) - len(model.vocabulary)


def share_model_parts(source: Source, target: Source) -> tuple[str, ...]:
    """Save a model without the parts that lie beside the target as model folders of their own.

    Args:
        source: Model folder.
        target: Model folder to write, perhaps the same.

    Returns:
        The names of the folders that are shared.
    """
    from treelm.store.share_parts import share_parts

    check_target(target)
    return share_parts(Path(source), Path(target))


def save_phrase_table(
    source: Source,
    target: Source,
    *,
    reordering: Source | None = None,
    allow_deletion: bool = False,
    progress: Progress = SILENT,
) -> int:
    """Write a phrase table as a file that the decoder maps instead of reading it.

    Args:
        source: A phrase table in the format of Moses.
        target: The file to write; its name must end in ``.safetensors``.
        reordering: Table of orientations, which is written into the same file.
        allow_deletion: Whether target phrases may be empty.
        progress: Shows how far the reading is.

    Returns:
        The number of phrase pairs.
    """
    from treelm.corpus.target import check_file_target
    from treelm.translation.phrase_table import PhraseTable

    check_file_target(target)
    table = PhraseTable.read(
        source, reordering=reordering, allow_deletion=allow_deletion, progress=progress
    )
    table.save(target)
    return len(table)


def is_phrase_table_name(path: Source) -> bool:
    """Return whether a file is named as a phrase table that is mapped.

    Examples:
        >>> is_phrase_table_name("table.safetensors"), is_phrase_table_name("model")
        (True, False)
    """
    return Path(path).suffix == ".safetensors"


def is_arpa_name(path: Source) -> bool:
    """Return whether a file is named as an ARPA file, compressed or not.

    Examples:
        >>> is_arpa_name("model.arpa.gz"), is_arpa_name("model")
        (True, False)
    """
    name = Path(path)
    while name.suffix in COMPRESSION:
        name = name.with_suffix("")
    return name.suffix == ".arpa"
