"""Hypothesis strategies for labels, words, trees and malformed bracket text.

The only module of the package that imports hypothesis; install it to use this one.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from treelm.trees.label import RESERVED_CHARACTERS
from treelm.trees.tree import Tree


def _split(text: str, separator: str | None = None) -> tuple[str, ...]:
    return tuple(text.split(separator))


#: Characters that end a token of a bracket file.
SEPARATORS = " \t\n\v\f\r()"

PHRASES = _split(
    "NP VP S SBAR PP ADJP ADVP CONJP PRN WHNP WHPP WHADVP SQ SINV SBARQ FRAG NX NML X QP UCP NAC"
    " INTJ LST PRT RRC WHADJP EDITED"
)
TAGS = _split(
    "NN NNS NNP NNPS DT JJ JJR RB CD CC IN TO MD VB VBZ VBD VBN VBG PRP PRP$ POS WP WDT WRB EX RP"
    " HYPH SYM $ # , : . `` '' -LRB- -RRB- NFP AUX FW LS UH"
)
FUNCTION_TAGS = _split("-SBJ -TMP -LOC-TMP -1 -SBJ-2 =2 -TMP=1 |PRT -NOM-TMP-3")

# Right-hand sides that make head rules and treelet transforms fire.
_RULES = {
    "NP": _split(
        "DT NN;NN;NNP;PRP;CD NNS;NP PP;NP SBAR;NP NP;NP;NP POS;NP , NP ,;NP CC NP;NP , NP , CC NP;"
        "NP : NP;NP -LRB- NP -RRB-;NNP POS;NP CC NN;NN , CONJP NP;NP RB , NP;NP ADVP CC NP;"
        "NP PRN NP;NP , PP NP;NN CC NN;NN HYPH CC NN;NN CC SYM CC NN;JJ CC NN;QP NNS;$ CD -NONE-;"
        "NML NN;NML;DT JJ;DT , .;JJR;NX CC NX;DT NN NN;NNS CC;UCP NN;NP CONJP NP;NP PRN , NP;NNPS",
        ";",
    ),
    "VP": _split(
        "VBZ NP;MD VP;TO VP;VBZ ADJP;VBD NP NP;VBD;VP CC VP;VP , VP CC VP;MD CC MD VP;VB CC VP;"
        "VP CC VB;VBD , CC , VP;VBD SBAR;VBN NP PP;VP;MD RB VP;VB S;SYM NP;NN;VBZ VP : VP;VBG , VP",
        ";",
    ),
    "S": _split(
        "NP VP .;NP VP;VP;VP .;S CC S;S , CC S .;SBAR VP;ADVP NP VP;-NONE-;IN VP;CC NP VP .;"
        "`` S '' NP VP .",
        ";",
    ),
    "SBAR": _split("IN S;WHNP S;S;-NONE- S;S CC S;SBAR CC SBAR;IN NP VP;WHADVP SQ", ";"),
    "PP": _split("IN NP;TO NP;PP CC PP;PP , PP CC PP;IN CC IN NP;NP NP;VBG PP", ";"),
    "WHNP": _split("WP;WDT NN;WHNP PP;-NONE-", ";"),
    "ADJP": _split("JJ;RB JJ;JJ CC JJ;NN HYPH VBN;ADJP SBAR;QP JJ", ";"),
    "ADVP": _split("RB;RB RB;IN NP;NP RB", ";"),
    "CONJP": _split("RB RB IN;CC RB;RB", ";"),
    "PRN": _split("-LRB- NP -RRB-;, S ,;: NP :", ";"),
    "QP": _split("$ CD CD;IN CD;CD CC CD;RB CD", ";"),
    "SQ": _split("VBZ NP VP;MD NP VP", ";"),
    "SINV": _split("`` S '' VP NP;VBZ NP", ";"),
    "FRAG": _split("NP;NP .;, .;NN CC NN", ";"),
    "NX": _split("NN;NN NN;NX PP", ";"),
    "NML": _split("NN NN;NML CC NML;NML;NN", ";"),
    "UCP": _split("JJ CC NN;NP CC VP", ";"),
    "X": _split("SYM;X NP", ";"),
}
_OTHER_RULES = _split("NP;NN;NP CC VP;JJ , NN", ";")
_BELOW_ROOT = _split("S NP VP SBAR FRAG SINV SQ NML UCP PP X")

# What replaces a phrase where the tree may not become deeper.
_TAG_FOR = {
    **dict.fromkeys(PHRASES, "NN"),
    "VP": "VBD",
    "PP": "IN",
    "CONJP": "CC",
    "ADJP": "JJ",
    "ADVP": "RB",
    "QP": "CD",
    "WHNP": "WP",
}

_NOUNS = _split("today Monday week MONTHS dog Year time cat stock 1990s é Ölpreis TODAY")
_VERBS = _split("is Was 's ’s ‘ve been fell DID goes having sing be")
_WORDS = {
    "CD": _split("1989 109.85 ten 12 1,200 .5 3/4 B-52 1980s 20th -1 1٣٤٥ 3.x ½ 0001 '89 Million"),
    **dict.fromkeys(("NN", "NNS", "NNP", "NNPS"), _NOUNS),
    **dict.fromkeys(("VB", "VBZ", "VBD", "VBN", "VBG", "MD", "AUX"), _VERBS),
    "POS": _split("'s ’s '"),
    "SYM": _split("+ | / ^ @ \\ -"),
    "CC": _split("and Or &"),
    "DT": _split("the The A"),
    "IN": _split("of That BY"),
    ".": _split(". ? !"),
    ":": _split(": -- ; ..."),
    "-LRB-": _split("-LRB- -LSB- -lrb-"),
    "-RRB-": _split("-RRB- -RCB-"),
    "-NONE-": _split("* *T*-1 0 *PRO*"),
}
_ODD_WORDS = _split(
    "\\/ a\\*b \\\\/ 1\\/2 *x* -LRB- < & ' ’ U.S. Σ ΑΣ ẞ ǅ İ ﬁ 犬 𝐀 e\u0301 a\u00a0b \u2028 -"
    " \ufeff x\u0085y \x00 \x1c \x7f",
    " ",
)

# -- labels and words -----------------------------------------------------------------------


def _token_characters(excluded: str = "") -> SearchStrategy[str]:
    return st.characters(exclude_characters=SEPARATORS + excluded, exclude_categories=["Cs"])


def labels(*, reserved: bool = False) -> SearchStrategy[str]:
    """Return a strategy for labels that can occur in a bracket file.

    Args:
        reserved: Whether the characters that transforms use as marks may occur.
    """
    names = st.sampled_from(PHRASES + TAGS)
    functions = st.sampled_from([tag for tag in FUNCTION_TAGS if reserved or "|" not in tag])
    tagged = st.builds(lambda name, function: name + function, names, functions)
    anything = st.text(_token_characters("" if reserved else RESERVED_CHARACTERS), min_size=1)
    special = st.sampled_from(_split("TOP ROOT S1 VROOT -NONE- CODE SU - = X-"))
    return names | tagged | special | anything


def words() -> SearchStrategy[str]:
    """Return a strategy for words: common ones, odd ones, and any text that is one token."""
    common = st.sampled_from(sorted({word for group in _WORDS.values() for word in group}))
    return common | st.sampled_from(_ODD_WORDS) | st.text(_token_characters(), min_size=1)


_DEFAULT_LABELS = labels()
_DEFAULT_WORDS = words()

# -- trees ----------------------------------------------------------------------------------


def trees(
    max_leaves: int = 20,
    labels: SearchStrategy[str] = _DEFAULT_LABELS,
    *,
    words: SearchStrategy[str] = _DEFAULT_WORDS,
    with_heads: bool = False,
) -> SearchStrategy[Tree]:
    """Return a strategy for trees of any shape.

    Args:
        max_leaves: About the largest number of words.
        labels: Strategy for labels; by default `labels` of this module.
        words: Strategy for words; by default `words` of this module.
        with_heads: Whether every phrase knows its head child.
    """

    def phrase(label: str, children: list[Tree], head: int) -> Tree:
        return Tree(label, children, head=head % len(children) if with_heads else None)

    def phrases(below: SearchStrategy[Tree]) -> SearchStrategy[Tree]:
        children = st.lists(below, min_size=1, max_size=5)
        return st.builds(phrase, labels, children, st.integers(0, 4))

    return st.recursive(st.builds(Tree, labels, words), phrases, max_leaves=max_leaves)


@st.composite
def english_trees(draw: DrawFn, *, max_depth: int = 5, annotated: bool = True) -> Tree:
    """Draw a tree below ROOT in the style of the Penn Treebank.

    Args:
        draw: Given by hypothesis.
        max_depth: Largest number of phrases above each other.
        annotated: Whether labels have function tags and the tree has empty elements. A tree without
            them is as the default reader leaves it, but for ``NML`` and unary ``X -> X``.
    """
    chance = st.integers(0, 15)

    def preterminal(tag: str) -> Tree:
        return Tree(tag, draw(st.sampled_from(_WORDS.get(tag, (tag, "X-Ray")))))

    def symbols(category: str) -> list[str]:
        if draw(chance) == 15:
            return draw(st.lists(st.sampled_from(PHRASES + TAGS), min_size=1, max_size=5))
        return draw(st.sampled_from(_RULES.get(category, _OTHER_RULES))).split()

    def phrase(category: str, depth: int) -> Tree:
        children = []
        for symbol in symbols(category):
            if symbol in PHRASES and depth > 0:
                children.append(phrase(symbol, depth - 1))
            elif annotated or symbol != "-NONE-":
                children.append(preterminal(_TAG_FOR.get(symbol, symbol)))
        function = draw(st.sampled_from(FUNCTION_TAGS)) if annotated and draw(chance) > 9 else ""
        return Tree(category + function, children or [preterminal("NN")])

    count = 1 if draw(chance) < 13 else 2
    categories = [draw(st.sampled_from(_BELOW_ROOT)) for _ in range(count)]
    return Tree("ROOT", [phrase(category, max_depth - 1) for category in categories])


# -- bracket text ---------------------------------------------------------------------------

_PIECES = (
    *("(", ")", " ", "\n", "\r\n", "\t", "\v", "\f", "\r", "((", "))", "( ", "\n(", "\n\n"),
    *("*x*", "\n*x*", "\n*x* (a (b\n", "\n*x*)", "\n *x*\n", "*x", "\n*", "**"),
    *("(NN dog)", "(NN )", "()", "(NN a b)", "(NP the (NN x))", "(S ((NN a)))", "(-NONE- *)"),
    *("(NP-TMP (NML (NN a) (NN b)))", "(ROOT (NML (NN a)))", "(CODE x)", "(X (X (X y)))"),
    *("( (S a))", "( (S a) (T b))", "NP", "-NONE-", "a\\/b", "é", "犬", "junk"),
    *("\u00a0", "\u2028", "\u0085", "\ufeff", "\x1c", "\x00"),
)
_UNDECODABLE_PIECES = ("\udce9", "(NN \udce2\udc82)", "(NN a\udcff b)")
_LAYOUTS: tuple[Callable[[str], str], ...] = (
    str,
    lambda text: text.replace(" (", "\n  ("),
    lambda text: text.replace(" ", "\r\n"),
    lambda text: f"( {text} )\n",
    lambda text: f"{text}\n",
)


def bracket_soup(*, undecodable: bool = False) -> SearchStrategy[str]:
    """Return a strategy for bracket text, good, damaged and nonsensical, with line breaks.

    Args:
        undecodable: Whether bytes that are not UTF-8 occur, as lone surrogates: encode the text
            with ``errors="surrogateescape"``.
    """
    pieces = st.sampled_from(_PIECES + (_UNDECODABLE_PIECES if undecodable else ()))
    written = (trees(6) | english_trees(max_depth=3)).map(str)
    laid_out = st.builds(lambda text, layout: layout(text), written, st.sampled_from(_LAYOUTS))
    damaged = st.builds(_damage, laid_out, st.integers(0, 400), st.integers(0, 3), pieces)
    files = st.lists(pieces | laid_out | damaged, max_size=10)
    return (files | st.lists(pieces, max_size=30)).map("".join)


def _damage(text: str, place: int, length: int, piece: str) -> str:
    """Return the text with a few characters replaced by a piece."""
    place %= len(text)
    return text[:place] + piece + text[place + length :]
