"""Good sentences against bad ones: pseudo-negatives, noise, translations (Tables 3 to 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

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
from model_store import FIVE_GRAM, LATENT, MODELS, RULE, SAME_WORDS, TREELET, Key, main_keys
from training_sets import ALL, TREEBANKS
from tree_scores import Numbers, Scores, Sentence

from published import MT, NOISY, NOISY_LARGE, TRIGRAM, TRIGRAM_LARGE
from treelm.corpus.corpus import TreeSentences
from treelm.tasks.evaluate.classification import Classification, classify, tune_threshold
from treelm.tasks.evaluate.comparison import compare_answers
from treelm.tasks.evaluate.pair_accuracy import PairAccuracy, pair_accuracy
from treelm.tasks.evaluate.significance import bootstrap_sums
from treelm.tasks.report.results import Result
from treelm.translation.bleu import bleu, text_statistics

Measure = Callable[[Scores], Numbers]
Flags = npt.NDArray[np.bool_]

#: Judged with lists of different lengths.
_BY_TREES = (RULE, TREELET)
#: Development sentences of each kind, the nearest in length, that set the threshold of a length.
_NEAREST = 100
#: Stands for a threshold that accepts or rejects everything.
_FAR = 1e12

_TRIGRAM = "Trigram pseudo-negatives (Table 4)"
_MEASURES = "Trigram pseudo-negatives: what the score is normalised by"
NOISY_TABLE = "Noisy sentences (Table 5)"
_MT = "References against translations (Table 6)"


@dataclass(frozen=True)
class _Side:
    """Log-odds ratios of the good or of the bad sentences, by model."""

    values: dict[Key, Numbers]

    def slr(self, key: Key) -> Numbers:
        """Return those of one model."""
        return self.values[key]


def _words(pairs: Sequence[Pair]) -> list[tuple[Sentence, Sentence]]:
    return [(pair.good, pair.bad) for pair in pairs]


def length_threshold(scored: Sequence[tuple[Numbers, npt.NDArray[np.int64]]], length: int) -> float:
    """Return the threshold of the sentences of one length, from those of the nearest lengths.

    Args:
        scored: Scores and lengths of good sentences, then of bad ones.
        length: The length.

    Examples:
        >>> lengths = np.array([5, 5, 9, 9])
        >>> good, bad = np.array([-8.0, -9.0, -20.0, -21.0]), np.array([-12.0, -13.0, -30.0, -31.0])
        >>> length_threshold([(good, lengths), (bad, lengths)], 7)
        -25.5
    """
    near = []
    for values, lengths in scored:
        order = np.argsort(np.abs(lengths - length), kind="stable")
        near.append(values[order[:_NEAREST]])
    value = tune_threshold(*near).value
    return float(np.clip(value, -_FAR, _FAR))


class JudgementTables(Experiment):
    """How well sentences are judged."""

    def judges(self, training: str) -> list[Key]:
        """Return the models that judge, trained on one set; of the smallest a latent grammar."""
        has_latent = self.latent_cycles > 0 and training == self.small
        return [*main_keys(training), *([Key(training, SAME_WORDS)] if has_latent else [])]

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
        smallest = (self.small,) if self.latent_cycles else ()
        trainings = dict.fromkeys((*smallest, self.sets.named_or_all("x4"), ALL))
        for training in trainings:
            keys = self.judges(training)
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
        five_key = Key(ALL, FIVE_GRAM)
        if self._parser_is_known(each for both in scores.values() for each in both):
            self.add_accuracy(
                _TRIGRAM,
                Key(ALL, LATENT),
                "accuracy",
                "10 to 30 words; the parser's own grammar",
                found=self.judged(scores, lambda each: each.parser_slr(five_key)),
                baseline=(FIVE_GRAM, self.judged(scores, self.slr(five_key)).right),
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

    @cached_property
    def _shown_already(self) -> set[str]:
        """What several parts show, and the report needs once."""
        return set()

    def _is_new(self, name: str) -> bool:
        is_new = name not in self._shown_already
        self._shown_already.add(name)
        return is_new

    def _examples(self, kind: str, sentences: Sequence[Sentence]) -> None:
        if not self._is_new(f"examples: {kind}"):
            return
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
        """Show the effect of normalising, and of a threshold for each length instead."""
        for name in (RULE, TREELET, FIVE_GRAM):
            measures = self._measures(Key(ALL, name))
            found = {what: self.judged(scores, measure) for what, measure in measures.items()}
            plain = measures["log probability"]
            found["log probability, a threshold for each length"] = self._by_length(scores, plain)
            for what, own in found.items():
                is_first = own is found["SLR"]
                p = compare_answers(own.right, found["SLR"].right, seed=self.seed).p_value
                self.report.add_result(
                    Result(
                        table=_MEASURES,
                        model=name,
                        metric=f"accuracy by {what}",
                        data="10 to 30 words",
                        value=own.accuracy,
                        n=own.n,
                        interval=own.interval,
                        p=None if is_first else p,
                        baseline=None if is_first else "SLR (exact McNemar)",
                        digits=3,
                    )
                )

    def _by_length(
        self, scores: dict[Part, tuple[Scores, Scores]], measure: Measure
    ) -> Classification:
        """Return how well a measure separates good and bad, with a threshold for each length."""
        dev = [(measure(each), each.lengths) for each in scores["dev"]]
        moved = []
        for each in scores["test"]:
            thresholds = {
                length: length_threshold(dev, length) for length in set(each.lengths.tolist())
            }
            own = np.array([thresholds[length] for length in each.lengths.tolist()])
            moved.append(measure(each) - own)
        return classify(moved[0], moved[1], 0.0, seed=self.seed)

    def trees(self) -> None:
        """Judge with one tree of a sentence and with more (footnote 4)."""
        keys = [Key(ALL, name) for name in _BY_TREES]
        scores: dict[Part, tuple[Scores, Scores]] = {}
        for part in PARTS:
            good, bad = (
                self.score(
                    f"trigram.{part}.{kind}", self.trigram_set.sentences(part, kind), keys, self.ks
                )
                for kind in ("good", "bad")
            )
            scores[part] = good, bad
        most = max(self.ks)
        for key in keys:
            found = {k: self.judged(scores, self.slr(key, k)) for k in self.ks}
            for k, own in found.items():
                p = compare_answers(own.right, found[most].right, seed=self.seed).p_value
                self.report.add_result(
                    Result(
                        table="Trigram pseudo-negatives by trees of a sentence",
                        model=key.model,
                        metric=f"accuracy, k = {k}",
                        data="10 to 30 words",
                        value=own.accuracy,
                        n=own.n,
                        interval=own.interval,
                        p=None if k == most else p,
                        baseline=None if k == most else f"k = {most} (exact McNemar)",
                        digits=3,
                    )
                )

    def examples(self) -> None:
        """Show bad sentences of each kind, without judging them (Table 3)."""
        self._examples("one error", [pair.bad for pair in self._noisy_pairs("test")[:5]])
        self._examples("trigram model", self.trigram_set.sentences("test", "bad")[:5])
        for name, files in TRANSLATIONS.items():
            found = translation_pairs(self.data, files, self.limit)
            if found is not None:
                self._examples(f"translation ({name})", [pair.bad for pair in found[0][:5]])
                self._add_bleu(name, found[0])

    @staticmethod
    def _parser_is_known(scores: Iterable[Scores]) -> bool:
        """Whether the parser's own log probabilities were kept."""
        return not any(np.isnan(each.parser).any() for each in scores)

    # -- Table 5 ----------------------------------------------------------------------------

    def noisy(self) -> None:
        """Tell sentences from those with one error."""
        pairs = {part: self._noisy_pairs(part) for part in PARTS}
        for training in dict.fromkeys((self.small, ALL)):
            keys = self.judges(training)
            sides = {part: self._noisy_scores(part, pairs[part], keys) for part in PARTS}
            data = f"all test sets; trained on {self.training_name(training)}"
            right: dict[str, Flags] = {}
            called: dict[str, Classification] = {}
            found: dict[str, PairAccuracy] = {}
            judges = [key for key in sides["dev"][0].values if key in sides["test"][0].values]
            for key in judges:
                good, bad = (each.slr(key) for each in sides["test"])
                threshold = tune_threshold(*(each.slr(key) for each in sides["dev"]))
                called[key.model] = classify(good, bad, threshold, seed=self.seed, paired=True)
                found[key.model] = pair_accuracy(good, bad, seed=self.seed)
                right[key.model] = good > bad
            for key in judges:
                own = found[key.model]
                paired = Answers(own.accuracy, own.interval, right[key.model])
                alone = called[key.model]
                for metric, answers, five in (
                    ("pairwise accuracy", paired, right[FIVE_GRAM]),
                    ("independent accuracy", alone, called[FIVE_GRAM].right),
                ):
                    self.add_accuracy(
                        NOISY_TABLE, key, metric, data, found=answers, baseline=(FIVE_GRAM, five)
                    )
            self._differences(NOISY_TABLE, training, right)
            self._by_error(training, pairs["test"], right)
        self._examples("one error", [pair.bad for pair in pairs["test"][:5]])
        published = NOISY if self.small == ALL else NOISY_LARGE
        for name, (pairwise, single_value) in published.items():
            self.published(NOISY_TABLE, name, "pairwise accuracy", pairwise, 5)
            self.published(NOISY_TABLE, name, "independent accuracy", single_value, 5)

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
        bad = {key: noisy.slr(key, k) for key in keys}
        if self._parser_is_known((*banks, noisy)):
            five, own = Key(keys[0].training, FIVE_GRAM), Key(keys[0].training, LATENT)
            good[own] = np.concatenate([each.parser_slr(five) for each in banks])[chosen]
            bad[own] = noisy.parser_slr(five)
        return _Side(good), _Side(bad)

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
        """Add the BLEU of translations against references."""
        if not self._is_new(f"BLEU: {name}"):
            return
        sides = [[" ".join(words) for words in side] for side in zip(*_words(pairs), strict=True)]
        items = text_statistics(sides[1], [sides[0]]).astype(np.float64)
        found = bootstrap_sums(
            items, lambda sums: bleu(sums, smoothing="exp"), statistic="BLEU", seed=self.seed
        )
        self.report.add_result(
            Result(
                table="BLEU of the translations that differ from the reference (Table 6)",
                model=name,
                metric="BLEU, tokenized",
                data=name,
                value=found.difference,
                n=len(pairs),
                interval=found.interval,
                digits=1,
            )
        )

    def _published_mt(self) -> None:
        for name, value in MT.items():
            self.published(_MT, name, "pairwise accuracy", value, 6)
