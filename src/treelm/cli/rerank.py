"""`treelm rerank`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from treelm.characters import visible
from treelm.cli.model_options import (
    LengthOptions,
    ScoringOptions,
    SearchOptions,
    note_unknown_words,
)
from treelm.cli.options import (
    CommonOptions,
    File,
    InputFile,
    NewFile,
    OutputFile,
    ThreadOptions,
)
from treelm.corpus.files import write_atomically
from treelm.corpus.nbest import NBestColumns, ScoreFile
from treelm.errors import UsageError
from treelm.interop.nbest_formats import NBestFormat, hypothesis_names, list_text, read_lists
from treelm.tasks.rerank import Measure

if TYPE_CHECKING:
    from treelm.tasks.rerank import Scorer

#: Models that score together; the option is given again for each.
ModelPaths = Annotated[
    list[str] | None,
    Parameter(
        name=["--model", "-m"],
        metavar="MODEL",
        consume_multiple=False,
        show_default="none",
        help="Model folder; give the option again for each further model.",
    ),
]

_NAMED_FILES = Parameter(metavar="NAME=FILE", consume_multiple=False, show_default="none")


@Parameter(name="*", group=Group("List options", sort_key=25))
@dataclass(frozen=True, kw_only=True)
class ListOptions:
    """How n-best lists are read and written."""

    format: NBestFormat = "moses"
    """Moses; Joshua and cdec (`name=value`); Kaldi and ESPnet (`utterance-1 the words`); or JSON
    lines with id, text, score and features."""
    scores: Annotated[list[str] | None, _NAMED_FILES] = None
    """Kaldi: a feature and its file, `utterance-1 -4.5` on each line; give it again for each."""
    costs: Annotated[list[str] | None, _NAMED_FILES] = None
    """The same for costs, of which less is better: the feature has the opposite sign."""

    def read(self, source: str) -> Iterator[NBestColumns]:
        """Return the lists of a file."""
        files = [
            _score_file(text, is_cost=is_cost)
            for group, is_cost in ((self.scores, False), (self.costs, True))
            for text in group or ()
        ]
        return read_lists(source, self.format, files)


def _score_file(text: str, *, is_cost: bool) -> ScoreFile:
    name, equals, file = text.partition("=")
    if not (name and equals and file):
        raise UsageError(f'"{text}" is not a feature and a file: write acoustic=FILE.')
    return ScoreFile(name, file, is_cost)


def rerank(
    file: InputFile = "-",
    /,
    *,
    model: ModelPaths = None,
    name: Annotated[
        list[str] | None,
        Parameter(metavar="NAME", consume_multiple=False, show_default="SynLM0, SynLM1, ..."),
    ] = None,
    replace: Annotated[str | None, Parameter(metavar="NAME")] = None,
    score: Measure = "score",
    weights: File | None = None,
    keep_order: bool = False,
    columns: bool = False,
    best: NewFile | None = None,
    output: OutputFile = "-",
    lists: ListOptions = ListOptions(),
    scoring: ScoringOptions = ScoringOptions(),
    search: SearchOptions = SearchOptions(),
    length: LengthOptions = LengthOptions(),
    threads: ThreadOptions = ThreadOptions(),
    common: CommonOptions = CommonOptions(),
) -> None:
    """Add the scores of models to n-best lists as features, and sort these by weights.

    Lines of Moses look like `0 ||| the words ||| LM0= -12.3 ||| -4.5`; those with the same number
    are one list. Lists are read and written one after the other. With --weights totals are computed
    anew and the best hypothesis comes first; otherwise totals and order stay. Every text is scored
    once, and what the texts of a list begin with once too where that saves time.

    Args:
        file: N-best lists.
        name: Name of the new feature; give the option again for each further model.
        replace: Put the feature of the only model in the place of this one, and keep its name
            unless --name gives another.
        score: What is added: the log probability of a hypothesis, or the margin of a classifier;
            its syntactic log-odds ratio; or its surprisal in bits.
        weights: Weights of all features: JSON, or the lines of a moses.ini.
        keep_order: With --weights: do not sort.
        columns: Write the new scores only, a line for each hypothesis in the order of the file,
            separated by tabs if there are several models; after the name of the hypothesis with
            --format kaldi.
        best: File to write: the words of the first hypothesis of each list, after sorting; after
            the name of the utterance with --format kaldi.
    """
    from treelm.tasks.rerank import rerank as rerank_lists
    from treelm.tasks.text_check import TextCheck
    from treelm.translation.weights import Weights

    folders = model or []
    if not folders and weights is None:
        raise UsageError("name a model with -m, weights with --weights, or both.")
    if keep_order and weights is None:
        raise UsageError("--keep-order goes with --weights; otherwise the order stays.")
    if columns and not folders:
        raise UsageError("--columns writes the scores of models: name one with -m.")
    chosen = Weights.read(weights) if weights is not None else None
    scorers = scorers_of(
        folders,
        name,
        replace,
        measure=score,
        options=(scoring, search, length),
        threads=threads.thread_count,
    )
    names = ["the model"] if len(folders) == 1 else map(visible, folders)
    checks = [
        TextCheck(scorer.model.vocabulary, tokenized=True, model=name)
        for scorer, name in zip(scorers, names, strict=True)
    ]
    first: list[str] = []
    with write_atomically(output) as out:
        found_lists = rerank_lists(
            lists.read(file),
            scorers,
            weights=chosen,
            replaced=replace,
            sort=not keep_order,
        )
        for found in found_lists:
            text = found.columns.texts[0]
            for check in checks:
                check.add_sentences([text.split()])
            is_kaldi = lists.format == "kaldi"
            first.append(f"{found.columns.id} {text}" if is_kaldi else text)
            if columns:
                rows = ["\t".join(map(repr, row)) for row in found.scores.tolist()]
                if is_kaldi:
                    rows = list(
                        map(" ".join, zip(hypothesis_names(found.given), rows, strict=True))
                    )
                out.write("".join(f"{row}\n" for row in rows).encode())
            else:
                out.write(list_text(found.columns, lists.format).encode())
    if best is not None:
        with write_atomically(best) as out:
            out.write("".join(f"{text}\n" for text in first).encode())
    for check in checks:
        note_unknown_words(check, common)


def scorers_of(
    folders: list[str],
    names: list[str] | None,
    replaced: str | None,
    *,
    measure: Measure,
    options: tuple[ScoringOptions, SearchOptions, LengthOptions],
    threads: int,
) -> list[Scorer]:
    """Return the models with their names."""
    from treelm.tasks.rerank import Scorer

    scoring, search, length = options
    if names is None:
        names = [f"SynLM{number}" for number in range(len(folders))]
        if replaced is not None:
            names = [replaced] * len(folders)
    if len(names) != len(folders):
        raise UsageError(
            f"there are {len(folders)} models but {len(names)} names; give one for each model."
        )
    return [
        Scorer(
            name=name,
            model=length.apply(search.apply(scoring.model(folder))),
            measure=measure,
            threads=threads,
        )
        for name, folder in zip(names, folders, strict=True)
    ]
