"""The language profiles that come with treelm: their names, and what tells them apart.

Nothing is read here, so that whoever only needs to know which profile is meant need not read it.
"""

from __future__ import annotations

#: Name -> SHA-256 of its content, as `Profile.fingerprint` computes it.
FINGERPRINTS = {
    "english": "8e3b3c667e3ef69f258b1e2069818cdfba58f33bb2f46c076073e2be2228bfd7",
    "neutral": "096496a705b3628c0ce5c7ad9ee6d7812f5276d43b7a0bac479eada791797d5d",
}


def packaged_profiles() -> tuple[str, ...]:
    """Return the names of the profiles that come with treelm."""
    return tuple(FINGERPRINTS)
