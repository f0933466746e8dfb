"""How a PLSA or n-gram/PLSA model is trained: topics, events, weights, EM."""

from __future__ import annotations

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
from treelm.models.run import QUIET, Event, Run


def train_plsa(
    corpus: TextCorpus | TreeCorpus,
    config: PlsaConfig,
    *,
    vocabulary: Vocabulary | None = None,
    held_out: TextCorpus | None = None,
    run: Run = QUIET,
) -> PlsaModel:
    """Return a PLSA or n-gram/PLSA model of a text.

    Args:
        corpus: The text in documents, or trees, whose words it is.
        config: Options.
        vocabulary: Vocabulary file. Default: all words of the text.
        held_out: Documents on which interpolation weights are found. Default: every twentieth
            document of the text, which is then not counted.
        run: How the training is run; its checkpoint keeps every iteration.

    Raises:
        EstimationError: ``E_OVERLAP`` if held-out sentences stand in the text too.
        UsageError: ``E_CHECKPOINT`` if the checkpoint is that of another training.
    """
    threads, progress = run.threads, run.progress
    checkpoint = None if run.checkpoint is None else PlsaCheckpoint(run.checkpoint)
    vocabulary, text = encode_corpus(corpus, vocabulary, threads=threads, progress=progress)
    record = corpus_record(corpus, text.fingerprint)
    if held_out is None:
        text, check = split_text(text)
    else:
        check = encode_text(held_out, vocabulary, threads=threads, progress=progress)
        check_overlap(text, check)
    trainer = PlsaTrainer(text, check, config, len(vocabulary), run)
    if checkpoint is not None:
        checkpoint.begin(trainer, vocabulary, resume=run.resume)
    plsa = None
    if config.topics:
        start = None if checkpoint is None else checkpoint.plsa
        documents = len(text.document_starts) - 1
        plsa = fit_plsa(
            document_words(text, len(vocabulary)),
            start or start_plsa(len(vocabulary), documents, config.topics, seed=config.seed),
            iterations=config.plsa_iterations,
            tolerance=config.tolerance,
            run=run,
            after_step=None if checkpoint is None else checkpoint.save_plsa,
        )
    trainer.count(plsa)
    if checkpoint is None or not checkpoint.restore(trainer):
        trainer.refit(rounds=2)

    def done(trainer: PlsaTrainer, report: PlsaReport) -> None:
        if checkpoint is not None:
            checkpoint.save(trainer)
        text = (
            f"iteration {len(trainer.history)}: log likelihood {report.log_likelihood:.1f}, "
            f"perplexity {report.perplexity:.2f}; held out {report.held_out_perplexity:.2f}"
        )
        run.event(Event(report, text))

    trainer.fit(done)
    return trainer.model(vocabulary, (record,))
