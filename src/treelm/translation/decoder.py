"""The phrase-based decoder: the best translations of sentences, found by stack or cube search.

The model is log-linear: a translation scores the sum of its features, each times its weight. The
search is that of Koehn, Och & Marcu (2003); any number of language models score words while
hypotheses are built, as in Schwartz et al. (2011).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np

from treelm import _native
from treelm.corpus.lengths import TooLongSentence
from treelm.corpus.nbest import Hypothesis, NBest
from treelm.corpus.words import Words, sentences_of
from treelm.errors import CorpusFormatError, UsageError, option
from treelm.kernel_errors import kernel_errors
from treelm.models.interface.model import LanguageModel
from treelm.parallel.progress import SILENT, Progress
from treelm.translation.phrase_table import PhraseTable
from treelm.translation.search_models import search_model
from treelm.translation.weights import Weights

#: Words of the longest sentence that the kernel reads.
LONGEST_SOURCE = 4000
#: Sentences per thread that are translated before the first is given out.
_BATCH = 16
_ANY = (1 << 64) - 1
#: What the kernel tells of a sentence.
_Found = tuple[
    list[tuple[str, list[float], float, str]],
    bool,
    int,
    tuple[int, int, int, int, int, int],
    float,
    str,
]
_CUTS: tuple[Literal["time", "memory"] | None, ...] = (None, "time", "memory")


@dataclass(frozen=True, kw_only=True)
class DecoderConfig:
    """How a decoder searches; None for no limit.

    Args:
        search: ``stack`` extends every hypothesis by every phrase; ``cube`` takes the most
            promising pairs of both first, which needs far fewer questions to slow language models.
        stack_size: Hypotheses kept for each number of translated words.
        beam_threshold: Hypotheses are dropped whose probability is below this share of the best
            one's; 0 keeps all.
        distortion_limit: Words that a jump may be long; 0 for none, -1 for any.
        ttable_limit: Translations of a phrase that are tried; 0 for all.
        max_trans_opt: Translations of a span that are tried; 0 for all.
        max_phrase_length: Source words of a phrase.
        early_discard: Drop hypotheses that look bad by estimates before language models are asked.
        pop_limit: Cube search: pairs taken for each number of translated words.
        min_pops_per_coverage: Cube search: pairs taken at least for each set of translated words.
        max_seconds: Time for a sentence. What is not searched then is said.
        max_bytes: Memory for a sentence, beside that of models. What is not searched then is said.
    """

    search: Literal["stack", "cube"] = "stack"
    stack_size: int | None = 200
    beam_threshold: float = 1e-5
    distortion_limit: int = 10
    ttable_limit: int = 20
    max_trans_opt: int = 50
    max_phrase_length: int = 7
    early_discard: bool = False
    pop_limit: int | None = 1000
    min_pops_per_coverage: int = 1
    max_seconds: float | None = None
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no search can do.

        Raises:
            UsageError: naming the parameter.
        """
        if self.search not in ("stack", "cube"):
            raise UsageError(f"{option('search')} is {self.search}; it must be stack or cube.")
        for name, least in (
            ("stack_size", 1),
            ("distortion_limit", -1),
            ("ttable_limit", 0),
            ("max_trans_opt", 0),
            ("max_phrase_length", 1),
            ("pop_limit", 1),
            ("min_pops_per_coverage", 0),
            ("max_bytes", 1),
        ):
            value = getattr(self, name)
            if value is not None and not least <= value < 1 << 62:
                raise UsageError(f"{option(name)} is {value}; it must be {least} or more.")
        if not 0 <= self.beam_threshold < 1:
            raise UsageError(
                f"{option('beam_threshold')} is {self.beam_threshold}; it must be at least 0 and "
                "less than 1."
            )
        if self.max_seconds is not None and not 0 < self.max_seconds < math.inf:
            raise UsageError(f"{option('max_seconds')} is {self.max_seconds}; it must be above 0.")


class SearchCounts(NamedTuple):
    """What a search did."""

    hypotheses: int = 0
    """Hypotheses that were kept, at least for a while."""
    recombined: int = 0
    """Hypotheses that a search need not tell from another one."""
    discarded: int = 0
    """Hypotheses that were given up at once."""
    model_reads: int = 0
    """Phrases about which a language model was asked."""
    model_repeats: int = 0
    """Phrases about which it had been asked before, in the same state."""
    pops: int = 0
    """Pairs that a cube search took."""


class Entry(NamedTuple):
    """One translation of a sentence."""

    words: tuple[str, ...]
    score: float
    """The sum of its features, each times its weight."""
    features: Mapping[str, tuple[float, ...]]
    alignment: str = ""
    """Pairs of source and target positions, such as ``0-0 1-2``, where they were asked for."""

    def hypothesis(self) -> Hypothesis:
        """Return it as n-best lists have it."""
        features = {name: tuple(map(repr, values)) for name, values in self.features.items()}
        more = (self.alignment,) if self.alignment else ()
        return Hypothesis(self.words, score=self.score, features=features, more=more)


@dataclass(frozen=True, slots=True)
class Translation:
    """What a decoder says about one sentence.

    Args:
        number: Number of the sentence, from 0.
        entries: The best translations, the best first; none for a sentence without words.
        relaxed: Whether no translation was found within the distortion limit, and one beyond it is
            given.
        cut: What the search ran out of, if it did: the translation is then worse than it might be.
        counts: What the search did.
        seconds: How long it took.
        graph: The search graph, a line for each hypothesis, if it was asked for.
    """

    number: int
    entries: tuple[Entry, ...] = ()
    relaxed: bool = False
    cut: Literal["time", "memory"] | None = None
    counts: SearchCounts = field(default_factory=SearchCounts)
    seconds: float = 0.0
    graph: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the best translation."""
        return self.entries[0].words if self.entries else ()

    @property
    def text(self) -> str:
        """The best translation."""
        return " ".join(self.words)

    @property
    def score(self) -> float | None:
        """The score of the best translation; None if there is none."""
        return self.entries[0].score if self.entries else None

    @property
    def n_best(self) -> NBest:
        """The translations as an n-best list."""
        return NBest(str(self.number), tuple(entry.hypothesis() for entry in self.entries))


class Decoder:
    r"""Translates sentences.

    Args:
        table: The phrases.
        models: Language models; each is a feature, ``LM0`` and so on.
        weights: Weights of the features; missing ones get their defaults, with a warning.
        config: How it searches.

    Raises:
        CorpusFormatError: ``E_FEATURE_WEIGHTS`` if the weights do not fit the features.
        UnsupportedTask: for a model that does not go word by word.

    Examples:
        >>> from treelm.corpus.files import Content
        >>> table = PhraseTable.read(Content("table", b"das ||| the ||| 0.5\n"))
        >>> weights = Weights({"TranslationModel0": (1.0,), "WordPenalty0": (-1.0,)})
        >>> weights = weights.replaced({"Distortion0": (1.0,), "PhrasePenalty0": (0.0,)})
        >>> weights = weights.replaced({"UnknownWordPenalty0": (1.0,)})
        >>> [best] = Decoder(table, [], weights).translate(["das Haus"])
        >>> best.text, round(best.score, 4)
        ('the Haus', -98.6931)
    """

    def __init__(
        self,
        table: PhraseTable,
        models: Sequence[LanguageModel],
        weights: Weights | None = None,
        config: DecoderConfig | None = None,
    ) -> None:
        self.table = table
        self.models = tuple(models)
        self.config = config or DecoderConfig()
        self._searched = [search_model(table.native, model) for model in self.models]
        self._set_weights(weights or Weights({}))

    @property
    def features(self) -> dict[str, int]:
        """The features, and how many values each has."""
        reordering = {"LexicalReordering0": 6} if self.table.has_reordering else {}
        return {
            **reordering,
            "Distortion0": 1,
            **{f"LM{number}": 1 for number in range(len(self.models))},
            "WordPenalty0": 1,
            "PhrasePenalty0": 1,
            "TranslationModel0": self.table.score_count,
            "UnknownWordPenalty0": 1,
        }

    @property
    def recombination(self) -> str:
        """Whether hypotheses are merged only if nothing can tell them apart.

        It is ``exact``, or ``approximate`` with the features whose states are compared roughly.
        """
        rough = [
            f"LM{number}" for number, model in enumerate(self.models) if not model.info.exact_key
        ]
        return f"approximate({', '.join(rough)})" if rough else "exact"

    def with_weights(self, weights: Weights) -> Decoder:
        """Return a decoder with other weights, and the same table and models."""
        made = Decoder.__new__(Decoder)
        made.table, made.models, made.config = self.table, self.models, self.config
        made._searched = self._searched
        made._set_weights(weights)
        return made

    def _set_weights(self, weights: Weights) -> None:
        self.weights = weights.completed(self.features)
        config = self.config
        limits = [limit for limit in (config.ttable_limit, config.max_trans_opt) if limit]
        flat = [value for values in self.weights.values() for value in values]
        with kernel_errors("preparing the decoder"):
            self._native = _native.PhraseDecoder(
                self.table.native,
                self._searched,
                np.array(flat, np.float64),
                stack_size=config.stack_size or _ANY,
                log_threshold=math.log(config.beam_threshold)
                if config.beam_threshold
                else -math.inf,
                distortion_limit=config.distortion_limit,
                table_limit=min(limits, default=_ANY),
                max_phrase_length=config.max_phrase_length,
                early_discard=config.early_discard,
                cube=config.search == "cube",
                pop_limit=config.pop_limit or _ANY,
                coverage_pops=config.min_pops_per_coverage,
                max_seconds=config.max_seconds or 0.0,
                max_bytes=config.max_bytes or 0,
            )

    def translate(
        self,
        sentences: Iterable[Words],
        *,
        n_best: int = 1,
        distinct: bool = False,
        alignments: bool = False,
        graph: bool = False,
        threads: int = 1,
        batch: int | None = None,
        progress: Progress = SILENT,
        first: int = 0,
    ) -> Iterator[Translation]:
        """Yield the translations of sentences, in order.

        Args:
            sentences: Each a string that is split at white space, or its words.
            n_best: Translations of a sentence that are given at most.
            distinct: Give each string of words once, with its best derivation.
            alignments: Give the word alignment of each translation, where the table has it.
            graph: Give the search graph.
            threads: Number of threads; results do not depend on it.
            batch: Sentences that are read before the first translation is given.
            progress: Shows how many sentences are done.
            first: Number of the first sentence, where others came before these.

        Raises:
            UsageError: for less than one translation.
            CorpusFormatError: ``E_FORMAT`` for a source word with ``|||`` in it.
            TooLongSentence: ``E_TOO_LONG`` for one of more than 4000 words.
        """
        if n_best < 1:
            raise UsageError(f"{option('n_best')} is {n_best}; it must be 1 or more.")
        rest, done = iter(sentences_of(sentences)), first
        with progress.step("translating", unit="sentences") as step:
            while some := list(islice(rest, batch or _BATCH * threads)):
                _check_words(some, done)
                place = f"sentence {done + 1} and those after it"
                with kernel_errors(f"translating {place} by {self.table.source}"):
                    found = self._native.translate(
                        [list(words) for words in some],
                        first=done,
                        n_best=n_best,
                        distinct=distinct,
                        alignments=alignments,
                        graph=graph,
                        threads=threads,
                    )
                for each in found:
                    yield self._translation(done, each)
                    done += 1
                step.advance(len(some))

    def _translation(self, number: int, found: _Found) -> Translation:
        entries, relaxed, cut, counts, seconds, graph = found
        return Translation(
            number,
            tuple(self._entry(*entry) for entry in entries),
            relaxed,
            _CUTS[cut],
            SearchCounts(*counts),
            seconds,
            graph,
        )

    def _entry(self, words: str, values: list[float], score: float, alignment: str) -> Entry:
        features: dict[str, tuple[float, ...]] = {}
        at = 0
        for name, length in self.weights.items():
            features[name] = tuple(values[at : at + len(length)])
            at += len(length)
        return Entry(tuple(words.split(" ")) if words else (), score, features, alignment)

    def with_config(self, **changes: object) -> Decoder:
        """Return a decoder that searches otherwise, with the same table, models and weights.

        Args:
            changes: Fields of `DecoderConfig`.
        """
        made = Decoder.__new__(Decoder)
        made.table, made.models = self.table, self.models
        made.config = replace(self.config, **changes)  # type: ignore[arg-type]
        made._searched = self._searched
        made._set_weights(self.weights)
        return made


def _check_words(sentences: Sequence[Sequence[str]], before: int) -> None:
    for number, words in enumerate(sentences, before + 1):
        if len(words) > LONGEST_SOURCE:
            reason = f"a decoder reads {LONGEST_SOURCE} at most. Is there one sentence per line?"
            raise TooLongSentence(number - 1, len(words), reason)
        if any("|||" in word for word in words):
            raise CorpusFormatError(
                f'sentence {number}: a word contains "|||", which separates the columns of n-best '
                "lists. Escape it, as Moses does: &#124; stands for |.",
                line=number,
            )
