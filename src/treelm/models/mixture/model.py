"""Mixtures of models: probabilities weighted and added, word by word or sentence by sentence."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import ClassVar, Self, cast

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from treelm.characters import visible
from treelm.corpus.encoder import EncodedText, Ids, Places
from treelm.corpus.lengths import after_sentences, check_lengths, check_starts
from treelm.corpus.sentence_filter import SentenceFilter
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.words import Word, Words, sentences_of, words_of
from treelm.errors import ModelFileError, UsageError, VocabularyError, option
from treelm.estimation.layout import Layout
from treelm.estimation.quantize import CodeBits
from treelm.grammar.coded_weights import WeightChange
from treelm.models.interface.config import Config, explain
from treelm.models.interface.incremental import IncrementalModel, check_pairs
from treelm.models.interface.model import LONGEST_SAMPLE, LanguageModel, ModelInfo, Task
from treelm.models.interface.reduction import Rounding
from treelm.models.interface.score_explanation import (
    Arithmetic,
    ScoreExplanation,
    ScoreStep,
    ScoreTerm,
    log_of,
)
from treelm.models.interface.scores import BatchScores, Sample, SentenceScore
from treelm.models.interface.scoring_views import whole_scores
from treelm.models.interface.spelling import Spelling
from treelm.models.interface.states import (
    FINGERPRINT_BYTES,
    Context,
    State,
    Step,
    Steps,
    check_state_model,
    damaged_state,
    pack_pieces,
    state_payload,
    unpack_pieces,
)
from treelm.models.interface.words import check_vocabularies
from treelm.models.mixture.config import InterpolatedConfig
from treelm.models.mixture.state import MixtureState
from treelm.models.mixture.weights import check_weights
from treelm.models.registry import from_folder
from treelm.parallel.memory import MemoryLimit
from treelm.parallel.progress import SILENT, Progress
from treelm.seeds import random_uniform
from treelm.store.folder import FolderWriter, ModelFolder
from treelm.store.manifest import Description, Exactness, TrainingCorpus

_EXACT_FIRST: tuple[Exactness, ...] = ("exact", "beam", "lower_bound", "margin")


class _Mixture(LanguageModel):
    """What both kinds of mixtures share: parts, weights and files."""

    config_class: ClassVar[type[Config]] = InterpolatedConfig

    def __init__(self, parts: Sequence[LanguageModel], config: InterpolatedConfig) -> None:
        if not parts:
            raise UsageError("a mixture needs at least one model.")
        check_vocabularies([part.vocabulary for part in parts])
        check_unknown_words(parts)
        self._mixed = tuple(parts)
        self._config = config
        self._weights = check_weights(config.weights, len(parts))
        self._log_weights = np.array([math.log(w) if w else -math.inf for w in self._weights])
        names = (name for part in parts for name in part.search_options)
        self.search_options = tuple(dict.fromkeys(names))

    @property
    def parts(self) -> tuple[LanguageModel, ...]:
        """The models that are mixed."""
        return self._mixed

    @property
    def mixed_models(self) -> tuple[LanguageModel, ...]:
        """The models that are mixed."""
        return self._mixed

    @property
    def weights(self) -> tuple[float, ...]:
        """One for each part; they add up to 1."""
        return self._weights

    @property
    def config(self) -> InterpolatedConfig:
        """The weights as they were given or found."""
        return self._config

    @property
    def spelling(self) -> Spelling | None:
        """How the first part that counts spells unknown words."""
        return next((part.spelling for part in self._counting), None)

    @property
    def closed(self) -> LanguageModel:
        """The same mixture over the symbols of unknown words."""
        if self.spelling is None:
            return self
        made = type(self)([part.closed for part in self._mixed], self._config)
        return made.with_tokenizer(self.tokenizer)

    def details(self) -> dict[str, object]:
        """Return the few numbers that tell it from others."""
        return {"weights": list(self._weights), "log_likelihood": self._config.log_likelihood}

    @property
    def vocabulary(self) -> Vocabulary:
        """The words all parts know."""
        return self._mixed[0].vocabulary

    @cached_property
    def info(self) -> ModelInfo:
        """What kind of numbers it gives: no better than those of its parts."""
        infos = [part.info for part in self._mixed]
        orders = [info.order for info in infos if info.order is not None]
        beams = [info.beam for info in infos if info.beam is not None]
        return ModelInfo(
            exactness=max((info.exactness for info in infos), key=_EXACT_FIRST.index),
            normalized=all(info.normalized for info in infos),
            exact_key=all(info.exact_key for info in infos),
            order=max(orders) if len(orders) == len(infos) else None,
            beam=min(beams, default=None),
            bits=min((info.bits for info in infos if info.bits is not None), default=None),
            vocabulary=self.vocabulary.fingerprint,
        )

    def obstacle(self, task: Task) -> str | None:
        """Return what keeps the mixture from a task: perhaps what keeps a part from it."""
        found = super().obstacle(task)
        if found is not None or task not in (Task.SCORE, Task.PERPLEXITY):
            return found
        return next(filter(None, (part.obstacle(Task.SCORE) for part in self._mixed)), None)

    @property
    def sums_over_trees(self) -> bool:
        """Whether the scores of a part come from lists of trees."""
        return any(part.sums_over_trees for part in self._counting)

    @property
    def sentences_at_once(self) -> int:
        """As many as the part that takes the fewest."""
        return min(part.sentences_at_once for part in self._mixed)

    @property
    def max_words(self) -> int | None:
        """As many as the part that scores the shortest sentences."""
        return min((most for part in self._mixed if (most := part.max_words)), default=None)

    def with_max_words(self, max_words: int) -> Self:
        """Return the mixture of parts with another limit."""
        return type(self)([part.with_max_words(max_words) for part in self._mixed], self._config)

    @property
    def scoring_parts(self) -> dict[str, object]:
        """How the parts are asked for scores, by the number of the part."""
        return {
            f"{number}.{name}": value
            for number, part in enumerate(self._mixed)
            for name, value in part.scoring_parts.items()
        }

    @property
    def _counting(self) -> list[LanguageModel]:
        """The parts that have a share of the sum."""
        return [part for part, weight in zip(self._mixed, self._weights, strict=True) if weight]

    @property
    def corpora(self) -> tuple[TrainingCorpus, ...]:
        """What the parts were trained on, each once."""
        return tuple(dict.fromkeys(record for part in self._mixed for record in part.corpora))

    @property
    def training_sentences(self) -> tuple[SentenceFilter, ...]:
        """Hashes of what the parts were trained on."""
        return tuple(each for part in self._mixed for each in part.training_sentences)

    @property
    def unigram_counts(self) -> npt.NDArray[np.uint64] | None:
        """Counts of the training texts of the parts, each text once; None if a part has none."""
        counted = {part.corpora: part.unigram_counts for part in self._mixed}
        total = None
        for counts in counted.values():
            if counts is None:
                return None
            total = counts.copy() if total is None else total + counts
        return total

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self._mixed)}, weights={list(self.weights)})"

    def description(self) -> Description:
        """Return what the manifest says about the model."""
        return Description(
            system=self.system,
            config=self._config.model_dump(mode="json"),
            exactness=self.info.exactness,
            vocabulary=self.vocabulary.fingerprint,
            corpora=self.corpora,
        )

    def write_files(self, writer: FolderWriter) -> None:
        """Save the parts below ``parts/``, by number."""
        for number, part in enumerate(self._mixed):
            part.save(writer.part(str(number)))

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Return the mixture in an opened folder."""
        try:
            config = InterpolatedConfig.model_validate(folder.manifest.config)
            check_weights(config.weights, len(folder.part_names))
        except (ValidationError, UsageError) as error:
            what = explain(error) if isinstance(error, ValidationError) else str(error)
            raise ModelFileError(
                f"{visible(str(folder.path))}: the configuration is not that of a mixture ({what})",
                code="E_MANIFEST",
            ) from error
        numbers = sorted(folder.part_names, key=lambda name: (len(name), name))
        return cls([from_folder(folder.part(name)) for name in numbers], config)

    def quantized(self, bits: CodeBits, *, threads: int = 1, progress: Progress = SILENT) -> Self:
        """Return the mixture of the quantised parts, with the same weights."""
        parts = [part.quantized(bits, threads=threads, progress=progress) for part in self._mixed]
        return type(self)(parts, self._config)

    @property
    def layout(self) -> Layout:
        """How the tables of its parts lie in memory: compact if all are."""
        return "compact" if all(part.layout == "compact" for part in self._mixed) else "hashed"

    def compacted(self, *, memory: MemoryLimit | None = None, progress: Progress = SILENT) -> Self:
        """Return the mixture of the compact parts, with the same weights."""
        parts = [
            part if part.layout == "compact" else part.compacted(memory=memory, progress=progress)
            for part in self._mixed
        ]
        return type(self)(parts, self._config)

    @property
    def roundings(self) -> tuple[tuple[str, Rounding | WeightChange], ...]:
        """How far the stored values of each part moved when it was quantised."""
        return tuple(
            (f"part {number}: {name}", rounding)
            for number, part in enumerate(self._mixed)
            for name, rounding in part.roundings
        )

    def with_search(self, **options: object) -> LanguageModel:
        """Return the mixture with another search in the parts that have one.

        Args:
            options: Any of `search_options`; a part takes those that it has.

        Raises:
            UsageError: for an option that no part has, or an impossible value.
        """
        if not set(options) <= set(self.search_options):
            return super().with_search(**options)
        parts = []
        for part in self._mixed:
            own = {name: options[name] for name in part.search_options if name in options}
            parts.append(part.with_search(**own) if own else part)
        return type(self)(parts, InterpolatedConfig(weights=self._weights))

    def _weighted_sum(self, log_probs: Sequence[float]) -> Arithmetic:
        """Return the arithmetic of a mixture, given what the parts say."""
        return Arithmetic(
            "sum",
            tuple(
                ScoreTerm(f"{weight:.6g} · P by {part.system}", log_of(weight) + log_prob)
                for part, weight, log_prob in zip(
                    self._mixed, self._weights, log_probs, strict=True
                )
                if weight
            ),
        )

    def _mix(self, columns: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the log of the weighted sum over the last axis, one column a part."""
        weighted = columns + self._log_weights
        largest = weighted.max(axis=-1)
        safe = np.where(np.isneginf(largest), 0.0, largest)
        with np.errstate(divide="ignore"):
            mixed = safe + np.log(np.exp(weighted - safe[..., np.newaxis]).sum(axis=-1))
        return np.asarray(mixed)


class InterpolatedModel(_Mixture, IncrementalModel):
    """A mixture that goes word by word: every word from the weighted sum of all parts.

    Args:
        parts: Incremental models that know the same words.
        config: The weights.

    Raises:
        VocabularyError: ``E_VOCABULARY_MISMATCH`` if they know different words.
        UsageError: ``E_WEIGHTS``.
    """

    system: ClassVar[str] = "interpolated"
    tasks: ClassVar[frozenset[Task]] = frozenset(
        {Task.SCORE, Task.SURPRISAL, Task.PERPLEXITY, Task.SAMPLE, Task.DECODE}
    )

    def __init__(self, parts: Sequence[LanguageModel], config: InterpolatedConfig) -> None:
        super().__init__(parts, config)
        self._parts = tuple(part for part in parts if isinstance(part, IncrementalModel))
        if len(self._parts) < len(parts):
            raise UsageError(
                "a part of this mixture scores whole sentences only; use `interpolate`, which then "
                "mixes sentence by sentence."
            )

    @cached_property
    def fingerprint(self) -> bytes:
        """8 bytes that tell the model from others."""
        digest = hashlib.sha256(repr(self.weights).encode())
        for part in self._parts:
            digest.update(part.fingerprint)
        return digest.digest()[:FINGERPRINT_BYTES]

    def initial(self, context: Context | None = None) -> MixtureState:
        """Return the state before any word."""
        contexts: Sequence[Context | None] = [context] * len(self._parts)
        if context is not None and context.parts:
            contexts = context.parts
        return self._state(
            part.initial(own) for part, own in zip(self._parts, contexts, strict=True)
        )

    def fragment(self) -> MixtureState:
        """Return the state in the middle of a sentence, if all parts have one."""
        return self._state(part.fragment() for part in self._parts)

    def advance(self, state: State, word: Word) -> Step:
        """Return the natural log probability of a word in a state, and the state after it."""
        steps = [part.advance(own, word) for part, own in self._pairs(state)]
        mixed = self._mix(np.array([step.log_prob for step in steps]))
        return Step(float(mixed), self._state(step.state for step in steps))

    def finish(self, state: State) -> float:
        """Return the natural log probability that the sentence ends in this state."""
        return float(self._mix(np.array([part.finish(own) for part, own in self._pairs(state)])))

    def is_at_start(self, state: State) -> bool:
        """Return whether the parts have read no word of the sentence."""
        part, own = next(iter(self._pairs(state)))
        return part.is_at_start(own)

    def sample(
        self,
        count: int,
        *,
        seed: int | None = None,
        first: int = 0,
        max_words: int = LONGEST_SAMPLE,
    ) -> list[Sample]:
        """Return sentences drawn from the mixture; a part that has a share in it spells a word."""
        found = super().sample(count, seed=seed, first=first, max_words=max_words)
        if self.spelling is None:
            return found
        return [self._spelled(each, first + number) for number, each in enumerate(found)]

    def _spelled(self, sample: Sample, number: int) -> Sample:
        """Return a sample with unknown words spelled by parts, by their shares in each."""
        from treelm.models.interface.spelled import spell_sample

        chosen: list[Spelling] = []
        state: State = self.initial()
        for place, id_ in enumerate(self.vocabulary.ids_of(sample.words).tolist()):
            steps = [part.advance(own, id_) for part, own in self._pairs(state)]
            reach = np.cumsum(np.exp(self._log_weights + [step.log_prob for step in steps]))
            point = random_uniform(~(sample.seed or 0), number, place) * reach[-1]
            part = self._parts[min(int(np.searchsorted(reach, point, "right")), len(steps) - 1)]
            chosen.append(cast("Spelling", part.spelling or self.spelling))
            state = self._state(step.state for step in steps)
        return spell_sample(
            sample,
            number,
            chosen.__getitem__,
            lambda made: self.score(made.words, eos=made.complete).log_prob,
        )

    score_story: ClassVar[str] = "Each word is predicted by all parts; their weights mix them."
    score_reference: ClassVar[str] = (
        "Jelinek and Mercer (1980): linear interpolation (docs/systems/interpolated.md)"
    )

    def word_arithmetic(
        self, state: State, word: Word | None, before: Sequence[str]
    ) -> Arithmetic | None:
        """Return the weighted sum of what the parts say about a word."""
        del before
        found = [
            part.finish(own) if word is None else part.advance(own, word).log_prob
            for part, own in self._pairs(state)
        ]
        return self._weighted_sum(found)

    def end_sentence(self, state: State) -> Context:
        """Return the contexts of the parts."""
        return Context(parts=tuple(part.end_sentence(own) for part, own in self._pairs(state)))

    @property
    def words_are_cheap(self) -> bool:
        """Whether those of all parts are."""
        return all(part.words_are_cheap for part in self._parts)

    def advance_many(self, states: Sequence[State], words: Sequence[Word]) -> Steps:
        """Return what `advance` gives for each pair, each part asked once for all of them."""
        words = check_pairs(states, words)
        rows = [self._own(state).states for state in states]
        found = [
            part.advance_many([row[place] for row in rows], words)
            for place, part in enumerate(self._parts)
        ]
        self.count("advances", len(rows))
        mixed = self._mix(np.stack([steps.log_probs for steps in found], axis=-1))
        after = zip(*(steps.states for steps in found), strict=True)
        return Steps(mixed, [self._state(row) for row in after])

    def distribution(
        self, state: State, words: Sequence[Word] | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the log probabilities of words in a state; all words and the end by default."""
        columns = [part.distribution(own, words) for part, own in self._pairs(state)]
        return self._mix(np.stack(columns, axis=-1))

    def key(self, state: State) -> bytes:
        """Return the keys of the parts."""
        keys = (part.key(own) for part, own in self._pairs(state))
        return pack_pieces(key if isinstance(key, bytes) else repr(key).encode() for key in keys)

    def state_from_bytes(self, data: bytes) -> MixtureState:
        """Return the state whose `to_bytes` gave these bytes."""
        pieces = unpack_pieces(state_payload(data, self.fingerprint))
        if len(pieces) != len(self._parts):
            raise damaged_state()
        return self._state(
            part.state_from_bytes(piece) for part, piece in zip(self._parts, pieces, strict=True)
        )

    def estimate(self, words: Words) -> float:
        """Return the mixture of what the parts expect of each word, after those before it."""
        given = words_of(words)
        sums = np.array(
            [[part.estimate(given[:end]) for part in self._parts] for end in range(len(given) + 1)]
        )
        steps = np.full((len(given), len(self._parts)), -math.inf)  # where a part sees no way on
        np.subtract(sums[1:], sums[:-1], out=steps, where=sums[1:] > -math.inf)
        return float(self._mix(steps).sum())

    @property
    def reads_spelling(self) -> bool:
        """Whether a part of it does."""
        return any(part.reads_spelling for part in self._parts)

    @property
    def open_vocabulary(self) -> bool:
        """Whether a part of it has one."""
        return any(part.open_vocabulary for part in self._parts)

    def score_batch(self, sentences: Sequence[Words], *, threads: int = 1) -> BatchScores:
        """Return the log probability of every word and end of sentences, in flat arrays."""
        if not self.reads_spelling:
            return super().score_batch(sentences, threads=threads)
        sentences = list(sentences_of(sentences))
        check_lengths(map(len, sentences), self.max_words, self.system)
        return self._mix_scores(
            [part.score_batch(sentences, threads=threads) for part in self._parts]
        )

    def score_ids(self, ids: Ids, starts: Places, *, threads: int = 1) -> BatchScores:
        """Return the log probability of every word and end of sentences that are ids already."""
        check_starts(starts, self.max_words, self.system)
        return self._mix_scores(
            [part.score_ids(ids, starts, threads=threads) for part in self._parts]
        )

    @property
    def remembers_documents(self) -> bool:
        """Whether a part of it does."""
        return any(part.remembers_documents for part in self._parts)

    def score_documents(self, text: EncodedText, *, threads: int = 1) -> BatchScores:
        """Return the log probability of every word and end of a text in documents."""
        check_starts(text.starts, self.max_words, self.system)
        return self._mix_scores(
            [part.score_documents(text, threads=threads) for part in self._parts]
        )

    def _mix_scores(self, scores: Sequence[BatchScores]) -> BatchScores:
        mixed = self._mix(np.stack([score.log_probs for score in scores], axis=-1))
        counting = tuple(s for s, weight in zip(scores, self._weights, strict=True) if weight)
        closed = None
        if any(score.closed is not None for score in scores):
            each = [score.log_probs if score.closed is None else score.closed for score in scores]
            closed = self._mix(np.stack(each, axis=-1))
        return BatchScores(mixed, scores[0].starts, scores[0].mark_oov, counting, closed)

    def _state(self, states: Iterable[State]) -> MixtureState:
        return MixtureState(tuple(states), self.fingerprint)

    def _own(self, state: State) -> MixtureState:
        check_state_model(state.model, self.fingerprint)
        if not isinstance(state, MixtureState):
            raise TypeError(f"a state of a mixture is needed, not {type(state).__name__}")
        return state

    def _pairs(self, state: State) -> Iterable[tuple[IncrementalModel, State]]:
        return zip(self._parts, self._own(state).states, strict=True)


class InterpolatedSentences(_Mixture):
    """A mixture of models some of which score whole sentences only."""

    system: ClassVar[str] = "interpolated_sentences"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.SCORE, Task.PERPLEXITY})

    def explain_score(self, sentence: Words) -> ScoreExplanation:
        """Return the arithmetic of the log probability of a sentence: one weighted sum."""
        words = tuple(words_of(sentence))
        found = [part.score(words).log_prob for part in self._mixed]
        arithmetic = self._weighted_sum(found)
        step = ScoreStep("P(sentence)", arithmetic.log_value, arithmetic)
        return ScoreExplanation(
            self.system,
            words,
            "log probability",
            self.score(words).log_prob,
            (step,),
            "The weights mix the probabilities that the parts give to the whole sentence.",
            "the equation of docs/systems/interpolated-sentences.md",
        )

    def score(self, sentence: Words, *, eos: bool = True) -> SentenceScore:
        """Return the weighted sum of the probabilities of a sentence."""
        return next(self.score_many([sentence], eos=eos))

    def score_many(
        self, sentences: Iterable[Words], *, eos: bool = True, threads: int = 1
    ) -> Iterator[SentenceScore]:
        """Yield the weighted sums of the probabilities of sentences, in order.

        A sentence without a parse in a part that counts is marked, and the trees of the parts are
        added up: the score is a sum over all of them.
        """
        counts = [bool(weight) for weight in self._weights]
        rest, done = sentences_of(sentences), 0
        while batch := list(islice(rest, self.sentences_at_once)):
            with after_sentences(done):
                check_lengths(map(len, batch), self.max_words, self.system)
                columns = [
                    list(whole_scores(part, batch, eos=eos, threads=threads))
                    for part in self._mixed
                ]
            done += len(batch)
            log_probs = np.array([[score.log_prob for score in column] for column in columns]).T
            rows = zip(self._mix(log_probs).tolist(), zip(*columns, strict=True), strict=True)
            for log_prob, scores in rows:
                own = [score for score, count in zip(scores, counts, strict=True) if count]
                trees = [score.trees for score in own if score.trees is not None]
                yield SentenceScore(
                    log_prob,
                    self.info.exactness,
                    eos,
                    trees=sum(trees) if trees else None,
                    fallback=any(score.fallback for score in own),
                )

    def sentence_log_probs(
        self, sentences: Sequence[Words], *, eos: bool = True, threads: int = 1
    ) -> npt.NDArray[np.float64]:
        """Return the log probabilities of sentences, in order, each part asked once for all."""
        given = list(sentences_of(sentences))
        check_lengths(map(len, given), self.max_words, self.system)
        columns = [part.sentence_log_probs(given, eos=eos, threads=threads) for part in self._mixed]
        return self._mix(np.stack(columns, axis=-1))


def check_unknown_words(parts: Sequence[LanguageModel]) -> None:
    """Refuse parts of which some spell unknown words and others do not.

    Raises:
        VocabularyError: ``E_VOCABULARY_MISMATCH``.
    """
    spelled = [part.spelling is not None for part in parts]
    others = [
        number
        for number, (part, spells) in enumerate(zip(parts, spelled, strict=True), 1)
        if not spells and not (part.incremental is not None and part.incremental.open_vocabulary)
    ]
    if any(spelled) and others:
        raise VocabularyError(
            f"model {spelled.index(True) + 1} spells unknown words and model {others[0]} gives "
            "them the probability of their symbol alone, so their probabilities cannot be mixed. "
            f"Train all of them with {option('unknown')} spelling, or none.",
            code="E_VOCABULARY_MISMATCH",
        )


def interpolate(
    models: Sequence[LanguageModel],
    weights: Sequence[float],
    *,
    log_likelihood: float | None = None,
) -> InterpolatedModel | InterpolatedSentences:
    """Return the mixture of models, word by word if all of them go word by word.

    Args:
        models: The parts.
        weights: One for each; they add up to 1.
        log_likelihood: That of the text on which the weights were found, for the record.
    """
    if models:  # else the mixture says that there are none
        check_weights(weights, len(models))
    config = InterpolatedConfig(weights=tuple(weights), log_likelihood=log_likelihood)
    if all(isinstance(model, IncrementalModel) for model in models):
        return mixed(InterpolatedModel, models, config)
    return mixed(InterpolatedSentences, models, config)


def mixed(
    kind: type[InterpolatedModel | InterpolatedSentences],
    models: Sequence[LanguageModel],
    config: InterpolatedConfig,
) -> InterpolatedModel | InterpolatedSentences:
    """Return a mixture, which takes raw text if all its parts tokenize it in the same way."""
    mixture = kind(models, config)
    tokenizers = {model.tokenizer for model in models}
    return mixture.with_tokenizer(tokenizers.pop()) if len(tokenizers) == 1 else mixture
