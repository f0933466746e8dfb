"""A spaCy component: trees and surprisals of any model, on spaCy's own tokens.

``nlp.add_pipe("treelm", config={"model": "FOLDER"})`` adds it to a pipeline. Sentences are those of
the pipeline, or ours where it has none. They are tokenized as the model wants it, and what it says
is told about spaCy's tokens, which may be others.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from treelm.corpus.sentences import drop_invisible, split_sentences
from treelm.corpus.tokenize import tokenize_words
from treelm.errors import UsageError
from treelm.extras import import_extra

if TYPE_CHECKING:
    from treelm.models.interface.model import LanguageModel
    from treelm.trees.tree import Tree

_PARAGRAPH = re.compile(r"\n\s*\n")
_SPAN_ATTRIBUTES = ("parse_string", "constituents")
_TOKEN_ATTRIBUTES = ("surprisal",)


class _Sentence(NamedTuple):
    """A sentence of a document as the model reads it.

    Args:
        span: The sentence.
        tokens: What the model reads.
        places: The token of spaCy in which each of them begins, by its number in the document.
    """

    span: Any
    tokens: tuple[str, ...]
    places: tuple[int, ...]


class TreelmComponent:
    """Sets ``sent._.parse_string``, ``sent._.constituents`` and ``token._.surprisal``.

    What the model cannot say stays None.

    Args:
        model: The model.
        batch_size: Documents that the model is given at once.
        threads: Kernel threads.
    """

    def __init__(self, model: LanguageModel, *, batch_size: int = 64, threads: int = 1) -> None:
        from treelm.models.interface.model import Task

        self._model = model
        self._batch_size = batch_size
        self._threads = threads
        self._parses = model.can(Task.PARSE)
        self._has_surprisal = model.can(Task.SURPRISAL)
        tokens = import_extra("spacy.tokens", "The spaCy component")
        for owner, names in ((tokens.Span, _SPAN_ATTRIBUTES), (tokens.Token, _TOKEN_ATTRIBUTES)):
            for name in names:
                if not owner.has_extension(name):
                    owner.set_extension(name, default=None)

    def __call__(self, doc: Any) -> Any:
        """Return a document with what the model says about it."""
        return next(iter(self.pipe([doc])))

    def pipe(self, stream: Iterable[Any], batch_size: int | None = None) -> Iterator[Any]:
        """Yield documents, the sentences of many of them given to the model at once."""
        rest = iter(stream)
        while docs := list(islice(rest, batch_size or self._batch_size)):
            self._annotate([each for doc in docs for each in _sentences(doc)])
            yield from docs

    def _annotate(self, sentences: Sequence[_Sentence]) -> None:
        given = [each.tokens for each in sentences]
        if self._parses:
            found = self._model.parse_many(given, threads=self._threads)
            for each, best in zip(sentences, found, strict=True):
                if best is not None:
                    each.span._.parse_string = str(best.tree)
                    each.span._.constituents = _constituents(each, best.tree)
        if self._has_surprisal:
            for each, score in zip(
                sentences, self._model.score_many(given, threads=self._threads), strict=True
            ):
                _set_surprisal(each, [word.surprisal for word in score.words or ()])


def _set_surprisal(sentence: _Sentence, values: Sequence[float]) -> None:
    """Give every token the sum over what begins in it; 0 where nothing does."""
    sums = dict.fromkeys(range(sentence.span.start, sentence.span.end), 0.0)
    for place, value in zip(sentence.places, values, strict=True):
        sums[place] += value
    for place, value in sums.items():
        sentence.span.doc[place]._.surprisal = value


def _constituents(sentence: _Sentence, tree: Tree) -> tuple[Any, ...]:
    """Return the phrases of a tree as labelled spans, those outside before those inside."""
    spans = import_extra("spacy.tokens", "The spaCy component").Span
    starts = (*sentence.places, sentence.span.end)
    found = []
    first = 0
    for node in tree.preorder():
        if node.word is not None:
            first += 1
            continue
        last = first + len(node.words)
        end = max(starts[last], starts[last - 1] + 1)
        found.append(spans(sentence.span.doc, starts[first], end, label=str(node.label)))
    return tuple(found)


def _sentences(doc: Any) -> Iterator[_Sentence]:
    """Yield the sentences of a document; their starts are set where nothing else did."""
    if not doc.has_annotation("SENT_START"):
        _set_sentence_starts(doc)
    owners = _token_of_character(doc)
    for span in doc.sents:
        found = tokenize_words(span.text)
        offset = span.start_char
        places: list[int] = []
        for word, first, last in zip(found.words, found.starts, found.ends, strict=True):
            offset = doc.text.index(word, offset)
            places += [
                owners[offset + min(begin, len(word) - 1)]
                for begin in _starts(word, found.tokens[first:last])
            ]
            offset += len(word)
        if found.tokens:
            yield _Sentence(span, found.tokens, tuple(places))


def _starts(word: str, tokens: Sequence[str]) -> Iterator[int]:
    """Yield where each token of a word begins; quotes and brackets have other forms, of one mark.

    A period that ends an abbreviation and the sentence is two tokens, the second of which begins
    at the end.
    """
    at = 0
    for token in tokens:
        while at < len(word) and not drop_invisible(word[at]):
            at += 1
        yield at
        at = min(at + (len(token) if word.startswith(token, at) else 1), len(word))


def _token_of_character(doc: Any) -> list[int]:
    """Return the number of the token to which each character of a document belongs."""
    owners: list[int] = []
    for token in doc:
        owners += [token.i] * len(token.text_with_ws)
    return owners


def _set_sentence_starts(doc: Any) -> None:
    """Mark the first token of each of our sentences."""
    owners = _token_of_character(doc)
    starts = {0}
    for paragraph in _paragraphs(doc.text):
        visible = [
            place
            for place in range(*paragraph)
            for character in drop_invisible(doc.text[place])
            if not character.isspace()
        ]
        at = 0
        for sentence in split_sentences(doc.text[slice(*paragraph)]):
            if at < len(visible):
                starts.add(owners[visible[at]])
            at += sum(not character.isspace() for character in sentence)
    for token in doc:
        token.is_sent_start = token.i in starts


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    for found in _PARAGRAPH.finditer(text):
        yield at, found.start()
        at = found.end()
    yield at, len(text)


def make_component(
    nlp: Any, name: str, model: str | None, batch_size: int = 64, threads: int = 1
) -> TreelmComponent:
    """Return the component of a pipeline: what spaCy calls for ``nlp.add_pipe("treelm")``.

    Args:
        nlp: The pipeline.
        name: What the component is called in it.
        model: Model folder.
        batch_size: Documents that the model is given at once.
        threads: Kernel threads.

    Raises:
        UsageError: without a model.
    """
    del nlp
    from treelm.models.registry import load

    if model is None:
        raise UsageError(
            f'the component "{name}" needs a model folder: '
            'nlp.add_pipe("treelm", config={"model": "FOLDER"}).'
        )
    return TreelmComponent(load(model), batch_size=batch_size, threads=threads)


def register() -> None:
    """Tell spaCy the component; importing this module does it where spaCy is installed.

    Raises:
        MissingExtra: if it is not.
    """
    language = import_extra("spacy.language", "The spaCy component").Language
    if not language.has_factory("treelm"):
        defaults = {"model": None, "batch_size": 64, "threads": 1}
        language.factory("treelm", default_config=defaults, func=make_component)


if importlib.util.find_spec("spacy") is not None:
    register()
