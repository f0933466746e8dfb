"""Fuzz target: manifests. What is accepted says the same when it is written and read again."""

from __future__ import annotations

import json
import sys

from tests.fuzz.campaign import Target, run_program
from tests.fuzz.mutation import Random, mutate_json

from treelm.store.manifest import Manifest, read_manifest

SMALL = {
    "format": "treelm-model",
    "version": 1,
    "system": "ngram",
    "config": {"order": 3, "discount": 0.75, "smoothing": "kneser_ney", "levels": [1, [2], {}]},
    "exactness": "exact",
    "units": "nats",
    "vocabulary": None,
    "corpora": [],
    "transforms": [],
    "treelm": "0.1.0",
    "native": "0.1.0",
    "seed": None,
    "date": "2026-01-31T12:00:00Z",
    "files": {},
    "parts": [],
}
FULL = SMALL | {
    "vocabulary": "ab" * 16,
    "corpora": [{"name": "harbour", "sha256": "0" * 64, "sentences": 325, "tokens": 4000}],
    "transforms": [{"name": "binarize", "horizontal_order": 2}],
    "seed": 7,
    "files": {
        "words.txt": {"size": 120, "sha256": "1" * 64},
        "tables.safetensors": {"size": 4096, "sha256": "f" * 64},
    },
    "parts": ["parser", "words"],
}
VALUES = (SMALL, FULL)
TOKENS = [f'"{key}":'.encode() for key in FULL] + [
    b'"x":', b"NaN", b"-Infinity", b"1e999", b"1E-999", b"-0", b"00", b"true", b"null", b"\\ud800",
    b"\\u0000", b"\xff", b"\xef\xbb\xbf", b"{", b"}", b"[", b"]", b"[[[[[[[[", b",", b'"', b"\\",
    b'"treelm-model"', b'"version":2', b'"parts":["a","A"]', b'"README.md"', b"1" * 4301,
]  # fmt: skip


def encode(value: object, random: Random) -> bytes:
    """Return a value as JSON in one of the ways to write it."""
    text = json.dumps(value, ensure_ascii=random.chance(2))
    return text.encode(errors="surrogatepass")


def forge(random: Random) -> bytes:
    """Return a manifest with a few changed values."""
    value: object = random.pick(VALUES)
    for _ in range(random.pick((1, 1, 2, 3))):
        value = mutate_json(value, random)
    return encode(value, random)


def read(data: bytes) -> None:
    """Read a manifest; what is accepted must come back the same."""
    manifest = read_manifest(data, "manifest.json")
    again: Manifest = read_manifest(manifest.to_bytes(), "manifest.json")
    assert again == manifest
    assert manifest.to_readme().encode()


TARGET = Target("manifest", read, [json.dumps(value).encode() for value in VALUES], TOKENS, forge)

if __name__ == "__main__":
    sys.exit(run_program(TARGET))
