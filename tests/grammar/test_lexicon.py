"""Lexicons against their equations, written out for one word after the other."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.encoder import encode_trees
from treelm.corpus.unknown_words import Signatures
from treelm.errors import EstimationError, ModelFileError, UsageError
from treelm.grammar.binary_trees import BinaryTrees, build_binary_trees
from treelm.grammar.estimate_lexicon import LexiconOptions, berkeley_lexicon, closed_lexicon
from treelm.grammar.lexicon import Lexicon, TaggedWords

OPTIONS = LexiconOptions(rare=2, smooth_up_to=20, alpha=0.0)


@pytest.fixture(scope="module")
def trees(sample_file: Path) -> BinaryTrees:
    return build_binary_trees(TreeCorpus((sample_file,)).batches())


def split_counts(trees: BinaryTrees) -> tuple[TaggedWords, np.ndarray, np.ndarray]:
    """Return the tagged words, two subcategories for every other tag, and expected counts."""
    tagged = TaggedWords.of(trees)
    substates = np.ones(len(trees.symbols), dtype=np.int32)
    substates[trees.phrasal :: 2] = 2
    random = np.random.default_rng(1)
    parts = []
    for (_, tag), tokens in zip(tagged.pairs.tolist(), tagged.tokens.tolist(), strict=True):
        share = random.random(substates[tag])
        parts.append(tokens * share / share.sum())
    return tagged, substates, np.concatenate(parts)


def reference(
    trees: BinaryTrees, tagged: TaggedWords, substates: np.ndarray, counts: np.ndarray
) -> dict[tuple[str, int, int], float]:
    """Return e(A_x -> w) by (7.1) to (7.4), for words and for signatures."""
    starts = tagged.starts(substates)
    own: Counter[tuple[int, int, int]] = Counter()
    words: Counter[int] = Counter()
    tokens = float(tagged.tokens.sum())
    for pair, (word, tag) in enumerate(tagged.pairs.tolist()):
        words[word] += int(tagged.tokens[pair])
        for x in range(substates[tag]):
            own[word, tag, x] = float(counts[starts[pair] + x])
    rare = {word for word, count in words.items() if count <= OPTIONS.rare}
    general: Counter[tuple[int, int]] = Counter()
    tags: Counter[tuple[int, int]] = Counter()
    for (word, tag, x), count in own.items():
        tags[tag, x] += count
        if word in rare:
            general[tag, x] += count
    whole = sum(general.values())
    tag_total: Counter[int] = Counter()
    for (tag, _), count in general.items():
        tag_total[tag] += count
    divided = dict(own)
    for word, tag in tagged.pairs.tolist():
        if word in rare:
            total = sum(own[word, tag, x] for x in range(substates[tag]))
            for x in range(substates[tag]):
                divided[word, tag, x] = total * general[tag, x] / tag_total[tag]
    found = {}
    for word in range(len(tagged.words)):
        s1 = OPTIONS.known_smoothing if words[word] <= OPTIONS.smooth_up_to else 0.0
        for tag, x in tags:
            share = divided.get((word, tag, x), 0.0) + s1 * general[tag, x] / whole
            share /= words[word] + s1
            found[tagged.words[word], tag, x] = (
                share * (words[word] / tokens) * tokens / tags[tag, x]
            )
    signatures: Counter[tuple[str, int, int]] = Counter()
    sizes: Counter[str] = Counter()
    name = Signatures("english")
    for pair, (word, tag) in enumerate(tagged.pairs.tolist()):
        if word not in rare:
            continue
        first = tagged.first_tokens[pair] / tagged.tokens[pair]
        for position, part in ((0, first), (1, 1 - first)):
            if not part:
                continue
            shape = name(tagged.words[word], position, known=set(tagged.words))
            for x in range(substates[tag]):
                signatures[shape, tag, x] += divided[word, tag, x] * part
                sizes[shape] += divided[word, tag, x] * part
    s0 = OPTIONS.unknown_smoothing
    for shape in {*sizes} - {"<unk>"}:
        for tag, x in tags:
            share = (signatures[shape, tag, x] + s0 * general[tag, x] / whole) / (sizes[shape] + s0)
            found[shape, tag, x] = share / tokens * tokens / tags[tag, x]
    for tag, x in tags:  # a shape never seen is like rare words in general
        found["<unk>", tag, x] = general[tag, x] / whole / tags[tag, x]
    return found


def all_scores(lexicon: Lexicon) -> dict[tuple[str, int, int], float]:
    return {
        (symbol, tag, x): float(value)
        for index, symbol in enumerate(lexicon.vocabulary.symbols)
        for tag, values in lexicon.scores(index)
        for x, value in enumerate(values)
    }


def test_berkeley_scores_are_those_of_the_equations(trees: BinaryTrees) -> None:
    tagged, substates, counts = split_counts(trees)
    lexicon = berkeley_lexicon(tagged, counts, trees.phrasal, substates, OPTIONS)
    expected = {
        key: value for key, value in reference(trees, tagged, substates, counts).items() if value
    }
    found = {key: value for key, value in all_scores(lexicon).items() if value}
    assert found == pytest.approx(expected)


def test_smoothing_moves_subcategories_towards_their_mean(trees: BinaryTrees) -> None:
    tagged, substates, counts = split_counts(trees)
    plain = all_scores(berkeley_lexicon(tagged, counts, trees.phrasal, substates, OPTIONS))
    smooth = all_scores(
        berkeley_lexicon(
            tagged,
            counts,
            trees.phrasal,
            substates,
            LexiconOptions(rare=2, smooth_up_to=20, alpha=0.1),
        )
    )
    for (word, tag, x), value in smooth.items():
        mean = np.mean([plain.get((word, tag, y), 0.0) for y in range(substates[tag])])
        assert value == pytest.approx(0.9 * plain.get((word, tag, x), 0.0) + 0.1 * mean)


def test_closed_words_add_up_to_one(trees: BinaryTrees, sample_file: Path) -> None:
    vocabulary, text = encode_trees(TreeCorpus((sample_file,)))
    _, substates, _ = split_counts(trees)
    tagged = TaggedWords.of(trees, words=vocabulary.symbols, leaf_words=text.ids)
    starts = tagged.starts(substates)
    counts = np.random.default_rng(2).random(int(starts[-1]))
    lexicon = closed_lexicon(tagged, counts, trees.phrasal, substates, vocabulary=vocabulary)
    assert lexicon.normalized
    lexicon.check_normalized()
    sums: Counter[tuple[int, int]] = Counter()
    for (_, tag, x), value in all_scores(lexicon).items():
        sums[tag, x] += value
    assert len(sums) == substates[trees.phrasal :].sum()
    assert list(sums.values()) == pytest.approx([1.0] * len(sums))
    with pytest.raises(UsageError, match="beta is 0"):
        closed_lexicon(
            tagged,
            counts,
            trees.phrasal,
            substates,
            vocabulary=vocabulary,
            options=LexiconOptions(beta=0),
        )


def test_counts_that_are_no_counts_are_refused(trees: BinaryTrees) -> None:
    tagged, substates, counts = split_counts(trees)
    for wrong in (counts[:-1], np.where(np.arange(len(counts)) == 5, np.nan, counts), -counts):
        with pytest.raises(EstimationError) as caught:
            berkeley_lexicon(tagged, wrong, trees.phrasal, substates, OPTIONS)
        assert caught.value.code == "E_EXPECTED_COUNTS"
    for options in ({"rare": -1}, {"alpha": 1.0}, {"beta": -0.1}):
        with pytest.raises(UsageError):
            LexiconOptions(**options)  # type: ignore[arg-type]


def test_forged_arrays_are_refused(trees: BinaryTrees) -> None:
    tagged, substates, counts = split_counts(trees)
    good = berkeley_lexicon(tagged, counts, trees.phrasal, substates, OPTIONS)
    fields = {name: getattr(good, name) for name in Lexicon.__dataclass_fields__}
    forged = {
        "entry_starts": good.entry_starts[::-1].copy(),
        "entry_symbols": good.entry_symbols * 0,
        "entry_scores": good.entry_scores[:-1],
        "openness": -good.openness,
        "open_scores": good.open_scores * np.nan,
    }
    for name, array in forged.items():
        with pytest.raises(ModelFileError) as caught:
            Lexicon(**{**fields, name: array})
        assert caught.value.code == "E_LEXICON"
