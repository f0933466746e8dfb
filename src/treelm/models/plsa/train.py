"""How a PLSA or n-gram/PLSA model is trained: topics, events, weights, EM."""

from __future__ import annotations

from collections.abc import Callable

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.encoder import encode_text
from treelm.corpus.vocabulary import Vocabulary
from treelm.models.interface.trained_model import corpus_record
from treelm.models.ngram.counts import encode_corpus
from treelm.models.plsa.check_text import check_overlap, split_text
from treelm.models.plsa.checkpoint import PlsaCheckpoint
from treelm.models.plsa.config import PlsaConfig
from treelm.models.plsa.em import document_words, fit_plsa, start_plsa
from treelm.models.plsa.model import PlsaModel
from treelm.models.plsa.trainer import PlsaReport, PlsaTrainer
from treelm.parallel.progress import SILENT, Progress


def train_topics(
    corpus: TextCorpus | TreeCorpus,
    config: PlsaConfig,
    *,
    vocabulary: Vocabulary | None = None,
    held_out: TextCorpus | None = None,
    threads: int = 1,
    progress: Progress = SILENT,
    checkpoint: PlsaCheckpoint | None = None,
    resume: bool = False,
    after: Callable[[PlsaTrainer, PlsaReport], None] | None = None,
) -> PlsaModel:
    """Return a PLSA or n-gram/PLSA model of a text.

    Args:
        corpus: The text in documents, or trees, whose words it is.
        config: Options.
        vocabulary: The words to know; by default all words of the text.
        held_out: Documents on which weights are found; by default every twentieth of the text.
        threads: Kernel threads; results do not depend on it.
        progress: Told how far it is.
        checkpoint: Where every iteration is kept.
        resume: Whether to go on from there.
        after: Told about every iteration of the predictor's EM.

    Raises:
        EstimationError: ``E_OVERLAP`` if held-out sentences stand in the text too.
        UsageError: ``E_CHECKPOINT`` if the checkpoint is that of another training.
    """
    vocabulary, text = encode_corpus(corpus, vocabulary, threads=threads, progress=progress)
    record = corpus_record(corpus, text.fingerprint)
    if held_out is None:
        text, check = split_text(text)
    else:
        check = encode_text(held_out, vocabulary, threads=threads, progress=progress)
        check_overlap(text, check)
    trainer = PlsaTrainer(text, check, config, len(vocabulary), threads, progress)
    if checkpoint is not None:
        checkpoint.begin(trainer, vocabulary, resume=resume)
    plsa = None
    if config.topics:
        start = None if checkpoint is None else checkpoint.plsa
        documents = len(text.document_starts) - 1
        plsa = fit_plsa(
            document_words(text, len(vocabulary)),
            start or start_plsa(len(vocabulary), documents, config.topics, seed=config.seed),
            iterations=config.plsa_iterations,
            tolerance=config.tolerance,
            threads=threads,
            progress=progress,
            after_step=None if checkpoint is None else checkpoint.save_plsa,
        )
    trainer.count(plsa)
    if checkpoint is None or not checkpoint.restore(trainer):
        trainer.refit(rounds=2)

    def done(trainer: PlsaTrainer, report: PlsaReport) -> None:
        if checkpoint is not None:
            checkpoint.save(trainer)
        if after is not None:
            after(trainer, report)

    trainer.fit(done)
    return trainer.model(vocabulary, (record,))
