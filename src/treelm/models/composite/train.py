"""How the composite model is trained: trees, counts, weights, N-best EM, follow-up EM."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.files import source_name
from treelm.corpus.vocabulary import Vocabulary
from treelm.errors import TreelmWarning
from treelm.models.composite.check_text import check_overlap as check_text_overlap
from treelm.models.composite.checkpoint import Checkpoint, TrainingState, training_key
from treelm.models.composite.config import CompositeConfig
from treelm.models.composite.em import (
    Data,
    first_parts,
    fit_predictor,
    follow_up_step,
    frontiers,
    n_best_step,
)
from treelm.models.composite.model import CompositeModel
from treelm.models.composite.parsed_text import ParsedText, PreparedTrees, prepare
from treelm.models.composite.parts import CompositeParts, CompositeShape
from treelm.parallel.progress import SILENT, Progress
from treelm.store.manifest import TrainingCorpus


@dataclass(frozen=True)
class EmStep:
    """What one round of EM has seen.

    Args:
        kind: ``n-best`` or ``follow-up``.
        number: Of the round, from 1.
        log_likelihood: Of the training text, before the round.
        perplexity: The same, by word and sentence end.
    """

    kind: str
    number: int
    log_likelihood: float
    perplexity: float


@dataclass
class TrainingLog:
    """Rounds of EM, in order; `tell` hears of each."""

    steps: list[EmStep] = field(default_factory=list)
    tell: Callable[[EmStep], None] | None = None

    def add(self, kind: str, number: int, log_likelihood: float, tokens: int) -> None:
        """Enter a round."""
        perplexity = float(np.exp(-log_likelihood / max(tokens, 1)))
        self.steps.append(EmStep(kind, number, log_likelihood, perplexity))
        if self.tell is not None:
            self.tell(self.steps[-1])


def train_composite(
    corpus: TreeCorpus,
    config: CompositeConfig,
    *,
    vocabulary: Vocabulary | None = None,
    held_out: TreeCorpus | None = None,
    checkpoint: Checkpoint | None = None,
    resume: bool = False,
    threads: int = 1,
    log: TrainingLog | None = None,
    progress: Progress = SILENT,
) -> CompositeModel:
    """Return the composite model of a treebank.

    Args:
        corpus: Trees.
        config: Options.
        vocabulary: The words to know; by default those seen at least `config.min_count` times.
        held_out: Other trees, on which weights are found; without them weights are equal.
        checkpoint: Where each round is kept.
        resume: Whether to go on after the last round that is kept.
        threads: Kernel threads; results do not depend on it.
        log: Hears of every round.
        progress: Told how far it is.

    Raises:
        EstimationError: ``E_NO_DATA`` without trees, ``E_OVERLAP`` if held-out sentences stand in
            the training text.
    """
    prepared = prepare(corpus, config, vocabulary=vocabulary)
    check = None
    if held_out is not None:
        check = prepare(
            held_out, config, vocabulary=prepared.vocabulary, codes=prepared.codes
        ).text
        check_overlap(prepared.text, check)
    else:
        warnings.warn(
            "without held-out trees all interpolation weights are equal. Give some with held_out.",
            TreelmWarning,
            stacklevel=2,
        )
    fingerprint = corpus.fingerprint
    record = TrainingCorpus(
        name=" ".join(source_name(path) for path in corpus.paths)[:1000],
        sha256=fingerprint.sha256,
        sentences=fingerprint.sentences,
        tokens=fingerprint.tokens,
    )
    return train_on_parses(
        prepared,
        check,
        config,
        record=record,
        checkpoint=checkpoint,
        resume=resume,
        threads=threads,
        log=log,
        progress=progress,
    )


def train_on_parses(
    prepared: PreparedTrees,
    held_out: ParsedText | None,
    config: CompositeConfig,
    *,
    record: TrainingCorpus | None = None,
    checkpoint: Checkpoint | None = None,
    resume: bool = False,
    threads: int = 1,
    log: TrainingLog | None = None,
    progress: Progress = SILENT,
) -> CompositeModel:
    """Return the composite model of prepared sentences; the arguments are as above."""
    log = log or TrainingLog()
    shape = CompositeShape(config, len(prepared.vocabulary), prepared.codes)
    train = Data(prepared.text)
    check = None if held_out is None else Data(held_out)
    key = training_key(shape, prepared, held_out)
    state = checkpoint.load(shape, key) if checkpoint is not None and resume else None
    if state is None:
        parts, _ = first_parts(shape, train, check, threads=threads)
        state = TrainingState(parts)
    state = _n_best_rounds(state, train, check, checkpoint, key, log, threads, progress)
    state = _follow_up_rounds(state, train, check, checkpoint, key, log, threads, progress)
    counts = unigram_counts(prepared.text, len(prepared.vocabulary))
    corpora = () if record is None else (record,)
    return CompositeModel(state.parts, prepared.vocabulary, counts, None, corpora)


def _n_best_rounds(
    state: TrainingState,
    train: Data,
    check: Data | None,
    checkpoint: Checkpoint | None,
    key: str,
    log: TrainingLog,
    threads: int,
    progress: Progress,
) -> TrainingState:
    config = state.parts.shape.config
    if not config.heads or state.stage != "n-best":
        return state
    previous: CompositeParts | None = None
    while state.rounds < config.iterations:
        found = n_best_step(
            state.parts, train, check, state.lists, threads=threads, progress=progress
        )
        log.add("n-best", state.rounds + 1, found.log_likelihood, train.text.tokens)
        before = state.history[-1] if state.history else None
        if before is not None and found.log_likelihood < before and previous is not None:
            return state.ended(previous)
        previous = state.parts
        state = state.after(found.parts, found.log_likelihood, found.lists)
        if checkpoint is not None:
            checkpoint.save(state, key)
        if before is not None and found.log_likelihood - before < config.tolerance * abs(before):
            break
    return state.ended(state.parts)


def _follow_up_rounds(
    state: TrainingState,
    train: Data,
    check: Data | None,
    checkpoint: Checkpoint | None,
    key: str,
    log: TrainingLog,
    threads: int,
    progress: Progress,
) -> TrainingState:
    config = state.parts.shape.config
    if not config.heads:
        return state
    frozen = state.frozen or state.parts
    seen = None
    if check is not None:
        seen = frontiers(frozen, check, threads=threads), check.mixtures
        if not state.rounds and config.follow_up:
            model = fit_predictor(frozen.models["predictor"], *seen, threads=threads)
            state = state.refitted(state.parts.with_model("predictor", model))
    while state.rounds < config.follow_up:
        model, log_likelihood, _ = follow_up_step(
            frozen,
            state.parts.models["predictor"],
            train,
            seen,
            threads=threads,
            progress=progress,
        )
        log.add("follow-up", state.rounds + 1, log_likelihood, train.text.tokens)
        before = state.history[-1] if state.history else None
        if before is not None and log_likelihood < before:
            break
        state = state.after(state.parts.with_model("predictor", model), log_likelihood, None)
        if checkpoint is not None:
            checkpoint.save(state, key)
        if before is not None and log_likelihood - before < config.tolerance * abs(before):
            break
    return state


def unigram_counts(text: ParsedText, words: int) -> npt.NDArray[np.uint64]:
    """Return how often each word stands in a text, and last the number of sentences."""
    counts = np.zeros(words + 1, np.uint64)
    counts[:-1] = np.bincount(text.ids, minlength=words)
    counts[-1] = len(text)
    return counts


def check_overlap(train: ParsedText, held_out: ParsedText) -> None:
    """Refuse held-out sentences that stand in the training text.

    Raises:
        EstimationError: ``E_OVERLAP`` if more than one in a hundred does.
    """
    check_text_overlap(train.encoded, held_out.encoded)
