"""The language models of the translation study: trained once, kept in folders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import cast

from files import write_lines
from negatives import Negatives

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.files import read_lines
from treelm.corpus.labelled import LabelledSentences
from treelm.corpus.tokenize import tokenize_stream
from treelm.corpus.vocabulary import Vocabulary
from treelm.models.hhmm.model import HhmmModel
from treelm.models.interface.model import LanguageModel
from treelm.models.ngram.arpa import read_arpa
from treelm.models.ngram.model import NgramModel
from treelm.models.pcfg.grammar_model import GrammarModel
from treelm.models.plsa.model import PlsaModel
from treelm.models.registry import load, train

TREEBANKS = ("gum", "masc", "craft", "wsj-sample")
#: Open text of other kinds, as far as it is there.
OPEN = (
    *("simplewiki2021", "enwiki2014_a", "enwiki2014_b", "wikinews", "standardebooks"),
    *("wikivoyage", "usgov_blogs"),
)
#: The models that Tan et al. rerank with, which are mixtures: one with four heads and four words
#: before would be too large.
BOTH = "5-gram/2-SLM + 2-gram/4-SLM"
WHOLE = f"{BOTH} + 5-gram/PLSA"
#: Words of it that are known: those of the captions, and those seen so often.
_OPEN_COUNT = 5
#: The last captions, on which the weights of structured models and mixtures are found.
_HELD_OUT = 1000
#: Topics of the captions.
_TOPICS = 50
#: Pairs of sentences on which classifiers find their settings.
_TUNING_PAIRS = 1000


class LanguageModels:
    """Trains models on demand, once.

    Args:
        data: Folder of the data.
        folder: Where models are kept; what is there is reused.
        cycles: Cycles of splitting of the parser's grammar.
        threads: Number of threads.
        negatives: Bad translations of the training text.
        pairs: Pairs of good and bad sentences that classifiers learn from.
        rounds: Rounds of the latent SVM.
    """

    def __init__(
        self,
        data: Path,
        folder: Path,
        *,
        cycles: int,
        threads: int,
        negatives: Negatives,
        pairs: int,
        rounds: int,
    ) -> None:
        self.data, self.folder, self.threads = data, folder, threads
        self.negatives = negatives
        self._cycles, self._pairs, self._rounds = cycles, pairs, rounds
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
        return cast("HhmmModel", self._kept("hhmm", lambda: train("hhmm", self.trees)))

    def rerankers(self) -> Mapping[str, Callable[[], LanguageModel]]:
        """Return what reranks lists, by name; a model is trained when it is first asked for."""
        parsed = {
            "PCFG": lambda: self._kept("pcfg", lambda: train("pcfg", self.trees)),
            "PCFG-LA": lambda: self._latent,
            "treelet": self._treelet,
            "2-SLM": lambda: self._structured("slm"),
            "5-gram/2-SLM": lambda: self._structured("composite", order=5, heads=2),
            BOTH: lambda: self._of_paper(BOTH, topics=False),
            WHOLE: lambda: self._of_paper(WHOLE, topics=True),
        }
        of_open_text = {
            "4-gram of open text": lambda: self._of_open_text("open"),
            "5-gram of more open text": lambda: self._of_open_text("more"),
            "mixture of n-grams": self._mixture,
        }
        return {
            "3-gram": lambda: self._order(3),
            "6-gram": lambda: self._order(6),
            **(of_open_text if self._open_files() else {}),
            "5-gram/PLSA": lambda: self._topics.with_options(adapt=False),
            "5-gram/PLSA, own topics": lambda: self._topics,
            "HHMM": lambda: self.hhmm.with_search(beam_width=50),
            **parsed,
            "trigram SVM": lambda: self._classifier("trigram_svm"),
            "latent SVM": lambda: self._classifier("lsvm"),
        }

    def _kept(self, name: str, make: Callable[[], LanguageModel]) -> LanguageModel:
        path = self.folder / name
        if not path.exists():
            make().save(path)
        return load(path)

    def _order(self, order: int) -> LanguageModel:
        text = TextCorpus((self.captions,))
        return self._kept(f"ngram{order}", lambda: train("ngram", text, order=order))

    def _open_files(self, *, more: bool = False) -> list[Path]:
        """Return files of open text: those of some kinds, or all that there are."""
        if more:
            return sorted((self.data / "text-open").glob("*.txt.xz"))
        files = [self.data / f"text-open/{name}.txt.xz" for name in OPEN]
        return [file for file in files if file.is_file()]

    def _texts(self) -> dict[str, Path]:
        """Return captions without the last ones, these, and open text: tokenized, one per line."""
        names = ("captions", "held-out", "open", "more")
        files = {name: self.folder / f"{name}.txt" for name in names}
        if not files["open"].exists():
            captions, held_out = held_apart(read_lines(self.captions))
            write_lines(files["captions"], captions)
            write_lines(files["held-out"], held_out)
            write_lines(files["open"], tokenized(self._open_files()))
        if not files["more"].exists():
            write_lines(files["more"], tokenized(self._open_files(more=True)))
        return files

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        counts = Counter(word for line in read_lines(self.captions) for word in line.split())
        more = Counter(word for line in read_lines(self._texts()["open"]) for word in line.split())
        often = {word: count for word, count in more.items() if count >= _OPEN_COUNT}
        return Vocabulary.from_counts(counts + Counter(often))

    def _of_open_text(self, name: str) -> LanguageModel:
        """Return an n-gram model of open text, or of captions, with words of both."""
        options = {"order": 5}
        if name in ("open", "more"):
            order = 4 if name == "open" else 5
            fewest = (1, 1, *(2,) * (order - 2))
            options = {"order": order, "min_count": fewest, "no_measure": True}
        text = TextCorpus((self._texts()[name],))
        return self._kept(
            f"ngram-{name}",
            lambda: train("ngram", text, vocabulary=self._vocabulary, **options),
        )

    def _mixture(self) -> LanguageModel:
        """Return a mixture of both, word by word."""
        held_out = TextCorpus((self._texts()["held-out"],))
        parts = [self._of_open_text(name) for name in ("captions", "open")]
        return self._kept("mixture", lambda: train("interpolated", parts, held_out=held_out))

    @cached_property
    def _topics(self) -> PlsaModel:
        """Return a 5-gram model with topics.

        Captions have no documents. Each is one in training; what is scored has the topics of all
        captions together, or those of its own words alone.
        """
        return self._with_topics("plsa")

    def _with_topics(self, name: str, **options: object) -> PlsaModel:
        def make() -> LanguageModel:
            files = [self.folder / f"documents.{part}.txt" for part in ("train", "held-out")]
            for file, lines in zip(files, held_apart(read_lines(self.captions)), strict=True):
                write_lines(file, (f"{line}\n" for line in lines))
            text, held_out = (TextCorpus((file,)) for file in files)
            given = {"order": 5, "topics": _TOPICS, "seed": 1, "threads": self.threads}
            return train("plsa", text, held_out=held_out, **given, **options)

        return cast("PlsaModel", self._kept(name, make))

    def _of_paper(self, name: str, *, topics: bool) -> LanguageModel:
        """Return a mixture of structured models, perhaps with topics of all captions together."""
        parts = [
            self._structured("composite", order=5, heads=2),
            self._structured("composite", "composite-2-4", order=2, heads=4),
        ]
        if topics:
            words = parts[0].vocabulary
            parts.append(
                self._with_topics("plsa-parsed", vocabulary=words).with_options(adapt=False)
            )
        held_out = TextCorpus((self._texts()["held-out"],))
        return self._kept(
            name.replace("/", "-").replace(" ", ""),
            lambda: train("interpolated", parts, held_out=held_out, threads=self.threads),
        )

    @cached_property
    def _latent(self) -> LanguageModel:
        cycles = min(self._cycles, 4)  # captions have fewer constructions than treebanks
        return self._kept(
            "pcfg-la",
            lambda: train("pcfg-la", self.trees, cycles=cycles, seed=1, threads=self.threads),
        )

    def _treelet(self) -> LanguageModel:
        """Return the treelet model; it sums over the ten best trees of the latent grammar."""
        parser = self._latent
        return self._kept("treelet", lambda: train("treelet", self.trees, parser=parser, k=10))

    def _structured(self, system: str, name: str = "", **options: object) -> LanguageModel:
        def make() -> LanguageModel:
            files = [self.folder / f"captions.{name}.mrg" for name in ("train", "held-out")]
            parts = held_apart(read_lines(str(self.trees.paths[0])))
            for file, lines in zip(files, parts, strict=True):
                write_lines(file, lines)
            trees, held_out = (TreeCorpus((str(file),)) for file in files)
            return train(system, trees, held_out=held_out, threads=self.threads, **options)

        return self._kept(name or system, make)

    def _classifier(self, system: str) -> LanguageModel:
        """Return what tells references from translations of the training text."""

        def make() -> LanguageModel:
            pairs = self.negatives.pairs()
            held = max(1, min(_TUNING_PAIRS, len(pairs) // 10))
            parts = (pairs[held : held + self._pairs], pairs[:held])
            labelled = [
                LabelledSentences(
                    *(
                        TextCorpus.of_sentences([getattr(pair, side).split() for pair in part])
                        for side in ("good", "bad")
                    )
                )
                for part in parts
            ]
            options: dict[str, object] = {}
            if system == "lsvm":
                options = {"trees": self.trees, "vertical_order": 1, "rounds": self._rounds}
                options |= {"regularization": 10.0, "parts": 5}
            return train(system, labelled[0], tuning=labelled[1], **options)

        return self._kept(system, make)


def tokenized(files: Iterable[Path]) -> Iterator[str]:
    """Yield the lines of files of raw text, tokenized."""
    raw = (line for file in files for line in read_lines(file))
    return (" ".join(words) for words in tokenize_stream(raw) if words)


def held_apart(lines: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return lines without the last ones, and these."""
    given = list(lines)
    end = len(given) - min(_HELD_OUT, len(given) // 4)
    return given[:end], given[end:]


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
