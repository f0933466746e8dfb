"""Section 6: the events of sentences and trees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from tests.reference.backoff.symbols import (
    BEGIN,
    END,
    NONE,
    RESERVED_LABELS,
    RESERVED_WORDS,
    TOP,
    BackoffError,
    Context,
    Event,
    Outcome,
    Rule,
    Tree,
    check_reserved,
)
from tests.reference.backoff.yields import checked_yield


def ngram_events(sentences: Iterable[Sequence[str]], order: int) -> list[Event]:
    """((w-n+1..w-1), w) for every word and the `</s>` of every sentence (sections 1 and 6)."""
    events: list[Event] = []
    for words in sentences:
        check_reserved(words, RESERVED_WORDS)
        padded = (*[BEGIN] * (order - 1), *words, END)
        events += [
            (padded[place - order + 1 : place], padded[place])
            for place in range(order - 1, len(padded))
        ]
    return events


class TreeletEvent(NamedTuple):
    """A line of TL 2.1: kind "N" with context (P,P',r'), "T" with (P,R,r',w-1,w-2)."""

    kind: Literal["N", "T"]
    context: Context
    outcome: Outcome


def treelet_events(tree: Tree) -> list[TreeletEvent]:
    """All events of a tree in the order of the generative story (TL 2)."""
    if _is_preterminal(tree):
        raise BackoffError("E_TREE", "the root is a preterminal")
    events: list[TreeletEvent] = []
    _expand(tree, TOP, TOP, [BEGIN, BEGIN], events)
    return events


def _expand(
    tree: Tree, parent: str, rule: str, words: list[str], events: list[TreeletEvent]
) -> None:
    """The events of a phrasal node P, `parent` and `rule` being its P' and r' (TL 2, step 2)."""
    label, children = _parts(tree)
    outcome = tuple(_parts(child)[0] for child in children)
    events.append(TreeletEvent("N", (label, parent, rule), outcome))
    own_rule = f"{label} -> {' '.join(outcome)}"
    for child, right in zip(children, (*outcome[1:], NONE), strict=True):
        if _is_preterminal(child):
            events.append(_terminal(child, right, own_rule, words))
        else:
            _expand(child, label, own_rule, words, events)


def _terminal(tree: Tree, right: str, rule: str, words: list[str]) -> TreeletEvent:
    """The event of a preterminal; its word joins the words so far (TL 2, step 3)."""
    label, word = tree
    check_reserved([str(label)], RESERVED_LABELS)
    check_reserved([str(word)], RESERVED_WORDS)
    event = TreeletEvent("T", (label, right, rule, words[-1], words[-2]), word)
    words.append(str(word))
    return event


def _is_preterminal(tree: Tree) -> bool:
    return len(tree) == 2 and isinstance(tree[1], str)


def _parts(tree: Tree) -> tuple[str, tuple[Tree, ...]]:
    """The label and the subtrees of a node; of a preterminal no subtrees."""
    label, *rest = tree
    subtrees = tuple(child for child in rest if not isinstance(child, str))
    if not isinstance(label, str) or not rest or (len(rest) > 1 and len(subtrees) < len(rest)):
        raise BackoffError("E_TREE", f"{tree!r} is no node")
    check_reserved([label], RESERVED_LABELS)
    return label, subtrees


def terminal_events(trees: Iterable[Tree]) -> list[Event]:
    """((P,R,r',w-1,w-2), w) for every preterminal (TL 2, 3)."""
    found = (event for tree in trees for event in treelet_events(tree))
    return [(event.context, event.outcome) for event in found if event.kind == "T"]


def nonterminal_events(trees: Iterable[Tree]) -> list[Event]:
    """((P,P',r'), yield) for every phrasal node, ROOT included (TL 2, 3)."""
    found = (event for tree in trees for event in treelet_events(tree))
    return [(event.context, event.outcome) for event in found if event.kind == "N"]


def tree_rules(trees: Iterable[Tree]) -> list[Rule]:
    """(P, yield) of every phrasal node: what the yield base is trained on (section 5)."""
    return [
        (str(context[0]), checked_yield(outcome)) for context, outcome in nonterminal_events(trees)
    ]
