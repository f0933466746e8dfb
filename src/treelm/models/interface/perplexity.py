"""Perplexity: how surprised a model is by a text, per word.

With T words, S sentences and natural log probabilities, the ends of sentences included,
``perplexity = exp(-sum / (T + S))``; without ends it is ``exp(-sum over words / T)``.

Where unknown words are spelled, the probabilities are those of an open vocabulary, which can be
compared whatever the words a model knows. Then there are also the perplexity over the symbols of
unknown words, ``closed_perplexity``, and the bits per character, those of words and one after each.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Literal

import numpy as np

from treelm.corpus.corpus import TextCorpus
from treelm.corpus.encoder import EncodedText, encode_sentences, encode_text, encode_written
from treelm.corpus.files import can_be_read_twice, source_name
from treelm.corpus.lengths import after_sentences, check_lengths, lines_of_sentences
from treelm.corpus.words import Words, check_sentences, sentences_of, words_of
from treelm.errors import CorpusFormatError, TreelmWarning, UnsupportedTask, flag
from treelm.models.interface.training_sentences import MOST_LOOKED_AT, warn_of_overlap
from treelm.models.interface.variants import SENTENCES_AT_ONCE
from treelm.models.interface.words import WordIds
from treelm.signature import signature
from treelm.store.manifest import Exactness

if TYPE_CHECKING:
    from treelm.models.interface.incremental import IncrementalModel
    from treelm.models.interface.model import LanguageModel
    from treelm.models.interface.scores import BatchScores, SentenceScore

#: Whether unknown words count as what stands for them, or are left out of sum and number.
OovMode = Literal["include", "skip"]

_PREFIX = 6


@dataclass(frozen=True, slots=True)
class Perplexity:
    """How surprised a model is by a text.

    Args:
        perplexity: Per word or sentence end.
        perplexity_without_eos: Per word; None if the model scores whole sentences only.
        bits_per_word: Binary logarithm of `perplexity`.
        log_prob: Natural log probability of everything counted.
        tokens: Number of words of the text, unknown ones included.
        sentences: Number of sentences of the text.
        oov: Number of unknown words.
        oov_rate: Their share of all words.
        oov_mode: Whether they were counted.
        exactness: What kind of numbers the model returns; if lower bounds, the perplexity is an
            upper bound.
        without_parse: Number of sentences that the grammar of the model cannot parse.
        signature: What made the numbers.
        closed_perplexity: Where unknown words are spelled: what `perplexity` would be with their
            symbols alone.
        bits_per_character: Where every word has a probability of its own: bits of everything
            counted, for each character; None otherwise.
        characters: Characters of the words, and one after each; with `bits_per_character`.
    """

    perplexity: float
    perplexity_without_eos: float | None
    bits_per_word: float
    log_prob: float
    tokens: int
    sentences: int
    oov: int
    oov_rate: float
    oov_mode: OovMode
    exactness: Exactness
    without_parse: int
    signature: str
    closed_perplexity: float | None = None
    bits_per_character: float | None = None
    characters: int | None = None

    def of_words(self, words: int, oov: int, characters: int) -> Perplexity:
        """Return the same for words that are several tokens each.

        Args:
            words: Number of words, as white space separates them.
            oov: How many of them have an unknown token.
            characters: Their characters, and one after each.
        """
        is_open = self.bits_per_character is not None
        per_item = -self.log_prob / (words + self.sentences)
        without = self.perplexity_without_eos
        before, _, version = self.signature.rpartition("|v:")
        return replace(
            self,
            perplexity=_exp(per_item),
            perplexity_without_eos=None
            if without is None
            else _exp(math.log(without) * self.tokens / words),
            bits_per_word=per_item / math.log(2.0),
            closed_perplexity=None
            if self.closed_perplexity is None
            else _exp(math.log(self.closed_perplexity) * self._items / (words + self.sentences)),
            bits_per_character=-self.log_prob / math.log(2.0) / characters if is_open else None,
            characters=characters if is_open else None,
            tokens=words,
            oov=oov,
            oov_rate=oov / words if words else 0.0,
            signature=f"{before}|tok:treelm|v:{version}",
        )

    @property
    def _items(self) -> int:
        return self.tokens + self.sentences

    def to_record(self) -> dict[str, object]:
        """Return names and values in reading order, those of open vocabularies where there is one.

        Then `closed_perplexity` stands beside `perplexity`.
        """
        record = asdict(self)
        own = {
            name: record.pop(name)
            for name in ("closed_perplexity", "bits_per_character", "characters")
        }
        shown = {name: value for name, value in own.items() if value is not None}
        return {"perplexity": record.pop("perplexity"), **shown, **record}


def text_perplexity(
    model: LanguageModel,
    sentences: Iterable[Words],
    *,
    oov_mode: OovMode = "include",
    strict_docs: bool = False,
    allow_overlap: bool = False,
    threads: int = 1,
) -> Perplexity:
    """Return the perplexity of a text; see `LanguageModel.perplexity`, which checks the model.

    Raises:
        UsageError: for one string: a name of a file, or a single sentence.
    """
    check_sentences(sentences)
    if not model.info.normalized:
        warnings.warn(
            "the model's probabilities do not sum to 1 over all words (`treelm inspect` shows how "
            "far they are from it), so its perplexity cannot be compared with that of others.",
            TreelmWarning,
            stacklevel=3,
        )
    first: list[tuple[str, ...]] = []
    if not allow_overlap and model.training_sentences:
        if isinstance(sentences, TextCorpus):
            seen: Iterable[Words] = sentences if _can_be_read_twice(sentences) else ()
            warn_of_overlap(model.training_sentences, seen, _name_of(sentences), level=3)
        else:
            sentences = _noting(sentences, first)
    counts = _Sums()
    skip = oov_mode == "skip"
    incremental = model.incremental
    with lines_of_sentences(sentences) if isinstance(sentences, TextCorpus) else nullcontext():
        if incremental is not None and incremental.spelling is not None:
            for text in _encoded(sentences, incremental, threads=threads, written=True):
                with after_sentences(counts.sentences):
                    counts.add_words(incremental, text, skip=skip, threads=threads)
        elif incremental is not None and incremental.open_vocabulary:
            for batch in _batches(sentences):
                with after_sentences(counts.sentences):
                    counts.characters += characters_of(batch)
                    counts.add_scores(incremental.score_batch(batch, threads=threads), skip=skip)
        elif incremental is not None:
            for text in _encoded(sentences, incremental, threads=threads):
                with after_sentences(counts.sentences):
                    counts.add_words(incremental, text, skip=skip, threads=threads)
        else:
            for batch in _batches(sentences):
                with after_sentences(counts.sentences):
                    counts.add_sentences(model, batch, skip=skip, threads=threads)
    warn_of_overlap(model.training_sentences, first, "the text", level=3)
    if not counts.sentences:
        raise CorpusFormatError(
            "the text contains no sentence, so it has no perplexity. Is it the right file?",
            code="E_NO_DATA",
        )
    if strict_docs and incremental is not None and incremental.remembers_documents:
        counts.check_documents()
    counted = counts.tokens - (counts.oov if skip else 0)
    total = counts.word_sum + counts.end_sum
    items = counted + counts.sentences
    per_item = -total / items
    without = _exp(-counts.word_sum / counted) if counted and incremental is not None else None
    return Perplexity(
        perplexity=_exp(per_item),
        perplexity_without_eos=without,
        bits_per_word=per_item / math.log(2.0),
        log_prob=total,
        tokens=counts.tokens,
        sentences=counts.sentences,
        oov=counts.oov,
        oov_rate=counts.oov / counts.tokens if counts.tokens else 0.0,
        oov_mode=oov_mode,
        exactness=model.info.exactness,
        without_parse=counts.without_parse,
        signature=model_signature(
            model,
            task="perplexity",
            **model.scoring_parts,
            eos=True,
            oov=oov_mode,
            n=counts.sentences,
        ),
        closed_perplexity=None if model.spelling is None else _exp(-counts.closed_sum / items),
        bits_per_character=-total / math.log(2.0) / counts.characters
        if counts.characters and not skip
        else None,
        characters=counts.characters if counts.characters and not skip else None,
    )


def model_signature(model: LanguageModel, *, task: str, **parts: object) -> str:
    """Return the signature of a model's result.

    Args:
        model: The model: its system, training text, order and words become part of it.
        task: What was measured.
        parts: How it was measured.
    """
    info = model.info
    return signature(
        task=task,
        sys=model.system,
        train=_train_prefix(model),
        order=info.order,
        beam=info.beam,
        bits=info.bits,
        smoothing=getattr(model.config, "smoothing", None),
        vocab=info.vocabulary[:_PREFIX],
        **parts,
    )


def _train_prefix(model: LanguageModel) -> str | None:
    """Return the start of the fingerprint of the training text, or of several together."""
    checksums = [record.sha256 for record in model.corpora]
    if len(checksums) > 1:
        return hashlib.sha256("\n".join(checksums).encode()).hexdigest()[:_PREFIX]
    return checksums[0][:_PREFIX] if checksums else None


def _can_be_read_twice(corpus: TextCorpus) -> bool:
    return all(map(can_be_read_twice, corpus.paths))


def _name_of(corpus: TextCorpus) -> str:
    return " ".join(map(source_name, corpus.paths))


def _noting(sentences: Iterable[Words], first: list[tuple[str, ...]]) -> Iterator[Words]:
    """Yield sentences, and keep as many as are looked for in the training data."""
    for sentence in sentences:
        words = words_of(sentence)
        if len(first) < MOST_LOOKED_AT:
            first.append(words)
        yield words


def _batches(sentences: Iterable[Words]) -> Iterator[list[tuple[str, ...]]]:
    rest = sentences_of(sentences)
    while batch := list(islice(rest, SENTENCES_AT_ONCE)):
        yield batch


def _encoded(
    sentences: Iterable[Words], model: LanguageModel, *, threads: int, written: bool = False
) -> Iterator[EncodedText]:
    """Yield a text as ids; files are read by the kernel."""
    if isinstance(sentences, TextCorpus):
        encode = encode_written if written else encode_text
        yield encode(sentences, model.vocabulary, threads=threads)
        return
    for batch in _batches(sentences):
        yield encode_sentences(batch, model.vocabulary, written=written)


def characters_of(sentences: Iterable[Sequence[str]]) -> int:
    """Return the number of characters of words, with one after each.

    Examples:
        >>> characters_of([("rain", "fell"), ("oh",)])
        13
    """
    return sum(len(word) + 1 for words in sentences for word in words)


class _Sums:
    """Sums batches."""

    def __init__(self) -> None:
        self.tokens = self.sentences = self.oov = self.without_parse = self.documents = 0
        self.word_sum = self.end_sum = self.closed_sum = 0.0
        self.characters = 0

    def add_words(
        self,
        model: IncrementalModel,
        text: EncodedText,
        *,
        skip: bool,
        threads: int,
    ) -> None:
        self.documents += len(text.document_starts) - 1
        self.characters += text.characters or 0
        self.add_scores(model.score_documents(text, threads=threads), skip=skip)

    def add_scores(self, scores: BatchScores, *, skip: bool) -> None:
        is_end = np.zeros(len(scores.log_probs), dtype=np.bool_)
        is_end[scores.ends] = True
        counted = ~is_end & ~scores.oov if skip else ~is_end
        self.tokens += len(is_end) - len(scores)
        self.sentences += len(scores)
        self.oov += int(scores.oov.sum())
        self.word_sum += float(scores.log_probs[counted].sum())
        self.end_sum += float(scores.log_probs[is_end].sum())
        if scores.closed is not None:
            self.closed_sum += float(scores.closed[counted | is_end].sum())
        self.without_parse += int(scores.fallback().sum())

    def check_documents(self) -> None:
        """Refuse several sentences in one document.

        Raises:
            CorpusFormatError: ``E_NO_DOCUMENTS``.
        """
        if self.sentences > 1 and self.documents <= 1:
            raise CorpusFormatError(
                f"the text has {self.sentences} sentences and no document boundaries, so it is "
                "read as one document. Put a blank line after each document, or leave out "
                f"{flag('strict_docs')}.",
                code="E_NO_DOCUMENTS",
            )

    def add_sentences(
        self, model: LanguageModel, batch: Sequence[Sequence[str]], *, skip: bool, threads: int
    ) -> None:
        if skip:
            raise UnsupportedTask(
                f"{model.system} models score whole sentences, so unknown words cannot be left "
                "out. Use the mode include.",
                code="E_NOT_INCREMENTAL",
            )
        ids = WordIds(model.vocabulary)
        check_lengths(map(len, batch), model.max_words, model.system)
        self.tokens += sum(map(len, batch))
        self.sentences += len(batch)
        self.oov += sum(int(ids.is_oov[ids.sentence(words)].sum()) for words in batch)
        scores = list(model.score_many(batch, threads=threads))
        self.word_sum += sum(score.log_prob for score in scores)
        self.without_parse += sum(score.fallback for score in scores)
        if model.spelling is not None:
            self.characters += characters_of(batch)
            self.closed_sum += _closed_sum(model, batch, scores, threads)


def _closed_sum(
    model: LanguageModel,
    batch: Sequence[Sequence[str]],
    scores: Sequence[SentenceScore],
    threads: int,
) -> float:
    """Return what sentences would score with the symbols of unknown words alone."""
    from treelm.models.interface.spelled import spelling_sums

    if model._spelling_model is None:  # a mixture, whose parts may spell in different ways
        return sum(score.log_prob for score in model.closed.score_many(batch, threads=threads))
    spelled = spelling_sums(model._spelling_model, batch)
    return sum(score.log_prob for score in scores) - float(spelled.sum())


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
