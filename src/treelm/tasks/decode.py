"""Translating a text, and what is told about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from treelm.corpus.files import Source
from treelm.models.interface.model import LanguageModel
from treelm.parallel.progress import SILENT, Progress
from treelm.translation.decoder import Decoder, DecoderConfig, SearchCounts, Translation
from treelm.translation.phrase_table import PhraseTable
from treelm.translation.weights import Weights


def make_decoder(
    phrase_table: Source,
    models: Sequence[LanguageModel],
    weights: Source | None = None,
    config: DecoderConfig | None = None,
    *,
    reordering: Source | None = None,
    allow_deletion: bool = False,
    progress: Progress = SILENT,
) -> Decoder:
    """Return a decoder made of files.

    The weights are read first: a mistake in them shows before the table is read.

    Args:
        phrase_table: Phrase table in the format of Moses.
        models: Language models, as the features LM0, LM1 and so on.
        weights: File of weights; None for the defaults, with a warning.
        config: How it searches.
        reordering: Table of orientations.
        allow_deletion: Whether target phrases may be empty.
        progress: Shows how far the reading is.
    """
    given = None if weights is None else Weights.read(weights)
    table = PhraseTable.read(
        phrase_table, reordering=reordering, allow_deletion=allow_deletion, progress=progress
    )
    return Decoder(table, models, given, config)


@dataclass(slots=True)
class DecodingReport:
    """What happened to a text."""

    sentences: int = 0
    seconds: float = 0.0
    cut_by_time: int = 0
    cut_by_memory: int = 0
    relaxed: int = 0
    counts: SearchCounts = field(default_factory=SearchCounts)

    def watch(self, translations: Iterable[Translation]) -> Iterator[Translation]:
        """Pass translations on, and count them."""
        for each in translations:
            self.sentences += 1
            self.seconds += each.seconds
            self.cut_by_time += each.cut == "time"
            self.cut_by_memory += each.cut == "memory"
            self.relaxed += each.relaxed
            self.counts = SearchCounts(*map(sum, zip(self.counts, each.counts, strict=True)))
            yield each

    def messages(self) -> Iterator[str]:
        """Yield what a user should know."""
        for what, count in (("time", self.cut_by_time), ("memory", self.cut_by_memory)):
            if count:
                yield (
                    f"warning: {count} of {self.sentences} sentences ran out of {what}; their "
                    "translations are what was found until then."
                )
        if self.relaxed:
            yield (
                f"warning: {self.relaxed} of {self.sentences} sentences could not be translated "
                "within the distortion limit, and were translated without one."
            )


def record_of(translation: Translation) -> dict[str, object]:
    """Return a translation as one record of JSON."""
    best = translation.entries[0] if translation.entries else None
    return {
        "sentence": translation.number,
        "translation": translation.text,
        "score": translation.score,
        "features": None if best is None else {name: list(v) for name, v in best.features.items()},
        "relaxed": translation.relaxed,
        "cut": translation.cut,
        "seconds": translation.seconds,
        **translation.counts._asdict(),
    }
