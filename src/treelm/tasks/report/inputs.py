"""The files an experiment read: identified by their content, not by their location."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from treelm.characters import visible
from treelm.corpus.corpus import Fingerprint, TextCorpus, TreeCorpus, hashed_blocks
from treelm.corpus.encoder import EncodedText
from treelm.corpus.file_kinds import Wanted
from treelm.corpus.files import Source, is_forest
from treelm.errors import UsageError

#: What a file is for; a test file may be nothing else.
Role = Literal["train", "tune", "test", "other"]


@dataclass(frozen=True)
class InputRecord:
    """One input as a report names it.

    Args:
        name: What the experiment calls it, such as ``test``.
        role: What it is for.
        files: Names of the files, without their folders.
        sha256: Hash of the content.
        sentences: Number of sentences, where known.
        tokens: Number of tokens, where known.
        stands_for: Data of a publication that this replaces, or None.
    """

    name: str
    role: Role
    files: tuple[str, ...]
    sha256: str
    sentences: int | None = None
    tokens: int | None = None
    stands_for: str | None = None

    def to_record(self) -> dict[str, object]:
        """Return it as a JSON object."""
        return {
            "name": self.name,
            "role": self.role,
            "files": list(self.files),
            "sha256": self.sha256,
            "sentences": self.sentences,
            "tokens": self.tokens,
            "stands_for": self.stands_for,
        }


#: A file by name, a corpus, a text, or its fingerprint.
Input = Source | TextCorpus | TreeCorpus | EncodedText | Fingerprint


def record_input(
    name: str, source: Input, *, role: Role = "other", stands_for: str | None = None
) -> InputRecord:
    """Return what a report says about an input.

    The hash is the one that model folders record for their corpora: of the decompressed content,
    with the length of each file.

    Raises:
        InputFileError: for a file that cannot be read.
        UsageError: for a text that was not read from a file.
    """
    if isinstance(source, (str, os.PathLike)):
        return InputRecord(name, role, _names([source]), file_sha256(source), stands_for=stands_for)
    files: tuple[str, ...] = ()
    if isinstance(source, (TextCorpus, TreeCorpus)):
        files = _names(source.paths)
    found = source if isinstance(source, Fingerprint) else source.fingerprint
    if found is None:
        raise UsageError(
            f"{visible(name)}: this text was not read from a file, so it has no fingerprint. "
            "Report the file it was made from."
        )
    return InputRecord(name, role, files, *found, stands_for=stands_for)


def file_sha256(source: Source) -> str:
    """Return the SHA-256 that a corpus of this one file has."""
    digest = hashlib.sha256()
    for _ in hashed_blocks(source, digest, Wanted.TREES if is_forest(source) else None):
        pass
    return digest.hexdigest()


def _names(paths: Sequence[Source]) -> tuple[str, ...]:
    return tuple(Path(path).name for path in paths)


def check_roles(inputs: Sequence[InputRecord]) -> None:
    """Refuse a test file that was trained or tuned on.

    Raises:
        UsageError: ``E_TEST_IN_TRAINING`` or ``E_TUNED_ON_TEST``.
    """
    tests = {record.sha256: record for record in inputs if record.role == "test"}
    for record in inputs:
        test = tests.get(record.sha256)
        if test is not None and record.role in ("train", "tune"):
            trained = record.role == "train"
            raise UsageError(
                f'"{visible(test.name)}" and "{visible(record.name)}" have the same content: the '
                f"test data would be {'trained' if trained else 'tuned'} on. Use other data for "
                "the test.",
                code="E_TEST_IN_TRAINING" if trained else "E_TUNED_ON_TEST",
            )
