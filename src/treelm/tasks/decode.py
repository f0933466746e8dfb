"""Translating a text, and what is told about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from treelm.characters import visible
from treelm.corpus.files import Source
from treelm.models.interface.model import LanguageModel
from treelm.parallel.progress import SILENT, Progress
from treelm.translation.decoder import Decoder, DecoderConfig, SearchCounts, Translation
from treelm.translation.phrase_table import PhraseTable
from treelm.translation.weights import Weights

#: A larger share of unknown words is told: table, model and text may be tokenized differently.
MOST_UNKNOWN = 0.1
#: Of fewer words a share says nothing.
_FEWEST_WORDS = 100
_SHOWN_WORDS = 3
#: What tokenizers write differently; of each, the tokens of one way and of others.
_SPELLINGS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "contractions": (
        ("n't", "'s"),
        ("&apos;t", "&apos;s"),
        ("don't", "isn't", "doesn't", "it's", "man's"),
    ),
    "brackets": (("-LRB-",), ("(",), ("&#40;",)),
    "quotation marks": (("``",), ('"',), ("&quot;",), ("\u201c",)),
}
#: Value of the feature for one word that is copied.
_COPIED = -100.0


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
        phrase_table: Phrase table in the format of Moses, or what `treelm convert` made of one.
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


def unknown_word_notes(decoder: Decoder) -> Iterator[str]:
    """Yield warnings about language models that do not know many words of the target phrases.

    Words are weighed by the number of target phrases in which they occur.
    """
    words = decoder.table.target_words()
    total = sum(words.values())
    if total < _FEWEST_WORDS:
        return
    for number, model in enumerate(decoder.models):
        unknown = {word: count for word, count in words.items() if word not in model.vocabulary}
        share = sum(unknown.values()) / total
        if share <= MOST_UNKNOWN:
            continue
        often = sorted(unknown, key=lambda word: (-unknown[word], word))[:_SHOWN_WORDS]
        shown = ", ".join(f'"{visible(word[:30])}"' for word in often)
        yield (
            f"warning: LM{number} ({model.system}) does not know {share:.1%} of the words in the "
            f"target phrases of {decoder.table.source}, such as {shown}. Was the text that it was "
            "trained on tokenized as that of the table?"
        )


def tokenization_notes(models: Sequence[LanguageModel]) -> Iterator[str]:
    """Yield warnings about language models of text that was tokenized in different ways.

    No model keeps how its text was tokenized, but its words tell: one that knows ``n't`` and no
    ``don't`` cannot be used beside one that knows ``don't`` alone. What a model knows in several
    ways, or in none, says nothing.
    """
    for what, ways in _SPELLINGS.items():
        found: dict[int, tuple[int, str]] = {}  # way -> the first model that has it, and its token
        for number, model in enumerate(models):
            known = {
                place: token
                for place, tokens in enumerate(ways)
                for token in reversed(tokens)
                if token in model.vocabulary
            }
            if len(known) == 1:
                [(place, token)] = known.items()
                found.setdefault(place, (number, token))
        if len(found) > 1:
            (first, one), (second, other), *_ = sorted(found.values())
            yield (
                f"warning: LM{first} ({models[first].system}) and LM{second} "
                f"({models[second].system}) are of text that was tokenized in different ways: "
                f"{what} are {visible(one)} in the one, {visible(other)} in the other. Each takes "
                "the words of the other for unknown ones."
            )


@dataclass(slots=True)
class DecodingReport:
    """What happened to a text."""

    sentences: int = 0
    words: int = 0
    copied: int = 0
    seconds: float = 0.0
    cut_by_time: int = 0
    cut_by_memory: int = 0
    relaxed: int = 0
    counts: SearchCounts = field(default_factory=SearchCounts)

    def watch(self, translations: Iterable[Translation]) -> Iterator[Translation]:
        """Pass translations on, and count them."""
        for each in translations:
            self.sentences += 1
            self.words += len(each.words)
            if each.entries:
                self.copied += round(each.entries[0].features["UnknownWordPenalty0"][0] / _COPIED)
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
        if self.words >= _FEWEST_WORDS and self.copied > MOST_UNKNOWN * self.words:
            yield (
                f"warning: {self.copied} of {self.words} words are copied from the source, because "
                "the phrase table does not have them. Is the source tokenized as the table?"
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
