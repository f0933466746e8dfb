"""Training trees in pieces of growing size, and the one vocabulary of all models."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np

from treelm.corpus.corpus import Fingerprint, TreeCorpus, TreeSentences
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_file import load_vocabulary, save_vocabulary
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.grammar.forest_file import ForestFile
from treelm.grammar.k_best import packed_together
from treelm.transforms.temporal_lexicon import find_temporal_words

TREEBANKS = ("wsj-sample", "masc", "gum", "craft")
#: Size of each piece, the ones before it included, as a multiple of the treebanks.
SIZES = {"1/64": 1 / 64, "1/16": 1 / 16, "1/4": 1 / 4, "treebanks": 1, "x4": 4, "x16": 16}
TREEBANKS_ONLY, ALL = "treebanks", "all"

_AT_ONCE = 1024


@dataclass(frozen=True)
class Piece:
    """A part of the training trees; a training set is a piece and all before it."""

    name: str
    path: Path
    sentences: int
    tokens: int


@dataclass
class TrainingSets:
    """Trees of treebanks in random order, then parsed text in random order, cut into pieces.

    A training set is the beginning of this sequence, so the words that the streaming rule replaces
    are the same in all of them, and one vocabulary fits all.

    Args:
        data: Folder of the data.
        folder: Where pieces and vocabulary are kept.
        auto: Files of parsed text: brackets, or ``.forest``.
        seed: Seed of the order and of the vocabulary.
        threads: Number of threads.
    """

    data: Path
    folder: Path
    auto: Sequence[Path]
    seed: int
    threads: int

    @property
    def treebank_files(self) -> tuple[Path, ...]:
        """The training parts of the treebanks."""
        return tuple(self.data / f"treebanks/{name}/train.mrg" for name in TREEBANKS)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """All pieces, made by the first call and kept."""
        record = self.folder / "pieces.json"
        if not record.is_file():
            self.folder.mkdir(parents=True, exist_ok=True)
            made = [*self._cut(self._treebank_trees(), "bank", last=TREEBANKS_ONLY)]
            base = sum(piece.tokens for piece in made)
            if self.auto:
                made += self._cut(self._auto_trees(), "auto", last=ALL, base=base)
            else:
                made[-1] = replace(made[-1], name=ALL)
            rows = [[piece.name, piece.path.name, piece.sentences, piece.tokens] for piece in made]
            replace_text(record, json.dumps(rows, indent=1))
        rows = json.loads(record.read_text())
        return tuple(Piece(name, self.folder / file, s, t) for name, file, s, t in rows)

    def _treebank_trees(self) -> list[bytes]:
        corpus = TreeCorpus(self.treebank_files, on_error="skip", threads=self.threads)
        return [line for batch in corpus.batches() for line in batch.to_brackets().splitlines()]

    def _auto_trees(self) -> list[bytes]:
        return [line for path in self.auto for line in parsed_trees(path, self.threads)]

    def _cut(self, trees: list[bytes], prefix: str, *, last: str, base: int = 0) -> Iterator[Piece]:
        order = np.random.default_rng(self.seed).permutation(len(trees))
        tokens = np.array([words_in(trees[i]) for i in order], dtype=np.int64)
        ends = np.cumsum(tokens)
        total = base or int(ends[-1])
        first = 0
        for name, share in SIZES.items():
            if (share > 1) != bool(base):
                continue
            until = int(np.searchsorted(ends, share * total - base, side="right"))
            if share == 1 or until >= len(trees):
                break
            if until > first:
                yield self._write(f"{prefix}-{first}", name, trees, order[first:until])
                first = until
        yield self._write(f"{prefix}-{first}", last, trees, order[first:])

    def _write(self, file: str, name: str, trees: list[bytes], order: Iterable[int]) -> Piece:
        path = self.folder / f"{file}.mrg"
        with path.open("wb") as out:
            out.writelines(trees[i] + b"\n" for i in order)
        found = TreeCorpus((path,), threads=self.threads).fingerprint
        return Piece(name, path, found.sentences, found.tokens)

    # -- training sets ----------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """Names of the training sets, the smallest first."""
        return [piece.name for piece in self.pieces]

    def named_or_all(self, name: str) -> str:
        """Return a training set by name, or all trees where there are fewer."""
        return name if name in self.names else ALL

    def corpus(self, name: str) -> TreeCorpus:
        """Return the trees of a training set."""
        paths = tuple(piece.path for piece in self._until(name))
        return TreeCorpus(paths, threads=self.threads)

    @property
    def fingerprint(self) -> Fingerprint:
        """Number of words of all trees; kept, as reading them takes a while."""
        record = self.folder / "fingerprint.json"
        if not record.is_file():
            replace_text(record, json.dumps(self.corpus(ALL).fingerprint))
        return Fingerprint(*json.loads(record.read_text()))

    def tokens(self, name: str) -> int:
        """Return the words of a training set."""
        return sum(piece.tokens for piece in self._until(name))

    def _until(self, name: str) -> tuple[Piece, ...]:
        return self.pieces[: self.names.index(name) + 1]

    def vocabulary(self, name: str = ALL) -> Vocabulary:
        """Return the vocabulary; for a training set, it records how much of the text that is."""
        words = self._vocabulary
        sizes = [(piece.sentences, piece.tokens) for piece in self._until(name)]
        sentences, tokens = (sum(column) for column in zip(*sizes, strict=True))
        return replace(words, source={**words.source, "sentences": sentences, "tokens": tokens})

    @property
    def vocabulary_file(self) -> Path:
        """The one vocabulary file of all models."""
        return self.folder / "vocabulary.tsv"

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        if not self.vocabulary_file.is_file():
            rule = VocabularyRule(name="stream", seed=self.seed)
            words = build_vocabulary(TreeSentences(self.corpus(ALL)), rule)
            draft = self.vocabulary_file.with_suffix(".draft")
            save_vocabulary(words, draft)
            draft.replace(self.vocabulary_file)
        return load_vocabulary(self.vocabulary_file)

    @cached_property
    def temporal(self) -> tuple[str, ...]:
        """Temporal nouns of the treebanks, for the first transform."""
        words = find_temporal_words(self.treebank_files, None, "english", threads=self.threads)
        return tuple(sorted(words))


def words_in(line: bytes) -> int:
    """Return the words of a tree in brackets.

    There is a space before every word and every node but the first.

    Examples:
        >>> words_in(b"(ROOT (NP (DT the) (NN dog)))")
        2
    """
    return line.count(b" ") - line.count(b"(") + 1


def parsed_trees(path: Path, threads: int) -> Iterator[bytes]:
    """Yield the best trees of a parse file, or the trees of a file of brackets."""
    if path.suffix != ".forest":
        for batch in TreeCorpus((path,), on_error="skip", threads=threads).batches():
            yield from batch.to_brackets().splitlines()
        return
    with ForestFile(path) as file:
        lists = (own for own in file if own and not own.is_fallback)
        while batch_of_lists := list(islice(lists, _AT_ONCE)):
            packed = packed_together([own.first(1) for own in batch_of_lists])
            yield from packed.to_brackets().splitlines()


def replace_text(path: Path, text: str) -> None:
    """Write a file that appears only when it is complete."""
    draft = path.with_name(path.name + ".draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
