"""Partial trees after each word: against all trees of small grammars, and against the parser."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator

import pytest
from tests.models.hhmm_cases import exact_model

import treelm
from treelm.corpus.lengths import TooLongSentence
from treelm.corpus.sample_treebank import sample_path
from treelm.errors import UnsupportedTask, UsageError
from treelm.models.hhmm.model import HhmmModel
from treelm.models.hhmm.shared_histories import SharedHistories
from treelm.models.hhmm.viterbi import ROOT, WITHIN, restore
from treelm.models.interface.partial_parses import OPEN, PartialParses
from treelm.trees.tree import Tree

#: No category contains itself, so all sentences can be listed. Prepositional phrases attach high or
#: low, "that" begins a relative or a complement clause, "raced" is a verb or a participle.
GRAMMAR = """
TOP -> S </s> 1
S -> NP VP 2/3
S -> NP V 1/3
NP -> D N 1/2
NP -> NQ PP 1/4
NP -> NQ R 1/4
NQ -> D N 1
R -> P NR 3/4
R -> A NR 1/4
PP -> P NR 1
NR -> D N 1
VP -> V NR 1/2
VP -> V VX 1/4
VP -> V PP 1/4
VX -> NR PP 1
D -> the 1
N -> horse 1/2
N -> barn 1/2
V -> raced 2/3
V -> fell 1/3
A -> raced 1
P -> past 9/10
P -> fell 1/10
""".strip().splitlines()


def all_trees() -> list[tuple[float, Tree]]:
    """Return every tree of the grammar and its probability."""
    rules: dict[str, list[tuple[list[str], float]]] = defaultdict(list)
    for line in GRAMMAR:
        parent, _, *right, last = line.split()
        top, _, bottom = last.partition("/")
        rules[parent].append((right, int(top) / int(bottom or 1)))

    def below(symbol: str) -> Iterator[tuple[float, Tree]]:
        for right, probability in rules[symbol]:
            if len(right) == 1:
                yield probability, Tree(symbol, right[0])
                continue
            for first, left in below(right[0]):
                for second, other in below(right[1]):
                    yield probability * first * second, Tree(symbol, [left, other])

    return [(probability, Tree("ROOT", [tree])) for probability, tree in below("S")]


def beginning(tree: Tree, words: int) -> Tree:
    """Return what a right-corner parser knows of a tree after some words, straight from its shape.

    A node is known once its right child has begun, and then that child's category too.
    """

    def partial(node: Tree, read: int) -> tuple[Tree, bool]:
        """Return the known part of a node, and whether the node itself is known."""
        if len(node.words) <= read:
            return node, True
        left, right = node.children
        if len(left.words) >= read:
            return partial(left, read)[0], False
        inner, known = partial(right, read - len(left.words))
        if not known:
            inner = Tree(right.label, [Tree(OPEN, [inner])])
        return Tree(node.label, [left, inner]), True

    [sentence] = tree.children
    return Tree("ROOT", [Tree(OPEN, [partial(sentence, words)[0]])])


def small_model(**options: object) -> HhmmModel:
    return exact_model(GRAMMAR, 4, **options)


SENTENCES = (
    "the horse raced",
    "the horse raced the barn",
    "the horse raced the barn past the horse",
    "the horse raced the barn fell the horse",
    "the horse raced past the barn",
    "the horse fell the barn fell",
    "the horse past the barn raced the horse",
)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_partial_parses_have_the_probabilities_of_all_trees_that_begin_so(sentence: str) -> None:
    words = tuple(sentence.split())
    found = small_model().partial_parses(words, k=50)
    trees = all_trees()
    assert math.fsum(probability for probability, _ in trees) == pytest.approx(1)
    assert found.words == words
    before = 0.0
    for count, step in enumerate(found.steps, start=1):
        expected: dict[Tree, float] = defaultdict(float)
        for probability, tree in trees:
            if tree.words[:count] == words[:count]:
                expected[beginning(tree, count)] += probability
        total = math.fsum(expected.values())
        own = {each.tree: each.probability for each in step.trees}
        assert own == pytest.approx({tree: p / total for tree, p in expected.items()}, abs=1e-9)
        for each in step.trees:
            assert math.exp(each.log_prob) == pytest.approx(expected[each.tree])
            assert each.tree.words == words[:count]
        assert step.shown == pytest.approx(1)
        assert step.surprisal == pytest.approx(-math.log2(total) - before)
        before = -math.log2(total)
    whole = {tree: p for p, tree in trees if tree.words == words}
    total = math.fsum(whole.values())
    shown = {each.tree: each.probability for each in found.whole}
    assert shown == pytest.approx({tree: p / total for tree, p in whole.items()})


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("k", [1, 2, 50])
def test_partial_parses_say_which_trees_go_on(sentence: str, k: int) -> None:
    words = tuple(sentence.split())
    found = small_model().partial_parses(words, k=k)
    survivors = [each.tree for each in found.whole]
    for count, step in enumerate(found.steps, start=1):
        beginnings = [beginning(tree, count) for tree in survivors]
        assert len(step.trees) <= k
        for each in step.trees:
            assert each.survives == (each.tree in beginnings)
            assert each.wins == (each.tree == beginnings[0])
        if step.winner_rank is not None and step.winner_rank <= len(step.trees):
            assert step.trees[step.winner_rank - 1].wins
            assert step.trees[step.winner_rank - 1].probability == step.winner_probability
        else:
            assert not any(each.wins for each in step.trees)
        for before, after in ((step, found.steps[count]),) if count < len(words) else ():
            grown = {each.came_from for each in after.trees}
            assert {each.rank for each in before.trees if each.continued} == grown - {None}


def ranks(found: PartialParses) -> list[int | None]:
    return [step.winner_rank for step in found.steps]


def test_partial_parses_see_a_garden_path() -> None:
    """ "raced" is first the verb; "fell" shows that it was a participle."""
    found = small_model().partial_parses("the horse raced the barn fell the barn", k=2)
    assert ranks(found)[2:] == [3, 2, 2, 1, 1, 1]
    assert found.disambiguation == 5
    first, second = found.steps[2].trees
    assert first.continued
    assert not first.wins
    assert not second.continued
    participle = found.steps[3].trees[1]
    assert participle.wins
    assert participle.came_from is None  # it was not among the two best: it comes back
    plain = small_model().partial_parses("the horse raced the barn", k=2)
    assert plain.disambiguation is None


def test_partial_parses_begin_again_where_no_analysis_is_left() -> None:
    model = small_model(robust_epsilon=0.01)
    found = model.partial_parses("the horse the barn raced", k=3)
    assert [step.began_again for step in found.steps] == [False, False, True, False, False]
    for step, count in zip(found.steps, (1, 2, 1, 2, 3), strict=True):
        assert step.shown == pytest.approx(1)
        for each in step.trees:
            assert len(each.tree.words) == count
    scores = treelm.surprisal(model, "the horse the barn raced")
    assert [step.surprisal for step in found.steps] == [each.surprisal for each in scores]
    assert found.steps[0].winner_rank is None
    assert found.whole[0].tree == Tree.from_string("(ROOT (S (NP (D the) (N barn)) (V raced)))")


@pytest.fixture(scope="module")
def trained() -> HhmmModel:
    model = treelm.train("hhmm", treelm.TreeCorpus((sample_path(),)))
    assert isinstance(model, HhmmModel)
    return model


def test_partial_parses_end_with_the_best_tree(trained: HhmmModel) -> None:
    for tree in list(treelm.sample_treebank())[:5]:
        words = tree.words
        [best] = trained.parse(words)
        found = trained.partial_parses(words, k=5)
        assert found.whole[0].tree == best.tree
        assert found.whole[0].log_prob >= best.score - 1e-9
        for count, step in enumerate(found.steps, start=1):
            assert step.shown <= 1 + 1e-6
            probabilities = [each.probability for each in step.trees]
            assert probabilities == sorted(probabilities, reverse=True)
            assert len({each.tree for each in step.trees}) == len(step.trees)
            assert all(each.tree.words == words[:count] for each in step.trees)


def test_partial_parses_refuse_what_they_cannot_show(trained: HhmmModel) -> None:
    with pytest.raises(UsageError, match="between 1 and 50"):
        trained.partial_parses("the dog", k=0)
    with pytest.raises(TooLongSentence):
        trained.partial_parses(["the"] * 201)
    with pytest.warns(treelm.TreelmWarning):
        ngram = treelm.train("ngram", [["a", "b"]], order=1, smoothing="kn")
    with pytest.raises(UnsupportedTask, match="hhmm"):
        treelm.partial_parses(ngram, "a b")


def test_partial_parses_of_no_words(trained: HhmmModel) -> None:
    found = treelm.partial_parses(trained, "")
    assert found.steps == found.whole == ()
    assert found.disambiguation is None


def test_partial_parses_become_json(trained: HhmmModel) -> None:
    found = treelm.partial_parses(trained, "The old ferry left .", k=2)
    read = json.loads(json.dumps(found.to_dict()))
    assert read["words"] == ["The", "old", "ferry", "left", "."]
    first = read["steps"][1]["trees"][0]
    assert Tree.from_string(first["tree"]) == found.steps[1].trees[0].tree
    assert first["probability"] == found.steps[1].trees[0].probability


def test_partial_parses_become_a_data_frame(trained: HhmmModel) -> None:
    pytest.importorskip("polars")
    parses = treelm.partial_parses(trained, "The old ferry left .", k=3)
    frame = parses.to_frame()
    assert frame.height == sum(len(step.trees) for step in parses.steps)
    for position, step in enumerate(parses.steps, 1):
        rows = frame.filter(frame["position"] == position)
        assert rows["tree"].to_list() == [str(each.tree) for each in step.trees]
        assert rows["probability"].to_list() == [each.probability for each in step.trees]
        assert rows["came_from"].to_list() == [each.came_from for each in step.trees]
        assert set(rows["word"]) == {step.word}
        assert set(rows["surprisal"]) == {step.surprisal}


def test_partial_parses_of_a_mixture_are_those_of_its_parser(trained: HhmmModel) -> None:
    ngram = treelm.train(
        "ngram",
        [tree.words for tree in treelm.sample_treebank()],
        vocabulary=trained.vocabulary,
        order=1,
        smoothing="kn",
    )
    mixture = treelm.interpolate([ngram, trained])
    assert treelm.partial_parses(mixture, "The ferry left .") == treelm.partial_parses(
        trained, "The ferry left ."
    )


def slow_tree(model: HhmmModel, moves: list[list[int]], words: list[str], *, whole: bool) -> Tree:
    """The tree of a derivation, built from its first word and restored at the end."""
    symbols, pipeline = model.tables.rules.symbols, model.config.pipeline()
    stack: list[tuple[str, list[tuple[str, Tree]]]] = []

    def completed(spine: list[tuple[str, Tree]], last: Tree) -> Tree:
        for label, left in reversed(spine):
            last = Tree(label, [left, last])
        return last

    done = Tree(symbols[moves[0][3]], words[0])
    for (kind, parent, awaited, tag), word in zip(moves[1:], words[1:], strict=True):
        spine = [] if kind == WITHIN else stack.pop()[1]
        spine = [*spine, (symbols[parent], done)]
        done = Tree(symbols[tag], word)
        if awaited == tag:
            done = completed(spine, done)
        else:
            stack.append((symbols[awaited], spine))
    if whole:
        return restore(Tree(ROOT, [done]), pipeline)
    for awaited_label, spine in reversed(stack):
        done = completed(spine, Tree(awaited_label, [Tree(OPEN, [done])]))
    return restore(Tree(ROOT, [Tree(OPEN, [done])]), pipeline)


@pytest.mark.parametrize("sentence", ["The old ferry left the harbour .", "zyx fell", "rain"])
def test_trees_that_share_their_beginnings_are_those_built_one_by_one(
    trained: HhmmModel, sentence: str
) -> None:
    words = sentence.split()
    read = [trained.read_word(word, first=place == 0) for place, word in enumerate(words)]
    found, ends = trained._search.partial_parses(read, 64)
    histories = SharedHistories(words, trained.tables.rules.symbols, trained.config.pipeline())
    seen = 0
    for end, rows in enumerate([*found, ends], start=1):
        whole = end > len(words)
        for _, first, moves, ids, _, _ in rows:
            given = words[first : min(end, len(words))]
            fast = histories.tree(moves.tolist(), ids.tolist(), first, whole=whole)
            slow = slow_tree(trained, moves.tolist(), given, whole=whole)
            assert fast == slow
            assert [node.head for node in fast.preorder()] == [
                node.head for node in slow.preorder()
            ]
            seen += 1
    assert seen > len(words)
