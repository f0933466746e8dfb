"""The file of a vocabulary: one line that says what it is, then one symbol per line.

    #treelm-vocabulary 1 {"fingerprint": ..., "profile": ..., "source": ..., "style": ...}
    <unk> TAB count TAB word TAB -
    the TAB count TAB word TAB -
    ferry TAB count TAB word TAB 10017:4
    UNK-LC-ing TAB count TAB signature TAB -

The last column is the place (sentence:position) at which a word entered the vocabulary, where
earlier occurrences were replaced. Lines are in the order of ids.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict, field_validator

from treelm.corpus.files import Source, lines_of, read_blocks, source_name, write_atomically
from treelm.corpus.unknown_words import SignatureStyle
from treelm.corpus.vocabulary import PlainEntries, Vocabulary, VocabularyEntry
from treelm.errors import CorpusFormatError, ProfileError, VocabularyError
from treelm.trees.packaged_profiles import packaged_profiles

MAGIC = "#treelm-vocabulary"
VERSION = 1

#: Larger counts do not fit 64 bits.
_MOST_DIGITS = 19

_KINDS = {"word": False, "signature": True}


def save_vocabulary(vocabulary: Vocabulary, path: Source) -> None:
    """Write a vocabulary to a file; it appears only when it is complete."""
    from treelm.trees.profile import load_profile

    header = {
        "fingerprint": vocabulary.fingerprint,
        "profile": load_profile(vocabulary.profile).to_config(),
        "source": dict(vocabulary.source),
        "style": vocabulary.style,
    }
    with write_atomically(path) as file:
        # Keys keep their order: the fingerprint of a profile depends on it.
        file.write(f"{MAGIC} {VERSION} {json.dumps(header)}\n".encode())
        for item in vocabulary.entries:
            kind = "signature" if item.is_signature else "word"
            place = "-" if item.entry is None else f"{item.entry[0]}:{item.entry[1]}"
            file.write(f"{item.symbol}\t{item.count}\t{kind}\t{place}\n".encode())


def load_vocabulary(path: Source) -> Vocabulary:
    """Read a vocabulary and check that it is complete.

    Raises:
        InputFileError: if the file cannot be read.
        CorpusFormatError: ``E_VOCABULARY_FILE`` with the line if `save_vocabulary` did
            not write it.
    """
    content = b"".join(read_blocks(path))
    lines = lines_of([content], path)
    header = _read_header(next(lines, ""), path)
    entries = _plain_entries(content) or tuple(_entries(lines, path))
    try:
        vocabulary = Vocabulary(entries, header.profile, header.style, header.source)
    except VocabularyError as error:
        raise _malformed(path, 1, str(error).removesuffix(".")) from error
    if vocabulary.fingerprint != header.fingerprint:
        raise _malformed(path, 1, "its lines are not those saved; was it truncated or edited?")
    return vocabulary


class _Header(BaseModel):
    """What the first line says besides magic and version."""

    model_config = ConfigDict(extra="forbid")

    fingerprint: str
    profile: str | dict[str, object]
    source: dict[str, object]
    style: SignatureStyle

    @field_validator("profile")
    @classmethod
    def _is_no_path(cls, profile: str | dict[str, object]) -> str | dict[str, object]:
        """Refuse a path: a vocabulary from elsewhere must not make us open other files."""
        if isinstance(profile, str):
            if profile not in packaged_profiles():
                raise ValueError(f"no packaged profile {profile!r}")
            return profile
        from treelm.trees.profile import load_profile

        return load_profile(profile).to_config()


def _read_header(line: str, path: Source) -> _Header:
    magic, _, rest = line.partition(" ")
    version, _, text = rest.partition(" ")
    if magic != MAGIC:
        raise _malformed(path, 1, "not a vocabulary; build one with `treelm vocabulary`")
    if version != str(VERSION):
        raise _malformed(path, 1, f"version {version!r}; this treelm reads version {VERSION}")
    try:
        return _Header.model_validate(json.loads(text))
    except (ValueError, RecursionError, ProfileError) as error:
        reason = str(error).splitlines()[0]
        raise _malformed(path, 1, f"the first line is damaged ({reason})") from error


def _plain_entries(content: bytes) -> PlainEntries | None:
    """Return all entries at once; None if a line is not plain and `_entries` has to look at it."""
    try:
        text = content.decode().partition("\n")[2]
    except UnicodeDecodeError:
        return None
    lines = text.count("\n")
    if text.count("\tword\t-\n") == lines and _has_four_columns(content):
        fields = text.replace("\tword\t-\n", "\t").split("\t")
        symbols, counts = fields[:-1:2], fields[1::2]
        if not _all_natural(counts):
            return None
        return PlainEntries(symbols, list(map(int, counts)), [False] * lines)
    fields = text.removesuffix("\n").replace("\n", "\t").split("\t")
    symbols, counts, kinds, places = (fields[column::4] for column in range(4))
    if (
        len(fields) != 4 * text.count("\t-\n")
        or {*places} != {"-"}
        or not _KINDS.keys() >= {*kinds}
        or not _all_natural(counts)
    ):
        return None
    return PlainEntries(symbols, list(map(int, counts)), list(map(_KINDS.__getitem__, kinds)))


def _has_four_columns(content: bytes) -> bool:
    """Return whether every line after the first has three tabs and ends."""
    data = np.frombuffer(content, dtype=np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    tabs = np.flatnonzero(data == ord("\t"))
    if len(ends) == 0 or ends[-1] != len(data) - 1:
        return False
    tabs = tabs[np.searchsorted(tabs, ends[0]) :]
    if len(tabs) != 3 * (len(ends) - 1):
        return False
    return bool((tabs[::3] > ends[:-1]).all() and (tabs[2::3] < ends[1:]).all())


def _all_natural(counts: Sequence[str]) -> bool:
    """Return whether all of these are counts that fit 64 bits."""
    digits = "".join(counts)
    return (
        digits.isascii()
        and digits.isdigit()
        and 1 <= len(min(counts, key=len)) <= len(max(counts, key=len)) <= _MOST_DIGITS
    )


def _entries(lines: Iterator[str], path: Source) -> Iterator[VocabularyEntry]:
    for number, line in enumerate(lines, 2):
        try:
            symbol, count, kind, place = line.split("\t")
            entry = None
            if place != "-":
                sentence, _, position = place.partition(":")
                entry = (_natural(sentence), _natural(position))
            yield VocabularyEntry(symbol, _natural(count), is_signature=_KINDS[kind], entry=entry)
        except (ValueError, KeyError) as error:
            raise _malformed(
                path, number, "expected symbol TAB count TAB word|signature TAB -|sentence:position"
            ) from error


def _natural(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise ValueError(text)
    return int(text)


def _malformed(path: Source, line: int, what: str) -> CorpusFormatError:
    name = source_name(path)
    return CorpusFormatError(
        f"{name}:{line}: {what}.", code="E_VOCABULARY_FILE", path=name, line=line
    )
