"""What occurs in a treebank as it is written: labels, tags, and the words below each tag."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from treelm.corpus.brackets import OnError, ReadOptions, ReadReport, read_trees
from treelm.corpus.files import Source
from treelm.errors import CorpusFormatError
from treelm.trees.profile import Profile, load_profile
from treelm.trees.tree import Tree

#: A child of a phrase: its label, whether it is a tag, and whether it is punctuation.
Child = tuple[str, bool, bool]


@dataclass
class Survey:
    """Counts of labels as they are written, nothing cut or removed."""

    trees: int = 0
    outer: Counter[str] = field(default_factory=Counter)
    outer_single: Counter[str] = field(default_factory=Counter)
    inner: Counter[str] = field(default_factory=Counter)
    tags: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    @property
    def tag_counts(self) -> Counter[str]:
        """Number of words of each tag."""
        return Counter({tag: words.total() for tag, words in self.tags.items()})

    @property
    def labels(self) -> Counter[str]:
        """Number of nodes of each label, tags and outermost ones included."""
        return self.inner + self.outer + self.tag_counts


def survey_trees(
    sources: Iterable[Source], *, on_error: OnError, reports: list[ReadReport]
) -> Survey:
    """Return what occurs in files of trees.

    Raises:
        CorpusFormatError: ``E_NO_DATA`` if there is no tree.
    """
    options = ReadOptions(
        profile=load_profile(None), strip=False, normalize_root=False, respell=False
    )
    found = Survey()
    for source in sources:
        report = ReadReport()
        reports.append(report)
        for tree in read_trees(source, options, on_error=on_error, report=report):
            found.trees += 1
            found.outer[str(tree.label)] += 1
            found.outer_single[str(tree.label)] += len(tree.children) == 1
            for node in tree.preorder():
                if node.word is not None:
                    found.tags[str(node.label)][node.word] += 1
                elif node is not tree:
                    found.inner[str(node.label)] += 1
    if not found.trees:
        raise CorpusFormatError(
            "no tree was found, so there is nothing to make a profile of.", code="E_NO_DATA"
        )
    return found


@dataclass
class LocalTrees:
    """Phrases with their children, and words by tag, as a profile reads them."""

    rules: Counter[tuple[str, tuple[Child, ...]]]
    words: dict[str, Counter[str]]
    functions: dict[str, Counter[str]] = field(default_factory=dict)


def local_trees(sources: Iterable[Source], profile: Profile, on_error: OnError) -> LocalTrees:
    """Return the phrases of files of trees, read by a profile, with their children."""
    options = ReadOptions(profile=profile)
    punctuation = frozenset(profile.punctuation.tags)
    rules: Counter[tuple[str, tuple[Child, ...]]] = Counter()
    words: dict[str, Counter[str]] = defaultdict(Counter)

    def child(node: Tree) -> Child:
        label = str(node.label)
        return label, node.word is not None, label in punctuation

    for source in sources:
        for tree in read_trees(source, options, on_error=on_error):
            for node in tree.preorder():
                if node.word is not None:
                    words[str(node.label)][node.word] += 1
                else:
                    rules[str(node.label), tuple(map(child, node.children))] += 1
    return LocalTrees(rules, words)
