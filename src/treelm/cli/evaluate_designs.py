"""`treelm evaluate design`."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from treelm.cli.model_options import (
    LengthOptions,
    SearchOptions,
    note_unknown_words,
)
from treelm.cli.options import (
    AsJson,
    CommonOptions,
    InputFile,
    NewPicture,
    OptionalOutputFile,
    Seed,
    ThreadOptions,
)
from treelm.cli.ranges import at_least
from treelm.cli.terminal import write_record
from treelm.corpus.files import write_atomically
from treelm.tasks.text_check import TextCheck

if TYPE_CHECKING:
    from treelm.tasks.evaluate.designs import DesignResult

_ITEMS = (
    "File to write: a table with the surprisal of the region for every model, item and condition."
)

#: With fewer items all may agree by chance.
_FEW_ITEMS = 6


def design(
    stimuli: InputFile,
    /,
    *,
    model: Annotated[
        list[str],
        Parameter(
            name=["--model", "-m"],
            metavar="MODEL",
            consume_multiple=False,
            help="Model folder of an incremental model; once for each of several models.",
        ),
    ],
    factors: Annotated[list[str], Parameter(metavar="COLUMN...")],
    region: str | None = None,
    critical: Annotated[str | None, Parameter(metavar="COLUMN")] = None,
    words: Annotated[int, at_least(1)] = 1,
    item: Annotated[str, Parameter(metavar="COLUMN")] = "item",
    sentence: Annotated[
        list[str] | None,
        Parameter(metavar="COLUMN...", show_default="item and the factors"),
    ] = None,
    tokenize: Annotated[bool, Parameter(negative=("--tokenized", "--no-tokenize"))] = True,
    output: Annotated[OptionalOutputFile, Parameter(help=_ITEMS)] = None,
    plot: NewPicture | None = None,
    seed: Seed = 0,
    json: AsJson = False,
    search: SearchOptions = SearchOptions(),
    length: LengthOptions = LengthOptions(),
    threads: ThreadOptions = ThreadOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Measure the surprisal of a region by condition, the effects of factors, and interactions.

    Each item must be there in all conditions; others are left out and counted. Of two factors with
    two levels each the interaction is computed: how much the effect of the second differs between
    the levels of the first. Intervals are bootstraps over items.

    Args:
        stimuli: Table of stimuli, as for `treelm surprisal --stimuli`.
        factors: One or two columns that tell conditions apart; COLUMN=LEVEL,LEVEL chooses levels,
            of which the first is subtracted.
        region: Value of the column region for the words that are looked at.
        critical: Instead: column with the number of the first word that is looked at, from 1.
        words: With --critical: how many words are looked at.
        item: The column that tells items apart.
        sentence: Columns that tell sentences apart.
        tokenize: Words are raw text. Otherwise they are tokens, separated by white space.
        plot: Picture to write, .svg or .html: the mean surprisal of each condition.
        seed: Seed of the intervals.
    """
    from treelm.models.interface.raw_text import shared_tokenizing
    from treelm.models.registry import load
    from treelm.tasks.evaluate.designs import Factor, Region, draw_design, evaluate_design
    from treelm.tasks.surprisal.stimuli import model_names, read_stimuli

    chosen = [Factor.parse(each) for each in factors]
    columns = sentence or [item, *(factor.column for factor in chosen)]
    models = [load(path) for path in model]
    table = replace(
        read_stimuli(stimuli, columns, tokenizing=tokenize, whole_has_columns=True),
        tokenize=shared_tokenizing(models),
    )
    found = {}
    ready = search.apply_to_several([each.with_tokenizer(None) for each in models])
    for name, each in zip(model_names(model), ready, strict=True):
        loaded = length.apply(each)
        check = TextCheck(loaded.vocabulary, tokenized=tokenize, model=name)
        for regions in table.sentences():
            check.add_sentences([list(chain.from_iterable(regions))])
        note_unknown_words(check, common)
        found[name] = evaluate_design(
            loaded,
            table,
            chosen,
            Region(region, critical, words),
            item=item,
            seed=seed,
            threads=threads.thread_count,
        )
    whole = min(len(each.items) for each in found.values())
    if whole < _FEW_ITEMS:
        common.note(f"intervals and t are rough: items in all conditions: {whole}.")
    if output is not None:
        with write_atomically(output) as out:
            out.write(_items(found, [factor.column for factor in chosen]).encode())
    if plot is not None:
        from treelm.view.picture_files import picture_content

        with write_atomically(plot) as out:
            title = "Surprisal by condition"
            out.write(picture_content(plot, draw_design(found, title), title))
    if json:
        write_record({name: each.to_record() for name, each in found.items()}, as_json=True)
    else:
        write_record(_lines(found), as_json=False)


def _items(found: dict[str, DesignResult], factors: list[str]) -> str:
    """Return a row for every model, item and condition."""
    rows = ["\t".join(["model", "item", *factors, "surprisal", "unknown"])]
    for name, result in found.items():
        for place, item in enumerate(result.items):
            for number, key in enumerate(result.conditions):
                value, unknown = result.values[place, number], result.unknown[place, number]
                rows.append("\t".join([name, item, *key, repr(float(value)), str(int(unknown))]))
    return "\n".join(rows) + "\n"


def _lines(found: dict[str, DesignResult]) -> dict[str, object]:
    """Return a line for each condition and effect."""
    record: dict[str, object] = {}
    for name, result in found.items():
        prefix = f"{name}: " if len(found) > 1 else ""
        record[f"{prefix}items"] = len(result.items)
        record[f"{prefix}left out"] = len(result.left_out)
        record[f"{prefix}items with unknown words"] = int(result.unknown.any(axis=1).sum())
        for key, each in result.conditions.items():
            low, high = each.interval
            record[f"{prefix}{', '.join(key)}"] = f"{each.mean:.2f} [{low:.2f}, {high:.2f}] bits"
        for effect, each in result.effects.items():
            low, high = each.interval
            record[
                f"{prefix}effect of {effect}" if effect != "interaction" else prefix + effect
            ] = f"{each.mean:+.2f} [{low:+.2f}, {high:+.2f}] t " + (
                f"{each.t:.2f}" if math.isfinite(each.t) else "-"
            )
    return record
