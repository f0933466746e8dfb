"""`treelm train slm` and `treelm train composite`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from cyclopts import Parameter

from treelm.cli.corpus_options import trees_of
from treelm.cli.options import CommonOptions, NewModel, TreeOptions
from treelm.cli.terminal import write_record
from treelm.models.composite.model import CompositeModel
from treelm.models.composite.train import EmStep, TrainingLog
from treelm.tasks.train_composite import train_composite_model


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ParseOptions:
    """How parses are searched and how EM goes on."""

    unary_moves: bool = False
    """Moves may put a label over one constituent; without, unary chains are collapsed."""
    strict_heads: bool = False
    """Refuse phrases for which the profile has no rule that finds their head."""
    punctuation: Literal["keep", "remove"] = "keep"
    """Whether words with punctuation tags stay."""
    min_count: int = 2
    """Words seen less often are unknown, where no vocabulary is given."""
    stack_size: int = 10
    """Hypotheses kept for each number of moves."""
    threshold: float = 6.91
    """Nats below the best of its stack at which a hypothesis is dropped."""
    n_best: int = 10
    """Parses of a training sentence that EM counts."""
    iterations: int = 1
    """Most rounds of N-best EM after the counts of the given trees; 0 for none."""
    follow_up: int = 1
    """Most rounds of the follow-up EM of the predictor; 0 for none."""
    cutoff: float | None = None
    """Smallest fractional count of the predictor that is kept. Default: 0.005 with heads, 0.002
    with heads and topics, 0 without heads."""


def slm(
    *,
    trees: list[str],
    output: NewModel,
    held_out: list[str],
    heads: int = 2,
    vocabulary: str | None = None,
    no_head_labels: bool = False,
    resume: bool = False,
    json: bool = False,
    parses: ParseOptions | None = None,
    reading: TreeOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Train a structured language model: words from the heads of partial parses.

    Args:
        trees: Files of trees; X.docs beside a file names the document of each tree.
        output: Model folder to write; OUTPUT.training beside it keeps the last complete round.
        held_out: Other trees, on which interpolation weights are found.
        heads: Exposed heads that are looked at.
        vocabulary: Vocabulary file; default: words seen at least --min-count times.
        no_head_labels: The predictor sees the words of heads, not their labels.
        resume: Go on after the last complete round of an interrupted training.
        json: One JSON object instead of lines.
        parses: Parses.
        reading: Reading.
        common: Common.
    """
    options = {"order": 1, "heads": heads, "head_labels": not no_head_labels}
    _train(
        options,
        trees,
        held_out,
        output,
        vocabulary=vocabulary,
        resume=resume,
        json=json,
        parses=parses,
        reading=reading,
        common=common,
    )


def composite(
    *,
    trees: list[str],
    output: NewModel,
    held_out: list[str],
    order: int = 3,
    heads: int = 2,
    topics: int = 0,
    keep_topics: int = 5,
    test_topics: int = 5,
    eta: float = 0.01,
    seed: int = 0,
    vocabulary: str | None = None,
    no_head_labels: bool = False,
    resume: bool = False,
    json: bool = False,
    parses: ParseOptions | None = None,
    reading: TreeOptions | None = None,
    common: CommonOptions | None = None,
) -> None:
    """Train a composite model: words from words before, heads of partial parses, and topics.

    Args:
        trees: Files of trees; X.docs beside a file names the document of each tree.
        output: Model folder to write; OUTPUT.training beside it keeps the last complete round.
        held_out: Other trees, on which interpolation weights are found.
        order: Words in an n-gram, the predicted one included; 1 for none before it.
        heads: Exposed heads that are looked at; 0 for no parses.
        topics: Topics of documents; 0 for none.
        keep_topics: Topics that a training document keeps.
        test_topics: Topics that predict in a new document.
        eta: How fast the topics of a new document follow its words.
        seed: Seed of the first topics.
        vocabulary: Vocabulary file; default: words seen at least --min-count times.
        no_head_labels: The predictor sees the words of heads, not their labels.
        resume: Go on after the last complete round of an interrupted training.
        json: One JSON object instead of lines.
        parses: Parses.
        reading: Reading.
        common: Common.
    """
    options = {
        "order": order,
        "heads": heads,
        "head_labels": not no_head_labels,
        "topics": topics,
        "keep_topics": keep_topics,
        "test_topics": test_topics,
        "eta": eta,
        "seed": seed,
    }
    _train(
        options,
        trees,
        held_out,
        output,
        vocabulary=vocabulary,
        resume=resume,
        json=json,
        parses=parses,
        reading=reading,
        common=common,
    )


def _train(
    options: Mapping[str, object],
    trees: list[str],
    held_out: list[str],
    output: str,
    *,
    vocabulary: str | None,
    resume: bool,
    json: bool,
    parses: ParseOptions | None,
    reading: TreeOptions | None,
    common: CommonOptions | None,
) -> None:
    reading, common = reading or TreeOptions(), common or CommonOptions()
    config = CompositeModel.make_config({**options, **asdict(parses or ParseOptions())})

    def tell(step: EmStep) -> None:
        common.note(
            f"{step.kind} {step.number}: log likelihood {step.log_likelihood:.1f}, perplexity "
            f"{step.perplexity:.2f} before"
            + (": it fell, so the model of the round before is kept" if step.fell else "")
        )

    log = TrainingLog(tell=tell)
    model = train_composite_model(
        trees_of(trees, reading, common),
        output,
        config,
        vocabulary=vocabulary,
        held_out=trees_of(held_out, reading, common),
        resume=resume,
        threads=reading.thread_count,
        log=log,
        progress=common.progress,
    )
    codes = model.parts.shape.codes
    write_record(
        {
            "system": model.system,
            "model": model.config.name,
            "tags": len(codes.tags),
            "phrases": len(codes.phrases),
            "moves": len(codes.moves) if codes.phrases else 0,
            "types": model.parts.models["predictor"].tables.types(),
            "words": len(model.vocabulary) - 1,
            "sentences": sum(record.sentences for record in model.corpora),
            "tokens": sum(record.tokens for record in model.corpora),
            "rounds": [asdict(step) for step in log.steps],
            "vocabulary": model.vocabulary.fingerprint,
        },
        as_json=json,
    )
