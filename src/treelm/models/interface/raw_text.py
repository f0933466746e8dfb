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
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.tokenizers import Segmenter, TokenizerName, Tokenizing, plain_tokenizer
from treelm.corpus.unknown_words import UNKNOWN
from treelm.errors import UsageError

if TYPE_CHECKING:
    from treelm.models.interface.model import LanguageModel

OwnModel = TypeVar("OwnModel", bound="LanguageModel")

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


def tokenizing(model: LanguageModel, name: str) -> Tokenizing:
    """Return the tokenizer of this name for a model.

    Raises:
        UsageError: if there is no such tokenizer.
    """
    check_tokenizer(name)
    if name != "segment":
        return plain_tokenizer(name)
    plain = model.__dict__
    if "_segmenter" not in plain:
        known = model.vocabulary
        plain["_segmenter"] = Segmenter.of_counts(
            {
                word: int(count)
                for word, count, is_signature in zip(
                    known.symbols, known.counts, known.signature_marks, strict=True
                )
                if not is_signature and word != UNKNOWN
            }
        )
    made: Segmenter = plain["_segmenter"]
    return made


def shared_tokenizing(models: Iterable[LanguageModel]) -> Tokenizing:
    """Return the tokenizer of models that measure the same words; Penn's where none has one.

    Raises:
        UsageError: if they have different ones, which would take the same words apart differently.
    """
    having = [(model, model.tokenizer) for model in models if model.tokenizer is not None]
    if not having:
        return plain_tokenizer("penn")
    names = {name for _, name in having}
    words = {model.vocabulary.fingerprint for model, name in having if name == "segment"}
    if len(names) > 1 or len(words) > 1:
        shown = " and ".join(sorted(names)) if len(names) > 1 else "segment, by different words"
        raise UsageError(
            f"the models have different tokenizers ({shown}): measure them one at a time."
        )
    return tokenizing(*having[0])


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
        "taken": lambda self, sentences: _several(sentences, tokenizing(self, tokenizer)),
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
        model = arguments[0]
        tokenize = tokenizing(model, model.tokenizer)
        for name in wanted:
            if name in bound.arguments:
                tokens = _several if name == _SENTENCES else _one
                bound.arguments[name] = tokens(bound.arguments[name], tokenize)
        return method(*bound.args, **bound.kwargs)

    return called


def _one(sentence: Any, tokenize: Tokenizing) -> Any:
    return tokenize(sentence).tokens if isinstance(sentence, str) else sentence


def _several(sentences: Any, tokenize: Tokenizing) -> Any:
    """Return sentences with strings tokenized; what is not several sentences is refused later."""
    if isinstance(sentences, str | bytes | os.PathLike | TextCorpus):
        return sentences
    if isinstance(sentences, Sequence):
        return [_one(each, tokenize) for each in sentences]
    if isinstance(sentences, Iterable):
        return (_one(each, tokenize) for each in sentences)
    return sentences


def _reduce(self: LanguageModel) -> tuple[Any, ...]:
    # The class is found by no name, so that pickles keep the plain model and make it again.
    return with_tokenizer, (with_tokenizer(self, None), self.tokenizer)
