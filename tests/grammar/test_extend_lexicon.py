"""Lexicons with the words of a dictionary: what changes, what stays, and by how much."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tests.models.latent_models import QUICK, sample_corpus

from treelm.corpus.corpus import TreeCorpus
from treelm.errors import UsageError
from treelm.grammar.coarse_to_fine import expected_subcategories
from treelm.grammar.extend_lexicon import DictionaryOptions, extended_lexicon
from treelm.grammar.lexicon import Lexicon
from treelm.grammar.tag_dictionary import TagDictionary
from treelm.models.pcfg_la.config import PcfgLaConfig
from treelm.models.pcfg_la.model import PcfgLaModel
from treelm.models.pcfg_la.train import train_pcfg_la
from treelm.trees.tree import Tree


@cache
def half() -> PcfgLaModel:
    """Return a grammar of half of the packaged trees."""
    trees = list(sample_corpus())[::2]
    config = PcfgLaConfig(seed=1, **QUICK)  # type: ignore[arg-type]
    return train_pcfg_la(TreeCorpus.of_trees(trees), config)


def parsed(*tagged: tuple[str, str], times: int = 1) -> TagDictionary:
    """Return the dictionary of flat trees of pairs of tag and word."""
    trees = [Tree("ROOT", [Tree("NP", [Tree(*pair)])]) for pair in tagged] * times
    return TagDictionary.of(TreeCorpus.of_trees(trees), half().grammar)


def tag_shares(model: PcfgLaModel, lexicon: Lexicon, symbol: str) -> dict[str, float]:
    """Return P(tag | word) by adding up what the lexicon says of every subcategory."""
    grammar = model.grammar
    expected = expected_subcategories(grammar)
    [place] = lexicon.vocabulary.ids_of([symbol]).tolist()
    found = {}
    for tag, scores in lexicon.scores(place):
        first = int(grammar.substate_starts[tag])
        found[grammar.symbols[tag]] = float(scores @ expected[first : first + len(scores)])
    total = sum(found.values())
    return {tag: share / total for tag, share in found.items()}


def extended(dictionary: TagDictionary, **options: float) -> Lexicon:
    chosen = DictionaryOptions(**{"min_count": 1, "capitals": 0, **options})  # type: ignore[arg-type]
    return extended_lexicon(half().grammar, half().lexicon, dictionary, chosen)


def test_a_dictionary_counts_the_tags_of_trees() -> None:
    dictionary = parsed(("NN", "zzz"), ("NN", "zzz"), ("VB", "zzz"), ("NN", "aaa"), ("??", "b"))
    names = half().grammar.symbols
    found = [
        (dictionary.words[word], names[tag], count)
        for (word, tag), count in zip(
            dictionary.pairs.tolist(), dictionary.tokens.tolist(), strict=True
        )
    ]
    assert sorted(found) == [("aaa", "NN", 1), ("zzz", "NN", 2), ("zzz", "VB", 1)]
    assert dictionary.unknown_tags == 1


def test_shares_of_a_new_word_are_counts_mixed_with_those_of_its_signature() -> None:
    lexicon = extended(
        parsed(("VB", "zzzing"), ("VB", "zzzing"), ("NN", "zzzing")),
        weight=0.5,
        signature_weight=2.0,
        least=0.0,
    )
    shape = tag_shares(half(), half().lexicon, half().vocabulary.unknown_symbol("zzzing", 1))
    found = tag_shares(half(), lexicon, "zzzing")
    counts = {"VB": 1.0, "NN": 0.5}
    for tag, share in found.items():
        expected = (counts.get(tag, 0.0) + 2.0 * shape.get(tag, 0.0)) / 3.5
        assert share == pytest.approx(expected, abs=1e-9)


def test_subcategories_of_a_new_word_are_those_of_rare_words() -> None:
    lexicon = extended(parsed(("NN", "zzz"), times=3))
    [place] = lexicon.vocabulary.ids_of(["zzz"]).tolist()
    for tag, scores in lexicon.scores(place):
        first, last = lexicon.tag_starts[tag - lexicon.phrasal :][:2].tolist()
        ratios = scores / lexicon.open_scores[first:last]
        np.testing.assert_allclose(ratios, ratios[0])


def test_what_the_dictionary_does_not_know_stays_as_it_is() -> None:
    before = half().lexicon
    after = extended(parsed(("NN", "zzz"), ("NN", "the")))
    assert after.vocabulary.symbols == (*before.vocabulary.symbols, "zzz")
    for place in range(len(before.vocabulary)):
        old, new = before.scores(place), after.scores(place)
        assert [tag for tag, _ in old] == [tag for tag, _ in new]
        for (_, some), (_, others) in zip(old, new, strict=True):
            np.testing.assert_allclose(some, others, rtol=1e-12)
    np.testing.assert_array_equal(after.vocabulary.counts[-1:], [0])


def test_rare_words_of_the_treebank_learn_from_the_dictionary() -> None:
    counts = dict(zip(half().vocabulary.symbols, half().vocabulary.counts.tolist(), strict=True))
    before = next(
        word
        for word, count in counts.items()
        if count == 1 and word.islower() and tag_shares(half(), half().lexicon, word)["NN"] > 0.5
    )
    dictionary = parsed(("VB", before), times=8)
    known = tag_shares(half(), half().lexicon, before)
    learned = tag_shares(half(), extended(dictionary, rare=1, weight=0.5, least=0.0), before)
    assert learned["VB"] > 0.5 > known["VB"]
    shape = tag_shares(half(), half().lexicon, half().vocabulary.unknown_symbol(before, 1))
    weight = DictionaryOptions().signature_weight
    for tag, share in learned.items():
        own = known.get(tag, 0.0) + 4.0 * (tag == "VB") + weight * shape.get(tag, 0.0)
        assert share == pytest.approx(own / (5.0 + weight), abs=1e-9)
    assert tag_shares(half(), extended(dictionary, rare=0), before) == known


def test_rare_words_of_the_dictionary_are_left_out() -> None:
    lexicon = extended(parsed(("NN", "zzz"), ("NN", "yyy"), ("NN", "yyy")), min_count=2)
    assert "zzz" not in lexicon.vocabulary
    assert "yyy" in lexicon.vocabulary


def test_capitalised_forms_take_after_the_words_and_their_shape() -> None:
    dictionary = parsed(("NN", "zzz"))
    lexicon = extended(dictionary, capitals=1, least=0.0)
    new = [word for word in lexicon.vocabulary.symbols if word not in half().vocabulary.symbols]
    lower = [word for word in half().vocabulary.symbols if word.islower() and word.isalpha()]
    assert {word.capitalize() for word in lower} <= set(lexicon.vocabulary.symbols)
    word = next(word for word in new if word.lower() in half().vocabulary)
    own = tag_shares(half(), half().lexicon, word.lower())
    shape = tag_shares(half(), half().lexicon, half().vocabulary.unknown_symbol(word, 1))
    found = tag_shares(half(), lexicon, word)
    weights = [
        (found[tag] - shape.get(tag, 0.0)) / (own.get(tag, 0.0) - shape.get(tag, 0.0))
        for tag in found
        if abs(own.get(tag, 0.0) - shape.get(tag, 0.0)) > 1e-3
    ]
    assert 0 < weights[0] < 1
    np.testing.assert_allclose(weights, weights[0])


def test_a_lexicon_that_sums_to_one_takes_no_words() -> None:
    config = PcfgLaConfig(seed=1, lexicon="closed", cycles=0)
    closed = train_pcfg_la(sample_corpus(), config)
    with pytest.raises(UsageError, match="sum to one"):
        extended_lexicon(closed.grammar, closed.lexicon, parsed(("NN", "zzz")))


def test_nothing_new_changes_nothing() -> None:
    assert extended(parsed(("NN", "the"))) is half().lexicon
