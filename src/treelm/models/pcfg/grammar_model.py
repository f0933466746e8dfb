"""What models made of a grammar and a lexicon have in common: parsing, scoring, their files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from itertools import islice
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt

from treelm.corpus.lengths import after_sentences, check_charts, check_lengths
from treelm.corpus.words import Words, sentences_of
from treelm.errors import ModelFileError, UnsupportedTask, option
from treelm.grammar.binary_trees import BinaryTrees, build_binary_trees
from treelm.grammar.chart import UNLIMITED_WORK, WORK_LIMIT, ChartParser
from treelm.grammar.grammar import FloatArray, Grammar
from treelm.grammar.k_best import KBest, KBestParser
from treelm.grammar.lexicon import Lexicon
from treelm.grammar.packed_forest import PackedForest, forest_log_probs, parse_forests
from treelm.grammar.parser_options import ParserOptions, Pruning
from treelm.grammar.sample import GrammarSampler
from treelm.grammar.scored_tree import ScoredTree
from treelm.grammar.storage import read_grammar, write_grammar
from treelm.grammar.subcategories import Subcategory, describe_subcategories
from treelm.grammar.tree_scores import TreeScores
from treelm.models.interface.config import config_of
from treelm.models.interface.model import LONGEST_SAMPLE, ModelInfo, Task
from treelm.models.interface.parser import ArrayParser
from treelm.models.interface.score_explanation import ScoreExplanation
from treelm.models.interface.scores import Sample, SentenceScore
from treelm.models.interface.scoring_views import PrunedScores
from treelm.models.interface.trained_model import OwnConfig, TrainedModel
from treelm.models.interface.tree_model import TreeScorer
from treelm.seeds import given_or_fresh
from treelm.store.folder import FolderWriter, ModelFolder
from treelm.store.manifest import TrainingCorpus
from treelm.store.schema import damage_in
from treelm.trees.packed import PackedTrees
from treelm.trees.tree import Tree

#: Sentences that are scored at once.
_BATCH = 256


class GrammarModel(TrainedModel[OwnConfig], ArrayParser, TreeScorer):
    """Parses and scores sentences with a grammar.

    Args:
        grammar: The rules.
        lexicon: The words.
        unigram_counts: Count of each id in the training text, that of ``</s>`` last.
        config: Options it was trained with.
        corpora: What it was trained on.
    """

    tasks: ClassVar[frozenset[Task]] = frozenset(
        {Task.SCORE, Task.PARSE, Task.PERPLEXITY, Task.SAMPLE}
    )
    usual_max_words: ClassVar[int | None] = 400
    #: What messages call a grammar of this kind.
    kind: ClassVar[str]

    def __init__(
        self,
        grammar: Grammar,
        lexicon: Lexicon,
        unigram_counts: npt.NDArray[np.uint64],
        config: OwnConfig,
        corpora: Sequence[TrainingCorpus] = (),
    ) -> None:
        self.grammar, self.lexicon = grammar, lexicon
        self._vocabulary = lexicon.vocabulary
        self._unigram_counts = unigram_counts
        self._config = config
        self._corpora = tuple(corpora)
        # Made of parts of the model: with itself in it, a deleted model would stay in memory.
        self._parsers = lru_cache(maxsize=8)(partial(ChartParser, grammar, lexicon))

    # -- properties -------------------------------------------------------------------------

    @cached_property
    def info(self) -> ModelInfo:
        """What kind of numbers it returns."""
        return ModelInfo(
            exactness="exact",
            normalized=self.lexicon.normalized,
            vocabulary=self.vocabulary.fingerprint,
        )

    def details(self) -> dict[str, object]:
        """Return the few numbers that tell it from others."""
        rules = len(self.grammar.unary_rules) + len(self.grammar.binary_rules)
        latent = {"subcategories": self.grammar.total_substates} if self.grammar.is_latent else {}
        return {"symbols": len(self.grammar.symbols), **latent, "rules": rules}

    def obstacle(self, task: Task) -> str | None:
        """Return what keeps this grammar from a task: perhaps words that do not add up to one."""
        found = super().obstacle(task)
        if found is None and task is Task.SAMPLE and not self.lexicon.normalized:
            return "E_NOT_NORMALIZED"
        return found

    def unable(self, task: Task) -> UnsupportedTask:
        """Return the error for a task that it does not do, with the lexicon that would help."""
        error = super().unable(task)
        if error.code != "E_NOT_NORMALIZED":
            return error
        advice = (
            f"The words of a closed lexicon sum to one: train with {option('lexicon', 'closed')}."
        )
        return UnsupportedTask(f"{error} {advice}", code=error.code)

    # -- trees ------------------------------------------------------------------------------

    def k_best_many(
        self,
        sentences: Sequence[Words],
        k: int,
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[KBest | None]:
        """Return up to `k` distinct trees of every sentence as arrays; None for no words."""
        parser = self._k_best_parsers(options or self.parser_options)
        lists = parser.parse(list(sentences_of(sentences)), k, threads=threads)
        own = self.tree_log_probs
        return [found and replace(found, tree_log_probs=own) for found in lists]

    def forests_many(
        self,
        sentences: Sequence[Words],
        *,
        least: float = 0.0,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[PackedForest | None]:
        """Return the pruned forest of every sentence; None for no words.

        Args:
            sentences: The words of each, or strings that are split at white space.
            least: Rules expected less often than this are left out too.
            options: Parser options; None for the model's own.
            threads: Number of threads.
        """
        parser = self._k_best_parsers(options or self.parser_options)
        return parse_forests(parser, list(sentences_of(sentences)), least=least, threads=threads)

    def forest_log_probs(
        self, forests: Sequence[PackedForest | None], *, threads: int = 1
    ) -> npt.NDArray[np.float64]:
        """Return the log of the summed probabilities of all trees of each forest, exactly."""
        return forest_log_probs(forests, self._parsers(self.parser_options), threads=threads)

    @cached_property
    def _k_best_parsers(self) -> Callable[[ParserOptions], KBestParser]:
        parsers, restored = self._parsers, self._restored
        return lru_cache(maxsize=8)(lambda options: KBestParser(parsers(options), restored))

    @cached_property
    def _restored(self) -> Callable[[Tree], Tree]:
        """Turns a tree of the grammar into one in the form of the treebank."""
        return lambda tree: tree

    def parse_many(
        self,
        sentences: Sequence[Words],
        *,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[ScoredTree | None]:
        """Return the best tree of every sentence, None for one without words."""
        parser = self._parsers(options or self.parser_options)
        found = parser.parse(list(sentences_of(sentences)), threads=threads)
        trees = {
            place: self._restored(each.tree) for place, each in enumerate(found) if each is not None
        }
        own = self.tree_log_probs(list(trees.values()), threads=threads).tolist() if trees else []
        log_probs = dict(zip(trees, own, strict=True))
        return [
            None
            if each is None
            else each._replace(
                tree=trees[place],
                tree_log_prob=-np.inf if each.is_fallback else log_probs[place],
            )
            for place, each in enumerate(found)
        ]

    def _binary_trees(self, trees: Sequence[Tree]) -> BinaryTrees:
        """Return trees in the form of the grammar."""
        return build_binary_trees([PackedTrees.from_trees(trees)], keep_cycles=True)

    @cached_property
    def _tree_scores(self) -> TreeScores:
        return TreeScores(self.grammar, self.lexicon)

    def tree_log_probs(self, trees: Sequence[Tree], *, threads: int = 1) -> FloatArray:
        """Return the joint natural log probability of each tree and its words, exactly.

        Args:
            trees: Trees below ROOT, as a reader or a parser returns them.
            threads: Number of threads.

        Returns:
            One number per tree: that of its one derivation, summed over subcategories; minus
            infinity for trees that the grammar cannot derive.
        """
        made = self._binary_trees(trees)
        return self._tree_scores.log_probs(made, len(trees), threads=threads)

    def tree_log_posteriors(self, trees: Sequence[Tree], *, threads: int = 1) -> FloatArray:
        """Return the natural log probability of each tree given its words, exactly.

        It is minus infinity where `tree_log_probs` is.
        """
        joint = self.tree_log_probs(trees, threads=threads)
        possible = np.flatnonzero(~np.isneginf(joint))
        sentences = [trees[place].words for place in possible.tolist()]
        joint[possible] -= self.sentence_log_probs(sentences, threads=threads)
        return joint

    def subcategories(self, symbol: str, *, limit: int = 8) -> list[Subcategory]:
        """Return the subcategories of a label, the most frequent first.

        Args:
            symbol: A label, such as ``NP``.
            limit: Most words and most rules of each.

        Raises:
            UsageError: if the grammar has no such symbol.
        """
        return describe_subcategories(self.grammar, self.lexicon, symbol, limit=limit)

    # -- scores -----------------------------------------------------------------------------

    def score(self, sentence: Words, *, eos: bool = True) -> SentenceScore:
        """Return the log probability of a sentence over all its trees."""
        return next(self.score_many([sentence], eos=eos))

    def score_many(
        self, sentences: Iterable[Words], *, eos: bool = True, threads: int = 1
    ) -> Iterator[SentenceScore]:
        """Yield the scores of sentences, in order; a sentence without a parse is marked.

        Raises:
            UnsupportedTask: without the end of the sentence, where there are only whole trees.
            TooLongSentence: ``E_TOO_LONG`` for a sentence of more words than `max_words`, or whose
                chart is too large.
        """
        rest, done = sentences_of(sentences), 0
        while batch := list(islice(rest, _BATCH)):
            with after_sentences(done):
                values = self.sentence_log_probs(batch, eos=eos, threads=threads).tolist()
            done += len(batch)
            for value in values:
                yield SentenceScore(value, "exact", eos, fallback=value == -np.inf)

    def sentence_log_probs(
        self, sentences: Sequence[Words], *, eos: bool = True, threads: int = 1
    ) -> FloatArray:
        """Return the exact log probabilities of sentences, in order."""
        if not eos:
            raise UnsupportedTask(f"a {self.kind} scores whole sentences, their end included.")
        given = list(sentences_of(sentences))
        check_lengths(map(len, given), self.max_words, self.system)
        values = self._parsers(ParserOptions()).log_probs(
            given, work_limit=self.work_limit, threads=threads
        )
        check_charts(values, map(len, given))
        return values

    @property
    def work_limit(self) -> int:
        """Multiplications after which a chart is given up; none if long sentences are wanted."""
        return WORK_LIMIT if self._max_words is None else UNLIMITED_WORK

    def lower_bounds(
        self, sentences: Sequence[Words], options: ParserOptions, *, threads: int = 1
    ) -> FloatArray:
        """Return the log probabilities of sentences in their pruned charts."""
        given = list(sentences_of(sentences))
        check_lengths(map(len, given), self.max_words, self.system)
        return self._parsers(options).lower_bounds(given, threads=threads)

    def pruned(self, pruning: Pruning = "default") -> PrunedScores:
        """Return the model as one that scores sentences faster, by lower bounds."""
        return PrunedScores(self, pruning).with_tokenizer(self.tokenizer)

    def sample(
        self,
        count: int,
        *,
        seed: int | None = None,
        first: int = 0,
        max_words: int = LONGEST_SAMPLE,
    ) -> list[Sample]:
        """Return sentences drawn from the grammar, with their trees; longer ones are given up.

        Raises:
            UnsupportedTask: ``E_NOT_NORMALIZED`` if the words do not sum to one.
        """
        self.require(Task.SAMPLE)
        chosen = given_or_fresh(seed)
        drawn = [self._sampler.draw(chosen, first + index, max_words) for index in range(count)]
        done = [self._restored(tree) for tree, _ in drawn if tree is not None]
        log_probs = iter(self.tree_log_probs(done).tolist())
        trees = iter(done)
        return [
            Sample(words, -np.inf, complete=False, seed=chosen)
            if tree is None
            else Sample(words, next(log_probs), complete=True, tree=next(trees), seed=chosen)
            for tree, words in drawn
        ]

    @cached_property
    def _sampler(self) -> GrammarSampler:
        return GrammarSampler(self.grammar, self.lexicon)

    # -- explanation ------------------------------------------------------------------------

    tree_reference: ClassVar[str] = (
        "Petrov et al. (2006): inside probabilities (docs/systems/pcfg-la.md)"
    )

    def explain_score(self, sentence: Words) -> ScoreExplanation:
        """Return the arithmetic of the score of a sentence: its best tree, and the others."""
        [words] = sentences_of([sentence])
        trees = [parse.tree for parse in self.parse(words, 10) if not parse.is_fallback]
        return self.explained_by_trees(tuple(words), self.score(words).log_prob, trees)

    # -- files ------------------------------------------------------------------------------

    def write_files(self, writer: FolderWriter) -> None:
        """Write rules, labels and words."""
        write_grammar(writer, self.grammar, self.lexicon, self._unigram_counts)

    @classmethod
    @abstractmethod
    def _fits(cls, grammar: Grammar, config: OwnConfig) -> bool:
        """Return whether a grammar fits the options."""

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Return the model in an opened folder."""
        config = cast("OwnConfig", config_of(folder, cls.config_class, f"a {cls.kind}"))
        with damage_in(folder):
            grammar, lexicon, counts = read_grammar(folder)
            if not cls._fits(grammar, config):
                raise ModelFileError(
                    f"its grammar is not the {cls.kind} that the manifest describes",
                    code="E_MODEL_TABLES",
                )
        return cls(grammar, lexicon, counts, config, folder.manifest.corpora)

    def _arguments(self) -> dict[str, Any]:
        arguments = {**super()._arguments(), "grammar": self.grammar, "lexicon": self.lexicon}
        del arguments["vocabulary"]  # that of the lexicon
        return arguments
