"""A language profile made from a treebank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from treelm.corpus.brackets import OnError, ReadReport
from treelm.corpus.files import Source
from treelm.tasks.new_language.heads import HeadProposal, ProposedRule, propose_heads
from treelm.tasks.new_language.labels import LabelProposal, propose_labels
from treelm.tasks.new_language.notes import Note, listed, percent
from treelm.tasks.new_language.profile_text import profile_text
from treelm.tasks.new_language.survey import LocalTrees, Survey, local_trees, survey_trees
from treelm.tasks.new_language.words import WordProposal, propose_words
from treelm.trees.profile import Profile, Side, load_profile

#: A tag with no more words than this may be one of coordinators, whatever their number.
FEW_WORDS = 15
_BRACKETS = ["-LRB-", "-RRB-", "-LCB-", "-RCB-", "-LSB-", "-RSB-"]


@dataclass(frozen=True)
class Proposal:
    """A profile, and the evidence for it."""

    profile: Profile
    notes: tuple[Note, ...]
    trees: int
    reports: tuple[ReadReport, ...] = field(repr=False, default=())

    @property
    def unsure(self) -> tuple[Note, ...]:
        """The parts that someone should look at."""
        return tuple(note for note in self.notes if not note.sure)

    @property
    def text(self) -> str:
        """The profile as a TOML file, with the evidence in comments."""
        return profile_text(self.profile, self.notes)


def propose_profile(
    sources: Iterable[Source], name: str, *, on_error: OnError = "skip"
) -> Proposal:
    """Return a language profile for files of trees.

    Args:
        sources: Files of trees, read twice.
        name: Name of the profile.
        on_error: ``raise`` at the first malformed tree, or ``skip`` and report it.

    Raises:
        CorpusFormatError: ``E_NO_DATA`` if there is no tree.
        ProfileError: for a name that no profile can have.
    """
    files = list(sources)
    reports: list[ReadReport] = []
    survey = survey_trees(files, on_error=on_error, reports=reports)
    labels = propose_labels(survey)
    reading = load_profile({"name": name, "reading": _reading(labels)})
    words = propose_words(local_trees(files, reading, on_error).words)
    marked = load_profile(
        {
            "name": name,
            "reading": _reading(labels),
            "punctuation": {"tags": list(words.punctuation)},
        }
    )
    trees = local_trees(files, marked, on_error)
    few = (tag for tag, counts in trees.words.items() if len(counts) <= FEW_WORDS)
    heads = propose_heads(trees, {*words.closed, *few})
    notes = [*labels.notes, *words.notes, *heads.notes]
    phrases = _noun_phrases(trees, words, notes)
    _functions(survey, labels, notes)
    content = {
        "name": name,
        "description": f"Proposed by treelm new-language from {survey.trees} trees",
        "reading": _reading(labels),
        "punctuation": {"tags": list(words.punctuation), "by_word": not words.punctuation},
        "heads": _heads(heads),
        "closed_class": {"tags": list(words.closed), "bracket_words": _BRACKETS},
        "treelet": {"noun_phrases": phrases, "number_tags": list(words.numbers)},
        "unknown_words": {
            "suffixes": list(words.endings),
            "last_character": not words.endings,
        },
        "evaluation": {
            "delete_tags": list(words.punctuation),
            "delete_punctuation": not words.punctuation,
        },
    }
    return Proposal(load_profile(content), tuple(notes), survey.trees, tuple(reports))


def _reading(labels: LabelProposal) -> dict[str, object]:
    return {
        "root_labels": list(labels.roots),
        "empty_tags": list(labels.empty),
        "separators": labels.separators,
        "compounds": list(labels.compounds),
        "rename": labels.renamed,
    }


def _heads(heads: HeadProposal) -> dict[str, object]:
    return {
        "default": _side(heads.default_right),
        "coordinators": list(heads.coordinators),
        "rules": {mother: _rule(rule) for mother, rule in heads.rules.items()},
    }


def _rule(rule: ProposedRule) -> dict[str, object]:
    steps = [{"from": _side(tier.right), "any": list(tier.labels)} for tier in rule.tiers]
    return {"default": _side(rule.default_right), "steps": steps}


def _side(right: bool) -> Side:  # noqa: FBT001 (it is the side)
    return "right" if right else "left"


def _noun_phrases(trees: LocalTrees, words: WordProposal, notes: list[Note]) -> list[str]:
    """Return the phrases below which the tag with the most different words is most often."""
    tags = {
        tag: counts
        for tag, counts in trees.words.items()
        if tag not in (*words.closed, *words.punctuation, *words.numbers)
    }
    if not tags:
        return []
    open_tag = max(sorted(tags), key=lambda tag: len(tags[tag]))
    below = {
        mother: sum(
            count
            for (label, children), count in trees.rules.items()
            if label == mother and any(child[0] == open_tag for child in children)
        )
        for mother in {label for label, _ in trees.rules} - {"ROOT"}
    }
    if not below:
        return []
    best = max(sorted(below), key=lambda mother: below[mother])
    notes.append(
        Note(
            "treelet.noun_phrases",
            sure=False,
            evidence=f"{open_tag} has the most different words ({len(tags[open_tag])}), so that "
            "it is taken "
            f"for the noun; {percent(below[best], sum(below.values()))} of them are below {best} "
            f"({listed(sorted(below.items(), key=lambda item: -item[1]), 4)}).",
        )
    )
    return [best]


def _functions(survey: Survey, labels: LabelProposal, notes: list[Note]) -> None:
    """Say what follows categories, for what a profile can do with functions."""
    seen: Counter[str] = Counter()
    for label, count in survey.inner.items():
        for part in _parts(label, labels):
            if not part.isdigit():
                seen[part] += count
    if seen:
        notes.append(
            Note(
                "treelet.temporal_function",
                sure=False,
                evidence=f"functions: {listed(seen, 12)}. If one marks phrases of time, name "
                "it, and the "
                "tags of nouns in temporal_tags.",
            )
        )


def _parts(label: str, labels: LabelProposal) -> list[str]:
    """Return what follows the category of a label."""
    start = next((kind for kind in labels.compounds if label.startswith(kind)), "")
    rest = label[len(start) :]
    for separator in labels.separators[1:]:
        rest = rest.replace(separator, labels.separators[0])
    parts = rest.split(labels.separators[0]) if labels.separators else [rest]
    return [part for part in parts[1:] if part]
