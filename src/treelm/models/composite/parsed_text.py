"""Treebanks as the composite model reads them: word ids, documents, and actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from treelm import _native
from treelm.corpus.brackets import read_packed
from treelm.corpus.corpus import TreeCorpus, document_names
from treelm.corpus.encoder import EncodedText, Ids, Places, encode_sentences
from treelm.corpus.files import source_name
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.errors import EstimationError, flag
from treelm.models.composite.actions import ActionCodes, actions_of
from treelm.models.composite.config import CompositeConfig
from treelm.parallel.executor import SERIAL, Executor
from treelm.parallel.progress import SILENT, Progress, shared_step
from treelm.trees.packed import NO_WORD, PackedTrees
from treelm.trees.profile import Profile, ProfileSource, load_profile
from treelm.trees.tree import Tree

#: What a tree with several nodes at its top becomes below ROOT.
FRAGMENT = "FRAG"

_TAG = 1 << 24

Actions = npt.NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class ParseLists:
    """Parses of sentences, any number for each.

    Args:
        sentence_starts: The first parse of every sentence, and their number.
        actions: Actions of all parses.
        action_starts: Where each parse begins among them, and their number.
        log_probs: ln P(words, parse) of each.
    """

    sentence_starts: Places
    actions: Actions
    action_starts: Places
    log_probs: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.action_starts) - 1


@dataclass(frozen=True, eq=False)
class ParsedText:
    """Sentences with one parse each.

    Args:
        ids: Words of all sentences.
        starts: Where each sentence begins, and the number of words.
        documents: The document of every sentence; sentences of one document are adjacent.
        actions: Actions of all parses.
        action_starts: Where each parse begins, and the number of actions.
    """

    ids: Ids
    starts: Places
    documents: npt.NDArray[np.int64]
    actions: Actions
    action_starts: Places

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def tokens(self) -> int:
        """Number of words and sentence ends."""
        return len(self.ids) + len(self)

    @property
    def document_numbers(self) -> npt.NDArray[np.int64]:
        """The document of every sentence, renumbered from 0 without gaps."""
        changes = np.diff(self.documents, prepend=self.documents[:1]) != 0
        return np.cumsum(changes).astype(np.int64)

    @property
    def encoded(self) -> EncodedText:
        """The sentences without their parses."""
        return EncodedText(self.ids, self.starts, self.document_numbers.astype(np.uint32), 0)

    @property
    def lists(self) -> ParseLists:
        """The parses as lists of one."""
        starts = np.arange(len(self) + 1, dtype=np.uint64)
        return ParseLists(starts, self.actions, self.action_starts, np.zeros(len(self)))

    def part(self, first: int, last: int) -> ParsedText:
        """Return the sentences from `first` to before `last`."""
        words, moves = self.starts[first : last + 1], self.action_starts[first : last + 1]
        return ParsedText(
            self.ids[int(words[0]) : int(words[-1])],
            words - words[0],
            self.documents[first:last],
            self.actions[int(moves[0]) : int(moves[-1])],
            moves - moves[0],
        )

    def chosen(self, sentences: npt.NDArray[np.int64]) -> ParsedText:
        """Return some of the sentences, in the order given."""
        ids, starts = _chosen_pieces(self.ids, self.starts, sentences)
        actions, action_starts = _chosen_pieces(self.actions, self.action_starts, sentences)
        return ParsedText(ids, starts, self.documents[sentences], actions, action_starts)


Values = TypeVar("Values", np.uint32, np.uint16)


def _chosen_pieces(
    values: npt.NDArray[Values], starts: Places, chosen: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[Values], Places]:
    """Return some pieces of an array, and where each begins."""
    pieces: list[npt.NDArray[Values]] = [
        values[int(starts[place]) : int(starts[place + 1])] for place in chosen.tolist()
    ]
    sizes = np.array([0, *map(len, pieces)], np.uint64)
    return np.concatenate([values[:0], *pieces]), np.cumsum(sizes, dtype=np.uint64)


class _OpenCodes:
    """Numbers of labels in order of first occurrence; tags and moves are distinct."""

    def __init__(self, *, unary_moves: bool) -> None:
        self.unary_moves = unary_moves
        self.tags: dict[str, int] = {}
        self.phrases: dict[str, int] = {}

    def tag(self, label: str) -> int:
        return _TAG + self.tags.setdefault(label, len(self.tags))

    def adjoin(self, label: str, *, left: bool) -> int:
        return 1 + 3 * self.phrases.setdefault(label, len(self.phrases)) + (0 if left else 1)

    def unary(self, label: str) -> int:
        return 3 + 3 * self.phrases.setdefault(label, len(self.phrases))

    def renumbered(self, part: _Prepared) -> list[npt.NDArray[np.int64]]:
        """Return the actions of trees that had numbers of their own."""
        tags = np.array([self.tag(label) for label in part.tags], np.int64)
        moves = [0]
        for label in part.phrases:
            left = self.adjoin(label, left=True)
            moves += [left, left + 1, left + 2]
        made = []
        for actions in part.actions:
            is_tag = actions >= _TAG
            own = np.array(moves, np.int64)[np.where(is_tag, 0, actions)]
            own[is_tag] = tags[actions[is_tag] - _TAG]
            made.append(own)
        return made

    def closed(self) -> ActionCodes:
        return ActionCodes(
            tuple(sorted(self.tags)), tuple(sorted(self.phrases)), unary_moves=self.unary_moves
        )

    def translate(self, found: npt.NDArray[np.int64], codes: ActionCodes) -> npt.NDArray[np.int64]:
        """Return actions in the numbers of closed codes; -1 for actions they do not have."""
        tags = np.array([codes.tag_ids.get(tag, -1) for tag in self.tags], np.int64)
        moves = [0]
        size = len(codes.phrases)
        for phrase in self.phrases:
            number = codes.phrase_ids.get(phrase, -1)
            moves += [-1 if number < 0 else 1 + number + kind * size for kind in range(3)]
        is_tag = found >= _TAG
        made = np.array(moves, np.int64)[np.where(is_tag, 0, found)]
        made[is_tag] = tags[found[is_tag] - _TAG]
        return made


#: Number of trees that a worker prepares at a time.
TREES_A_SHARD = 512


class _TreeShard(NamedTuple):
    """Some trees of a file as they are sent."""

    name: str
    """The file, as messages name it."""
    documents: list[str]
    """The document of every tree."""
    labels: Sequence[tuple[str, str | None, bool, str | None]]
    words: Sequence[str]
    node_label: Ids
    node_size: Ids
    node_word: Ids
    tree_start: Ids

    @property
    def trees(self) -> PackedTrees:
        """The trees."""
        packed = _native.PackedTrees(
            list(self.labels),
            list(self.words),
            self.node_label,
            self.node_size,
            self.node_word,
            self.tree_start,
        )
        return PackedTrees(packed)


def _tree_shards(corpus: TreeCorpus) -> Iterator[_TreeShard]:
    """Yield the trees of a corpus, some at a time."""
    for number, path in enumerate(corpus.paths):
        names = document_names(path)
        for batch in read_packed(path, corpus.options, on_error=corpus.on_error):
            starts = batch.tree_start
            documents = []
            for ordinal in batch.ordinal.tolist():
                name = names[ordinal - 1] if names is not None and ordinal <= len(names) else None
                documents.append(f"{number}" if name is None else f"{number}\n{name}")
            for first in range(0, len(documents), TREES_A_SHARD):
                last = min(first + TREES_A_SHARD, len(documents))
                nodes = slice(int(starts[first]), int(starts[last]))
                yield _TreeShard(
                    source_name(path),
                    documents[first:last],
                    batch.native.labels,
                    batch.words,
                    batch.node_label[nodes],
                    batch.node_size[nodes],
                    batch.node_word[nodes],
                    starts[first : last + 1] - starts[first],
                )


class _Prepared(NamedTuple):
    """Some trees as words and actions."""

    documents: list[str]
    sentences: list[tuple[str, ...]]
    tags: tuple[str, ...]
    """Tags and phrases in the order of the numbers that actions have here."""
    phrases: tuple[str, ...]
    actions: list[npt.NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class _Prepare:
    """Makes trees binary, and actions of them.

    Args:
        config: Options.
        profile: Language profile.
    """

    config: CompositeConfig
    profile: ProfileSource

    def __call__(self, shard: _TreeShard) -> _Prepared:
        config, profile = self.config, load_profile(self.profile)
        opened = _OpenCodes(unary_moves=config.unary_moves)
        batch, documents = shard.trees, shard.documents
        if config.strict_heads:
            check_heads(batch, profile, shard.name)
        if config.punctuation == "remove":
            kept = [
                (document, without_punctuation(tree, profile))
                for document, tree in zip(documents, batch, strict=True)
            ]
            documents = [document for document, tree in kept if tree is not None]
            batch = PackedTrees.from_trees([tree for _, tree in kept if tree is not None])
        pipeline = config.pipeline()
        sentences, actions = [], []
        for tree in batch.trees(batch.native.find_heads(profile.native)):
            sentences.append(tree.words)
            binary = pipeline.apply(whole_sentence(tree))
            found = actions_of(binary, opened) if config.heads else []
            actions.append(np.array(found, np.int64))
        return _Prepared(documents, sentences, tuple(opened.tags), tuple(opened.phrases), actions)


def check_heads(batch: PackedTrees, profile: Profile, path: str) -> None:
    """Refuse phrases without a head rule in the profile.

    Raises:
        EstimationError: ``E_NO_HEAD_RULE``.
    """
    roots = {"ROOT", *profile.reading.root_labels}
    used = np.unique(batch.node_label[batch.node_word == NO_WORD])
    phrases = {batch.labels[label].base for label in used}
    missing = ", ".join(sorted(phrases - set(profile.heads.rules) - roots))
    if missing:
        raise EstimationError(
            f'{path}: the profile "{profile.name}" has no head rule for {missing}. Add '
            f"rules to a profile of your own, or leave out {flag('strict_heads')} to take the "
            f"{profile.heads.default}most child.",
            code="E_NO_HEAD_RULE",
        )


def whole_sentence(tree: Tree) -> Tree:
    """Return the node below ROOT; several become the children of ``FRAG``.

    Examples:
        >>> print(whole_sentence(Tree("ROOT", [Tree("UH", "Yes"), Tree("NP", "John")])))
        (FRAG (UH Yes) (NP John))
    """
    if tree.label != "ROOT" or tree.word is not None:
        return tree
    if len(tree.children) == 1:
        return tree.children[0]
    return Tree(FRAGMENT, tree.children, head=tree.head)


def without_punctuation(tree: Tree, profile: Profile) -> Tree | None:
    """Return a tree without punctuation (as the profile defines it); None if nothing is left."""
    tags, by_word = frozenset(profile.punctuation.tags), profile.punctuation.by_word

    def extend(node: Tree, below: list[Tree | None]) -> Tree | None:
        if node.word is not None:
            plain = str(node.label) in tags or (by_word and not any(map(str.isalnum, node.word)))
            return None if plain else node
        kept = [child for child in below if child is not None]
        return Tree(node.label, kept) if kept else None

    return tree.fold(extend)


@dataclass(frozen=True, eq=False)
class PreparedTrees:
    """A treebank with its words and labels.

    Args:
        text: The sentences.
        vocabulary: The words.
        codes: Tags and moves.
    """

    text: ParsedText
    vocabulary: Vocabulary
    codes: ActionCodes


def prepare(
    corpus: TreeCorpus,
    config: CompositeConfig,
    *,
    vocabulary: Vocabulary | None = None,
    codes: ActionCodes | None = None,
    executor: Executor = SERIAL,
    progress: Progress = SILENT,
) -> PreparedTrees:
    """Return a treebank in the form the model needs.

    Args:
        corpus: The trees.
        config: Options.
        vocabulary: The words to know; by default those seen often enough.
        codes: Tags and moves; by default those of the trees. Sentences with other labels are left
            out.
        executor: Does the work.
        progress: Progress callback.

    Raises:
        EstimationError: ``E_NO_DATA`` if no sentence is left.
    """
    opened = _OpenCodes(unary_moves=config.unary_moves)
    sentences: list[tuple[str, ...]] = []
    document_of: list[int] = []
    number, last = -1, ""
    found: list[npt.NDArray[np.int64]] = []
    work = _Prepare(config, load_profile(corpus.options.profile).to_config())
    with shared_step(executor, progress, "preparing trees", unit="trees") as (_, finished):
        for part in executor.map(work, _tree_shards(corpus)):
            finished(len(part.sentences))
            sentences += part.sentences
            for document in part.documents:
                number, last = (number, last) if document == last else (number + 1, document)
                document_of.append(number)
            found += opened.renumbered(part)
    if not sentences:
        raise EstimationError("there are no trees with words.", code="E_NO_DATA")
    if vocabulary is None:
        rule = VocabularyRule(name="min-count", min_count=config.min_count)
        vocabulary = build_vocabulary(sentences, rule)
    codes = codes or opened.closed()
    actions = opened.translate(np.concatenate(found), codes)
    starts = np.cumsum([0, *map(len, found)], dtype=np.uint64)
    text = encode_sentences(sentences, vocabulary)
    known = np.array([bool(np.all(actions[a:b] >= 0)) for a, b in pairwise(starts.tolist())])
    parsed = ParsedText(
        text.ids, text.starts, np.array(document_of, np.int64), actions.astype(np.uint16), starts
    )
    if not known.all():
        parsed = parsed.chosen(np.flatnonzero(known))
    if not len(parsed):
        raise EstimationError(
            "every tree has labels that are not in the training trees.", code="E_NO_DATA"
        )
    return PreparedTrees(parsed, vocabulary, codes)


def joined(parts: Sequence[ParsedText]) -> ParsedText:
    """Return texts one after the other; their documents stay distinct."""
    documents, before = [], 0
    for part in parts:
        documents.append(part.documents + before)
        before += int(part.documents.max(initial=-1)) + 1

    def places(starts: Sequence[Places]) -> Places:
        sizes = np.concatenate([np.diff(each) for each in starts])
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)

    return ParsedText(
        np.concatenate([part.ids for part in parts]),
        places([part.starts for part in parts]),
        np.concatenate(documents),
        np.concatenate([part.actions for part in parts]),
        places([part.action_starts for part in parts]),
    )
