"""`treelm train plsa`."""

from __future__ import annotations

from treelm.cli.corpus_options import corpus_of
from treelm.cli.options import CommonOptions, NewModel, TreeOptions
from treelm.cli.terminal import write_record
from treelm.models.plsa.model import PlsaModel
from treelm.models.plsa.trainer import PlsaReport, PlsaTrainer
from treelm.tasks.train_topics import train_topic_model


def plsa(
    *,
    text: list[str] | None = None,
    trees: list[str] | None = None,
    output: NewModel,
    topics: int = 200,
    order: int = 1,
    keep_topics: int | None = None,
    vocabulary: str | None = None,
    held_out: str | None = None,
    plsa_iterations: int = 50,
    iterations: int = 10,
    cutoff: float = 0.0,
    eta: float = 0.01,
    no_adaptation: bool = False,
    test_topics: int = 5,
    seed: int = 0,
    resume: bool = False,
    json: bool = False,
    reading: TreeOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Train a topic model (PLSA), or with --order 2 and more an n-gram/PLSA model.

    Args:
        text: Files of tokenized text, one sentence a line, a blank line after every document.
        trees: Files of trees, whose words are the text; give either text or trees.
        output: Model folder to write; OUTPUT.training beside it keeps the last iteration.
        topics: Topics of all documents together; 0 for n-grams alone.
        order: Words in an n-gram, the predicted one included; 1 looks at topics alone.
        keep_topics: Topics that each training document keeps. Default: 5, or all with --order 1.
        vocabulary: Vocabulary file; default: all words of the text are known.
        held_out: Documents on which interpolation weights are found. Default: every twentieth
            document of the text, which is then not counted.
        plsa_iterations: Most iterations of PLSA.
        iterations: Most iterations of EM for the predictor.
        cutoff: Events with a smaller expected count are dropped.
        eta: How much of a new document's topics one more word replaces, between 0 and 1.
        no_adaptation: New documents have the topics of the training text all along.
        test_topics: Topics of a new document that predict its words; 0 for all.
        seed: Seed of the random topics that PLSA begins with.
        resume: Go on after the last complete iteration of an interrupted training.
        json: One JSON object instead of lines.
        reading: Reading.
        common: Common.
    """
    reading, common = reading or TreeOptions(), common or CommonOptions()
    config = PlsaModel.make_config(
        {
            "topics": topics,
            "order": order,
            "keep_topics": keep_topics,
            "plsa_iterations": plsa_iterations,
            "iterations": iterations,
            "cutoff": cutoff,
            "eta": eta,
            "adapt": not no_adaptation,
            "test_topics": test_topics,
            "seed": seed,
        }
    )

    def said(trainer: PlsaTrainer, report: PlsaReport) -> None:
        common.note(
            f"iteration {len(trainer.history)}: log likelihood {report.log_likelihood:.1f}, "
            f"perplexity {report.perplexity:.2f}; held out {report.held_out_perplexity:.2f}"
        )

    model = train_topic_model(
        corpus_of(text, trees, reading, common),
        output,
        config,
        vocabulary=vocabulary,
        held_out=held_out,
        resume=resume,
        threads=reading.thread_count,
        progress=common.progress,
        after=said,
    )
    write_record(
        {
            "system": model.system,
            "order": model.config.order,
            "topics": model.config.topics,
            "keep_topics": model.config.kept,
            "kept_mass": model.config.kept_mass,
            "held_out_perplexity": model.config.held_out_perplexity,
            "types": model.predictor.types[-1],
            "bytes": model.predictor.tables.bytes,
            "words": len(model.vocabulary) - 1,
            "sentences": sum(record.sentences for record in model.corpora),
            "tokens": sum(record.tokens for record in model.corpora),
            "vocabulary": model.vocabulary.fingerprint,
        },
        as_json=json,
    )
