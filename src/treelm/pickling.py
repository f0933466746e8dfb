"""Dataclasses that keep kernel objects in cached properties, and can be pickled nevertheless."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


class PickledFields:
    """Base of dataclasses of which only the fields are pickled.

    What a cached property has derived from them may hold kernel objects, which cannot be pickled;
    it is derived again when it is needed.
    """

    def __getstate__(self) -> dict[str, object]:
        dataclass: Any = self
        return {item.name: self.__dict__[item.name] for item in fields(dataclass)}
