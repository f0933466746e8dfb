"""Models that take raw text: a string is tokenized as their training data was, then taken apart.

A model that carries the name of a tokenizer (`LanguageModel.with_tokenizer`, `treelm train
--tokenizer`) belongs to a class made here: that of its system, with every method that takes a
sentence tokenizing strings first. Words in a list, and files, are tokenized text and stay as they
are.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from treelm.corpus.corpus import TextCorpus
from treelm.errors import UsageError

if TYPE_CHECKING:
    from treelm.models.interface.model import LanguageModel

OwnModel = TypeVar("OwnModel", bound="LanguageModel")

#: Names of tokenizers: penn is that of the Penn Treebank, which `treelm tokenize` is.
TokenizerName = Literal["penn"]

#: Parameters that are a sentence or several, in any method.
_SENTENCE, _SENTENCES = "sentence", "sentences"
#: Parameters that are part of a sentence; in other methods words are those of a state.
_PARTS = {"continuation": ("words", "context"), "top": ("context",)}


def check_tokenizer(name: str) -> None:
    """Refuse a tokenizer that does not exist.

    Raises:
        UsageError: naming those that do.
    """
    if name not in get_args(TokenizerName):
        known = ", ".join(get_args(TokenizerName))
        raise UsageError(f'there is no tokenizer "{name}". Tokenizers: {known}.')


def with_tokenizer(model: OwnModel, name: str | None) -> OwnModel:
    """Return a model whose methods tokenize strings; with None, one that splits them at spaces."""
    if name is not None:
        check_tokenizer(name)
    if name == model.tokenizer:
        return model
    kind = getattr(type(model), "_plain", type(model))
    made = object.__new__(kind if name is None else raw_text_class(kind, name))
    made.__dict__.update(model.__dict__)
    return made  # type: ignore[no-any-return]  # the class is made at run time


@functools.cache
def raw_text_class(kind: type[LanguageModel], tokenizer: str) -> type[LanguageModel]:
    """Return the class of models of a system that tokenize strings."""
    body: dict[str, Any] = {
        "__doc__": kind.__doc__,
        "__module__": kind.__module__,
        "__reduce__": _reduce,
        "_plain": kind,
        "tokenizer": tokenizer,
        "taken": lambda _, sentences: _several(sentences),
    }
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        if name.startswith("_"):
            continue
        texts = (_SENTENCE, _SENTENCES, *_PARTS.get(name, ()))
        if wanted := [each for each in inspect.signature(method).parameters if each in texts]:
            body[name] = _tokenizing(method, wanted)
    return type(kind.__name__, (kind,), body)


def _tokenizing(method: Callable[..., Any], wanted: Sequence[str]) -> Callable[..., Any]:
    """Return a method that tokenizes strings among some of its arguments."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def called(*arguments: Any, **named: Any) -> Any:
        bound = signature.bind(*arguments, **named)
        for name in wanted:
            if name in bound.arguments:
                tokens = _several if name == _SENTENCES else _one
                bound.arguments[name] = tokens(bound.arguments[name])
        return method(*bound.args, **bound.kwargs)

    return called


def _one(sentence: Any) -> Any:
    if not isinstance(sentence, str):
        return sentence
    # Its patterns take a tenth of the start of `treelm score`, which has no use for them.
    from treelm.corpus.tokenize import tokenize

    return tuple(tokenize(sentence))


def _several(sentences: Any) -> Any:
    """Return sentences with strings tokenized; what is not several sentences is refused later."""
    if isinstance(sentences, str | bytes | os.PathLike | TextCorpus):
        return sentences
    if isinstance(sentences, Sequence):
        return [_one(each) for each in sentences]
    return map(_one, sentences) if isinstance(sentences, Iterable) else sentences


def _reduce(self: LanguageModel) -> tuple[Any, ...]:
    # The class is found by no name, so that pickles keep the plain model and make it again.
    return with_tokenizer, (with_tokenizer(self, None), self.tokenizer)
