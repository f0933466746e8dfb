"""Number and finiteness in labels: from Penn tags and a few English words, up along heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from treelm.transforms.markovize import annotated, relabelled, undo_annotate_parents
from treelm.transforms.transform import Transform, register
from treelm.trees.label import Label
from treelm.trees.tree import Tree

SINGULAR, PLURAL, PAST = "sg", "pl", "past"

#: What tags say about their phrase.
_NOUN_TAGS = {"NN": SINGULAR, "NNP": SINGULAR, "NNS": PLURAL, "NNPS": PLURAL}
_VERB_TAGS = {
    "VBZ": SINGULAR,
    "VBP": PLURAL,
    "VBD": PAST,
    "MD": PAST,
    "VB": "base",
    "TO": "to",
    "VBG": "ing",
    "VBN": "en",
}
#: What words say that their tags do not; the label of the tag says so too.
_WORDS = {
    "VBD": {"was": SINGULAR, "were": PLURAL},
    "PRP": {
        **dict.fromkeys(("he", "she", "it"), SINGULAR),
        **dict.fromkeys(("i", "you", "we", "they"), PLURAL),  # "I" takes the verb of plurals
    },
    "DT": {
        **dict.fromkeys(("a", "an", "this", "that", "each", "every", "another"), SINGULAR),
        **dict.fromkeys(("these", "those", "both"), PLURAL),
    },
}
_NOUN_PHRASES = frozenset({"NP", "NX", "NML", "WHNP"})
_CLAUSES = frozenset({"VP", "S", "SINV", "SQ"})
_NOMINAL = _NOUN_PHRASES | _NOUN_TAGS.keys() | {"PRP", "DT"}
_VERBAL = _CLAUSES | _VERB_TAGS.keys()


def annotate_agreement(tree: Tree) -> Tree:
    """Return the tree with number after the labels of noun phrases, and with the verb's form after
    those of verb phrases and clauses.

    Noun phrases are ``^sg`` or ``^pl`` as their head noun or pronoun is, and plural where *and*
    joins some. Verb phrases and clauses have the form of their head verb: ``^sg`` (VBZ, *was*),
    ``^pl`` (VBP, *were*), ``^past`` (other VBD, MD), ``^base``, ``^to``, ``^ing``, ``^en``. Tags
    are marked only where the word tells more than they do: *was*, *these*, *he*. A clause has the
    number of its verb, so that in the rule ``S^pl -> NP^pl VP^pl`` subject and verb agree however
    it is binarized. `treelm.transforms.markovize.undo_annotate_parents` is the inverse.

    Args:
        tree: A tree with Penn tags and heads; others are not marked.

    Raises:
        CorpusFormatError: ``E_RESERVED_CHAR`` if a label is annotated already, or a category
            contains ``^`` or a backslash.

    Examples:
        >>> subject = Tree("NP", [Tree("DT", "These"), Tree("NNS", "keys")], head=1)
        >>> lost = Tree("VP", [Tree("VBN", "lost")], head=0)
        >>> verb = Tree("VP", [Tree("VBD", "were"), lost], head=0)
        >>> tree = Tree("S", [subject, verb], head=1)
        >>> print(annotate_agreement(tree))
        (S^pl (NP^pl (DT^pl These) (NNS keys)) (VP^pl (VBD^pl were) (VP^en (VBN lost))))
        >>> undo_annotate_parents(annotate_agreement(tree)) == tree
        True
    """
    features: list[str | None] = []
    labels: list[Label] = []
    for node in reversed(list(tree.preorder())):
        if node.word is not None:
            feature, mark = _feature_of_tag(str(node.label), node.word.lower())
        else:
            first = len(features) - len(node.children)
            below = features[first:][::-1]
            del features[first:]
            feature = mark = _feature_of_phrase(node, below)
        features.append(feature)
        labels.append(annotated(node.label, () if mark is None else (mark,)))
    return relabelled(tree, labels[::-1])


def _feature_of_tag(tag: str, word: str) -> tuple[str | None, str | None]:
    """Return what a word says about its phrase, and what the label of its tag should tell."""
    own = _WORDS.get(tag, {}).get(word)
    return own or _NOUN_TAGS.get(tag) or _VERB_TAGS.get(tag), own


def _feature_of_phrase(node: Tree, below: list[str | None]) -> str | None:
    label = node.label.base
    names = [child.label.base for child in node.children]
    if label in _NOUN_PHRASES:
        joined = any(child.word in ("and", "And") for child in node.children)
        if joined and sum(name in _NOUN_PHRASES for name in names) > 1:
            return PLURAL
        wanted = _NOMINAL
    elif label in _CLAUSES:
        wanted = _VERBAL
    else:
        return None
    if node.head is None or node.head >= len(names):
        return None
    return below[node.head] if names[node.head] in wanted else None


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotateAgreement(Transform):
    """`annotate_agreement`."""

    name: ClassVar[str] = "annotate_agreement"

    def apply(self, tree: Tree) -> Tree:
        """Return `annotate_agreement` of the tree."""
        return annotate_agreement(tree)

    def undo(self, tree: Tree) -> Tree:
        """Return the tree without annotations."""
        return undo_annotate_parents(tree)
