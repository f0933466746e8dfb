"""Nothing about English is assumed where a profile or a tokenizer says something else."""

from __future__ import annotations

import pytest
from tests.models.ngram_models import small_ngram

from treelm import Tree
from treelm.corpus.brackets import ReadOptions
from treelm.corpus.corpus import TreeCorpus, TreeSentences
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.errors import CorpusFormatError
from treelm.tasks.card import model_card
from treelm.tasks.evaluate.parse_accuracy import evaluate_parses


def test_vocabulary_of_trees_takes_the_endings_of_their_language() -> None:
    trees = [Tree.from_string("(S (vmg navegando) (nc barcos) (nc mar))")]
    rule = VocabularyRule(name="min-count", min_count=2, signatures=True)
    symbols = {}
    for profile in ("spanish", "english"):
        corpus = TreeCorpus.of_trees(trees, ReadOptions(profile=profile))
        vocabulary = build_vocabulary(TreeSentences(corpus), rule)
        symbols[profile] = vocabulary.symbol("navegando", 1)
    assert symbols == {"spanish": "UNK-LC-ando", "english": "UNK-LC"}


def test_evaluation_takes_words_for_equal_that_the_profile_spells_alike() -> None:
    gold = Tree.from_string("(ROOT (S (Fpa -Fpa-) (nc gas) (Fpt -Fpt-)))")
    parse = Tree.from_string("(ROOT (S (Fpa -LRB-) (nc gas) (Fpt -RRB-)))")
    assert evaluate_parses([gold], [parse], "spanish").labelled_f1 == 1.0
    with pytest.raises(CorpusFormatError, match="different words"):
        evaluate_parses([gold], [parse], "english")


def test_card_of_another_language_has_no_english_sentence() -> None:
    model = small_ngram(order=2)
    assert "The boat" in model_card(model, "x-ngram", language="en")
    assert "The boat" not in model_card(model, "is-ngram", language="is")
