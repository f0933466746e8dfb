"""The language models of the translation study: trained once, kept in folders."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import cast

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.models.hhmm.model import HhmmModel
from treelm.models.ngram.arpa import read_arpa
from treelm.models.ngram.model import NgramModel
from treelm.models.pcfg.grammar_model import GrammarModel
from treelm.models.registry import load, train

TREEBANKS = ("gum", "masc", "craft", "wsj-sample")


class LanguageModels:
    """Trains models on demand, once.

    Args:
        data: Folder of the data.
        folder: Where models are kept; what is there is reused.
        cycles: Cycles of splitting of the parser's grammar.
        threads: Number of threads.
    """

    def __init__(self, data: Path, folder: Path, *, cycles: int, threads: int) -> None:
        self.data, self.folder, self.threads = data, folder, threads
        self._cycles = cycles
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def captions(self) -> Path:
        """The English side of the training text."""
        return self.data / "mt/multi30k/train.en"

    @cached_property
    def ngram(self) -> NgramModel:
        """The 5-gram model of the captions that made the lists of Moses."""
        return read_arpa(self.data / "mt/multi30k/lm5.arpa.gz")

    @cached_property
    def parser(self) -> GrammarModel:  # type: ignore[type-arg]
        """A parser trained on four treebanks."""
        files = tuple(self.data / f"treebanks/{name}/train.mrg" for name in TREEBANKS)
        path = self.folder / "parser"
        if not path.exists():
            trees = TreeCorpus(tuple(map(str, files)), on_error="skip")
            model = train("pcfg-la", trees, cycles=self._cycles, seed=1, threads=self.threads)
            model.save(path)
        return cast("GrammarModel", load(path))  # type: ignore[type-arg]

    @cached_property
    def trees(self) -> TreeCorpus:
        """The captions as the parser sees them."""
        path = self.folder / "captions.mrg"
        if not path.exists():
            parse_captions(self.parser, self.captions, path, self.threads)
        return TreeCorpus((str(path),), on_error="skip")

    @cached_property
    def hhmm(self) -> HhmmModel:
        """The HHMM of the parsed captions."""
        path = self.folder / "hhmm"
        if not path.exists():
            train("hhmm", self.trees, threads=self.threads).save(path)
        return cast("HhmmModel", load(path))


def parse_captions(
    parser: GrammarModel,  # type: ignore[type-arg]
    text: Path,
    target: Path,
    threads: int,
) -> None:
    """Write the best tree of every sentence that has one."""
    part = target.with_suffix(".part")
    with part.open("w", encoding="utf-8") as file:
        sentences = list(TextCorpus((text,)))
        for first in range(0, len(sentences), 1000):
            for best in parser.parse_many(sentences[first : first + 1000], threads=threads):
                if best is not None:
                    file.write(f"{best.tree}\n")
    part.replace(target)
