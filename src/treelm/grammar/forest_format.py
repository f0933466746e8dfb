"""The layout of a parse file: a header, then batches of sentences, then an end.

Everything is little-endian. The file begins with 8 bytes of magic, the length of the header and its
CRC-32 (4 bytes each), and the header: JSON, see `ForestHeader`. Then come frames. A frame is 52
bytes (`Frame`), a key of 8 bytes for each of its sentences, and its content: arrays in the
safetensors format, compressed with zlib. Frames are only ever added, each in one piece, so whatever
ends a program leaves all frames but the current one. The last frame of a complete file is empty.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import safetensors.numpy
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from treelm.corpus.file_kinds import FOREST_MAGIC
from treelm.errors import CorpusFormatError
from treelm.store.untrusted import excerpt, parse_json

MAGIC = FOREST_MAGIC + b"\x01"
#: Larger than any valid header, and the largest size a frame may unpack to.
MAX_HEADER_BYTES, MAX_FRAME_BYTES = 1 << 20, 1 << 32
DIGEST_BYTES, KEY_BYTES = 16, 8

_LENGTHS = struct.Struct("<II")
_FRAME = struct.Struct("<4sB3xIQQI16sI")
FRAME_MAGIC = b"TFB1"
FRAME_BYTES = _FRAME.size
#: Far faster than the default, and hardly worse on trees.
_LEVEL = 1
#: Compressed, content is never longer than this and a thousandth more than it was.
_LARGEST_OVERHEAD = 1 << 10

Arrays = Mapping[str, npt.NDArray[Any]]


class ForestHeader(BaseModel):
    """What a parse file says about itself.

    Two runs may add to the same file if their headers are equal.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    format: Literal["treelm-forest"] = "treelm-forest"
    version: Literal[1] = 1
    content: Literal["trees", "forests"] = "trees"
    """K-best lists, or packed forests."""
    k: int = Field(ge=1)
    """Number of trees requested for each sentence."""
    parser: str
    """What identifies the parser: the checksum of its files."""
    options: dict[str, JsonValue]
    """The parser's options."""

    def to_bytes(self) -> bytes:
        """Return the first bytes of a file."""
        text = self.model_dump_json().encode()
        return MAGIC + _LENGTHS.pack(len(text), zlib.crc32(text)) + text


class Frame(NamedTuple):
    """What precedes the content of a batch."""

    is_end: bool
    sentences: int
    stored: int
    """Bytes of the compressed content."""
    raw: int
    """Bytes of the content."""
    crc: int
    """CRC-32 of keys and compressed content."""
    digest: bytes
    """BLAKE2b of the words of all sentences so far, this batch included."""

    def to_bytes(self) -> bytes:
        """Return the frame without keys and content."""
        fields = (FRAME_MAGIC, self.is_end, self.sentences, self.stored, self.raw, self.crc)
        head = _FRAME.pack(*fields, self.digest, 0)[:-4]
        return head + zlib.crc32(head).to_bytes(4, "little")

    @property
    def following(self) -> int:
        """Bytes of keys and content."""
        return KEY_BYTES * self.sentences + self.stored


def damaged(shown: str, what: str) -> CorpusFormatError:
    """Return the error for a damaged file."""
    return CorpusFormatError(
        f"{shown}: {what}. The file was damaged or edited; parse the text again.",
        code="E_FOREST_FILE",
        path=shown,
    )


def read_header(data: bytes, shown: str) -> tuple[ForestHeader, int]:
    """Return the header of a file and where frames begin, given the first bytes of the file.

    Raises:
        CorpusFormatError: ``E_FOREST_FILE`` for anything but a parse file.
    """
    if data[: len(FOREST_MAGIC)] != FOREST_MAGIC or len(data) < len(MAGIC) + _LENGTHS.size:
        raise CorpusFormatError(
            f"{shown}: this is not a parse file. `treelm parse -o FILE.forest` writes them.",
            code="E_FOREST_FILE",
            path=shown,
        )
    if data[: len(MAGIC)] != MAGIC:
        raise CorpusFormatError(
            f"{shown}: this parse file has version {data[len(MAGIC) - 1]}, but this treelm "
            f"reads version {MAGIC[-1]}. Update treelm, or parse the text again.",
            code="E_FOREST_FILE",
            path=shown,
        )
    length, crc = _LENGTHS.unpack_from(data, len(MAGIC))
    first = len(MAGIC) + _LENGTHS.size
    text = data[first : first + length]
    if length > MAX_HEADER_BYTES or len(text) < length or zlib.crc32(text) != crc:
        raise damaged(shown, "the header is damaged")
    try:
        return ForestHeader.model_validate(parse_json(text)), first + length
    except ValidationError as error:
        raise damaged(shown, f"the header says {excerpt(error.errors()[0]['msg'])}") from error
    except ValueError as error:
        raise damaged(shown, f"the header is not valid JSON ({error})") from error


def read_frame(data: bytes) -> Frame | None:
    """Return the frame that `Frame.to_bytes` gave; None for anything else."""
    if len(data) != _FRAME.size:
        return None
    magic, is_end, sentences, stored, raw, crc, digest, own_crc = _FRAME.unpack(data)
    if magic != FRAME_MAGIC or own_crc != zlib.crc32(data[:-4]):
        return None
    if raw > MAX_FRAME_BYTES or stored > raw + raw // 1000 + _LARGEST_OVERHEAD:
        return None
    return Frame(bool(is_end), sentences, stored, raw, crc, digest)


def key_of(words: Sequence[str]) -> int:
    """Return the number under which a sentence is found."""
    text = " ".join(words).encode()
    digest = hashlib.blake2b(text, digest_size=KEY_BYTES).digest()
    return int.from_bytes(digest, "little")


def digest_after(before: bytes, sentences: Iterable[Sequence[str]]) -> bytes:
    """Return the digest of the words of all sentences, given that of those before."""
    return _digest_of(before, _text_of(sentences))


def _text_of(sentences: Iterable[Sequence[str]]) -> bytes:
    return "".join(" ".join(words) + "\n" for words in sentences).encode()


def _digest_of(before: bytes, text: bytes) -> bytes:
    digest = hashlib.blake2b(before, digest_size=DIGEST_BYTES)
    digest.update(text)
    return digest.digest()


class PackedBatch(NamedTuple):
    """A batch as it is stored, but for its place in the file; it can be made anywhere."""

    sentences: int
    text: bytes
    """The words, one sentence per line."""
    keys: bytes
    stored: bytes
    """Compressed content."""
    raw: int
    """Bytes of the content."""

    def digest(self, before: bytes) -> bytes:
        """Return the digest after this batch, given that of those before."""
        return _digest_of(before, self.text)

    def to_bytes(self, before: bytes) -> bytes:
        """Return a frame with keys and content, given the digest of the batches before."""
        frame = Frame(
            is_end=False,
            sentences=self.sentences,
            stored=len(self.stored),
            raw=self.raw,
            crc=zlib.crc32(self.stored, zlib.crc32(self.keys)),
            digest=self.digest(before),
        )
        return frame.to_bytes() + self.keys + self.stored


def pack_batch(sentences: Sequence[Sequence[str]], arrays: Arrays) -> PackedBatch:
    """Return some sentences and their arrays as they are stored."""
    text = _text_of(sentences)
    whole = {"words": np.frombuffer(text, dtype=np.uint8), **arrays}
    raw = safetensors.numpy.save({name: np.ascontiguousarray(whole[name]) for name in whole})
    keys = np.array([key_of(words) for words in sentences], dtype="<u8").tobytes()
    return PackedBatch(len(sentences), text, keys, zlib.compress(raw, _LEVEL), len(raw))


def end_frame(digest: bytes) -> bytes:
    """Return the frame that marks a complete file."""
    return Frame(is_end=True, sentences=0, stored=0, raw=0, crc=0, digest=digest).to_bytes()


def unpack_frame(
    frame: Frame, following: bytes, shown: str
) -> tuple[list[tuple[str, ...]], Arrays]:
    """Return the sentences of a frame and their arrays.

    Args:
        frame: The frame.
        following: Its keys and its content.
        shown: Name of the file, for messages.

    Raises:
        CorpusFormatError: ``E_FOREST_FILE`` for damage.
    """
    if len(following) != frame.following or zlib.crc32(following) != frame.crc:
        raise damaged(shown, "the checksum of a batch is wrong")
    if frame.raw > MAX_FRAME_BYTES:
        raise damaged(shown, f"a batch says that it unpacks to {frame.raw} bytes")
    try:
        unpacker = zlib.decompressobj()
        raw = unpacker.decompress(following[KEY_BYTES * frame.sentences :], frame.raw + 1)
        arrays = safetensors.numpy.load(raw)
        text = bytes(arrays.pop("words")).decode()
    except (zlib.error, safetensors.SafetensorError, KeyError, ValueError) as error:
        raise damaged(shown, f"a batch cannot be unpacked ({excerpt(error)})") from error
    sentences = [tuple(line.split(" ")) if line else () for line in text.split("\n")]
    if len(raw) != frame.raw or sentences.pop() != () or len(sentences) != frame.sentences:
        raise damaged(shown, "a batch does not have the sentences it should have")
    return sentences, arrays
