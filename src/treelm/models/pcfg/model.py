"""The treebank grammar: rules with their relative frequencies, words through a smoothed lexicon."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from treelm import _native
from treelm.corpus.encoder import Ids, Places
from treelm.corpus.lengths import check_charts, check_starts
from treelm.corpus.words import Word, Words, words_of
from treelm.grammar.binary_trees import BinaryTrees
from treelm.grammar.grammar import FloatArray, Grammar
from treelm.grammar.parser_options import ParserOptions
from treelm.grammar.prefix import PrefixCharts, word_log_probs
from treelm.models.interface.config import Config
from treelm.models.interface.incremental import IncrementalModel
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.score_explanation import Arithmetic, ScoreExplanation, ScoreTerm
from treelm.models.interface.scores import BatchScores, CountedScores, SentenceScore
from treelm.models.interface.states import (
    Context,
    State,
    Step,
    damaged_state,
    state_payload,
    unpack_numbers,
)
from treelm.models.pcfg.config import PcfgConfig
from treelm.models.pcfg.grammar_model import GrammarModel
from treelm.models.pcfg.state import PrefixState
from treelm.transforms.transform import Pipeline
from treelm.trees.tree import Tree


class PcfgModel(GrammarModel[PcfgConfig], IncrementalModel):
    """Parses and scores sentences with the rules of a treebank, also word by word.

    The probability of a word is that of the prefix it ends, over that of the prefix before it
    (Jelinek and Lafferty 1991; Stolcke 1995); nothing is pruned.
    """

    system: ClassVar[str] = "pcfg"
    tasks: ClassVar[frozenset[Task]] = GrammarModel.tasks | {Task.SURPRISAL, Task.DECODE}
    config_class: ClassVar[type[Config]] = PcfgConfig
    kind: ClassVar[str] = "treebank grammar"

    def __repr__(self) -> str:
        rules = len(self.grammar.unary_rules) + len(self.grammar.binary_rules)
        return f"PcfgModel(symbols={len(self.grammar.symbols)}, rules={rules})"

    @cached_property
    def _pipeline(self) -> Pipeline:
        return self._config.pipeline()

    def _binary_trees(self, trees: Sequence[Tree]) -> BinaryTrees:
        return self._config.binary_trees_of(trees, self.vocabulary.profile)

    @property
    def parser_options(self) -> ParserOptions:
        """How it parses unless told otherwise: with the decoding it was trained for."""
        return ParserOptions(decoding=self._config.decoding)

    @cached_property
    def _restored(self) -> Callable[[Tree], Tree]:
        return self._pipeline.undo

    # -- word by word -----------------------------------------------------------------------

    @cached_property
    def _prefixes(self) -> _native.PrefixScorer:
        return self._parsers(ParserOptions()).prefixes

    @cached_property
    def _charts(self) -> PrefixCharts:
        return PrefixCharts(self._prefixes)

    @cached_property
    def fingerprint(self) -> bytes:
        """8 bytes that tell the model from others."""
        weights = {
            "unary": self.grammar.unary_weights,
            "binary": self.grammar.binary_weights,
            "words": self.lexicon.entry_scores,
        }
        return self._fingerprint(weights, "\n".join(self.grammar.symbols))

    def initial(self, context: Context | None = None) -> PrefixState:
        """Return the state before any word; documents do not matter."""
        del context
        return PrefixState((), self.fingerprint)

    def advance(self, state: State, word: Word) -> Step:
        """Return the natural log probability of a word in a state, and the state after it."""
        own = self._own(state)
        word_id = self.word_ids.word(word, first=not own.words)
        log_probs = self._charts.next_log_probs(own.words, np.array([word_id], dtype=np.uint32))
        return Step(float(log_probs[0]), PrefixState((*own.words, word_id), self.fingerprint))

    def finish(self, state: State) -> float:
        """Return the natural log probability that the sentence ends in this state."""
        return self._charts.end_log_prob(self._own(state).words)

    score_story: ClassVar[str] = (
        "The probability of a word is that of the prefix that it ends, over that of the prefix "
        "before it; a prefix has the probability of all trees that begin with its words."
    )
    score_reference: ClassVar[str] = (
        "Jelinek and Lafferty (1991), Stolcke (1995): prefix probabilities (docs/systems/pcfg.md)"
    )

    def word_arithmetic(
        self, state: State, word: Word | None, before: Sequence[str]
    ) -> Arithmetic | None:
        """Return the probabilities of two prefixes, whose ratio is that of a word."""
        del before
        words = self._own(state).words
        earlier = self._charts.chart(words).log_prefix if words else 0.0
        if earlier == -np.inf:
            return None
        if word is None:
            after = self._charts.chart(words).log_whole
            named = "P(the words as a whole sentence)"
        else:
            word_id = self.word_ids.word(word, first=not words)
            after = self._charts.chart((*words, word_id)).log_prefix
            named = f"P(sentences that begin so, up to word {len(words) + 1}, {word})"
        terms = [ScoreTerm(named, after)]
        if words:
            terms.append(ScoreTerm(f"1 / P(the same, up to word {len(words)})", -earlier))
        return Arithmetic("product", tuple(terms))

    def distribution(self, state: State, words: Sequence[Word] | None = None) -> FloatArray:
        """Return the log probabilities of words in a state; all of them cost hardly more than one.

        Args:
            state: The state.
            words: The words; None for all of the vocabulary by id, and the sentence end last.
        """
        own = self._own(state)
        if words is None:
            ids = np.arange(len(self.vocabulary), dtype=np.uint32)
            found = self._charts.next_log_probs(own.words, ids)
            return np.append(found, self.finish(state))
        first = not own.words
        asked = [self.word_ids.word(word, first=first) for word in words_of(words)]
        return self._charts.next_log_probs(own.words, np.array(asked, dtype=np.uint32))

    def _own(self, state: State) -> PrefixState:
        self.check_state(state)
        if not isinstance(state, PrefixState):
            raise TypeError(f"a state of a treebank grammar is needed, not {type(state).__name__}")
        return state

    def state_from_bytes(self, data: bytes) -> PrefixState:
        """Return the state whose `to_bytes` gave these bytes."""
        words = unpack_numbers(state_payload(data, self.fingerprint))
        if any(word >= len(self.vocabulary) for word in words):
            raise damaged_state()
        return PrefixState(tuple(words), self.fingerprint)

    # -- sentences --------------------------------------------------------------------------

    def score_ids(self, ids: Ids, starts: Places, *, threads: int = 1) -> BatchScores:
        """Return the log probability of every word and end of sentences that are ids already.

        Raises:
            TooLongSentence: ``E_TOO_LONG`` for a sentence of more words than `max_words`, or whose
                chart is too large.
        """
        check_starts(starts, self.max_words, self.system)
        log_probs = word_log_probs(
            self._prefixes, ids, starts, work_limit=self.work_limit, threads=threads
        )
        scores = self.batch_scores(log_probs, ids, starts)
        check_charts(scores.log_probs[scores.ends], np.diff(starts.astype(np.int64)).tolist())
        return scores

    def explain_score(self, sentence: Words) -> ScoreExplanation:
        """Return the arithmetic of the log probability of a sentence, word by word."""
        return IncrementalModel.explain_score(self, sentence)

    def score(self, sentence: Words, *, eos: bool = True, bos: bool = True) -> SentenceScore:
        """Return the score of a sentence and of each of its words."""
        return IncrementalModel.score(self, sentence, eos=eos, bos=bos)

    def score_many(
        self, sentences: Iterable[Words], *, eos: bool = True, threads: int = 1, bos: bool = True
    ) -> Iterator[SentenceScore]:
        """Yield the scores of sentences and of their words, in order."""
        return IncrementalModel.score_many(self, sentences, eos=eos, bos=bos, threads=threads)

    def sentence_log_probs(
        self, sentences: Sequence[Words], *, eos: bool = True, threads: int = 1
    ) -> FloatArray:
        """Return the log probabilities of sentences, or without their ends those of prefixes."""
        if eos:
            return super().sentence_log_probs(sentences, threads=threads)
        return self.score_batch(sentences, threads=threads).sentence_log_probs(eos=False)

    def log_probs_and_unknown(
        self, sentences: Sequence[Words], *, eos: bool = True, threads: int = 1
    ) -> CountedScores:
        """Return log probabilities, not word by word, and the number of unknown words."""
        return LanguageModel.log_probs_and_unknown(self, sentences, eos=eos, threads=threads)

    # -- files ------------------------------------------------------------------------------

    def transforms(self) -> Sequence[Mapping[str, object]]:
        """Return what was done to the training trees."""
        return self._pipeline.to_config()

    @classmethod
    def _fits(cls, grammar: Grammar, config: PcfgConfig) -> bool:
        del config
        return not grammar.is_latent
