"""The given phrase table against one that `treelm phrases` makes of the same text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from decoded import Sentences, System, tune_system

from treelm.tasks.phrases import make_phrase_tables
from treelm.tasks.report.report import Report
from treelm.tasks.tune import Method, TuneOptions
from treelm.translation.phrase_table import PhraseTable


def own_table(data: Path, folder: Path, alignment: Path | None, *, orientations: bool) -> Path:
    """Return a table of the training text, made now or before, as the decoder maps it.

    Args:
        data: Folder of the data.
        folder: Where it is kept.
        alignment: Word alignments of the text, in Pharaoh format; None for eflomal.
        orientations: Whether it has probabilities of orientations.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"own{'-with-orientations' if orientations else ''}.safetensors"
    if not path.exists():
        table, reordering = folder / "own.gz", folder / "own-orientations.gz"
        if not reordering.exists():  # written last
            text = data / "mt/multi30k"
            source, target = text / "train.de", text / "train.en"
            make_phrase_tables(source, target, table, alignment=alignment, reordering=reordering)
        given = reordering if orientations else None
        PhraseTable.read(table, reordering=given).save(path)
    return path


def report_tables(
    report: Report,
    system: System,
    data: Path,
    folder: Path,
    *,
    alignment: Path | None,
    seeds: Sequence[int],
    method: Method,
    threads: int,
) -> None:
    """Tune the same decoder with each table, on the development set."""
    dev = Sentences.read(data, "val")
    tables = {
        "given": data / "mt/multi30k/phrase-table.gz",
        "own": own_table(data, folder, alignment, orientations=False),
        "own, with orientations": own_table(data, folder, alignment, orientations=True),
    }
    rows = []
    for name, path in tables.items():
        table = PhraseTable.read(path)
        for seed in seeds:
            named = replace(system, name=f"{system.name}, {name} table")
            options = TuneOptions(seed=seed, method=method)
            tune_system(named, table, dev, folder, options=options, threads=threads)
            log = folder / f"{named.file_name}.seed{seed}.log"
            found = json.loads(log.read_text(encoding="utf-8"))
            rows.append((name, len(table), seed, f"{found['bleu']:.2f}", len(found["rounds"])))
    report.add_table(
        "Phrase tables, tuned on the development set",
        ("table", "phrase pairs", "seed", "BLEU on the same set", "rounds"),
        rows,
    )
