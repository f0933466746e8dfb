"""The command that trains a system: options from its configuration and its training function.

`treelm.cli.train` names these commands as attributes of this module, which makes them when they
are first used.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal, get_args, get_origin

from cyclopts import Parameter

from treelm.cli.corpus_options import settler, text_corpus, tree_corpus
from treelm.cli.options import CommonOptions, NewModel, TreeOptions, memory_limit, thread_count
from treelm.cli.terminal import write_record
from treelm.cli.treelet_options import transform_options
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.labelled import LabelledSentences
from treelm.errors import UsageError
from treelm.models.inputs import Input, as_input
from treelm.models.interface.options import Option, options_of
from treelm.models.registry import System, find_system
from treelm.models.run import Event, Run
from treelm.tasks.train import train_and_save

#: Options under other names than that of the field: the first is the one shown.
_NAMES: dict[str, tuple[str, ...]] = {"k": ("--k-best", "-k", "--k")}
#: What turns an option off that is on by default, where it is not ``--no-NAME``.
_NEGATIVES: dict[str, tuple[str, ...]] = {"adapt": ("--no-adapt", "--no-adaptation")}
#: Values of options that models have which nobody trained.
_NOT_TRAINED = {"smoothing": ("arpa",)}

_TEXT = "Files of tokenized text, one sentence per line; a blank line ends a document."
_TREES = "Files of bracketed trees."

Command = Callable[..., None]


def __getattr__(name: str) -> Command:
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        return command_of(find_system(name))
    except UsageError as error:
        raise AttributeError(str(error)) from error


@functools.cache
def command_of(system: System) -> Command:
    """Return the command that trains a system and saves the model."""
    inputs = {wanted.name: wanted for wanted in system.inputs}
    options = options_of(system.config_class)
    parameters = [
        *(parameter for wanted in inputs.values() for parameter in _source_options(wanted)),
        _option("output", NewModel, "Model folder to write." + _checkpoint_text(system)),
        *map(_config_option, options),
        *(_extra_options(system)),
        *_run_options(system),
    ]
    reads_trees = any(wanted.takes(TreeCorpus) for wanted in inputs.values())
    if reads_trees:
        parameters.append(_group("reading", TreeOptions))
    else:
        help_text = "Threads; default: the cores available. Results do not depend on it."
        parameters.append(_option("threads", int | None, help_text, default=None))
    parameters.append(_group("common", CommonOptions))

    def command(**given: Any) -> None:
        common: CommonOptions = given.pop("common", None) or CommonOptions()
        reading: TreeOptions = given.pop("reading", None) or TreeOptions()
        as_json, output = given.pop("json", False), given.pop("output")
        threads = reading.thread_count if reads_trees else thread_count(given.pop("threads", None))
        limit = (
            memory_limit(given.pop("memory", None), given.pop("temporary", None), output)
            if (system.takes_memory)
            else None
        )
        run = Run(
            threads=threads,
            memory=limit,
            progress=common.progress,
            resume=given.pop("resume", False),
            note=common.note,
            event=_teller(common),
        )
        chosen = {option.name: given.pop(option.name) for option in options if option.name in given}
        if "without" in given or "untransformed" in given:
            chosen |= transform_options(
                given.pop("without", None), untransformed=given.pop("untransformed", False)
            )
        sources = {
            name: value
            for name, wanted in inputs.items()
            if (value := _source(wanted, given, reading, run)) is not None
        }
        trained = train_and_save(system, sources, output, chosen, run=run, settle=settler(common))
        for note in trained.model.notes():
            common.note(note)
        write_record(trained.record(), as_json=as_json)

    command.__name__ = system.name
    command.__doc__ = system.summary
    command.__signature__ = inspect.Signature(_required_first(parameters))  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def _required_first(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    return sorted(parameters, key=lambda each: each.default is not inspect.Parameter.empty)


def _option(
    field: str,
    annotation: Any,
    help_text: str,
    *,
    default: Any = inspect.Parameter.empty,
    **how: Any,
) -> inspect.Parameter:
    # What is off or left open by default is said by the text, where it matters.
    shown = default is not inspect.Parameter.empty and default not in (None, False, ())
    about = Parameter(help=help_text, show_default=_shown if shown else False, **how)
    return inspect.Parameter(
        field,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[annotation, about],
    )


def _shown(default: Any) -> str:
    """Return a default as one would give it."""
    return " ".join(map(str, default)) if isinstance(default, tuple) else str(default)


def _group(name: str, kind: type) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind | None
    )


def _config_option(option: Option) -> inspect.Parameter:
    """Return an option as the command line has it."""
    how: dict[str, Any] = {}
    if option.name in _NAMES:
        how["name"] = list(_NAMES[option.name])
    if option.default is True:
        how["negative"] = _NEGATIVES.get(option.name, (f"--no-{option.name.replace('_', '-')}",))
    default = inspect.Parameter.empty if option.is_required else option.default
    text = f"{option.help} ({option.allowed})" if option.allowed else option.help
    return _option(option.name, _trainable(option), text, default=default, **how)


def _trainable(option: Option) -> Any:
    """Return the type of an option without the values that no training has."""
    left_out = _NOT_TRAINED.get(option.name, ())
    if get_origin(option.annotation) is not Literal or not left_out:
        return option.annotation
    return Literal[tuple(value for value in get_args(option.annotation) if value not in left_out)]


def _extra_options(system: System) -> list[inspect.Parameter]:
    """Return what is special to a system."""
    if system.name != "treelet":
        return []
    return [
        _option("without", list[str] | None, "Transforms to leave out.", default=None),
        _option("untransformed", bool, "Leave all transforms out.", default=False),
    ]


def _checkpoint_text(system: System) -> str:
    return " OUTPUT.training beside it keeps the last complete step." if system.is_resumable else ""


def _run_options(system: System) -> list[inspect.Parameter]:
    found = []
    if system.is_resumable:
        found.append(_option("resume", bool, "Resume an interrupted training.", default=False))
    if system.takes_memory:
        found += [
            _option(
                "memory",
                str | None,
                "How much memory may be used, such as 4G; what does not fit is sorted on disk, "
                "with the same result. Default: as much as it takes.",
                default=None,
            ),
            _option(
                "temporary",
                str | None,
                "Folder for what does not fit. Default: that of the output. Nothing is left there.",
                default=None,
            ),
        ]
    found.append(_option("json", bool, "One JSON object instead of lines.", default=False))
    return found


def _source_options(wanted: Input) -> list[inspect.Parameter]:
    """Return the options that name the files of an input."""
    none = inspect.Parameter.empty
    default = none if wanted.is_required else None
    if wanted.takes(LabelledSentences):
        prefix = "" if wanted.name == "data" else "dev_"
        text = wanted.help if prefix else "Good and bad sentences"
        return [
            _option(
                f"{prefix}{kind}",
                list[str] if wanted.is_required else list[str] | None,
                f"Files of {kind} sentences, one per line." + (f" {text}" if prefix else ""),
                default=default,
            )
            for kind in ("good", "bad")
        ]
    if wanted.is_models:
        return [_option("models", list[str], "Model folders, all with the same vocabulary.")]
    if wanted.name == "corpus":
        return _corpus_options(wanted)
    if wanted.takes(bool):
        return [_option(wanted.name, bool, wanted.help, default=False)]
    many = wanted.takes(TreeCorpus) or wanted.takes(TextCorpus)
    kind: Any = list[str] if many else str
    return [
        _option(
            wanted.name,
            kind if wanted.is_required else kind | None,
            wanted.help,
            default=default,
        )
    ]


def _corpus_options(wanted: Input) -> list[inspect.Parameter]:
    kinds: dict[str, str] = {}
    if wanted.takes(TextCorpus):
        kinds["text"] = _TEXT
    if wanted.takes(TreeCorpus):
        kinds["trees"] = _TREES if not kinds else f"{_TREES} Their words are the text."
    if wanted.counts is not None:
        kinds["counts"] = "Folders of counts that `treelm counts build` made, instead."
    if len(kinds) == 1 and wanted.is_required:
        ((name, text),) = kinds.items()
        return [_option(name, list[str], text)]
    return [_option(name, list[str] | None, text, default=None) for name, text in kinds.items()]


def _source(wanted: Input, given: dict[str, Any], reading: TreeOptions, run: Run) -> Any:
    """Return an input that options name, or None."""
    if wanted.takes(LabelledSentences):
        prefix = "" if wanted.name == "data" else "dev_"
        good, bad = given.get(f"{prefix}good"), given.get(f"{prefix}bad")
        if (good is None) != (bad is None):
            raise UsageError(
                f"give both --{prefix}good and --{prefix}bad, or neither.".replace("_", "-")
            )
        if good is None or bad is None:
            return None
        return LabelledSentences(text_corpus(good), text_corpus(bad))
    if wanted.name == "corpus":
        return _corpus(wanted, given, reading, run)
    value = given.get(wanted.name)
    if value is None:
        return None
    if wanted.takes(TreeCorpus) and not wanted.takes(TextCorpus):
        return tree_corpus(value, reading)
    if wanted.takes(TextCorpus):
        return text_corpus(value)
    return as_input(wanted, value, run=run)


def _corpus(wanted: Input, given: dict[str, Any], reading: TreeOptions, run: Run) -> Any:
    names = [name for name in ("text", "trees", "counts") if given.get(name) is not None]
    own = [name for name in names if name != "text" or wanted.takes(TextCorpus)]
    if wanted.is_required and not own:
        sources = "--text or --trees" if wanted.takes(TextCorpus) else "--trees"
        raise UsageError(f"give either {sources}, with the files after it.")
    if len(own) > 1:
        raise UsageError(f"--{own[-1]} cannot be combined with --{own[0]}.")
    if not own:
        return None
    if own[0] == "counts":
        assert wanted.counts is not None  # else there is no such option
        return wanted.counts.from_folders(given["counts"], run)
    return tree_corpus(given["trees"], reading) if own[0] == "trees" else text_corpus(given["text"])


def _teller(common: CommonOptions) -> Callable[[Event], None]:
    def tell(event: Event) -> None:
        if common.verbose or not event.is_minor:
            common.note(event.text)

    return tell
