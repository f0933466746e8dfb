"""How a PLSA or n-gram/PLSA model is trained: topics, events, weights, EM."""

from __future__ import annotations

from collections.abc import Callable

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.encoder import encode_text
from treelm.corpus.vocabulary import Vocabulary
from treelm.models.composite.check_text import check_overlap, split_text
from treelm.models.composite.plsa import document_words, fit_plsa, start_plsa
from treelm.models.composite.topic_checkpoint import TopicCheckpoint
from treelm.models.composite.topic_config import TopicConfig
from treelm.models.composite.topic_model import TopicModel
from treelm.models.composite.topic_trainer import TopicReport, TopicTrainer
from treelm.models.ngram.counts import encode_corpus
from treelm.models.trained_model import corpus_record
from treelm.parallel.progress import SILENT, Progress


def train_topics(
    corpus: TextCorpus | TreeCorpus,
    config: TopicConfig,
    *,
    vocabulary: Vocabulary | None = None,
    held_out: TextCorpus | None = None,
    threads: int = 1,
    progress: Progress = SILENT,
    checkpoint: TopicCheckpoint | None = None,
    resume: bool = False,
    after: Callable[[TopicTrainer, TopicReport], None] | None = None,
) -> TopicModel:
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
    trainer = TopicTrainer(text, check, config, len(vocabulary), threads, progress)
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

    def done(trainer: TopicTrainer, report: TopicReport) -> None:
        if checkpoint is not None:
            checkpoint.save(trainer)
        if after is not None:
            after(trainer, report)

    trainer.fit(done)
    return trainer.model(vocabulary, (record,))
