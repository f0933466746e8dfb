"""The command that trains a system: options from its configuration and its training function.

`treelm.cli.train` names these commands as attributes of this module, such as ``train_ngram``, which
makes them when they are first used.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from cyclopts import Group, Parameter

from treelm.cli.corpus_options import settler
from treelm.cli.engine_options import EngineOptions
from treelm.cli.options import (
    AsJson,
    CommonOptions,
    File,
    Files,
    MemoryOptions,
    NewModel,
    ThreadOptions,
    TreeOptions,
)
from treelm.cli.ranges import Range, read_numbers
from treelm.cli.terminal import write_record
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.labelled import LabelledSentences
from treelm.corpus.remote_files import is_url
from treelm.corpus.target import check_place
from treelm.corpus.temporary import temporary_folder
from treelm.corpus.tokenizers import TokenizerName
from treelm.errors import UsageError
from treelm.models.inputs import Input, as_input
from treelm.models.interface.config import Option, options_of
from treelm.models.registry import System, find_system
from treelm.models.run import Event, Run
from treelm.store.shared_folder import SharedFolder
from treelm.tasks.train import train_and_save
from treelm.transforms.treelet import transforms_without

#: Options under other names than that of the field: the first is the one shown.
_NAMES: dict[str, tuple[str, ...]] = {"k": ("--k", "-k")}
#: What turns an option off that is on by default, where it is not ``--no-NAME``.
_NEGATIVES: dict[str, tuple[str, ...]] = {"adapt": ("--no-adapt", "--no-adaptation")}
#: Values of options that models have which nobody trained.
_NOT_TRAINED = {"smoothing": ("arpa",)}

#: More shards than any training has use for.
MAX_SHARDS = 10_000

_OPTIONS = Group("Options of the model", sort_key=20)
_RUNNING = Group("Options for running", sort_key=30)
_TEXT = "Files of tokenized text, one sentence per line; a blank line ends a document."
_TREES = "Files of bracketed trees, or of parses (.forest), whose best trees are read."
_NONE = inspect.Parameter.empty
#: The last sentence of a text.
_DEFAULT = re.compile(r" Default: (.*)\.$")

Command = Callable[..., None]


def __getattr__(name: str) -> Command:
    if not name.startswith("train_"):
        raise AttributeError(name)
    try:
        return command_of(find_system(name.removeprefix("train_")))
    except UsageError as error:
        raise AttributeError(str(error)) from error


@functools.cache
def command_of(system: System) -> Command:
    """Return the command that trains a system and saves the model."""
    inputs = {wanted.name: wanted for wanted in system.inputs}
    options = options_of(system.config_class)
    reading = any(wanted.takes(TreeCorpus) for wanted in inputs.values())
    parameters = [
        *(parameter for wanted in inputs.values() for parameter in _source_options(wanted)),
        _option("output", NewModel, "Model folder to write." + _checkpoint_text(system)),
        *map(_config_option, options),
        *(_extra_options(system)),
        *_resume_option(system),
        *_hashes_option(system),
        _tokenizer_option(),
        _option("json", AsJson, None, default=False),
        *([_group("memory_options", MemoryOptions)] if system.takes_memory else []),
        *([_group("engine_options", EngineOptions)] if system.takes_workers else []),
        *_shards_option(system),
        _group("running", TreeOptions if reading else ThreadOptions),
        _group("common", CommonOptions),
    ]

    def command(**given: Any) -> None:
        common: CommonOptions = given.pop("common", CommonOptions())
        running = given.pop("running", TreeOptions() if reading else ThreadOptions())
        engine: EngineOptions = given.pop("engine_options", EngineOptions())
        output, as_json = given.pop("output"), given.pop("json", False)
        workers = engine.executor(running)
        work = given.pop("work", None)
        if work is not None and not is_url(work):
            check_place(work)
        run = Run(
            threads=running.thread_count,
            executor=workers,
            memory=given.pop("memory_options", MemoryOptions()).limit(output),
            progress=common.progress,
            shards=given.pop("shards", None),
            shard_parameters=given.pop("shard_parameters", False),
            resume=given.pop("resume", False),
            sentence_hashes=not given.pop("no_sentence_hashes", False),
            note=common.note,
            event=_teller(common),
        )
        chosen = {option.name: given.pop(option.name) for option in options if option.name in given}
        if given.pop("untransformed", False):
            chosen["transforms"] = ()
        elif "without" in given:
            chosen["transforms"] = transforms_without(given.pop("without"))
        sources = {name: _source(wanted, given, running, run) for name, wanted in inputs.items()}
        with workers, _kept_in(work, run) as kept:
            trained = train_and_save(
                system,
                {name: value for name, value in sources.items() if value is not None},
                output,
                chosen,
                run=kept,
                settle=settler(common),
                tokenizer=given.pop("tokenizer", None),
            )
        for note in trained.model.notes():
            common.note(note)
        write_record(trained.record(), as_json=as_json)

    command.__name__ = system.name
    command.__doc__ = system.summary
    required_first = sorted(parameters, key=lambda each: each.default is not _NONE)
    command.__signature__ = inspect.Signature(required_first)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def _option(
    field: str, annotation: Any, text: str | None, *, default: Any = _NONE, **how: Any
) -> inspect.Parameter:
    """Return a parameter; what a text says about its default is shown as the default."""
    if text is not None:
        said = _DEFAULT.search(text)
        if said and default is None:
            how["show_default"] = said[1]
            text = _DEFAULT.sub("", text)
        how["help"] = text
    return inspect.Parameter(
        field,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[annotation, Parameter(**how)],
    )


def _group(name: str, kind: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=kind(), annotation=kind)


# -- options of the configuration ---------------------------------------------------------------


def _config_option(option: Option) -> inspect.Parameter:
    """Return an option as the command line has it."""
    how: dict[str, Any] = {"group": _OPTIONS}
    if option.name in _NAMES:
        how["name"] = list(_NAMES[option.name])
    if option.default is True:
        how["negative"] = _NEGATIVES.get(option.name, (f"--no-{option.name.replace('_', '-')}",))
    if option.bounds:
        how["validator"] = Range(**option.bounds)
    if option.is_numeric:
        how["converter"] = read_numbers
    default = _NONE if option.is_required else option.default
    return _option(option.name, _trainable(option), option.help, default=default, **how)


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
    names = Parameter(metavar="TRANSFORM...")
    return [
        _option(
            "without",
            Annotated[list[str] | None, names],
            "Transforms to leave out.",
            default=None,
            group=_OPTIONS,
        ),
        _option("untransformed", bool, "Leave all transforms out.", default=False, group=_OPTIONS),
    ]


def _checkpoint_text(system: System) -> str:
    return " OUTPUT.training beside it keeps the last complete step." if system.is_resumable else ""


def _resume_option(system: System) -> list[inspect.Parameter]:
    if not system.is_resumable:
        return []
    text = "Resume an interrupted training after its last complete step."
    work = (
        "Folder, or URL of one, that keeps the last complete step, and what each phase took, after "
        "the training too; for `treelm em status` and `treelm em verify`. Default: "
        "OUTPUT.training, which goes when the model is saved."
    )
    return [
        _option("resume", bool, text, default=False, group=_RUNNING),
        _option("work", str | None, work, default=None, group=_RUNNING, metavar="FOLDER"),
    ]


def _shards_option(system: System) -> list[inspect.Parameter]:
    if not system.takes_shards:
        return []
    text = (
        "Number of shards in which workers add up the counts of EM. What is done of a round is "
        "then kept in the work folder, which all machines must see, and --resume goes on from "
        "there. "
        "Results do not depend on it. Default: one process adds up."
    )
    parameters = (
        "Hold the tables of the model in as many shards too. Workers ask these for what their "
        "sentences need, so that the model may be larger than the memory of a worker; otherwise "
        "every worker has all of it, which is quicker."
    )
    return [
        _option(
            "shards",
            int | None,
            text,
            default=None,
            group=_RUNNING,
            validator=Range(least=1, most=MAX_SHARDS),
            converter=read_numbers,
        ),
        _option("shard_parameters", bool, parameters, default=False, group=_RUNNING),
    ]


def _hashes_option(system: System) -> list[inspect.Parameter]:
    if system.inputs[0].is_models:
        return []
    text = (
        "Keep no hashes of the training sentences in the model. With them evaluation warns of test "
        "sentences among these, and whoever has the model can tell whether a sentence was one."
    )
    return [_option("no_sentence_hashes", bool, text, default=False, group=_RUNNING)]


def _tokenizer_option() -> inspect.Parameter:
    text = (
        "How raw text becomes words like those of the training data: penn as `treelm tokenize` "
        "does it, for English; simple for other languages with spaces between words; segment for "
        "those without, by the words that the model knows. "
        "Commands and methods then take raw text for this model unless told otherwise. "
        "Default: none, text is tokenized."
    )
    return _option("tokenizer", TokenizerName | None, text, default=None, group=_RUNNING)


# -- files -----------------------------------------------------------------------------------------


def _source_options(wanted: Input) -> list[inspect.Parameter]:
    """Return the options that name the files of an input."""
    if wanted.takes(LabelledSentences):
        about = "" if wanted.name == "data" else f" {wanted.help}"
        return [
            _optional(
                f"{prefix}{kind}", Files, f"Files of {kind} sentences, one per line.{about}", wanted
            )
            for prefix in ("" if wanted.name == "data" else "dev_",)
            for kind in ("good", "bad")
        ]
    if wanted.is_models:
        text = "Model folders, all with the same vocabulary."
        return [_option("models", list[str], text, metavar="MODEL...")]
    if wanted.name == "corpus":
        return _corpus_options(wanted)
    if wanted.takes(bool):
        return [_option(wanted.name, bool, wanted.help, default=False)]
    many = wanted.takes(TreeCorpus) or wanted.takes(TextCorpus)
    return [_optional(wanted.name, Files if many else File, wanted.help, wanted)]


def _optional(name: str, kind: Any, text: str, wanted: Input) -> inspect.Parameter:
    if wanted.is_required:
        return _option(name, kind, text)
    return _option(name, kind | None, text, default=None)


def _corpus_options(wanted: Input) -> list[inspect.Parameter]:
    kinds: dict[str, tuple[Any, str]] = {}
    if wanted.takes(TextCorpus):
        kinds["text"] = Files, _TEXT
    if wanted.takes(TreeCorpus):
        kinds["trees"] = Files, f"{_TREES} Their words are the text." if kinds else _TREES
    if wanted.counts is not None:
        folders = Annotated[list[str], Parameter(metavar="FOLDER...")]
        kinds["counts"] = folders, "Folders that `treelm counts build` made, instead."
    alone = len(kinds) == 1 and wanted.is_required
    return [
        _option(name, kind, text) if alone else _option(name, kind | None, text, default=None)
        for name, (kind, text) in kinds.items()
    ]


def _source(wanted: Input, given: dict[str, Any], running: Any, run: Run) -> Any:
    """Return an input that options name, or None."""
    if wanted.takes(LabelledSentences):
        prefix = "" if wanted.name == "data" else "dev-"
        good, bad = (given.get(f"{prefix}{kind}".replace("-", "_")) for kind in ("good", "bad"))
        if (good is None) != (bad is None):
            raise UsageError(f"give both --{prefix}good and --{prefix}bad, or neither.")
        if good is None or bad is None:
            return None
        return LabelledSentences(TextCorpus(good), TextCorpus(bad))
    if wanted.name == "corpus":
        return _corpus(wanted, given, running, run)
    value = given.get(wanted.name)
    if value is None:
        return None
    if wanted.takes(TreeCorpus) and not wanted.takes(TextCorpus):
        return running.corpus(value)
    return TextCorpus(value) if wanted.takes(TextCorpus) else as_input(wanted, value, run=run)


def _corpus(wanted: Input, given: dict[str, Any], running: Any, run: Run) -> Any:
    names = [name for name in ("text", "trees", "counts") if given.get(name) is not None]
    own = [name for name in names if name != "text" or wanted.takes(TextCorpus)]
    if wanted.is_required and not own:
        raise UsageError("give either --text or --trees, with the files after it.")
    if len(own) > 1:
        raise UsageError(f"--{own[-1]} cannot be combined with --{own[0]}.")
    if not own:
        return None
    if own[0] == "counts":
        assert wanted.counts is not None  # else there is no such option
        return wanted.counts.from_folders(given["counts"], run)
    return running.corpus(given["trees"]) if own[0] == "trees" else TextCorpus(given["text"])


@contextmanager
def _kept_in(work: str | None, run: Run) -> Iterator[Run]:
    """Give a run whose steps are kept in a folder, which is made in one that exists.

    Where a URL names the folder, they are kept here first, and sent there after every step.
    """
    if work is None:
        yield run
        return
    if not is_url(work):
        yield replace(run, checkpoint=Path(work))
        return
    shared = SharedFolder(work.rstrip("/"))
    with temporary_folder() as own:
        if run.resume:
            shared.fetch(own)
        sent: Mapping[str, tuple[int, int]] = {}

        def send(event: Event) -> None:
            nonlocal sent
            sent = shared.send(own, sent)
            run.event(event)

        try:
            yield replace(run, checkpoint=own, work_url=str(shared), event=send)
        finally:
            shared.send(own, sent)


def _teller(common: CommonOptions) -> Callable[[Event], None]:
    def tell(event: Event) -> None:
        if common.verbose or not event.is_minor:
            common.note(event.text)

    return tell
