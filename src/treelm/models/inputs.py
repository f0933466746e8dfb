"""What a system is trained on: read off the signature of its training function.

The first parameter of such a function is what the system learns from, the keyword parameters are
what else it may be given; their annotations say what each is, and the docstring what it is for.
From this come `treelm.train`, the options of ``treelm train`` and their help.
"""

from __future__ import annotations

import functools
import inspect
import os
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Union, get_args, get_origin, get_type_hints, runtime_checkable

from treelm.characters import visible
from treelm.corpus.brackets import DEFAULT_OPTIONS, ReadOptions, ReadReport, contains_trees
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.files import Source, can_be_read_twice
from treelm.corpus.labelled import LabelledSentences
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_file import load_vocabulary
from treelm.corpus.words import split_words
from treelm.errors import UsageError
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.parser import Parser
from treelm.models.open_parser import open_parser
from treelm.models.run import Run
from treelm.trees.tree import Tree

#: Parameters of training functions that are no inputs.
_OTHERS = ("config", "run", "report")


@runtime_checkable
class Counted(Protocol):
    """Counts that stand for a corpus; a class of them reads folders."""

    @classmethod
    def from_folders(cls, folders: Sequence[Source], run: Run) -> Any:
        """Return the counts of folders, added up."""
        ...


@dataclass(frozen=True, slots=True)
class Input:
    """Something that a training function takes.

    Args:
        name: The parameter.
        kinds: The types that it may have.
        is_required: Whether it must be given.
        help: What it is for.
    """

    name: str
    kinds: tuple[Any, ...]
    is_required: bool
    help: str

    def takes(self, kind: type) -> bool:
        """Return whether a type is among those that it may have."""
        return kind in self.kinds

    @property
    def is_models(self) -> bool:
        """Whether it is a list of models."""
        return any(get_args(kind) == (LanguageModel,) for kind in self.kinds)

    @property
    def counts(self) -> type[Counted] | None:
        """The class of counts that may stand for a corpus, if there is one."""
        found = [kind for kind in self.kinds if hasattr(kind, "from_folders")]
        return found[0] if found else None


@functools.cache
def inputs_of(train: Callable[..., LanguageModel]) -> tuple[Input, ...]:
    """Return what a training function takes, its first parameter first."""
    hints = get_type_hints(train)
    texts = parameter_texts(inspect.getdoc(train) or "")
    found = []
    for name, parameter in inspect.signature(train).parameters.items():
        if name in _OTHERS:
            continue
        hint = hints[name]
        joined = get_origin(hint) in (Union, types.UnionType)
        kinds = get_args(hint) if joined else (hint,)
        known = tuple(kind for kind in kinds if kind is not types.NoneType)
        required = parameter.default is parameter.empty and known == kinds
        found.append(Input(name, known, required, texts.get(name, "")))
    return tuple(found)


def parameter_texts(docstring: str) -> dict[str, str]:
    """Return what the ``Args`` of a docstring say about each parameter.

    Examples:
        >>> parameter_texts('''Do it.
        ...
        ... Args:
        ...     one: The first,
        ...         on two lines.
        ...     two: The second.
        ... ''')
        {'one': 'The first, on two lines.', 'two': 'The second.'}
    """
    texts: dict[str, list[str]] = {}
    inside, name = False, ""
    for line in docstring.splitlines():
        if line.strip() == "Args:":
            inside = True
        elif inside and line.strip() and not line.startswith("    "):
            break
        elif inside and line.strip():
            text = line[4:]
            if not text.startswith(" "):
                name, _, text = text.partition(": ")
                texts[name] = []
            texts[name].append(text.strip())
    return {name: " ".join(lines) for name, lines in texts.items()}


def as_input(wanted: Input, value: Any, *, reading: ReadOptions = DEFAULT_OPTIONS, run: Run) -> Any:
    """Return what was given as what the training function takes.

    Args:
        wanted: The parameter.
        value: What was given: the thing itself, a file or folder, several of them, or, for
            corpora, sentences as lists of words or trees.
        reading: How files of trees are read.
        run: How the training is run.

    Raises:
        UsageError: if it is none of these.
    """
    if value is None or wanted.takes(bool) or _is_one_of(value, wanted):
        return value
    if isinstance(value, Iterator):  # corpora are read more than once
        value = list(value)
    if wanted.is_models:
        return _as_models(wanted, value)
    if wanted.takes(Vocabulary):
        return _as_vocabulary(wanted, value)
    if wanted.takes(Parser) and _is_file(value):
        return open_parser(value)
    if wanted.takes(LabelledSentences):
        return _as_labelled(wanted, value)
    files = _as_files(value)
    _check_named(wanted, files)
    if files and wanted.counts is not None and all(map(os.path.isdir, files)):
        return wanted.counts.from_folders(files, run)
    if wanted.takes(TreeCorpus) and (not wanted.takes(TextCorpus) or _are_trees(value, files)):
        return _as_trees(wanted, value, files, reading, run)
    if wanted.takes(TextCorpus):
        return TextCorpus(files) if files else _as_sentences(wanted, value)
    return value


def _is_one_of(value: object, wanted: Input) -> bool:
    return any(isinstance(kind, type) and isinstance(value, kind) for kind in wanted.kinds)


def _is_file(value: object) -> bool:
    return isinstance(value, str | os.PathLike)


def _as_files(value: Any) -> tuple[Source, ...]:
    """Return the files that a value names, or none if it is something else."""
    if _is_file(value):
        return (value,)
    if isinstance(value, list | tuple) and value and all(map(_is_file, value)):
        return tuple(value)
    return ()


def _check_named(wanted: Input, files: Sequence[Source]) -> None:
    """Refuse sentences where names of files are wanted.

    Raises:
        UsageError: saying how sentences in memory are given.
    """
    for file in files:
        if isinstance(file, str) and len(split_words(file)) > 1 and not Path(file).exists():
            how = (
                "give a sentence as a list of words, or many strings as "
                "TextCorpus.of_sentences([...])."
            )
            if file.lstrip().startswith("("):
                how = "make a tree of each with Tree.from_string, and give a list of these."
            raise UsageError(
                f'{wanted.name}: there is no file "{visible(file[:60])}". Strings are names of '
                f"files here: {how}"
            )


def _are_trees(value: Any, files: Sequence[Source]) -> bool:
    if files:
        once = [file for file in files if can_be_read_twice(file)]
        return bool(once) and contains_trees(once[0])
    if isinstance(value, list | tuple) and value:
        return isinstance(value[0], Tree)
    return isinstance(value, Tree)


def _as_trees(
    wanted: Input, value: Any, files: tuple[Source, ...], reading: ReadOptions, run: Run
) -> TreeCorpus:
    if files:
        return TreeCorpus(files, reading, threads=run.threads)
    trees = [value] if isinstance(value, Tree) else value
    if isinstance(trees, Sequence) and trees and all(isinstance(tree, Tree) for tree in trees):
        return TreeCorpus.of_trees(trees, reading)
    raise UsageError(
        f"{wanted.name}: files of trees, a list of `Tree` or a `TreeCorpus` is needed, not "
        f"{_kind_of(value)}."
    )


def _as_sentences(wanted: Input, value: Any) -> TextCorpus:
    if isinstance(value, Iterable):
        sentences = list(value)
        if sentences and all(map(_is_sentence, sentences)):
            return TextCorpus.of_sentences(sentences)
    raise UsageError(
        f"{wanted.name}: text files, a list of sentences as lists of words, or a `TextCorpus` is "
        f"needed, not {_kind_of(value)}."
    )


def _is_sentence(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(word, str) for word in value)


def _as_labelled(wanted: Input, value: Any) -> LabelledSentences:
    if isinstance(value, Mapping) and set(value) == {"good", "bad"}:
        value = (value["good"], value["bad"])
    if isinstance(value, tuple) and len(value) == 2:
        part = Input(wanted.name, (TextCorpus,), is_required=True, help="")
        good, bad = (as_input(part, half, run=Run()) for half in value)
        return LabelledSentences(good, bad)
    raise UsageError(
        f"{wanted.name}: `LabelledSentences`, or a pair of good and bad sentences (files, or lists "
        f"of lists of words), is needed, not {_kind_of(value)}."
    )


def _as_models(wanted: Input, value: Any) -> list[LanguageModel]:
    from treelm.models.registry import load

    parts = [value] if _is_file(value) or isinstance(value, LanguageModel) else value
    if not isinstance(parts, list | tuple) or not parts:
        raise UsageError(
            f"{wanted.name}: a list of models or model folders is needed, not {_kind_of(value)}."
        )
    for part in parts:
        if not isinstance(part, LanguageModel) and not _is_file(part):
            raise UsageError(
                f"{wanted.name}: models or model folders are needed, not {_kind_of(part)}."
            )
    return [part if isinstance(part, LanguageModel) else load(part) for part in parts]


def _as_vocabulary(wanted: Input, value: Any) -> Vocabulary:
    if _is_file(value):
        return load_vocabulary(value)
    raise UsageError(
        f"{wanted.name}: a vocabulary file or a `Vocabulary` is needed, not {_kind_of(value)}."
    )


def _kind_of(value: object) -> str:
    if isinstance(value, list | tuple) and value:
        return f"a {type(value).__name__} of {type(value[0]).__name__}"
    return f"an empty {type(value).__name__}" if value in ([], ()) else type(value).__name__


def corpora_in(inputs: Iterable[Any]) -> list[TextCorpus | TreeCorpus]:
    """Return all corpora among the inputs of a training, those of classifiers included."""
    found: list[TextCorpus | TreeCorpus] = []
    for value in inputs:
        if isinstance(value, TextCorpus | TreeCorpus):
            found.append(value)
        elif isinstance(value, LabelledSentences):
            found += [value.good, value.bad]
    return found


def takes_report(train: Callable[..., LanguageModel]) -> bool:
    """Return whether a training function tells what it has read, so that nobody need look first."""
    return get_type_hints(train).get("report") == ReadReport | None
