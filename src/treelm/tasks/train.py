"""From files to a saved model: one way for every system."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any

from treelm.corpus.brackets import ReadReport
from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.files import Source, can_be_read_twice, source_name
from treelm.corpus.target import ADDED_TO_NAME, check_place
from treelm.errors import UsageError
from treelm.models.inputs import corpora_in, takes_report
from treelm.models.interface.config import Config
from treelm.models.interface.model import LanguageModel
from treelm.models.registry import System, train_system
from treelm.models.run import Event, Run
from treelm.parallel.metrics import METRICS, measured
from treelm.store.checkpoint import remove_training_files, training_folder
from treelm.store.manifest import Description, make_manifest
from treelm.store.replacement import check_replaceable, model_at

#: Looks at what was read of some files before anything is made of it; may raise.
Settle = Callable[[ReadReport, str], None]


def _settle_nothing(_: ReadReport, __: str) -> None:
    """Take files as they are."""


@dataclass(frozen=True, slots=True)
class Trained:
    """A model that was trained and saved.

    Args:
        model: The model.
        rounds: What its training says of itself, round by round; None if it has no rounds.
    """

    model: LanguageModel
    rounds: tuple[dict[str, object], ...] | None = None

    def record(self) -> dict[str, object]:
        """Return what there is to say about it, in a few numbers."""
        rounds = {} if self.rounds is None else {"rounds": list(self.rounds)}
        return {**self.model.summary(), **rounds}


def train_and_save(
    system: System,
    inputs: Mapping[str, Any],
    target: Source,
    options: Mapping[str, object],
    *,
    run: Run,
    settle: Settle = _settle_nothing,
    tokenizer: str | None = None,
) -> Trained:
    """Train a model and save it.

    Where the training can be resumed, what its last complete step left is kept in the folder
    ``TARGET.training``, which goes when the model is saved; a folder that `Run.checkpoint` names
    stays. A model that was in the folder stays
    until then, and `Run.note` is told which one was replaced.

    Args:
        system: The system.
        inputs: What it is trained on, by the names of its parameters.
        target: Model folder to write; looked at before the work begins.
        options: Options of the system.
        run: How the training is run.
        settle: Looks at what was read of trees before a model is saved.
        tokenizer: Name of the tokenizer that the model has for raw text.

    Raises:
        UsageError: if a file can be read only once, or for an impossible option.
        OutputFileError: if something else stands where the model should be.
    """
    config = system.make_config(options)
    check_storable(system.name, config)
    check_target(target)
    corpora = corpora_in(inputs.values())
    check_texts([path for corpus in corpora for path in corpus.paths])
    recorded: list[dict[str, object]] = []

    def heard(event: Event) -> None:
        if event.is_recorded and is_dataclass(event.value) and not isinstance(event.value, type):
            recorded.append(asdict(event.value))
        if metrics is not None:
            metrics.write({"event": event.text})
        run.event(event)

    folder = (run.checkpoint or training_folder(target)) if system.is_resumable else None
    is_told = run.checkpoint is not None or run.executor.threads is not None
    if folder is not None and not run.resume:
        (folder / METRICS).unlink(missing_ok=True)
    own = replace(run, checkpoint=folder, event=heard, temporary=_beside(target, run))
    others: dict[str, ReadReport] = {}
    main = next((value for value in inputs.values() if isinstance(value, TreeCorpus)), None)
    if takes_report(system.trainer):
        others["report"] = ReadReport()
    for corpus in corpora:
        if isinstance(corpus, TreeCorpus) and not (others and corpus is main):
            settle(corpus.read_through(), _names(corpus))
    with measured(run.executor, folder if is_told else None) as metrics:
        model = train_system(system, inputs, config, own, tokenizer=tokenizer, **others)
    if others and corpora:
        settle(others["report"], "parsed text" if main is None else _names(main))
    replaced = model_at(Path(os.path.realpath(target)))
    model.save(target)
    if replaced is not None:
        run.note(f"replaced {replaced} in {source_name(target)}.")
    if folder is not None and run.checkpoint is None:
        remove_training_files(folder)
    return Trained(model, tuple(recorded) if system.has_rounds else None)


def _beside(target: Source, run: Run) -> Path:
    return run.temporary or Path(os.path.realpath(target)).parent


def _names(corpus: TreeCorpus) -> str:
    return " ".join(map(source_name, corpus.paths)) or "parsed text"


def check_target(target: Source) -> None:
    """Refuse a target that cannot become a model folder, before hours of work.

    Raises:
        OutputFileError: if something else stands there, or nothing can be written there.
    """
    check_place(target, added=ADDED_TO_NAME)
    check_replaceable(Path(os.path.realpath(target)))


def check_storable(system: str, config: Config) -> None:
    """Refuse options that a manifest could not hold, before hours of work.

    Raises:
        UsageError: saying why.
    """
    seed = getattr(config, "seed", None)
    description = Description(system, config.model_dump(mode="json"), seed=seed)
    try:
        make_manifest(description, {}, ())
    except ValueError as error:
        raise UsageError(f"{system}: these options cannot be saved ({error}).") from error


def check_texts(texts: Iterable[Source]) -> None:
    """Refuse what can be read only once.

    Raises:
        UsageError: naming it.
    """
    for text in texts:
        if not can_be_read_twice(text):
            raise UsageError(
                f"{source_name(text)} can be read only once, and training needs several passes; "
                "write it to a file first."
            )
