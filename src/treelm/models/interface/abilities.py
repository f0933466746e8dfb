"""What only some models can do: asked for by name, refused with the systems that can do it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from treelm.errors import UnsupportedTask, spelled

if TYPE_CHECKING:
    from treelm.corpus.encoder import Ids, Places
    from treelm.corpus.files import Source
    from treelm.corpus.vocabulary import Vocabulary
    from treelm.corpus.words import Word, Words
    from treelm.grammar.packed_forest import PackedForest
    from treelm.grammar.parser_options import ParserOptions
    from treelm.grammar.subcategories import Subcategory
    from treelm.models.hhmm.state import ParserMeasures, WeightedStack
    from treelm.models.interface.classifier import Explanation
    from treelm.models.interface.model import LanguageModel, Task
    from treelm.models.interface.partial_parses import PartialParses
    from treelm.models.interface.score_explanation import ScoreExplanation
    from treelm.models.interface.scores import BatchScores
    from treelm.models.interface.states import Context, State, Step
    from treelm.models.treelet.explain import Factor
    from treelm.trees.tree import Tree

Floats = npt.NDArray[np.float64]
Ability = TypeVar("Ability")

_VERBS = {
    "score": "score sentences",
    "surprisal": "give the surprisal of words",
    "perplexity": "have a perplexity",
    "sample": "sample sentences",
    "parse": "parse sentences",
    "classify": "classify sentences",
    "decode": "go word by word",
}


def systems_that(able: Callable[[type[LanguageModel]], bool]) -> list[str]:
    """Return the registered systems whose classes pass a test, for messages.

    This imports every system, so it is called only once something went wrong.
    """
    from treelm.models.registry import systems

    stored = (system for system in systems().values() if system.is_stored)
    return [system.name for system in stored if able(system.model_class)]


def refusal(model: LanguageModel, task: Task, code: str) -> UnsupportedTask:
    """Return the error for a task that a model does not do.

    Args:
        model: The model.
        task: What it was asked.
        code: What keeps it from that, as `LanguageModel.obstacle` gives it.
    """
    system, verb = model.system, _VERBS[task]
    if code == "E_NO_PARSER":
        with_parser = spelled(command_line="--parser", python="`model.with_parser(parser)`")
        with_trees = spelled(command_line="--trees or --k-best", python="`tree_log_probs`")
        return UnsupportedTask(
            f"this {system} model needs the trees of a sentence and has no parser to find them. "
            f"Give it one with {with_parser}; models that give trees probabilities also score "
            f"trees, with {with_trees}.",
            code=code,
        )
    able = ", ".join(systems_that(lambda kind: task in kind.tasks))
    if code == "E_NOT_NORMALIZED":
        advice = (
            " Compare such models by what they choose, for example by their accuracy on pairs of "
            "sentences."
            if task == "perplexity"
            else ""
        )
        return UnsupportedTask(
            f"the scores of this {system} model are not probabilities that sum to 1, so it does "
            f"not {verb}.{advice} Systems that {verb}: {able}.",
            code=code,
        )
    why = " They score whole sentences: use `score`." if code == "E_NOT_INCREMENTAL" else ""
    return UnsupportedTask(
        f"{system} models do not {verb}.{why} Systems that {verb}: {able}.", code=code
    )


def has_ability(model: LanguageModel, ability: type[Any]) -> bool:
    """Return whether a model has an ability: a protocol, or a class of the interface."""
    return isinstance(model, ability)


def ask_for(model: LanguageModel, ability: Callable[..., Ability], what: str) -> Ability:
    """Return a model as something that has an ability.

    Args:
        model: The model.
        ability: A runtime-checkable protocol of methods, or a class of the interface.
        what: What is wanted, as a verb with its object, for the error.

    Raises:
        UnsupportedTask: naming the systems that have the ability.
    """
    kind = cast("type[Ability]", ability)  # mypy refuses abstract classes as arguments of `type`
    if isinstance(model, kind):
        return model
    able = ", ".join(systems_that(lambda system: issubclass(system, kind)))
    raise UnsupportedTask(f"{model.system} models do not {what}. Systems that do: {able}.")


# -- abilities of some systems ------------------------------------------------------------------


@runtime_checkable
class ExplainsDecisions(Protocol):
    """Weighs the productions of a tree, so that the tree shows why a sentence is good or bad."""

    def explain(self, sentence: Words) -> Explanation | None:
        """Return the tree behind a decision with the weight of each of its productions."""


@runtime_checkable
class ExplainsScores(Protocol):
    """Shows the arithmetic of its scores."""

    def explain_score(self, sentence: Words) -> ScoreExplanation:
        """Return the steps that add up to the score of a sentence."""


@runtime_checkable
class GivesForests(Protocol):
    """Keeps all that pruning leaves of the trees of a sentence."""

    def forests_many(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        least: float = 0.0,
        options: ParserOptions | None = None,
        threads: int = 1,
    ) -> list[PackedForest | None]:
        """Return what pruning leaves of every sentence's trees; None for no words."""


@runtime_checkable
class GivesPosteriors(Protocol):
    """Sums over all trees of a sentence, so that a tree has a probability given its words."""

    def tree_log_posteriors(self, trees: Sequence[Tree], *, threads: int = 1) -> Floats:
        """Return the natural log probability of each tree given its words."""


@runtime_checkable
class HasSubcategories(Protocol):
    """Has a grammar whose labels may be split."""

    def subcategories(self, symbol: str, *, limit: int = 8) -> list[Subcategory]:
        """Return the subcategories of a label, the most frequent first."""


class TopicTable(NamedTuple):
    """Topics of a model."""

    shares: Floats
    """The share of each in the training text; none for a model without topics."""
    counts: Floats
    """Expected counts of words and the sentence end (rows) in topics (columns)."""

    def _repr_html_(self) -> str:
        from treelm.view.notebook import ranked_html

        order = np.argsort(-self.shares, kind="stable").tolist()
        rows = [(topic, float(self.shares[topic]), float(self.counts[:, topic].sum()))
                for topic in order]  # fmt: skip
        header = ["topic", "share", "expected words"]
        return ranked_html("Topics by their share", header, rows, "topics")


@runtime_checkable
class HasTopics(Protocol):
    """Has topics, unless it was trained without."""

    def topic_table(self) -> TopicTable:
        """Return the topics."""


@runtime_checkable
class TakesTreesApart(Protocol):
    """Shows the factors of which the probability of a tree is made."""

    def tree_factors(self, tree: Tree) -> list[Factor]:
        """Return the factors of a tree as a treebank has it, in the order of the story."""


@runtime_checkable
class WritesArpa(Protocol):
    """Is made of n-grams, so that an ARPA file can hold it."""

    def write_arpa(self, target: Source) -> None:
        """Write the model as an ARPA file."""


@runtime_checkable
class GivesPartialParses(Protocol):
    """Shows the trees that are possible after each word of a sentence."""

    def partial_parses(self, sentence: Words, k: int = 5) -> PartialParses:
        """Return the k best partial trees after each word."""


@runtime_checkable
class ParsesWordByWord(Protocol):
    """Goes word by word and tells what the states of its parser are."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The words it knows."""

    def initial(self, context: Context | None = None) -> State:
        """Return the state before any word."""

    def advance(self, state: State, word: Word) -> Step:
        """Return the log probability of a word in a state, and the state after it."""

    def measure_ids(
        self, ids: Ids, starts: Places, *, threads: int = 1
    ) -> tuple[BatchScores, ParserMeasures]:
        """Return scores of sentences and what the parser believes after each word."""

    def stacks(self, state: State, count: int = 10) -> list[WeightedStack]:
        """Return the most probable stacks of a state."""
