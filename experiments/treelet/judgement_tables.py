"""Good sentences against bad ones: pseudo-negatives, noise, translations (Tables 3 to 6)."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from experiment import Answers, Experiment
from judged_sentences import (
    PARTS,
    TRANSLATIONS,
    Pair,
    Part,
    TrigramSet,
    noisy_pairs,
    translation_pairs,
)
from model_store import FIVE_GRAM, MODELS, RULE, TREELET, Key, main_keys
from training_sets import ALL, TREEBANKS
from tree_scores import Numbers, Scores, Sentence

from published import MT, NOISY, NOISY_LARGE, TRIGRAM, TRIGRAM_LARGE
from treelm.corpus.corpus import TreeSentences
from treelm.tasks.evaluate.classification import Classification, classify, tune_threshold
from treelm.tasks.evaluate.comparison import compare_answers
from treelm.tasks.evaluate.pair_accuracy import PairAccuracy, pair_accuracy

Measure = Callable[[Scores], Numbers]
Flags = npt.NDArray[np.bool_]

_TRIGRAM = "Trigram pseudo-negatives (Table 4)"
_NOISY = "Noisy sentences (Table 5)"
_MT = "References against translations (Table 6)"


@dataclass(frozen=True)
class _Side:
    """Log-odds ratios of the good or of the bad sentences, by model."""

    values: dict[Key, Numbers]

    def slr(self, key: Key) -> Numbers:
        """Return those of one model."""
        return self.values[key]


class JudgementTables(Experiment):
    """How well sentences are judged."""

    # -- Tables 3 and 4 ---------------------------------------------------------------------

    @cached_property
    def trigram_set(self) -> TrigramSet:
        """Positives, and negatives from a trigram model of text that no model is trained on."""
        made = TrigramSet(self.work / "trigram", self.seed, self.limit)
        if not (made.folder / "about.json").is_file():
            training = {" ".join(words) for words in TreeSentences(self.sets.corpus(ALL))}
            made.make(self.negatives_text, training)
        return made

    def trigram_scores(
        self, part: Part, keys: Sequence[Key], k: int | None = None
    ) -> tuple[Scores, Scores]:
        """Return the scores of positives and negatives."""
        good, bad = (
            self.score(
                f"trigram.{part}.{kind}",
                self.trigram_set.sentences(part, kind),
                keys,
                (k or self.judged_k,),
            )
            for kind in ("good", "bad")
        )
        return good, bad

    def judged(self, scores: dict[Part, tuple[Scores, Scores]], measure: Measure) -> Classification:
        """Return how well a measure separates good and bad, its threshold tuned on the dev part."""
        good, bad = (measure(each) for each in scores["dev"])
        threshold = tune_threshold(good, bad)
        good, bad = (measure(each) for each in scores["test"])
        return classify(good, bad, threshold, seed=self.seed)

    def slr(self, key: Key, k: int | None = None) -> Measure:
        """Return the log-odds ratio of a model as a measure."""
        return lambda scores: scores.slr(key, k or self.judged_k)

    def trigram(self) -> None:
        """Tell sentences from those of a trigram model of the same kind of text."""
        examples = self.trigram_set.sentences("test", "bad")[:5]
        self._examples("trigram model", examples)
        scores: dict[Part, tuple[Scores, Scores]] = {}
        trainings = dict.fromkeys((self.sets.named_or_all("x4"), ALL))
        for training in trainings:
            keys = main_keys(training)
            scores = {part: self.trigram_scores(part, keys) for part in PARTS}
            found = {key: self.judged(scores, self.slr(key)) for key in keys}
            five = found[Key(training, FIVE_GRAM)]
            for key, own in found.items():
                self.add_accuracy(
                    _TRIGRAM,
                    key,
                    "accuracy",
                    f"10 to 30 words; trained on {self.training_name(training)}",
                    found=own,
                    baseline=(FIVE_GRAM, five.right),
                )
            self._differences(
                _TRIGRAM, training, {key.model: own.right for key, own in found.items()}
            )
        published = TRIGRAM if len(trainings) == 1 else TRIGRAM_LARGE
        for name, value in published.items():
            self.published(_TRIGRAM, name, "accuracy", value, 4)
        self._normalisation(scores)
        about = self.trigram_set.about
        self.report.add_table(
            "About the trigram pseudo-negatives",
            ("what", "value"),
            [(name, str(value)) for name, value in about.items()],
        )

    def _differences(self, table: str, training: str, right: dict[str, Flags]) -> None:
        rows = []
        for better, worse in ((RULE, TREELET), (TREELET, FIVE_GRAM)):
            found = compare_answers(right[better], right[worse], seed=self.seed)
            low, high = found.interval
            rows.append(
                (
                    f"{better} - {worse}",
                    f"{found.difference:+.4f}",
                    f"{low:+.4f} to {high:+.4f}",
                    f"{found.p_value:.4f}",
                )
            )
        self.report.add_table(
            f"{table}: differences, trained on {training}",
            ("models", "difference", "95 % interval", "p (McNemar)"),
            rows,
        )

    def _examples(self, kind: str, sentences: Sequence[Sentence]) -> None:
        self.report.add_table(
            f"Negatives (Table 3): {kind}", ("sentence",), [(" ".join(s),) for s in sentences]
        )

    def _measures(self, key: Key) -> dict[str, Measure]:
        k = self.judged_k
        return {
            "SLR": self.slr(key),
            "without the words alone": lambda s: s.values[key, k] / s.lengths,
            "without the length": lambda s: s.values[key, k] - s.unigram[key],
            "log probability": lambda s: s.values[key, k],
        }

    def _normalisation(self, scores: dict[Part, tuple[Scores, Scores]]) -> None:
        """Show the effect of normalising by the length and by the words alone."""
        rows = []
        for name in (RULE, TREELET, FIVE_GRAM):
            for what, measure in self._measures(Key(ALL, name)).items():
                found = self.judged(scores, measure)
                low, high = found.interval
                rows.append((name, what, f"{found.accuracy:.3f}", f"{low:.3f} to {high:.3f}"))
        self.report.add_table(
            "Trigram pseudo-negatives: what the score is normalised by",
            ("model", "measure", "accuracy", "95 % interval"),
            rows,
        )

    # -- Table 5 ----------------------------------------------------------------------------

    def noisy(self) -> None:
        """Tell sentences from those with one error."""
        pairs = {part: self._noisy_pairs(part) for part in PARTS}
        for training in dict.fromkeys((self.small, ALL)):
            keys = main_keys(training)
            sides = {part: self._noisy_scores(part, pairs[part], keys) for part in PARTS}
            data = f"all test sets; trained on {self.training_name(training)}"
            right: dict[str, Flags] = {}
            called: dict[str, Classification] = {}
            found: dict[str, PairAccuracy] = {}
            for key in keys:
                good, bad = (each.slr(key) for each in sides["test"])
                threshold = tune_threshold(*(each.slr(key) for each in sides["dev"]))
                called[key.model] = classify(good, bad, threshold, seed=self.seed, paired=True)
                found[key.model] = pair_accuracy(good, bad, seed=self.seed)
                right[key.model] = good > bad
            for key in keys:
                own = found[key.model]
                paired = Answers(own.accuracy, own.interval, right[key.model])
                alone = called[key.model]
                for metric, answers, five in (
                    ("pairwise accuracy", paired, right[FIVE_GRAM]),
                    ("independent accuracy", alone, called[FIVE_GRAM].right),
                ):
                    self.add_accuracy(
                        _NOISY, key, metric, data, found=answers, baseline=(FIVE_GRAM, five)
                    )
            self._differences(_NOISY, training, right)
            self._by_error(training, pairs["test"], right)
        self._examples("one error", [pair.bad for pair in pairs["test"][:5]])
        published = NOISY if self.small == ALL else NOISY_LARGE
        for name, (pairwise, single_value) in published.items():
            self.published(_NOISY, name, "pairwise accuracy", pairwise, 5)
            self.published(_NOISY, name, "independent accuracy", single_value, 5)

    def _noisy_pairs(self, part: Part) -> list[Pair]:
        return noisy_pairs(self.data, self.work / "noisy", part, seed=self.seed, limit=self.limit)

    def _noisy_scores(
        self, part: Part, pairs: Sequence[Pair], keys: Sequence[Key]
    ) -> tuple[_Side, _Side]:
        """Return the scores of both sides; originals have those of their treebank."""
        k = self.judged_k
        place: dict[Sentence, int] = {}
        banks: list[Scores] = []
        for treebank in TREEBANKS:
            sentences = self.sentences(treebank, part)
            first = sum(len(each.lengths) for each in banks)
            place |= {words: first + number for number, words in enumerate(sentences)}
            banks.append(self.score(f"{treebank}.{part}", sentences, keys, (k,)))
        chosen = np.array([place[pair.good] for pair in pairs], dtype=np.int64)
        good = {key: np.concatenate([each.slr(key, k) for each in banks])[chosen] for key in keys}
        noisy = self.score(f"noisy.{part}", [pair.bad for pair in pairs], keys, (k,))
        return _Side(good), _Side({key: noisy.slr(key, k) for key in keys})

    def _by_error(self, training: str, pairs: Sequence[Pair], right: dict[str, Flags]) -> None:
        kinds = np.array([pair.kind for pair in pairs])
        same = np.array([len(pair.good) == len(pair.bad) for pair in pairs])
        groups = {kind: kinds == kind for kind in sorted(set(kinds.tolist()))}
        groups |= {"length kept": same, "length changed": ~same}
        self.report.add_table(
            f"Noisy pairs by error, trained on {training}",
            ("error", "pairs", *MODELS),
            [
                (name, int(mask.sum()), *(f"{right[model][mask].mean():.3f}" for model in MODELS))
                for name, mask in groups.items()
                if mask.any()
            ],
        )

    # -- Table 6 ----------------------------------------------------------------------------

    def mt(self) -> None:
        """Tell references from the output of translation systems."""
        keys = main_keys()
        for name, files in TRANSLATIONS.items():
            found = translation_pairs(self.data, files, self.limit)
            if found is None:
                self.report.warn(f"{name}: the files are missing.")
                continue
            pairs, identical = found
            stem = name.replace(", ", ".")
            good = self.score(
                f"mt.{stem}.good", [pair.good for pair in pairs], keys, (self.judged_k,)
            )
            bad = self.score(f"mt.{stem}.bad", [pair.bad for pair in pairs], keys, (self.judged_k,))
            five = Key(ALL, FIVE_GRAM)
            five_right = good.slr(five, self.judged_k) > bad.slr(five, self.judged_k)
            ties = {}
            for key in keys:
                sides = tuple(each.slr(key, self.judged_k) for each in (good, bad))
                own = pair_accuracy(sides[0], sides[1], seed=self.seed)
                ties[key.model] = own.ties
                self.add_accuracy(
                    _MT,
                    key,
                    "pairwise accuracy",
                    name,
                    found=Answers(own.accuracy, own.interval, sides[0] > sides[1]),
                    baseline=(FIVE_GRAM, five_right),
                )
            self.report.add_table(
                f"About {name}",
                ("what", "value"),
                [
                    ("pairs that differ", len(pairs)),
                    ("identical pairs, left out", identical),
                    *((f"ties of {model}", number) for model, number in ties.items() if number),
                ],
            )
            self._add_bleu(name, pairs)
            self._examples(f"translation ({name})", [pair.bad for pair in pairs[:5]])
        self._published_mt()

    def _add_bleu(self, name: str, pairs: Sequence[Pair]) -> None:
        """Add the BLEU of translations against references, if sacrebleu is installed."""
        try:
            sacrebleu: Any = importlib.import_module("sacrebleu")
        except ImportError:
            self.report.warn(f"{name}: no BLEU, as sacrebleu is not installed.")
            return
        references = [" ".join(pair.good) for pair in pairs]
        hypotheses = [" ".join(pair.bad) for pair in pairs]
        found = sacrebleu.corpus_bleu(hypotheses, [references], tokenize="none")
        self.report.add_table(
            f"BLEU of {name}", ("BLEU of what differs, tokenized",), [(f"{found.score:.1f}",)]
        )

    def _published_mt(self) -> None:
        for name, value in MT.items():
            self.published(_MT, name, "pairwise accuracy", value, 6)
