"""N-gram models to and from ARPA files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from treelm.corpus.files import COMPRESSION, Source, source_name
from treelm.errors import UsageError
from treelm.models.interface.abilities import WritesArpa, ask_for
from treelm.models.interface.model import LanguageModel
from treelm.models.registry import load
from treelm.store.replacement import model_at
from treelm.tasks.train import check_target


def convert(
    source: Source, target: Source, *, note: Callable[[str], None] = lambda _: None
) -> LanguageModel:
    """Write a model folder as an ARPA file, or an ARPA file as a model folder.

    Args:
        source: A model folder, or an ARPA file, perhaps compressed.
        target: The other of the two; the name of a file must end in ``.arpa``, ``.arpa.gz`` etc.
        note: Told which model was replaced, if there was one in the folder.

    Returns:
        The converted model.

    Raises:
        UsageError: if neither or both are ARPA files.
        UnsupportedTask: if it is not an n-gram model.
    """
    from treelm.models.ngram.arpa import read_arpa

    to_file = is_arpa_name(target)
    if Path(source).is_dir():
        if not to_file:
            raise UsageError(
                f"{source_name(source)} is a model folder, so the target must be an ARPA file, "
                f"named .arpa or .arpa.gz, not {source_name(target)}; with --bits 8 or 16 it must "
                "be another model folder."
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
    read = read_arpa(source)
    replaced = model_at(Path(os.path.realpath(target)))
    read.save(target)
    if replaced is not None:
        note(f"replaced {replaced} in {source_name(target)}.")
    return read


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
