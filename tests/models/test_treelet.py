"""Treelet models beside their reference, and what becomes of them on the way to disk and back."""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.treelet_models import (
    TWO_TREES,
    ReferenceTreelet,
    corpus_of,
    sample_trees,
    small_treelet,
    trees_of,
    two_trees,
)

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.sample_treebank import sample_path
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.words import Words, words_of
from treelm.errors import CorpusFormatError, EstimationError, TreelmError, UsageError
from treelm.grammar.scored_tree import ParseStatus, ScoredTree
from treelm.models.interface.tree_model import log_sum
from treelm.models.registry import load
from treelm.models.run import Run
from treelm.models.treelet.config import TreeletConfig
from treelm.models.treelet.counts import (
    CountedTreelets,
    load_treelet_counts,
    merge_treelet_counts,
    save_treelet_counts,
)
from treelm.models.treelet.events import count_treelets
from treelm.models.treelet.model import TreeletModel
from treelm.models.treelet.train import train_treelet
from treelm.parallel.memory import MemoryLimit
from treelm.transforms.treelet import TREELET_TRANSFORMS
from treelm.trees.packed import PackedTrees
from treelm.trees.tree import Tree

VARIANTS = ("full", "rule", "trans", "pcfg")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TreeletModel:
    return small_treelet(tmp_path_factory.mktemp("treelet"), temporal=("monday", "week"))


class Listed:
    """A parser that knows its trees beforehand."""

    def __init__(self, lists: dict[tuple[str, ...], list[Tree]], status: Any = 0) -> None:
        self.lists = lists
        self.status = ParseStatus(status)

    def parse(self, sentence: Words, k: int = 1) -> list[ScoredTree]:
        found = self.lists.get(words_of(sentence), [])[:k]
        return [ScoredTree(tree, 0.0, 0.0, self.status) for tree in found]


@pytest.mark.parametrize("variant", VARIANTS)
def test_trees_are_scored_as_by_the_reference(tmp_path: Path, variant: str) -> None:
    trees = sample_trees(12)
    model = small_treelet(
        tmp_path, trees, variant=variant, discount=0.5, precision="double", temporal=("monday",)
    )
    words = {word for tree in trees for word in tree.words}
    transformed = list(model.transform.apply_all(trees))
    reference = ReferenceTreelet(transformed, variant, words, Fraction(1, 2))
    unseen = sample_trees(14)[12:]
    odd = trees_of(["(ROOT (QQQ (ZZ the) (NN week)) (NN the))", "(ROOT (S (NP (NN the))))"])
    wanted = [*trees[:4], *unseen, *odd]
    found = model.tree_log_probs(wanted)
    expected = [reference.log_prob(tree) for tree in model.transform.apply_all(wanted)]
    assert found == pytest.approx(expected, abs=1e-9)


def test_a_tree_has_an_event_for_every_phrase_and_every_word(tmp_path: Path) -> None:
    trees = sample_trees(20)
    counts = count_treelets(corpus_of(tmp_path, trees), TreeletConfig(transforms=()))
    nodes = [node for tree in trees for node in tree.preorder()]
    assert counts.terminal.total == sum(node.word is not None for node in nodes)
    assert counts.nonterminal.total == sum(node.word is None for node in nodes)
    assert counts.unigrams[:-1].sum() == counts.terminal.total
    assert counts.unigrams[-1] == 20


# -- lists of trees -------------------------------------------------------------------------

_LABELS = st.sampled_from(["NP", "VP", "S", "SBAR", "PP", "ADJP", "X"])
_TAGS = st.sampled_from(["NN", "NNP", "VB", "TO", "CC", ",", "CD", "DT", "IN", "WP"])


@st.composite
def trees_over_the_same_words(draw: st.DrawFn) -> list[Tree]:
    words = draw(
        st.lists(st.sampled_from(["the", "Monday", "12", "x", ",", "and"]), min_size=1, max_size=6)
    )

    def build(part: list[str], depth: int) -> Tree:
        if len(part) == 1 and (depth > 3 or draw(st.booleans())):
            return Tree(draw(_TAGS), part[0])
        cuts = sorted(draw(st.sets(st.integers(1, max(1, len(part) - 1)), max_size=3)))
        cuts = list(range(1, len(part))) if depth > 3 else cuts
        ends = [0, *(cut for cut in cuts if cut < len(part)), len(part)]
        pieces = [part[first:last] for first, last in itertools.pairwise(ends)]
        return Tree(draw(_LABELS), [build(piece, depth + 1) for piece in pieces])

    return [Tree("ROOT", [build(words, 0)]) for _ in range(draw(st.integers(1, 5)))]


@given(trees=trees_over_the_same_words(), left_out=st.sets(st.sampled_from(TREELET_TRANSFORMS)))
@settings(max_examples=60)
def test_shared_subtrees_are_transformed_as_whole_trees_are(
    trees: list[Tree], left_out: set[str]
) -> None:
    model = _FOR_SHARING.with_transforms(frozenset(TREELET_TRANSFORMS) - left_out)
    packed = PackedTrees.from_trees(trees)
    found, forms = model.score_packed(packed, np.array([0, len(trees)], dtype=np.uint64))
    transformed = list(model.transform.apply_all(trees))
    assert found == pytest.approx(model.tree_log_probs_of_distinct(transformed), abs=1e-9)
    same = np.array([[a == b for b in transformed] for a in transformed])
    assert (same == (forms[:, None] == forms[None, :])).all()


class _Sharing:
    """One model whose transforms are exchanged; labels it does not know are no matter."""

    def __init__(self) -> None:
        self._model: TreeletModel | None = None

    def with_transforms(self, transforms: frozenset[str]) -> TreeletModel:
        if self._model is None:
            corpus = TreeCorpus((sample_path(),))
            self._model = train_treelet(corpus, TreeletConfig(temporal=("monday",)))
        one = self._model
        transform = type(one.transform)(
            profile="english", temporal={"monday"}, transforms=transforms
        )
        return TreeletModel(
            one.tables, one.vocabulary, one.unigram_counts, one.config, transform=transform
        )


_FOR_SHARING = _Sharing()


def test_profiles_that_flatten_a_label_twice(tmp_path: Path) -> None:
    from treelm.trees.profile import load_profile

    stored: Any = load_profile("english").model_dump(mode="json", by_alias=True)
    stored["treelet"]["clause_flattening"] = [["NP", "S"], ["NP", "NP"]]
    trees = trees_of(
        [
            "(ROOT (NP (NP (S (NN a) (NN b)) (NN c)) (NP (NN d) (NN e))))",
            "(ROOT (NP (S (NN a) (NN b)) (NN c) (NP (NN d) (NN e))))",
        ]
    )
    corpus = TreeCorpus((corpus_of(tmp_path, trees).paths[0],))
    model = train_treelet(corpus, TreeletConfig(discount=0.5, temporal=()))
    transform = type(model.transform)(profile=stored, temporal=())
    other = TreeletModel(
        model.tables,
        model.vocabulary,
        model.unigram_counts,
        model.config,
        transform=transform,
    )
    expected = other.tree_log_probs_of_distinct(list(transform.apply_all(trees)))
    assert other.tree_log_probs(trees) == pytest.approx(expected, abs=1e-12)


def test_equal_transformed_trees_are_summed_once(model: TreeletModel) -> None:
    """Section 7, step 3: a unary phrase disappears, so the two are one tree."""
    one, two = trees_of(
        ["(ROOT (VP (VBD saw) (NP (PRP it)) (RB so)))", "(ROOT (VP (VBD saw) (PRP it) (RB so)))"]
    )
    assert len(model.distinct([one, two])) == 1
    parser = Listed({("saw", "it", "so"): [one, two]})
    score = model.with_parser(parser).score("saw it so")
    assert (score.trees, score.fallback, score.exactness) == (1, False, "lower_bound")
    assert score.log_prob == pytest.approx(model.tree_log_probs([one])[0], abs=1e-12)


def test_more_trees_never_lower_the_sum(model: TreeletModel) -> None:
    words = ("the", "week", "was")
    trees = trees_of(
        [
            "(ROOT (S (NP (DT the) (NN week)) (VP (VBD was))))",
            "(ROOT (NP (DT the) (NN week) (NN was)))",
            "(ROOT (FRAG (DT the) (NP (NN week) (VBD was))))",
        ]
    )
    parser = Listed({words: trees})
    scores = [model.with_parser(parser, k).score(words).log_prob for k in (1, 2, 3)]
    assert scores == sorted(scores)
    assert scores[-1] == pytest.approx(log_sum(model.tree_log_probs(trees)), abs=1e-12)


def test_a_sentence_without_a_tree_gets_a_flat_one(model: TreeletModel) -> None:
    for parser in (
        Listed({}),
        Listed({("the", "week"): trees_of(["(ROOT (X (DT the) (DT week)))"])}, 3),
    ):
        score = model.with_parser(parser).score("the week")
        assert score.fallback
        flat = trees_of(["(ROOT (FRAG (DT the) (NN week)))"])
        assert score.log_prob == pytest.approx(model.tree_log_probs(flat)[0], abs=1e-12)


def test_sentences_without_a_tree_can_be_refused_or_left_out(tmp_path: Path) -> None:
    strict = small_treelet(tmp_path, on_no_parse="error").with_parser(Listed({}))
    with pytest.raises(UsageError) as caught:
        strict.score("the week")
    assert caught.value.code == "E_NO_PARSE"
    lenient = small_treelet(tmp_path, on_no_parse="skip", max_words=3).with_parser(Listed({}))
    assert math.isnan(lenient.score("the week").log_prob)
    assert math.isnan(lenient.score("a b c d").log_prob)
    with pytest.raises(UsageError) as caught:
        strict.score("")
    assert caught.value.code == "E_EMPTY_SENTENCE"


def test_trees_of_other_words_are_refused(model: TreeletModel) -> None:
    parser = Listed(
        {("a", "b"): trees_of(["(ROOT (X (DT a) (NN b)))", "(ROOT (X (DT a) (NN c)))"])}
    )
    with pytest.raises(CorpusFormatError) as caught:
        model.with_parser(parser).score("a b")
    assert caught.value.code == "E_YIELD_MISMATCH"


def test_transformed_trees_are_refused(model: TreeletModel) -> None:
    tree = Tree.from_string("(ROOT (S-VBD^ROOT (NN dogs) (VBD ran)))")
    with pytest.raises(CorpusFormatError) as caught:
        model.tree_log_probs([tree])
    assert caught.value.code == "E_TRANSFORM_MISMATCH"


# -- training -------------------------------------------------------------------------------


def tensors(model: TreeletModel) -> dict[str, bytes]:
    return {name: np.asarray(array).tobytes() for name, array in model._tensors().items()}


def test_threads_and_memory_change_nothing(tmp_path: Path) -> None:
    corpus = TreeCorpus((sample_path(),))
    one = train_treelet(corpus, TreeletConfig())
    many = train_treelet(
        TreeCorpus((sample_path(),), threads=3),
        TreeletConfig(),
        run=Run(threads=3, memory=MemoryLimit(64 << 20, tmp_path)),
    )
    assert tensors(one) == tensors(many)


def test_merged_counts_are_those_of_all_trees(tmp_path: Path) -> None:
    trees = sample_trees(40)
    folders = []
    for number, part in enumerate((trees[:15], trees[15:])):
        own = tmp_path / str(number)
        own.mkdir()
        counts = count_treelets(corpus_of(own, part), TreeletConfig())
        folders.append(own / "counts")
        save_treelet_counts(counts, "full", folders[-1])
    loaded = [load_treelet_counts(folder) for folder in folders]
    merged = merge_treelet_counts([counts for counts, _ in loaded])
    model = train_treelet(CountedTreelets(merged, loaded[0][1]), TreeletConfig())
    together = small_treelet(tmp_path, trees)
    assert tensors(model) == tensors(together)
    assert model.vocabulary.fingerprint == together.vocabulary.fingerprint


def test_counts_made_in_different_ways_are_not_merged(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, sample_trees(10))
    parts = [
        count_treelets(corpus, TreeletConfig(transforms=names))
        for names in (None, ("np_flattening",))
    ]
    with pytest.raises(UsageError):
        merge_treelet_counts(parts)


def test_tags_that_are_phrases_are_marked(tmp_path: Path) -> None:
    trees = ["(ROOT (NP (DT the) (NP cat)))", "(ROOT (NP (DT the) (NN cat)))"]
    model = small_treelet(tmp_path, trees, variant="pcfg", discount=0.5)
    assert model.config.marked_tags == ("NP",)
    assert "NP~T" in model.tables.symbols.labels
    found = model.tree_log_probs(trees_of([*trees, "(ROOT (NP (DT the) (QQ cat)))"]))
    assert found[0] == pytest.approx(found[1], abs=1e-12)
    assert found[2] < found[0]


def test_jelinek_mercer_on_held_out_trees(tmp_path: Path) -> None:
    trees = sample_trees(80)
    corpus = corpus_of(tmp_path, trees[:60])
    (tmp_path / "held").mkdir()
    held_out = corpus_of(tmp_path / "held", trees[60:])
    model = train_treelet(corpus, TreeletConfig(smoothing="jm", temporal=()), held_out=held_out)
    assert np.isfinite(model.tree_log_probs(trees[60:])).all()
    with pytest.raises(UsageError):
        train_treelet(corpus, TreeletConfig(smoothing="jm", temporal=()))
    with pytest.raises(UsageError):
        train_treelet(corpus, TreeletConfig(temporal=()), held_out=held_out)


def test_without_smoothing_trees_have_relative_frequencies(tmp_path: Path) -> None:
    model = small_treelet(tmp_path, TWO_TREES, variant="pcfg", smoothing="none", precision="double")
    seen, unseen = trees_of([TWO_TREES[0], "(ROOT (S (V bark) (N dogs)))"])
    assert model.tree_log_probs([seen, unseen]) == pytest.approx([math.log(0.5), -math.inf])


@pytest.mark.filterwarnings("ignore:no discount can be estimated")
@pytest.mark.parametrize("options", [{"smoothing": "mkn"}, {"min_count": 2}, {"yield_weight": 0.0}])
def test_other_options(tmp_path: Path, options: dict[str, Any]) -> None:
    model = small_treelet(tmp_path, **options)
    assert np.isfinite(model.tree_log_probs(sample_trees(70)[60:])).all()


def test_training_refuses_nothing_and_nonsense(tmp_path: Path) -> None:
    with pytest.raises(TreelmError):
        small_treelet(tmp_path, [])
    with pytest.raises(EstimationError):
        vocabulary = Vocabulary.from_counts({"a": 1})
        train_treelet(corpus_of(tmp_path, []), TreeletConfig(temporal=()), vocabulary=vocabulary)
    for options in ({"transforms": ("t10",)}, {"smoothing": "mkn", "discount": 0.5}, {"k": 0}):
        with pytest.raises(UsageError):
            TreeletModel.make_config(options)


# -- files, samples -------------------------------------------------------------------------


def test_saved_pickled_and_quantised_models_agree(model: TreeletModel, tmp_path: Path) -> None:
    trees = sample_trees(70)
    expected = model.tree_log_probs(trees)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert isinstance(loaded, TreeletModel)
    assert (loaded.tree_log_probs(trees) == expected).all()
    assert (pickle.loads(pickle.dumps(model)).tree_log_probs(trees) == expected).all()
    small = model.quantized(16)
    assert small.info.bits == 16
    assert small.tree_log_probs(trees) == pytest.approx(expected, rel=0.01)
    small.save(tmp_path / "small")
    again = load(tmp_path / "small")
    assert isinstance(again, TreeletModel)
    assert (again.tree_log_probs(trees) == small.tree_log_probs(trees)).all()
    for full in (model, small):
        full.compacted().save(tmp_path / "compact")
        compact = load(tmp_path / "compact")
        assert isinstance(compact, TreeletModel)
        assert compact.layout == "compact"
        assert (compact.tree_log_probs(trees) == full.tree_log_probs(trees)).all()
        assert all(drawn.words for drawn in compact.sample(3, seed=1) if drawn.complete)


def test_samples_are_scored_and_depend_on_their_number_alone(model: TreeletModel) -> None:
    samples = model.sample(40, seed=3, max_words=60)
    again = model.sample(20, seed=3, first=20, max_words=60, threads=2)
    assert samples[20:] == again
    assert model.sample(40, seed=4, max_words=60) != samples
    done = [sample for sample in samples if sample.complete]
    assert done
    trees = [sample.tree for sample in done if sample.tree is not None]
    expected = model.tree_log_probs_of_distinct(trees)
    assert [sample.log_prob for sample in done] == pytest.approx(expected.tolist(), abs=1e-9)
    assert all(len(sample.words) <= 60 for sample in done)
    labels = model.tables.symbols.labels
    is_tag = dict(zip(labels, model.tables.is_tag.tolist(), strict=True))
    for tree in trees:
        assert all(is_tag[str(node.label)] == (node.word is not None) for node in tree.preorder())


def test_deep_samples_are_given_up(tmp_path: Path) -> None:
    model = two_trees(tmp_path)
    assert not any(sample.complete for sample in model.sample(20, seed=1, max_depth=1))
    assert not any(
        sample.complete for sample in model.sample(20, seed=1, max_words=1) if len(sample.words) > 1
    )
