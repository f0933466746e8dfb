"""Weights tuned on the development set by several seeds, and the test set translated with them."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from treelm.corpus.files import read_lines
from treelm.models.interface.model import LanguageModel
from treelm.tasks.evaluate.translation import Translations, evaluate_translations
from treelm.tasks.report.report import Report
from treelm.tasks.report.results import Result
from treelm.tasks.tune import Method, TuneOptions, decoding, starting_weights, tune
from treelm.translation.decoder import Decoder, DecoderConfig
from treelm.translation.phrase_table import PhraseTable
from treelm.translation.weights import Weights

#: The paper translates sentences of up to so many words.
MOST_WORDS = 20
#: The settings of the paper.
PAPER = DecoderConfig(stack_size=200, distortion_limit=10, ttable_limit=20)
TABLE = "Translation of sentences of 1 to 20 words"


@dataclass(frozen=True)
class Sentences:
    """Source sentences of a length that the study allows, and their translations."""

    source: list[str]
    reference: list[str]

    @classmethod
    def read(cls, data: Path, name: str) -> Sentences:
        """Return those of the development or the test set."""
        folder = data / "mt/multi30k"
        files = (read_lines(folder / f"{name}.{side}") for side in ("de", "en"))
        pairs = [(f, e) for f, e in zip(*files, strict=True) if 1 <= len(f.split()) <= MOST_WORDS]
        return cls([f for f, _ in pairs], [e for _, e in pairs])


@dataclass(frozen=True)
class System:
    """Language models inside a decoder."""

    name: str
    models: tuple[LanguageModel, ...]
    config: DecoderConfig

    @property
    def file_name(self) -> str:
        """A name for files."""
        return self.name.replace(" ", "_").replace(",", "")

    def decoder(self, table: PhraseTable) -> Decoder:
        """Return the decoder with weights that tuning replaces."""
        return Decoder(table, self.models, None, self.config)


def tune_system(
    system: System,
    table: PhraseTable,
    dev: Sentences,
    folder: Path,
    *,
    options: TuneOptions,
    given: Weights | None = None,
    threads: int,
) -> Weights:
    """Return tuned weights, found now or before; an interrupted tuning resumes.

    Args:
        system: What is tuned.
        table: The phrases.
        dev: What it is tuned on.
        folder: Where weights are kept.
        options: How.
        given: Weights to start from; a language model that they do not know starts at 0.
        threads: Number of threads.
    """
    path = folder / f"{system.file_name}.seed{options.seed}.json"
    if path.exists():
        return Weights.read(path)
    decoder = system.decoder(table)
    layout = tuple(decoder.features.items())
    if given is not None:
        given = given.replaced({name: (0.0,) for name, _ in layout if name not in given})
    start = starting_weights(layout, given)
    told_by = [system.name, asdict(options), len(dev.source), asdict(system.config)]
    key = json.dumps(told_by, default=sorted)
    began = time.perf_counter()
    found = tune(
        decoding(decoder, dev.source, n_best=100, threads=threads),
        [dev.reference],
        start,
        options,
        checkpoint=(path.with_suffix(".training"), key),
        resume=True,
        threads=threads,
    )
    record = found.to_record() | {"seconds": time.perf_counter() - began}
    path.with_suffix(".log").write_text(json.dumps(record, indent=1), encoding="utf-8")
    found.weights.write(path)
    return found.weights


def translate(
    system: System,
    table: PhraseTable,
    weights: Weights,
    sentences: Sequence[str],
    *,
    path: Path,
    threads: int,
) -> Translations:
    """Return the translations of sentences, made now or before."""
    if not path.exists():
        decoder = system.decoder(table).with_weights(weights)
        lines = [each.text for each in decoder.translate(sentences, threads=threads)]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return Translations(system.name, tuple(read_lines(path)))


def report_systems(
    report: Report,
    systems: Sequence[System],
    data: Path,
    folder: Path,
    *,
    seeds: int,
    method: Method,
    threads: int,
) -> None:
    """Tune every system with every seed, translate the test set, and report what came of it."""
    folder.mkdir(parents=True, exist_ok=True)
    table = PhraseTable.read(data / "mt/multi30k/phrase-table.gz")
    dev, test = (Sentences.read(data, name) for name in ("val", "test_2016_flickr"))
    made, rows = [], []
    first: dict[int, Weights] = {}  # of the first system, by seed: where the others start
    for system in systems:
        for seed in range(1, seeds + 1):
            options = TuneOptions(seed=seed, method=method)
            weights = tune_system(
                system,
                table,
                dev,
                folder,
                options=options,
                given=first.get(seed),
                threads=threads,
            )
            first.setdefault(seed, weights)
            path = folder / f"{system.file_name}.seed{seed}.txt"
            made.append(translate(system, table, weights, test.source, path=path, threads=threads))
            found = json.loads((folder / f"{system.file_name}.seed{seed}.log").read_text())
            row = [f"{weights[f'LM{place}'][0]:.3f}" for place in range(len(system.models))]
            rows.append((system.name, seed, f"{found['bleu']:.2f}", len(found["rounds"]), *row))
    most = max(len(system.models) for system in systems)
    padded = [(*row, *[""] * (4 + most - len(row))) for row in rows]
    titles = [f"weight of LM{place}" for place in range(most)]
    report.add_table(
        "Tuning on the development set", ("system", "seed", "BLEU", "rounds", *titles), padded
    )
    references = [Translations("reference", tuple(test.reference))]
    scores = evaluate_translations(made, references, seed=1, runs=seeds, tokenize="none")
    for name, found in scores.systems.items():
        for metric, score in found.items():
            difference = scores.differences.get(name, {}).get(metric)
            report.add_result(
                Result(
                    table=TABLE,
                    model=name,
                    metric=metric,
                    data="Multi30k 2016",
                    value=score.mean,
                    n=scores.sentences,
                    p=None if difference is None else difference.p_value,
                    baseline=None if difference is None else systems[0].name,
                )
            )
    report.add_table(
        "Seeds of tuning",
        ("system", "metric", "mean", "deviation", "runs"),
        [
            (
                name,
                metric,
                f"{score.mean:.2f}",
                "" if score.deviation is None else f"{score.deviation:.2f}",
                ", ".join(f"{run:.2f}" for run in score.runs),
            )
            for name, found in scores.systems.items()
            for metric, score in found.items()
        ],
    )
    report_changes(report, made[0], made[seeds] if len(systems) > 1 else made[0], test)


def report_changes(
    report: Report, before: Translations, after: Translations, test: Sentences
) -> None:
    """Show the first thirty sentences that a second language model changes."""
    rows = [
        (source, reference, one, other)
        for source, reference, one, other in zip(
            test.source, test.reference, before.lines, after.lines, strict=True
        )
        if one != other
    ]
    report.add_table(
        f"The first 30 of {len(rows)} sentences that change (seed 1)",
        ("source", "reference", before.name, after.name),
        rows[:30],
    )
