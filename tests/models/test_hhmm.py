"""The HHMM: training, options, states, caches, trees, samples, files."""

from __future__ import annotations

import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from tests.models.hhmm_cases import PRESIDENT, RECURSIVE, exact_model, sample_model
from tests.models.ngram_models import sample_sentences, small_ngram

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.sample_treebank import sample_treebank
from treelm.corpus.vocabulary_file import save_vocabulary
from treelm.errors import EstimationError, ModelFileError, UnsupportedTask, UsageError
from treelm.models.hhmm.config import HhmmConfig
from treelm.models.hhmm.events import binary_trees, count_rules_by_depth, whole_sentence
from treelm.models.hhmm.model import HhmmModel
from treelm.models.hhmm.rules import grammar_from_lines
from treelm.models.hhmm.train import model_from_grammar, train_hhmm
from treelm.models.mixture.model import interpolate
from treelm.models.registry import load, train
from treelm.store.folder import FolderWriter, save_folder
from treelm.transforms.right_corner import branch_depths, required_depth
from treelm.trees.heads import find_heads_all
from treelm.trees.tree import Tree

SENTENCES = sample_sentences()


# -- training -------------------------------------------------------------------------------


@pytest.mark.parametrize("binarization", ["right", "left", "head"])
def test_hhmm_counts_sides_and_depths_as_the_transform_defines_them(binarization: str) -> None:
    config = HhmmConfig.model_validate({"binarization": binarization})
    trees = binary_trees(sample_treebank(), config)
    counts = count_rules_by_depth(trees, 4)
    names = counts.rules.symbols
    expected: dict[tuple[str, int, str], int] = {}
    depths = []
    pipeline = config.pipeline()
    for tree in find_heads_all(sample_treebank()):
        binary = pipeline.apply(whole_sentence(tree))
        depths.append(required_depth(binary))
        if depths[-1] > 4:
            continue
        for place in branch_depths(binary):
            if place.node.is_phrasal and place.depth > 0:
                key = place.side, place.depth, str(place.node.label)
                expected[key] = expected.get(key, 0) + 1
    assert counts.depth_of_tree.tolist() == depths
    for side, table in (("L", counts.left), ("R", counts.right)):
        for depth in range(1, 5):
            sums = np.bincount(counts.rules.rules[:, 0], table[depth])
            for symbol in np.flatnonzero(sums).tolist():
                assert expected.pop((side, depth, names[symbol])) == sums[symbol]
    assert not expected


def test_hhmm_fragments_get_a_label() -> None:
    tree = Tree("ROOT", [Tree("UH", "Yes"), Tree("NP", "John"), Tree(".", ".")])
    assert str(whole_sentence(tree)) == "(ROOT (FRAG (UH Yes) (NP John) (. .)))"
    whole = Tree("ROOT", [tree.children[0]])
    assert whole_sentence(whole) is whole


@pytest.mark.parametrize(
    "options",
    [
        {"binarization": "left", "depth": 1},
        {"binarization": "head", "horizontal_order": 1},
        {"vertical_order": 2, "depth": 3},
        {"unary": "top", "estimation": "counts", "kappa": 5.0},
        {"depth": 6, "horizontal_order": 0},
        {"horizontal_order": None, "observation": "signature"},
    ],
)
def test_hhmm_is_proper_with_every_option(options: dict[str, object]) -> None:
    model = sample_model(**{"beam_width": 50, "depth": 2, **options})
    state = model.initial()
    for word in SENTENCES[3].split():
        assert abs(np.exp(model.distribution(state)).sum() - 1) < 1e-6
        state = model.advance(state, word).state  # type: ignore[assignment]
    assert math.isfinite(model.score(SENTENCES[3]).log_prob)
    assert [tree.tree.words for tree in model.parse(SENTENCES[3])] == [tuple(SENTENCES[3].split())]


def test_hhmm_trees_of_the_treebank_come_back() -> None:
    model = sample_model(depth=3, beam_width=500, min_count=1)
    trees = list(sample_treebank())[:20]
    parses = model.parse_many([tree.words for tree in trees])
    labels = {str(node.label) for tree in sample_treebank() for node in tree.preorder()}
    for parse in parses:
        assert parse is not None
        assert {str(node.label) for node in parse.tree.preorder()} <= labels | {"FRAG"}
    same = sum(str(a.tree) == str(b) for a, b in zip(parses, trees, strict=True) if a is not None)
    assert same >= 10


def test_hhmm_score_of_a_tree_is_that_of_the_grammar() -> None:
    model = exact_model(RECURSIVE, 3)
    (parse,) = model.parse("the dog near the cat saw the cat")
    probability = 0.25 * 0.75**3 * 0.75 * 0.5**3  # NP -> NP PP, three D N, VP -> V NP, three nouns
    assert parse.score == pytest.approx(math.log(probability / model.tables.fitting_share))
    assert parse.score == pytest.approx(parse.sentence_log_prob)


def test_hhmm_unknown_words_have_a_count_of_open_tags() -> None:
    model = sample_model(depth=2, min_count=1, open_types=50)
    words = model.tables.words
    tags = words.tag[words.start[0] : words.start[1]]
    types = np.bincount(words.tag[words.start[1] :])
    assert len(tags)
    assert (types[tags] > 50).all()
    total = float(words.tag_counts.sum())
    assert words.unigram[0] == pytest.approx(1 / total)
    assert words.unigram.sum() == pytest.approx(1)


def test_hhmm_bayes_guesses_tags_from_endings_and_has_no_perplexity() -> None:
    model = sample_model(depth=2, beam_width=20, observation="bayes")
    assert not model.info.normalized
    assert model.tables.suffixes is not None
    tags, shares = model.tables.suffixes.tags("unwatchfully")
    assert shares.sum() == pytest.approx(1)
    assert any("RB" in model.tables.rules.symbols[tag] for tag in tags.tolist())
    assert model.score("the unwatchfully").log_prob > -100
    assert model.score("the unwatchfully").log_prob != model.score("the bandersnatch").log_prob


# -- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("S -> NP VP 1/2", "add up to"),
        ("S -> NP", "is not a rule"),
        ("S -> NP VP PP 1", "is not a rule"),
        ("S -> NP VP -1", "not end with a probability"),
        ("S -> NP VP nan", "not end with a probability"),
        ("S -> NP ZZ 1", '"ZZ"'),
        ("S -> NP/X VP 1", "bracket or slash"),
        ("S -> word 1", "both words and phrases"),
        ("DT -> The 1", "add up to"),
    ],
)
def test_hhmm_refuses_grammars(line: str, words: str) -> None:
    lines = [line if each == "S -> NP VP 1" else each for each in PRESIDENT]
    if line.startswith("DT"):
        lines = [line if each == "DT -> The 1/2" else each for each in PRESIDENT]
    if line == "S -> word 1":
        lines = [*PRESIDENT, line]
    with pytest.raises(EstimationError) as caught:
        grammar_from_lines(lines)
    assert caught.value.code == "E_GRAMMAR"
    assert words in str(caught.value)


def test_hhmm_refuses_loops_and_stores_that_nothing_fits() -> None:
    loop = ["TOP -> S </s> 1", "S -> S a 1", "a -> x 1"]
    with pytest.raises(EstimationError, match="loop with probability 1: categories S"):
        model_from_grammar(loop, HhmmConfig())
    deep = ["TOP -> S </s> 1", "S -> a B 1", "B -> C a 1", "C -> a D 1", "D -> E a 1"]
    deep += ["E -> a a 1", "a -> x 1"]
    assert math.isfinite(exact_model(deep, 3).score("x x x x x x").log_prob)
    with pytest.raises(EstimationError, match="depth 2") as caught:
        exact_model(deep, 2)
    assert caught.value.code == "E_TOO_DEEP"


@pytest.mark.parametrize(
    "options",
    [{"depth": 0}, {"depth": 7}, {"beam_width": 0}, {"recombine": "topk:0"}, {"robust_epsilon": 1}],
)
def test_hhmm_refuses_options(options: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        HhmmModel.make_config(options)


def test_hhmm_gives_one_tree_only() -> None:
    with pytest.raises(UnsupportedTask):
        sample_model(depth=2).parse("the boat", 2)


# -- search and states ----------------------------------------------------------------------


def test_hhmm_search_options_leave_states_alone() -> None:
    wide = sample_model(depth=2)
    narrow = wide.with_search(beam_width=3)
    assert wide.fingerprint == narrow.fingerprint
    state = wide.score_phrase(wide.initial(), "the old boat").state
    assert len(narrow.advance(state, "left").state) <= 3  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        wide.with_search(depth=3)


def test_hhmm_without_merging_is_the_same_without_a_beam() -> None:
    """Threads, batches and single steps give the same bits."""
    model = sample_model(depth=2, beam_width=50)
    one = model.score_batch(SENTENCES[:40], threads=1).log_probs
    two = model.score_batch(SENTENCES[:40], threads=3).log_probs
    assert one.tobytes() == two.tobytes()
    state = model.initial()
    steps = []
    for word in SENTENCES[0].split():
        log_prob, state = model.advance(state, word)  # type: ignore[assignment]
        steps.append(log_prob)
    assert steps == one[: len(steps)].tolist()


def test_hhmm_cache_remembers_steps() -> None:
    model = sample_model(depth=2).with_search(cache_mebibytes=16)
    for _ in range(2):
        state = model.initial()
        for word in ["the", "old", "boat", "left"]:
            state = model.advance(state, word).state  # type: ignore[assignment]
    stats = model.stats()
    assert (stats["advances"], stats["cache_hits"]) == (4, 4)
    assert stats["unique_states"] >= 4
    assert stats["bytes_states"] > 0
    model.reset_stats()
    assert model.stats()["advances"] == 0
    nothing = model.with_search(cache_mebibytes=0)
    nothing.score_phrase(nothing.initial(), "the the")
    nothing.score_phrase(nothing.initial(), "the the")
    assert nothing.stats()["cache_hits"] == 0


@pytest.mark.parametrize("recombine", ["exact", "quantised", "topk:1", "topk:5", "ignore"])
def test_hhmm_keys_say_what_may_be_merged(recombine: str) -> None:
    model = sample_model(depth=2).with_search(recombine=recombine)
    states = [
        model.score_phrase(model.initial(), text).state
        for text in ("the boat", "the boat", "a boat", "the boat left")
    ]
    keys = [model.key(state) for state in states]
    assert keys[0] == keys[1]
    assert (keys[0] == keys[3]) == (recombine == "ignore")
    assert model.info.exact_key == (recombine == "exact")


def test_hhmm_states_refuse_other_models_and_damaged_bytes() -> None:
    one, two = sample_model(depth=2), sample_model(depth=3)
    state = one.score_phrase(one.initial(), "the old boat").state
    with pytest.raises(UsageError) as caught:
        two.advance(state, "left")
    assert caught.value.code == "E_STATE_MODEL"
    data = state.to_bytes()
    for size in range(len(data)):
        with pytest.raises(UsageError):
            one.state_from_bytes(data[:size])
    seed = np.random.default_rng(7)
    codes = set()
    for _ in range(300):
        changed = bytearray(data)
        changed[int(seed.integers(9, len(data)))] ^= int(seed.integers(1, 256))
        try:
            again = one.state_from_bytes(bytes(changed))
        except UsageError as error:
            codes.add(error.code)
        else:
            assert one.advance(again, "left").log_prob <= 0
    assert codes == {"E_STATE_BYTES"}


def test_hhmm_survives_pickling() -> None:
    model = sample_model(depth=2, beam_width=50)
    again = pickle.loads(pickle.dumps(model))
    state = model.score_phrase(model.initial(), "the old").state
    assert again.advance(state, "boat") == model.advance(state, "boat")


def test_hhmm_samples_follow_the_model() -> None:
    model = sample_model(depth=2, beam_width=20)
    samples = model.sample(5, seed=3, max_words=12)
    assert any(sample.complete for sample in samples)
    assert samples == model.sample(3, seed=3, max_words=12) + model.sample(
        2, seed=3, first=3, max_words=12
    )
    for sample in samples:
        if sample.complete:
            # A class of unknown words stands for a word; read as a word it would be unknown.
            if any(word.startswith("UNK") for word in sample.words):
                continue
            assert sample.log_prob == pytest.approx(model.score(sample.words).log_prob)


def test_hhmm_time_is_linear_and_long_sentences_work() -> None:
    model = sample_model(depth=2, beam_width=50)
    words = (" ".join(SENTENCES[:40])).split()[:200]
    score = model.score(words)
    assert math.isfinite(score.log_prob)
    assert len(score.words or ()) == 200
    assert model.score("").log_prob == pytest.approx(math.log(1e-5 * model.tables.words.end_share))


def test_hhmm_mixes_with_an_ngram() -> None:
    model = sample_model(depth=2, beam_width=50)
    other = small_ngram(order=3, vocabulary=model.vocabulary)
    mixed = interpolate([model, other], [0.5, 0.5])
    for one, two, both in zip(
        model.score(SENTENCES[1]).words or (),
        other.score(SENTENCES[1]).words or (),
        mixed.score(SENTENCES[1]).words or (),
        strict=True,
    ):
        mean = (math.exp(one.log_prob) + math.exp(two.log_prob)) / 2
        assert both.log_prob == pytest.approx(math.log(mean))


def test_hhmm_measures_describe_the_stores() -> None:
    model = exact_model(PRESIDENT, 2)
    ids = model.vocabulary.encode(["The", "president", "meets", "the", "board"])
    scores, measures = model.measure_ids(ids, np.array([0, 5], np.uint64))
    assert scores.log_probs[:5].tolist() == [
        row.log_prob for row in model.score("The president meets the board").words or ()
    ]
    assert measures.entropy.tolist() == [0, 0, 0, 1, 1, 0]
    assert measures.mean_depth.tolist() == [1, 1, 2, 2.5, 1.5, 0]
    assert measures.beam_mass[:5].tolist() == [1] * 5
    assert measures.stacks.tolist() == [1, 1, 1, 2, 2, 0]


def test_hhmm_next_tags_add_up() -> None:
    model = exact_model(PRESIDENT, 2)
    state = model.score_phrase(model.initial(), "The president meets the board").state
    assert model.next_tags(state) == pytest.approx({"IN": 0.5, "</s>": 0.5})


def test_hhmm_estimate_is_that_of_unigrams() -> None:
    model = sample_model(depth=2)
    ids = model.vocabulary.encode(["the", "boat"])
    assert model.estimate("the boat") == pytest.approx(
        np.log(model.tables.words.unigram[ids]).sum()
    )


def test_hhmm_reads_tags_of_unknown_words_off_their_form_by_default() -> None:
    model = train("hhmm", list(sample_treebank()))
    for sentence, place, tag in (
        ("The captain glorped the ferry .", 2, "VBD"),
        ("The blicks left .", 1, "NNS"),
        ("He walked quoxly .", 2, "RB"),
    ):
        assert model.parse(sentence)[0].tree.tags[place] == tag


# -- files ----------------------------------------------------------------------------------


@pytest.mark.parametrize("observation", ["unk", "signature", "bayes"])
def test_hhmm_folder_gives_the_same_model(tmp_path: Path, observation: str) -> None:
    model = sample_model(depth=2, beam_width=50, observation=observation)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again, HhmmModel)
    assert again.fingerprint == model.fingerprint
    assert again.config == model.config
    text = f"{SENTENCES[2]} frumious"
    assert again.score(text).log_prob == model.score(text).log_prob


def test_hhmm_forged_folders_are_refused(tmp_path: Path) -> None:
    model = sample_model(depth=2, beam_width=50)
    arrays = {**model.tables.to_arrays(), "unigram_counts": model.unigram_counts}

    def forged(name: str, array: np.ndarray | None) -> None:  # type: ignore[type-arg]
        def write(writer: FolderWriter) -> None:
            tables = (
                {**arrays, name: array}
                if array is not None
                else {other: value for other, value in arrays.items() if other != name}
            )
            writer.tables("tables.safetensors", tables)  # type: ignore[arg-type]
            symbols = "".join(f"{symbol}\n" for symbol in model.tables.rules.symbols)
            writer.text("labels.txt", symbols)
            save_vocabulary(model.vocabulary, writer.file("words.txt"))

        save_folder(tmp_path / "forged", model.description(), write)
        with pytest.raises(ModelFileError):
            load(tmp_path / "forged")

    for name, array in arrays.items():
        forged(name, None)
        forged(name, array[:-1] if array.size > 1 else np.zeros(0, array.dtype))
        if array.dtype == np.float64 and name not in ("fitting_share", "tag_counts", "end_share"):
            forged(name, array + 0.01)
            bad = array.copy()
            bad.flat[0] = np.nan
            forged(name, bad)
        if array.dtype in (np.int32, np.int64):
            bad = array.copy()
            bad.flat[-1] = 2**31 - 1
            forged(name, bad)
            bad.flat[-1] = -5
            forged(name, bad)


def test_hhmm_needs_trees(tmp_path: Path) -> None:
    empty = tmp_path / "empty.mrg"
    empty.write_text("")
    with pytest.raises(EstimationError) as caught:
        train_hhmm(TreeCorpus((empty,)), HhmmConfig())
    assert caught.value.code == "E_NO_DATA"
