"""The models of the reading-time study: trained once, kept in folders, over one vocabulary."""

from __future__ import annotations

from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from recipe import check_kept_options

import treelm
from treelm.corpus.corpus import TextCorpus, TreeCorpus, TreeSentences
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.models.interface.incremental import IncrementalModel, as_incremental

TREEBANKS = ("gum", "masc")
BASELINE = "5-gram"

#: No round of EM.
_COUNTS_ALONE = {"iterations": 0, "follow_up": 0}
#: System and options of every model.
SINGLE: dict[str, tuple[str, dict[str, Any]]] = {
    BASELINE: ("ngram", {"order": 5}),
    "HHMM": ("hhmm", {"depth": 4}),
    "PCFG": ("pcfg", {"lexicon": "closed"}),
    "PLSA": ("plsa", {"topics": 50}),
    "3-gram/PLSA": ("plsa", {"order": 3, "topics": 50}),
    "2-SLM": ("slm", {}),
    "3-gram/2-SLM": ("composite", {"order": 3, "heads": 2, **_COUNTS_ALONE}),
    "3-gram/2-SLM/PLSA": ("composite", {"order": 3, "heads": 2, "topics": 50, **_COUNTS_ALONE}),
}
#: Those whose weights are found on held-out trees, or on held-out text.
_ON_TREES, _ON_TEXT = ("slm", "composite"), ("plsa",)
#: Word-level mixtures; EM finds the weights on documents of the dev sets.
MIXTURES = tuple(
    (BASELINE, name) for name in ("HHMM", "PCFG", "2-SLM", "3-gram/PLSA", "3-gram/2-SLM/PLSA")
)


#: Models of more text, as the package `treelm-en` has them; the first is their baseline.
READY = ("en-ngram", "en-hhmm", "en-mixture")
_PACKAGE = Path(__file__).resolve().parents[2] / "packages/treelm-en/src/treelm_en"


def mixture_name(parts: tuple[str, ...]) -> str:
    """Return what a mixture is called."""
    return " + ".join(parts)


class StudyModels:
    """Trains models on demand, once.

    Args:
        data: Folder of the data.
        folder: Where models are kept.
        beam_width: Stacks that the HHMM keeps.
        threads: Number of threads.
    """

    def __init__(self, data: Path, folder: Path, *, beam_width: int, threads: int) -> None:
        self.data, self.folder, self.threads = data, folder, threads
        self._beam = beam_width
        kept = {
            "training_trees": self.trees("train").fingerprint.sha256,
            "models": repr(SINGLE),
            "beam_width": beam_width,
        }
        check_kept_options(folder, kept)

    def trees(self, part: str) -> TreeCorpus:
        """Return the trees of a part of both treebanks."""
        paths = (self.data / f"treebanks/{name}/{part}.mrg" for name in TREEBANKS)
        return TreeCorpus(tuple(paths), on_error="skip")

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Words seen at least twice in the training trees."""
        rule = VocabularyRule(name="min-count", min_count=2, signatures=False)
        return build_vocabulary(TreeSentences(self.trees("train")), rule)

    @cached_property
    def dev_text(self) -> TextCorpus:
        """The words of the dev trees, in documents."""
        path = self.folder / "dev.txt"
        documents = groupby(self.trees("dev").with_documents(), key=lambda each: each.document)
        texts = (
            "".join(" ".join(each.tree.words) + "\n" for each in group) for _, group in documents
        )
        path.write_text("\n".join(texts), encoding="utf-8")
        return TextCorpus((path,))

    @cached_property
    def mixing_text(self) -> TextCorpus:
        """Every fourth document of the dev text, on which the weights of mixtures are found."""
        path = self.folder / "mixing.txt"
        documents = self.dev_text.paths[0].read_text(encoding="utf-8").split("\n\n")
        path.write_text("\n\n".join(documents[::4]).rstrip("\n") + "\n", encoding="utf-8")
        return TextCorpus((path,))

    def single(self, name: str) -> IncrementalModel:
        """Return a model of its own."""
        system, options = SINGLE[name]
        given = dict(options)
        if system in _ON_TREES:
            given["held_out"] = self.trees("dev")
        elif system in _ON_TEXT:
            given["held_out"] = self.dev_text
        if system == "hhmm":
            given["beam_width"] = self._beam
        folder = self.folder / "models" / name.replace("/", "+")
        if not folder.exists():
            folder.parent.mkdir(exist_ok=True)
            trained = treelm.train(
                system,
                self.trees("train"),
                vocabulary=self.vocabulary,
                threads=self.threads,
                **given,
            )
            trained.save(folder)
        return as_incremental(treelm.load(folder))

    def mixture(self, parts: tuple[str, ...]) -> IncrementalModel:
        """Return a mixture, word by word."""
        folder = self.folder / "models" / mixture_name(parts).replace("/", "+")
        if not folder.exists():
            models = [self.single(name) for name in parts]
            mixed = treelm.interpolate(models, held_out=self.mixing_text, threads=self.threads)
            mixed.save(folder)
        return as_incremental(treelm.load(folder))

    def all(self) -> dict[str, IncrementalModel]:
        """Return all models and mixtures by name, and the ready ones."""
        found = {name: self.single(name) for name in SINGLE}
        found |= {mixture_name(parts): self.mixture(parts) for parts in MIXTURES}
        return found | {name: self._ready(name) for name in READY}

    def _ready(self, name: str) -> IncrementalModel:
        """Return a ready model for tokenized text, with the beam of the study."""
        model = treelm.load(_PACKAGE / name).with_tokenizer(None)
        if name != READY[0]:
            model = model.with_search(beam_width=self._beam)
        return as_incremental(model)
