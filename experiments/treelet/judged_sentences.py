"""Sentences to judge, good and bad: negatives of a trigram model, one error each, translations."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Literal

from training_sets import TREEBANKS, replace_text

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.files import read_lines
from treelm.corpus.words import split_words
from treelm.models.ngram.config import NgramConfig
from treelm.models.ngram.model import NgramModel
from treelm.models.ngram.train import train_ngram
from treelm.tasks.corrupt.data_split import PUBLISHED_SIZES, split_sentences
from treelm.tasks.corrupt.lexicon import Lexicon
from treelm.tasks.corrupt.noisy import NoiseGenerator, make_noisy
from treelm.tasks.corrupt.tagged_sentences import tagged_batches
from treelm.tasks.corrupt.trigram import TrigramNegatives

Sentence = tuple[str, ...]
Part = Literal["dev", "test"]
PARTS: tuple[Part, ...] = ("dev", "test")
TRIGRAM_MODEL = NgramConfig(order=3, smoothing="kn")
SHORTEST, LONGEST = 10, 30  # words of a sentence to distinguish from one of the trigram model

#: A document belongs to the training text if more than this share of its sentences occurs there.
_SHARED = 0.5

#: References and outputs of translation systems: phrase-based ones, and a neural one.
TRANSLATIONS = {
    "multi30k, phrase-based": (
        "multi30k/test_2016_flickr.en",
        "multi30k/test_2016_flickr.moses.en",
    ),
    "ted, phrase-based": ("ted/ref.en", "ted/sys1.en"),
    "ted, neural": ("ted/ref.en", "ted/sys2.en"),
}


@dataclass(frozen=True)
class Pair:
    """A good sentence and a bad one, and what is wrong with it."""

    good: Sentence
    bad: Sentence
    kind: str


@dataclass(frozen=True)
class TrigramSet:
    """Positives and negatives of both parts, in files of a folder.

    Args:
        folder: Where the files are; made by `make`.
        seed: Seed of the split and of the negatives.
        limit: Maximum number of sentences of each part; None for the published number.
    """

    folder: Path
    seed: int
    limit: int | None

    def sentences(self, part: Part, kind: Literal["good", "bad"]) -> list[Sentence]:
        """Return the sentences of one part and kind."""
        return [split_words(line) for line in read_lines(self.folder / f"{kind}.{part}.txt")]

    @property
    def about(self) -> dict[str, object]:
        """What was made, and from how much text."""
        found: dict[str, object] = json.loads((self.folder / "about.json").read_text())
        return found

    def make(self, text: Path, training: set[str]) -> None:
        """Split a text, train the trigram model and sample negatives, unless already done.

        The text of the trigram model and the positives come from documents that no model is
        trained on.

        Args:
            text: The text, in documents.
            training: The sentences that models are trained on.
        """
        if (self.folder / "about.json").is_file():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        unseen = list(_unseen_documents(TextCorpus((text,)), training))
        scale = min(1.0, 0.8 * len(unseen) / PUBLISHED_SIZES["gen"])
        split = split_sentences(
            unseen, {"gen": round(scale * PUBLISHED_SIZES["gen"])}, seed=self.seed
        )
        generated = self.folder / "gen.txt"
        replace_text(generated, "".join(f"{line}\n" for line in split.parts["gen"]))
        trigram = train_ngram(TextCorpus((generated,)), TRIGRAM_MODEL)
        rest = [
            words for words in map(split_words, split.rest) if SHORTEST <= len(words) <= LONGEST
        ]
        size = min(PUBLISHED_SIZES["dev"], len(rest) // 2, self.limit or len(rest))
        about: dict[str, object] = {**split.summary(), "each kind and part": size}
        for number, part in enumerate(PARTS):
            good = rest[number * size : (number + 1) * size]
            negatives = self._negatives(trigram, part)
            bad = list(negatives.draw(size))
            negatives.look_at_positives(good)
            about[part] = negatives.counts.summary()
            replace_text(
                self.folder / f"good.{part}.txt", "".join(" ".join(w) + "\n" for w in good)
            )
            replace_text(self.folder / f"bad.{part}.txt", "".join(f"{line}\n" for line in bad))
        replace_text(self.folder / "about.json", json.dumps(about, indent=1))

    @property
    def text_size(self) -> int:
        """Number of sentences of the text that the trigram model of `make` is trained on."""
        return sum(1 for _ in read_lines(self.folder / "gen.txt"))

    def trigram_of_first(self, size: int) -> NgramModel:
        """Return a trigram model of the first sentences of that text, which has no order."""
        kept = self.folder / f"gen.{size}.txt"
        first = islice(read_lines(self.folder / "gen.txt"), size)
        replace_text(kept, "".join(f"{line}\n" for line in first))
        return train_ngram(TextCorpus((kept,)), TRIGRAM_MODEL)

    def drawn_from(self, trigram: NgramModel, share: int, part: Part) -> list[Sentence]:
        """Return as many negatives as the part has, sampled from another model and kept."""
        path = self.folder / f"bad.{part}.{share}.txt"
        if not path.is_file():
            size = len(self.sentences(part, "bad"))
            drawn = self._negatives(trigram, part).draw(size)
            replace_text(path, "".join(f"{line}\n" for line in drawn))
        return [split_words(line) for line in read_lines(path)]

    def _negatives(self, trigram: NgramModel, part: Part) -> TrigramNegatives:
        return TrigramNegatives(
            trigram, seed=self.seed, part=part, min_words=SHORTEST, max_words=LONGEST
        )


def _unseen_documents(text: TextCorpus, training: set[str]) -> Iterator[Sentence]:
    """Yield the sentences of documents that are not part of the training text."""
    for _, document in groupby(text.with_documents(), key=lambda one: one.document):
        sentences = [one.words for one in document]
        known = [" ".join(words) in training for words in sentences]
        if sum(known) <= _SHARED * len(known):
            yield from (w for w, seen in zip(sentences, known, strict=True) if not seen)


def noisy_pairs(
    data: Path, folder: Path, part: Part, *, seed: int, limit: int | None
) -> list[Pair]:
    """Return sentences of the treebanks and the same with one error each, kept in a file."""
    path = folder / f"noisy.{part}.json"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        tagged, chosen = [], []
        for name in TREEBANKS:
            corpus = TreeCorpus((data / f"treebanks/{name}/{part}.mrg",), on_error="skip")
            own = [one for one in tagged_batches(corpus.batches()) if one.words]
            tagged += own
            chosen += own[:limit]
        lexicon = Lexicon(tagged)
        made = make_noisy(
            lambda: chosen, NoiseGenerator(lexicon), lexicon, seed=seed, count=len(chosen)
        )
        rows = [(one.original, one.words, one.error) for one in made]
        replace_text(path, json.dumps(rows))
    return [Pair(tuple(g), tuple(b), kind) for g, b, kind in json.loads(path.read_text())]


def translation_pairs(
    data: Path, files: Sequence[str], limit: int | None
) -> tuple[list[Pair], int] | None:
    """Return references and translations that differ, and how many do not; None without files."""
    paths = [data / "mt" / file for file in files]
    if not all(path.is_file() for path in paths):
        return None
    lines = [[split_words(penn(line)) for line in read_lines(path)] for path in paths]
    both = [pair for pair in zip(*lines, strict=True) if all(pair)][:limit]
    pairs = [Pair(good, bad, "translation") for good, bad in both if good != bad]
    return pairs, len(both) - len(pairs)


def penn(line: str) -> str:
    """Return a line with quotation marks and brackets as treebanks write them.

    Examples:
        >>> penn('He said : " no ( or yes ) " .')
        "He said : `` no -LRB- or yes -RRB- '' ."
    """
    words = []
    is_open = False
    for word in split_words(line):
        if word in ('"', "\u201c", "\u201d"):
            closes = is_open if word == '"' else word == "\u201d"
            words.append("''" if closes else "``")
            is_open = not closes
        else:
            words.append(_PENN.get(word, word))
    return " ".join(words)


_PENN = {
    "(": "-LRB-",
    ")": "-RRB-",
    "\u2018": "`",
    "\u2019": "'",
}
