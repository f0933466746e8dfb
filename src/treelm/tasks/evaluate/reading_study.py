"""A reading-time study: times joined with models, and what each model adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from treelm.corpus.files import Source
from treelm.corpus.reading_times import (
    TimedWord,
    ZonedSentence,
    read_times,
    read_zoned_trees,
    same_words,
    sentences_of_times,
)
from treelm.corpus.tokenize import tokenize_words
from treelm.corpus.tokenizers import Tokenizing
from treelm.errors import EstimationError, UsageError, option
from treelm.models.interface.incremental import IncrementalModel
from treelm.signature import signature
from treelm.tasks.evaluate.mixed_models import MixedGain, mixed_gain
from treelm.tasks.evaluate.reading_power import Power, draw_power, power
from treelm.tasks.evaluate.reading_script import column_name
from treelm.tasks.evaluate.reading_times import (
    ReadingTable,
    ZoneScores,
    alignment_likelihood,
    reading_table,
    unigram_surprisal,
    zone_scores,
)

#: Number of parts for cross-validation, where there are as many sentences.
FOLDS = 10


@dataclass(frozen=True, eq=False)
class StudyWords:
    """The words of a study.

    Args:
        times: Words with times.
        sentences: The sentences they occur in.
        dropped: Number of rows that were left out because the sentences have other words there.
    """

    times: Sequence[TimedWord]
    sentences: Sequence[ZonedSentence]
    dropped: int = 0


def read_study_words(
    times: Source,
    trees: Source | None = None,
    column: str = "mean_rt",
    *,
    reader: str | None = None,
    item: str | Sequence[str] = "item",
    drop_different_words: bool = False,
    tokenize: Tokenizing = tokenize_words,
) -> StudyWords:
    """Return the words of a table of times, and their sentences.

    Args:
        times: The table; see `read_times`.
        trees: Trees of the same texts, whose words must be those of the table; without them the
            sentences are made of the words of the table.
        column: The column of times.
        reader: The column of readers.
        item: The columns whose values tell texts apart, such as ``("item", "condition")``.
        drop_different_words: Leave out a few words that differ instead of refusing the table.
        tokenize: What takes sentences made of the words of the table apart.

    Raises:
        UsageError: for trees of texts that are not told apart by one number.
    """
    columns = (item,) if isinstance(item, str) else tuple(item)
    rows = read_times(times, column, reader=reader, item=columns)
    if trees is None:
        return StudyWords(rows, sentences_of_times(rows, tokenize))
    if any(str(each.item) != each.text for each in rows):
        raise UsageError(
            "the words of trees name their text by a number: texts with other names go without "
            f"{option('trees')}."
        )
    sentences = list(read_zoned_trees(trees))
    kept = same_words(rows, sentences, times, dropping=drop_different_words)
    return StudyWords(kept, sentences, len(rows) - len(kept))


@dataclass(frozen=True, eq=False)
class ReadingStudy:
    """What was found.

    Args:
        table: The words with times and predictors.
        models: Names of the models that were added.
        baseline: Name of the baseline model; None for none.
        perplexities: Of all models on the text of the table.
        results: For each model, over which other predictors, on all words and on known words.
        mixed: The same for mixed models, on all words: by name of the model.
        shift: Number of words by which times were shifted.
        folds: Number of parts of the cross-validation.
        seed: Seed of division and intervals.
        note: Why there are no results for known words, where there are none.
    """

    table: ReadingTable
    models: tuple[str, ...]
    baseline: str | None
    perplexities: Mapping[str, float]
    results: tuple[Power, ...]
    mixed: Mapping[str, MixedGain] = field(default_factory=dict)
    shift: int = 0
    folds: int = FOLDS
    seed: int = 0
    note: str | None = None

    def result(self, model: str, over: Sequence[str] = (), words: str = "all") -> Power:
        """Return what a model adds to others.

        Raises:
            KeyError: if that was not asked for, or no word is left.
        """
        found = {(each.model, each.over, each.words): each for each in self.results}
        return found[model, tuple(over), words]

    def main_results(self, words: str = "all") -> list[Power]:
        """Return what each model adds to the baseline, if there is one, else to length etc."""
        over = [] if self.baseline is None else [self.baseline]
        return [self.result(name, over, words) for name in self.models if name != self.baseline]

    def picture(self) -> str:
        """Return what each model adds to length, frequency and position, against perplexity."""
        alone = [each for each in self.results if not each.over and each.words == "all"]
        return draw_power(alone, self.perplexities)

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order.

        The figures of the first model come first, as where it is the only one.
        """
        main = self.main_results()[0]
        coefficients = list(main.coefficients.values())
        record: dict[str, object] = {
            "model": main.model,
            "over": list(main.over),
            "shift": self.shift,
            "n": main.ratio.n,
            "coefficient": coefficients[0],
            "t": main.t,
            "coefficient_before": coefficients[1] if len(coefficients) > 1 else None,
            "delta_log_likelihood": main.ratio.delta_log_likelihood,
            "per_observation": main.ratio.per_observation,
            "predictors_added": main.ratio.predictors,
            "p_value": main.ratio.p_value,
            "left_out": self.table.left_out,
            "unknown": int(self.table.unknown.sum()),
            "readers": int(self.table.reader_numbers.max()) + 1 if self.table.has_readers else None,
            "spill_over": self.table.spill_over,
            "alignment_log_likelihood": alignment_likelihood(self.table),
        }
        if self.baseline is not None:
            reverse = self.result(self.baseline, [main.model])
            record |= {
                "reverse_coefficient": next(iter(reverse.coefficients.values())),
                "reverse_t": reverse.t,
                "reverse_delta_log_likelihood": reverse.ratio.delta_log_likelihood,
                "reverse_p_value": reverse.ratio.p_value,
            }
        record["perplexity"] = dict(self.perplexities)
        record["results"] = [each.to_record() for each in self.results]
        if self.note is not None:
            record["note"] = self.note
        if self.mixed:
            record["mixed"] = {name: each.to_record() for name, each in self.mixed.items()}
        record["signature"] = signature(
            task="reading-times",
            models=",".join(self.models),
            baseline=self.baseline,
            spill_over=self.table.spill_over,
            folds=self.folds,
            seed=self.seed,
            n=len(self.table),
        )
        return record


def reading_study(
    words: StudyWords,
    models: Mapping[str, IncrementalModel],
    *,
    added: Sequence[str] | None = None,
    baseline: str | None = None,
    spill_over: int = 1,
    previous_time: bool = False,
    folds: int | None = None,
    shift: int = 0,
    mixed: bool = False,
    seed: int = 0,
    threads: int = 1,
    scores: Mapping[str, ZoneScores] | None = None,
) -> ReadingStudy:
    """Return what the surprisal of models adds to the prediction of reading times.

    Args:
        words: The words and their times.
        models: Models by name, the baseline among them.
        added: Names of those that are added; all but the baseline if not given.
        baseline: The model whose surprisal is in the regression before; its word counts are the
            frequencies, else those of the first model that has some.
        spill_over: Number of preceding words whose predictors count too.
        previous_time: Whether the log time of the word before is a predictor.
        folds: Number of parts of the cross-validation; 10 if there are as many sentences.
        shift: Number of words by which times are shifted.
        mixed: Fit mixed models too.
        seed: Seed of division and intervals.
        threads: Number of threads.
        scores: What the models say about the sentences, by name, if that is known already.

    Raises:
        UsageError: if two models have the same name in tables, or nothing is left to be added.
    """
    names = tuple(dict.fromkeys(added or [name for name in models if name != baseline]))
    if not [name for name in names if name != baseline]:
        raise UsageError("a model that is not the baseline must be added to it.")
    columns = {name: column_name(name) for name in models}
    if len(set(columns.values())) < len(columns):
        raise UsageError(
            f"columns of two models would have the same name: {', '.join(columns.values())}. "
            "Rename one of the folders."
        )
    if scores is None:
        scores = {
            name: zone_scores(model, words.sentences, threads=threads)
            for name, model in models.items()
        }
    frequencies = unigram_surprisal(_with_counts(models, baseline), words.sentences)
    surprisals = {columns[name]: each.surprisal for name, each in scores.items()}
    table = reading_table(
        words.times,
        words.sentences,
        {"frequency": frequencies, **surprisals},
        shift=shift,
        spill_over=spill_over,
        previous_time=previous_time,
        unknown=frozenset().union(*(each.unknown for each in scores.values())),
    )
    sentences = len(set(table.sentences.tolist()))
    parts = min(FOLDS, sentences) if folds is None else folds

    def found(shown: ReadingTable, label: str) -> list[Power]:
        asked: list[tuple[str, tuple[str, ...]]] = [(name, ()) for name in names]
        others = [name for name in names if name != baseline]
        if baseline is not None:
            asked += [(baseline, ())] if baseline not in names else []
            asked += [(name, (baseline,)) for name in others]
            asked += [(baseline, (name,)) for name in others]
        return [
            power(
                shown,
                columns[name],
                [columns[each] for each in over],
                words=label,
                folds=parts,
                seed=seed,
            ).named(name, over)
            for name, over in asked
        ]

    results, note = found(table, "all"), None
    if table.unknown.any():
        try:
            results += found(table.known(), "known")
        except (EstimationError, UsageError) as error:
            note = f"known words alone: {error}"
    over = [] if baseline is None else [columns[baseline]]
    mixes = (
        {name: mixed_gain(table, columns[name], over) for name in names if name != baseline}
        if mixed
        else {}
    )
    return ReadingStudy(
        table,
        names,
        baseline,
        {name: each.perplexity for name, each in scores.items()},
        tuple(results),
        mixes,
        shift,
        parts,
        seed,
        note,
    )


def _with_counts(models: Mapping[str, IncrementalModel], baseline: str | None) -> IncrementalModel:
    """Return the model whose word counts are the frequencies."""
    if baseline is not None:
        return models[baseline]
    having = [model for model in models.values() if model.unigram_counts is not None]
    return having[0] if having else next(iter(models.values()))
