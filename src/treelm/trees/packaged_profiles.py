"""The language profiles that come with treelm: their names, and what tells them apart.

Nothing is read here, so that whoever only needs to know which profile is meant need not read it.
"""

from __future__ import annotations

#: Name -> SHA-256 of its content, as `Profile.fingerprint` computes it.
FINGERPRINTS = {
    "english": "8e3b3c667e3ef69f258b1e2069818cdfba58f33bb2f46c076073e2be2228bfd7",
    "neutral": "096496a705b3628c0ce5c7ad9ee6d7812f5276d43b7a0bac479eada791797d5d",
    "spanish": "3e4054d697cc381b7a5401a9318c28fce3565030ccf1cb2c0f08e07c18632d4d",
    "icelandic": "a0060bbb85883886894aba3ecf72cc1baced57b49c5f722532b2086f9d6bb3b7",
    "japanese": "c85f7874c2bc22cdde45b9c8d840a20319079039a5cbaa565082182bc1434e1e",
}


def packaged_profiles() -> tuple[str, ...]:
    """Return the names of the profiles that come with treelm."""
    return tuple(FINGERPRINTS)
