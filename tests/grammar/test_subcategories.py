"""What subcategories have learned, told for people."""

from __future__ import annotations

import numpy as np
import pytest
from tests.models.latent_models import small_latent

from treelm.errors import UsageError
from treelm.grammar.coarse_to_fine import expected_subcategories
from treelm.grammar.subcategories import describe_subcategories


def test_shares_are_those_of_trees_the_grammar_makes() -> None:
    grammar, lexicon = small_latent().grammar, small_latent().lexicon
    number = grammar.symbols.index("NP")
    first, size = int(grammar.substate_starts[number]), int(grammar.substates[number])
    counts = expected_subcategories(grammar)[first : first + size]
    found = {
        item.name: item.share for item in describe_subcategories(grammar, lexicon, "NP", limit=3)
    }
    for place, share in enumerate(counts / counts.sum()):
        assert found[f"NP-{place}"] == pytest.approx(share)


def test_rules_are_the_most_probable_ones() -> None:
    grammar, lexicon = small_latent().grammar, small_latent().lexicon
    for item in describe_subcategories(grammar, lexicon, "VP", limit=5):
        shares = [rule.share for rule in item.rules]
        assert shares == sorted(shares, reverse=True)
        place = int(item.name.removeprefix("VP-"))
        number = grammar.symbols.index("VP")
        best = max(
            float(np.max(block(rule)[place]))
            for rules, block in (
                (grammar.unary_rules, grammar.unary_block),
                (grammar.binary_rules, grammar.binary_block),
            )
            for rule in np.flatnonzero(rules[:, 0] == number).tolist()
        )
        assert shares[0] == pytest.approx(best)


def test_words_of_a_phrase_are_those_at_its_edges() -> None:
    model = small_latent()
    words = len(model.vocabulary)
    for item in describe_subcategories(model.grammar, model.lexicon, "NP", limit=words):
        assert sum(word.share for word in item.words) == pytest.approx(1.0, abs=0.05)
        assert sum(word.share for word in item.last_words) == pytest.approx(1.0, abs=0.05)


def test_words_of_a_tag_are_its_own() -> None:
    model = small_latent()
    found = describe_subcategories(model.grammar, model.lexicon, "DT", limit=3)
    names = {word.name.lower() for item in found for word in item.words}
    assert "the" in names
    assert all(not item.rules and not item.last_words for item in found)


def test_unknown_labels_are_refused() -> None:
    model = small_latent()
    with pytest.raises(UsageError, match="no symbol"):
        describe_subcategories(model.grammar, model.lexicon, "XYZ")
