"""The trees of each part of a treebank by a parser of the others, in files of parses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from treelm.characters import visible
from treelm.corpus.corpus import TreeCorpus
from treelm.corpus.temporary import temporary_folder
from treelm.errors import UsageError, flag
from treelm.grammar.forest_file import ForestFile
from treelm.grammar.forest_format import ForestHeader
from treelm.grammar.forest_writer import open_forest
from treelm.grammar.k_best import KBest
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.parser import k_best_lists
from treelm.models.registry import find_system
from treelm.models.run import Run
from treelm.models.tree_ranker.config import TreeRankerConfig
from treelm.trees.tree import Tree

#: Neighbours in a treebank are of one text, so that many of them stay in the same part.
_BLOCK = 50
#: One block in so many chooses the regularization, and trains nothing else.
_TUNING = 10
#: Sentences that are parsed at once.
_AT_ONCE = 1000


@dataclass(frozen=True)
class ParsedPart:
    """The sentences of a part and their best trees.

    Args:
        places: Their places in the treebank.
        file: Their trees, in the same order.
    """

    places: Sequence[int]
    file: ForestFile

    def __iter__(self) -> Iterator[tuple[int, KBest]]:
        for place, found in zip(self.places, self.file, strict=True):
            if found is not None:
                yield place, found


def block_of(sentences: int) -> int:
    """Return how many neighbours in a treebank of so many sentences stay in the same part.

    Examples:
        >>> block_of(300), block_of(1_000), block_of(40_000)
        (3, 10, 50)
    """
    return max(1, min(_BLOCK, sentences // (10 * _TUNING)))


def is_tuning(place: int, sentences: int, folds: int) -> bool:
    """Return whether a sentence of a treebank chooses the regularization.

    Each part gives as many: with blocks dealt to the parts in turn, whole rounds are taken.

    Examples:
        >>> [place for place in range(100) if is_tuning(place, 100, 5)]
        [45, 46, 47, 48, 49, 95, 96, 97, 98, 99]
    """
    return place // block_of(sentences) // folds % _TUNING == _TUNING - 1


def parsed_parts(
    corpus: TreeCorpus,
    gold: Sequence[Tree],
    config: TreeRankerConfig,
    parser: LanguageModel,
    run: Run,
) -> Iterator[ParsedPart]:
    """Yield the parts of a treebank, each parsed by a parser that does not know it.

    The files are kept with the checkpoint, so that a training that is resumed neither trains the
    parser of a part that is done nor parses it again.
    """
    key = _key(corpus, config, parser)
    words = [tree.words for tree in gold]
    parts = [place // block_of(len(gold)) % config.folds for place in range(len(gold))]
    with ExitStack() as stack:
        folder = run.checkpoint or stack.enter_context(temporary_folder(run.temporary))
        folder.mkdir(exist_ok=True)
        for number in range(config.folds):
            places = [place for place, part in enumerate(parts) if part == number]
            if not places or (len(places) == len(gold) and config.folds > 1):
                continue
            header = ForestHeader(k=config.k, parser=f"{key}.{number}", options={})
            path = folder / f"part-{number + 1}.forest"
            run.note(f"part {number + 1} of {config.folds}: {len(places)} sentences.")
            if not (run.resume and config.folds > 1 and _is_done(path, header, len(places))):
                proposer = parser.with_tokenizer(None)
                if config.folds > 1:
                    rest = [gold[place] for place, part in enumerate(parts) if part != number]
                    proposer = _trained_alike(
                        parser, TreeCorpus.of_trees(rest, corpus.options), run
                    )
                _parse(path, header, [words[place] for place in places], proposer, run)
            with ForestFile(path) as file:
                yield ParsedPart(places, file)


def _is_done(path: Path, header: ForestHeader, sentences: int) -> bool:
    """Return whether the interrupted training left all trees of a part.

    Raises:
        UsageError: ``E_CHECKPOINT`` if the file is that of another training.
    """
    if not path.exists():
        return False
    with ForestFile(path, is_resumed=True) as file:
        if file.header != header:
            raise UsageError(
                f"{visible(str(path.parent))}: this is the checkpoint of another training: other "
                f"trees, parser or options. Give the same ones, or train without {flag('resume')}.",
                code="E_CHECKPOINT",
            )
        return file.is_complete and len(file) == sentences


def _trained_alike(parser: LanguageModel, trees: TreeCorpus, run: Run) -> LanguageModel:
    """Return a parser of other trees, trained with the options of one."""
    # What the last step of a training left must not be taken for that of another part.
    alone = replace(run, checkpoint=None, resume=False)
    return find_system(parser.system).trainer(trees, parser.config, run=alone)


def _parse(
    path: Path,
    header: ForestHeader,
    sentences: Sequence[Sequence[str]],
    proposer: LanguageModel,
    run: Run,
) -> None:
    """Write the best trees of sentences to a file."""
    with (
        open_forest(path, header, restart=True) as writer,
        run.progress.step("parsing", total=len(sentences), unit="sentences") as step,
    ):
        for first in range(0, len(sentences), _AT_ONCE):
            some = sentences[first : first + _AT_ONCE]
            writer.add(some, k_best_lists(proposer, some, header.k, threads=run.threads))
            step.advance(len(some))
        writer.finish()


def _key(corpus: TreeCorpus, config: TreeRankerConfig, parser: LanguageModel) -> str:
    """Return what tells the trees of one training from those of another."""
    facts = [corpus.fingerprint.sha256, config.folds, parser.system]
    text = json.dumps([*facts, parser.config.model_dump(mode="json")], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
