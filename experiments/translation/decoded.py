"""Weights tuned on the development set by several seeds, and the test set translated with them."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from files import write_lines
from recipe import add_published

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
    lines: list[int]
    """Where they stand in the whole set, from 0."""

    @classmethod
    def read(cls, data: Path, name: str) -> Sentences:
        """Return those of the development or the test set."""
        folder = data / "mt/multi30k"
        source, reference = (list(read_lines(folder / f"{name}.{side}")) for side in ("de", "en"))
        lines = [n for n, each in enumerate(source) if 1 <= len(each.split()) <= MOST_WORDS]
        return cls([source[n] for n in lines], [reference[n] for n in lines], lines)

    def kept(self, whole: Sequence[str]) -> list[str]:
        """Return what belongs to them of something that there is for the whole set."""
        return [whole[n] for n in self.lines]


@dataclass(frozen=True)
class System:
    """Language models inside a decoder.

    Args:
        name: What tables call it.
        models: The language models.
        config: How it searches.
        tuned_as: Name of the system whose weights it has; None if it is tuned itself.
    """

    name: str
    models: tuple[LanguageModel, ...]
    config: DecoderConfig
    tuned_as: str | None = None

    @property
    def file_name(self) -> str:
        """A name for files."""
        return file_name(self.name)

    def decoder(self, table: PhraseTable) -> Decoder:
        """Return the decoder with weights that tuning replaces."""
        return Decoder(table, self.models, None, self.config)


def file_name(name: str) -> str:
    """Return a name of a system as files have it."""
    return name.replace(" ", "_").replace(",", "")


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
    """Return the translations of sentences, made now or before; processor seconds stand beside."""
    if not path.exists():
        decoder = system.decoder(table).with_weights(weights)
        began = time.process_time()
        lines = [each.text for each in decoder.translate(sentences, threads=threads)]
        seconds = (time.process_time() - began) / len(sentences)
        path.with_suffix(".seconds").write_text(f"{seconds:.6f}\n", encoding="utf-8")
        write_lines(path, lines)
    return Translations(system.name, tuple(read_lines(path)))


def tuned_weights(
    systems: Sequence[System],
    table: PhraseTable,
    data: Path,
    folder: Path,
    *,
    seeds: int,
    method: Method,
    threads: int,
) -> dict[tuple[str, int], Weights]:
    """Return the weights of every system and seed, found now or before on the development set."""
    folder.mkdir(parents=True, exist_ok=True)
    dev = Sentences.read(data, "val")
    found: dict[tuple[str, int], Weights] = {}
    for system in systems:
        for seed in range(1, seeds + 1):
            if system.tuned_as is not None:
                found[system.name, seed] = found[system.tuned_as, seed]
                continue
            found[system.name, seed] = tune_system(
                system,
                table,
                dev,
                folder,
                options=TuneOptions(seed=seed, method=method),
                given=found.get((systems[0].name, seed)),  # where all but the first start
                threads=threads,
            )
    return found


def report_tuning(
    report: Report,
    systems: Sequence[System],
    weights: Mapping[tuple[str, int], Weights],
    folder: Path,
) -> None:
    """Report the weights that were found, and what they were found by."""
    most = max(len(system.models) for system in systems)
    tuned = {system.name: system for system in systems if system.tuned_as is None}
    rows = []
    for (name, seed), each in weights.items():
        if name not in tuned:
            continue
        log = folder / f"{file_name(name)}.seed{seed}.log"
        found = json.loads(log.read_text(encoding="utf-8"))
        decoded = max(each["decoded_bleu"] for each in found["rounds"])
        own = [f"{each[f'LM{place}'][0]:.3f}" for place in range(len(tuned[name].models))]
        own += [""] * (most - len(own))
        rows.append((name, seed, f"{decoded:.2f}", f"{found['bleu']:.2f}", len(found["rounds"])))
        rows[-1] += tuple(own)
    titles = [f"weight of LM{place}" for place in range(most)]
    report.add_table(
        "Tuning on the development set",
        ("system", "seed", "best decoded BLEU", "BLEU of the last lists", "rounds", *titles),
        rows,
    )


def report_systems(
    report: Report,
    systems: Sequence[System],
    data: Path,
    folder: Path,
    *,
    seeds: int,
    method: Method,
    threads: int,
) -> list[Path]:
    """Tune every system with every seed, translate the test set, and report what came of it.

    Returns:
        The translations of each system with the weights of the first seed.
    """
    table = PhraseTable.read(data / "mt/multi30k/phrase-table.gz")
    weights = tuned_weights(
        systems, table, data, folder, seeds=seeds, method=method, threads=threads
    )
    report_tuning(report, systems, weights, folder)
    test = Sentences.read(data, "test_2016_flickr")
    made: dict[str, list[Translations]] = {}
    seconds: dict[str, float] = {}
    for system in systems:
        paths = [folder / f"{system.file_name}.seed{seed}.txt" for seed in range(1, seeds + 1)]
        made[system.name] = [
            translate(
                system,
                table,
                weights[system.name, seed],
                test.source,
                path=path,
                threads=threads,
            )
            for seed, path in enumerate(paths, 1)
        ]
        each = [float(path.with_suffix(".seconds").read_text("utf-8")) for path in paths]
        seconds[system.name] = statistics.fmean(each)
    references = [Translations("reference", tuple(test.reference))]
    scores = evaluate_translations(
        [each for runs in made.values() for each in runs],
        references,
        seed=1,
        runs=seeds,
        tokenize="none",
    )
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
    for name, value in {"n-gram": 18.78, "n-gram, HHMM beam 2000": 19.78}.items():
        add_published(
            report,
            TABLE,
            name,
            "BLEU",
            value=value,
            source="Schwartz et al. 2011, Figure 9 (quoted from memory)",
            digits=2,
        )
    report.add_table(
        "Seeds of tuning",
        ("system", "metric", "mean", "deviation", "runs", "processor seconds per sentence"),
        [
            (
                name,
                metric,
                f"{score.mean:.2f}",
                "" if score.deviation is None else f"{score.deviation:.2f}",
                ", ".join(f"{run:.2f}" for run in score.runs),
                f"{seconds[name]:.3f}",
            )
            for name, found in scores.systems.items()
            for metric, score in found.items()
        ],
    )
    with_syntax = next((each for each in systems if len(each.models) > 1), systems[0])
    report_changes(report, made[systems[0].name][0], made[with_syntax.name][0], test)
    return [folder / f"{system.file_name}.seed1.txt" for system in systems]


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
