"""`treelm tune`."""

from __future__ import annotations

import hashlib
import json as json_format
import sys
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from treelm.cli.decode import DecoderOptions
from treelm.cli.evaluate_translation import ReferenceFiles
from treelm.cli.model_options import LengthOptions, ScoringOptions, SearchOptions, load_for_tokens
from treelm.cli.options import AsJson, CommonOptions, File, OutputFile, Seed, ThreadOptions
from treelm.cli.ranges import at_least
from treelm.cli.rerank import ListOptions, ModelPaths, scorers_of
from treelm.cli.terminal import write_record
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import read_lines
from treelm.corpus.nbest import NBestColumns
from treelm.errors import CorpusFormatError, TreelmWarning, UsageError
from treelm.tasks.tune import ROUNDS, Method, Round, TuneOptions, Tuning
from treelm.translation.mert import RESTARTS
from treelm.translation.metrics import METRICS, MetricName
from treelm.translation.mira import EPOCHS

if TYPE_CHECKING:
    from treelm.translation.decoder import DecoderConfig
    from treelm.translation.weights import Weights


@Parameter(name="*", group=Group("Decoding options", sort_key=35))
@dataclass(frozen=True, kw_only=True)
class DecodingOptions:
    """How sentences are translated in every round."""

    phrase_table: File | None = None
    """Phrase table in the format of Moses, or what treelm convert made of one."""
    reordering_table: File | None = None
    """Table of orientations in the format of Moses."""
    source: File | None = None
    """File of the source sentences, one per line."""
    n_best: Annotated[int, at_least(1)] = 100
    """Hypotheses of each sentence and round."""
    rounds: Annotated[int, at_least(1)] = ROUNDS
    """Rounds of decoding at most."""
    resume: bool = False
    """Continue an interrupted tuning; the result is as if it had not been interrupted."""


@Parameter(name="*", group=Group("Tuning options", sort_key=30))
@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """How weights are found."""

    metric: MetricName = "bleu"
    """What is made best: BLEU, or the word error rate."""
    method: Method = "mert"
    """Minimum error rate training, or batch MIRA: more stable, and for many features."""
    restarts: Annotated[int, at_least(0)] = RESTARTS
    """MERT: random points from which the search starts again."""
    epochs: Annotated[int, at_least(1)] = EPOCHS
    """MIRA: passes over the sentences."""
    fix: Annotated[
        list[str] | None,
        Parameter(metavar="NAME", consume_multiple=False, show_default="UnknownWordPenalty0"),
    ] = None
    """Feature whose weight stays as it is; give the option again for each further one."""


def tune(
    *,
    references: ReferenceFiles,
    output: Annotated[
        OutputFile,
        Parameter(
            help="File of weights to write: JSON, or lines of a moses.ini if its name ends in .ini."
        ),
    ],
    n_best_lists: File | None = None,
    model: ModelPaths = None,
    weights: File | None = None,
    seed: Seed = 0,
    json: AsJson = False,
    lists: ListOptions = ListOptions(),
    finding: MethodOptions = MethodOptions(),
    decoding: DecodingOptions = DecodingOptions(),
    decoder: DecoderOptions = DecoderOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    search: SearchOptions = SearchOptions(),
    length: LengthOptions = LengthOptions(),
    threads: ThreadOptions = ThreadOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Find the weights of features that give the best BLEU or WER on a development set.

    With --phrase-table and --source the sentences are translated again in every round, and the
    models are features of the decoder (LM0, LM1, ...). With --n-best-lists the lists stay as they
    are, and the models are added to them (SynLM0, SynLM1, ...). The absolute values of the weights
    sum to 1. References and hypotheses are tokenized text. Never tune on a test set.

    Args:
        n_best_lists: N-best lists, one for each line of the references, numbered from 0; with
            --format kaldi lines of the references begin with the name of the utterance.
        weights: Weights to start from: JSON, or the lines of a moses.ini. Without them the start is
            the defaults of Moses, and 0 for new features.
        seed: Seed of directions, restarts and the order of sentences. Results of different seeds
            differ: report several.
    """
    from treelm.translation.weights import FIXED, Weights

    if output == "-":
        raise UsageError("-o needs a file: standard output is for the report.")
    if (n_best_lists is None) == (decoding.phrase_table is None):
        raise UsageError("give either --n-best-lists, or --phrase-table and --source.")
    options = TuneOptions(
        seed=seed,
        metric=finding.metric,
        method=finding.method,
        restarts=finding.restarts,
        epochs=finding.epochs,
        rounds=decoding.rounds,
        fixed=FIXED | frozenset(finding.fix or ()),
    )
    right, names = read_references(references, lists)
    start = None if weights is None else Weights.read(weights)
    if n_best_lists is not None:
        if decoding != DecodingOptions() or decoder != DecoderOptions():
            raise UsageError(
                "--n-best-lists are not decoded again: leave out --source, --resume and the other "
                "decoding options."
            )
        from treelm.tasks.rerank import rerank
        from treelm.tasks.tune import tune_on_lists

        scorers = scorers_of(
            model or [],
            None,
            None,
            measure="score",
            options=(scoring, search, length),
            threads=threads.thread_count,
        )
        scored = rerank(lists_in_order(lists, n_best_lists, references, names), scorers)
        found = tune_on_lists(
            (each.columns for each in scored), right, start, options, threads=threads.thread_count
        )
    else:
        if scoring != ScoringOptions():
            raise UsageError("--parser, -k, --pruning and --floor are for --n-best-lists.")
        if lists != ListOptions():
            raise UsageError("--format, --scores and --costs are for --n-best-lists.")
        found = _tune_decoder(
            (references, right),
            start,
            model or [],
            options,
            decoding=decoding,
            config=decoder.config(),
            search=search,
            output=output,
            threads=threads.thread_count,
            common=common,
        )
    found.weights.write(output)
    _write_report(found, as_json=json)
    if found.best.metric == "bleu" and found.best.tuned == 0:
        common.note(
            "warning: BLEU is 0 with these weights and with all others, so they say nothing. Do "
            "the references belong to these sentences, and are both tokenized and cased alike?"
        )


def read_references(
    files: list[str], lists: ListOptions
) -> tuple[list[list[str]], list[str] | None]:
    """Return the lines of files of references, as many in each, and names of utterances if any."""
    from treelm.interop.nbest_formats import read_utterances

    if lists.format == "kaldi":
        if len(files) > 1:
            raise UsageError("lists of Kaldi have one file of references.")
        named = read_utterances(files[0])
        return [list(named.values())], list(named)
    right = [list(read_lines(file, Wanted.TEXT)) for file in files]
    for file, lines in zip(files[1:], right[1:], strict=True):
        _check_counts(files[0], len(right[0]), file, len(lines))
    return right, None


def lists_in_order(
    lists: ListOptions, source: str, references: list[str], names: list[str] | None
) -> Iterable[NBestColumns]:
    """Return the lists of a file, numbered as the references are."""
    from treelm.interop.nbest_formats import in_order_of

    found = lists.read(source)
    return found if names is None else in_order_of(found, names, references[0])


def _check_counts(first: str, number: int, other: str, found: int) -> None:
    """Refuse files of different lengths."""
    if number != found:
        raise CorpusFormatError(
            f"{first} has {number} lines, but {other} has {found}; line n of the one belongs to "
            "line n of the other.",
            code="E_LENGTH_MISMATCH",
        )


def _tune_decoder(
    references: tuple[list[str], list[list[str]]],
    given: Weights | None,
    folders: list[str],
    options: TuneOptions,
    *,
    decoding: DecodingOptions,
    config: DecoderConfig,
    search: SearchOptions,
    output: str,
    threads: int,
    common: CommonOptions,
) -> Tuning:
    """Tune with a decoder, round by round."""
    from treelm.store.checkpoint import training_folder
    from treelm.tasks.decode import tokenization_notes, unknown_word_notes
    from treelm.tasks.tune import decoding as decoding_by
    from treelm.tasks.tune import starting_weights
    from treelm.tasks.tune import tune as tune_weights
    from treelm.translation.decoder import Decoder
    from treelm.translation.phrase_table import PhraseTable

    if decoding.source is None or decoding.phrase_table is None:
        raise UsageError("--phrase-table and --source go together.")
    files, right = references
    sentences = list(read_lines(decoding.source, Wanted.TEXT))
    _check_counts(decoding.source, len(sentences), files[0], len(right[0]))
    models = [search.apply(load_for_tokens(folder)) for folder in folders]
    table = PhraseTable.read(
        decoding.phrase_table, reordering=decoding.reordering_table, progress=common.progress
    )
    with warnings.catch_warnings():
        # The features are asked for before there are weights.
        warnings.simplefilter("ignore", TreelmWarning)
        decoder = Decoder(table, models, None, config)
    for message in (*tokenization_notes(models), *unknown_word_notes(decoder)):
        common.note(message)
    start = starting_weights(tuple(decoder.features.items()), given)
    told_by = {
        "sentences": sentences,
        "references": right,
        "models": [[each.system, each.summary()] for each in models],
        "search": search.given,
        "table": [table.source, len(table), table.score_count, table.has_reordering],
        "start": dict(start),
        "config": asdict(config),
        "n_best": decoding.n_best,
        "options": {**asdict(options), "fixed": sorted(options.fixed)},
    }
    key = hashlib.sha256(json_format.dumps(told_by, default=str).encode()).hexdigest()
    return tune_weights(
        decoding_by(
            decoder, sentences, n_best=decoding.n_best, threads=threads, progress=common.progress
        ),
        right,
        start,
        options,
        checkpoint=(training_folder(output), key),
        resume=decoding.resume,
        threads=threads,
        on_round=lambda each: common.note(_round_line(each)),
    )


def _round_line(each: Round) -> str:
    title = METRICS[each.metric].title
    decoded, tuned = each.shown
    return (
        f"round {each.number}: decoded {title} {decoded:.2f}, {each.new} new hypotheses of "
        f"{each.hypotheses}, tuned {title} {tuned:.2f}"
    )


def _write_report(found: Tuning, *, as_json: bool) -> None:
    """Write what was found."""
    if as_json:
        write_record(found.to_record(), as_json=True)
        return
    record: dict[str, object] = {"stopped": found.stopped}
    if found.has_fixed_lists:
        start, tuned = found.rounds[0].shown
        metric = found.rounds[0].metric
        record = {f"start_{metric}": start, metric: tuned}
    else:
        for each in found.rounds:
            sys.stdout.write(f"{_round_line(each)}\n")
    for name, values in found.weights.items():
        record[name] = " ".join(f"{value:.4f}" for value in values)
    write_record(record, as_json=False)
