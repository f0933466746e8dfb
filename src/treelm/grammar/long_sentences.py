"""Sentences that are too long for a parser: split at punctuation, given flat trees, or refused."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal, TypeVar

from treelm.corpus.lengths import TooLongSentence
from treelm.errors import option
from treelm.grammar.parser_options import ParserOptions
from treelm.trees.tree import Tree

Sentence = Sequence[str]
Found = TypeVar("Found")

#: Words of a piece where no punctuation says where to cut; there is no better place to lose.
_BLIND_PIECE = 40

_ENDS = frozenset(".?!;…‽。！？；．؟؛।॥")
_OPENING = frozenset({"Ps", "Pi"})

_Mark = Literal["end", "inside", "opening", "word"]


def _mark(word: str) -> _Mark:
    """Return what a word is for those who look for a place to cut.

    Examples:
        >>> _mark("?!"), _mark(","), _mark("("), _mark("well-known"), _mark("''")
        ('end', 'inside', 'opening', 'word', 'inside')
    """
    if _ENDS.issuperset(word):
        return "end"
    categories = {unicodedata.category(character) for character in word}
    if all(category.startswith("P") for category in categories):
        return "opening" if categories <= _OPENING else "inside"
    return "word"


def pieces_of(words: Sentence, longest: int) -> list[Sentence]:
    """Return the pieces of a sentence: nothing is lost, and none is too long.

    Sentences end after ``.``, ``?``, ``!`` and ``;``, with the closing marks that follow. What is
    still too long is cut at the other punctuation mark nearest to its middle, or without one into
    pieces of a few words.

    Args:
        words: The sentence.
        longest: Most words of a piece.

    Examples:
        >>> [" ".join(piece) for piece in pieces_of('he said : " no . " she left .'.split(), 8)]
        ['he said : " no . "', 'she left .']
        >>> [len(piece) for piece in pieces_of(["la"] * 10, 4)]
        [4, 3, 3]
    """
    known: dict[str, _Mark] = {}
    marks = [known.get(word) or known.setdefault(word, _mark(word)) for word in words]
    cuts, has_ended = [0], False
    for place, mark in enumerate(marks):
        if has_ended and mark in ("word", "opening"):
            cuts.append(place)
            has_ended = False
        has_ended = has_ended or mark == "end"
    cuts.append(len(words))
    found: list[tuple[int, int]] = []
    for first, last in pairwise(cuts):
        found += _shortened(marks, first, last, longest)
    return [words[first:last] for first, last in found]


def _shortened(
    marks: Sequence[_Mark], first: int, last: int, longest: int
) -> list[tuple[int, int]]:
    """Return the bounds of pieces that are not too long."""
    size = last - first
    if size <= longest:
        return [(first, last)]
    middle = (first + last) // 2
    for away in range(size // 4):
        for place in (middle - away, middle + away):
            if marks[place - 1] in ("end", "inside"):
                return [
                    *_shortened(marks, first, place, longest),
                    *_shortened(marks, place, last, longest),
                ]
    pieces = -(-size // min(longest, _BLIND_PIECE))
    bounds = [last - (pieces - number) * size // pieces for number in range(pieces + 1)]
    return list(pairwise(bounds))


def joined(trees: Sequence[Tree]) -> Tree:
    """Return trees under one root: what stands below the root of each, in order."""
    return Tree(trees[0].label, [child for tree in trees for child in tree.children])


def parse_with_long(
    sentences: Sequence[Sentence],
    options: ParserOptions,
    *,
    parse: Callable[[Sequence[Sentence]], Sequence[Found | None]],
    parse_pieces: Callable[[Sequence[Sentence]], Sequence[Found | None]],
    join: Callable[[Sentence, Sequence[Found]], Found],
    flat: Callable[[Sentence], Found],
) -> list[Found | None]:
    """Return what a parser finds, and for sentences that are too long what the options say.

    Args:
        sentences: The sentences.
        options: How long a sentence may be, and what becomes of longer ones.
        parse: Parses sentences that are not too long; None for no words.
        parse_pieces: Parses pieces of others.
        join: Makes one result of a sentence and the results of its pieces.
        flat: Gives what stands for a sentence that is not parsed.

    Raises:
        TooLongSentence: if longer sentences are refused.
    """
    long, short = without_long(sentences, options)
    found = list(parse(short))
    if options.long == "flat":
        for place in long:
            found[place] = flat(sentences[place])
        return found
    pieces = [pieces_of(sentences[place], options.max_words) for place in long]
    parsed = iter(parse_pieces([piece for own in pieces for piece in own]))
    for place, own in zip(long, pieces, strict=True):
        results = [next(parsed) for _ in own]
        found[place] = join(sentences[place], [each for each in results if each is not None])
    return found


def without_long(
    sentences: Sequence[Sentence], options: ParserOptions
) -> tuple[list[int], Sequence[Sentence]]:
    """Return the places of sentences that are too long, and all sentences, those without words.

    Raises:
        TooLongSentence: if such sentences are refused.
    """
    longest = options.max_words
    long = [place for place, words in enumerate(sentences) if len(words) > longest]
    if not long:
        return long, sentences
    if options.long == "refuse":
        words = len(sentences[long[0]])
        raise TooLongSentence(
            long[0],
            words,
            f"at most {longest} are parsed together. Split it; let the parser do that with "
            f"{option('long', 'split')}, or take flat trees with {option('long', 'flat')}; or "
            f"raise the limit with {option('max_words', str(words))}.",
        )
    return long, [() if len(words) > longest else words for words in sentences]
