"""What labels are made of: separators, categories that contain one, roots and empty elements."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass

from treelm.tasks.new_language.notes import Note, listed, percent
from treelm.tasks.new_language.survey import Survey
from treelm.trees.label import RESERVED_CHARACTERS

#: Characters that can separate a category from functions and indices.
CANDIDATES = "-=|;:#~/_.+*"
#: What is assumed of these without evidence, as the Penn Treebank has them.
USUAL = "-=|"
#: Of the labels with a separator, the share whose first part must occur as a label by itself.
STANDS_ALONE = 0.5
#: A category that occurs by itself in less than this share of its nodes needs what follows it.
SELDOM_BARE = 0.02
_EMPTY_WORD = re.compile(r"^(\*.*|0|\[\]|∅|ø|__+)$")


@dataclass(frozen=True)
class LabelProposal:
    """What `[reading]` of a profile says."""

    separators: str
    compounds: tuple[str, ...]
    renamed: dict[str, str]
    roots: tuple[str, ...]
    empty: tuple[str, ...]
    notes: tuple[Note, ...]


def propose_labels(survey: Survey) -> LabelProposal:
    """Return how the labels of a treebank should be read."""
    notes: list[Note] = []
    empty = _empty_tags(survey, notes)
    labels = Counter(
        {label: count for label, count in survey.labels.items() if label not in empty and label}
    )
    separators = _separators(labels, notes)
    compounds = _compounds(labels, separators, notes)
    roots = _roots(survey, notes)
    renamed = _renamed(labels, separators, compounds, notes)
    return LabelProposal(separators, compounds, renamed, roots, empty, tuple(notes))


def first_part(label: str, separators: str) -> str:
    """Return a label up to its first separator that is not its first character."""
    if label.startswith("-"):
        return label
    places = [place for place, character in enumerate(label) if place and character in separators]
    return label[: places[0]] if places else label


def _separators(labels: Counter[str], notes: list[Note]) -> str:
    kept = ""
    for character in CANDIDATES:
        marked = {
            label: count
            for label, count in labels.items()
            if not label.startswith("-") and character in label[1:] and any(map(str.isalnum, label))
        }
        if not marked:
            kept += character if character in USUAL else ""
            continue
        nodes = sum(marked.values())
        alone = sum(
            count for label, count in marked.items() if first_part(label, character) in labels
        )
        usual = character in USUAL
        is_separator = usual or (character in ";:#~|" and alone >= STANDS_ALONE * nodes)
        evidence = (
            f"{character!r} is in {len(marked)} labels, {nodes} nodes "
            f"({listed(Counter(marked), 4)}); in "
            f"{percent(alone, nodes)} of them what precedes it is a label by itself: labels are "
            f"{'' if is_separator else 'not '}cut there"
        )
        doubtful = not is_separator and alone > 0.1 * nodes
        if doubtful:
            evidence += (
                ". If what follows it is a feature and no part of the category, rename such labels "
                '([reading.rename], "beginning*" = "category")'
            )
        notes.append(Note("reading.separators", sure=not doubtful, evidence=evidence + "."))
        kept += character if is_separator else ""
    return kept


def _compounds(labels: Counter[str], separators: str, notes: list[Note]) -> tuple[str, ...]:
    """Return categories that contain a separator: those whose first part never occurs bare."""
    bare: Counter[str] = Counter()
    marked: dict[str, Counter[str]] = defaultdict(Counter)
    for label, count in labels.items():
        first = first_part(label, separators)
        if first == label:
            bare[first] += count
            continue
        second = first_part(label[len(first) + 1 :], separators)
        mark = label[len(first)]
        if not second or second.isdigit():
            bare[first] += count
        else:
            marked[first][f"{first}{mark}{second}"] += count
    kept: list[str] = []
    for first, kinds in sorted(marked.items()):
        if any(character in first for character in RESERVED_CHARACTERS):
            continue  # renamed instead
        total = kinds.total() + bare[first]
        if total < 20 or bare[first] > SELDOM_BARE * total:
            if total >= 20 and bare[first] <= 0.2 * total:
                notes.append(
                    Note(
                        "reading.compounds",
                        sure=False,
                        evidence=f"{first} is bare in only {percent(bare[first], total)} of "
                        f"{total} nodes "
                        f"({listed(kinds, 4)}); it is cut all the same.",
                    )
                )
            continue
        often = [kind for kind, count in kinds.items() if count >= max(5, 0.001 * total)]
        kept.extend(often)
        notes.append(
            Note(
                "reading.compounds",
                sure=len(often) <= 12,
                evidence=f"{first} is bare in {percent(bare[first], total)} of {total} nodes: "
                "what follows "
                f"is part of the category ({listed(kinds)}).",
            )
        )
    return tuple(kept)


def _roots(survey: Survey, notes: list[Note]) -> tuple[str, ...]:
    common = {"TOP", "ROOT", "S1", "VROOT"}
    roots = [
        label
        for label, count in survey.outer.items()
        if label
        and label not in survey.inner
        and (label in common or survey.outer_single[label] >= 0.5 * count)
    ]
    known = [label for label in roots if survey.outer[label] >= 0.01 * survey.trees]
    others = survey.trees - sum(survey.outer[label] for label in roots if label)
    sure = others == 0 or not roots
    notes.append(
        Note(
            "reading.root_labels",
            sure=sure and len(known) <= 1,
            evidence=f"the outermost labels of {survey.trees} trees: {listed(survey.outer, 5)}. "
            "Those that never occur inside a tree, and have one child, are taken for roots; above "
            "the others a ROOT is put.",
        )
    )
    proposed = [label for label in known if len(known) <= 3]
    return tuple(sorted(common | set(proposed)))


def _empty_tags(survey: Survey, notes: list[Note]) -> tuple[str, ...]:
    found = ["-NONE-"]
    for tag, words in sorted(survey.tags.items()):
        traces = sum(count for word, count in words.items() if _EMPTY_WORD.match(word))
        share = traces / words.total()
        if tag == "-NONE-" or (share >= 0.95 and words.total() >= 10):
            if tag != "-NONE-":
                found.append(tag)
            notes.append(
                Note(
                    "reading.empty_tags",
                    sure=tag == "-NONE-",
                    evidence=f"{tag}: {percent(traces, words.total())} of {words.total()} words "
                    "look like "
                    f"traces ({listed(words, 4)}).",
                )
            )
        elif traces >= 10 and share >= 0.05:
            notes.append(
                Note(
                    "reading.empty_tags",
                    sure=False,
                    evidence=f"{tag}: {traces} of {words.total()} words look like traces; they "
                    "stay.",
                )
            )
    if len(notes) == 0:
        notes.append(
            Note("reading.empty_tags", sure=True, evidence="no word looks like an empty element.")
        )
    return tuple(found)


def _renamed(
    labels: Counter[str], separators: str, compounds: tuple[str, ...], notes: list[Note]
) -> dict[str, str]:
    """Return new names for categories with characters that treelet transforms use as marks."""
    renamed: dict[str, str] = {}
    count = 0
    for label in sorted(labels):
        cut = first_part(label, separators)
        category = next((kind for kind in compounds if label.startswith(kind)), cut)
        if any(character in category for character in RESERVED_CHARACTERS):
            name = re.sub(r"[@+^|\\]", "_", category)
            if category != name and not category.endswith("*") and category not in compounds:
                renamed[category] = name
                count += labels[label]
    if renamed:
        notes.append(
            Note(
                "reading.rename",
                sure=False,
                evidence=f"{count} nodes have a category with one of {RESERVED_CHARACTERS}, "
                "which treelet "
                f"transforms use as marks: renamed ({', '.join(list(renamed)[:5])}). Perhaps they "
                "should be read as one of their parts.",
            )
        )
    return renamed
