"""Things that are held in shards and asked many questions at a time, instead of sent to workers.

A worker that needs a little of something large asks all holders at once. In one process, or in
several on one machine, a holder is what its maker makes there, such as a mapped file; on a cluster
it is an actor on one of the machines, which is made again where the machine is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

Q_contra = TypeVar("Q_contra", contravariant=True)
A_co = TypeVar("A_co", covariant=True)

#: Answers questions.
Holder = Callable[[Any], Any]
#: Makes a holder, where it is to be; it is sent there.
Maker = Callable[[], Holder]


class Holders(Protocol[Q_contra, A_co]):
    """All shards of something; sent to workers, who ask."""

    def ask(self, question: Q_contra) -> Sequence[A_co]:
        """Return the answers of all shards, in their order."""
        ...


#: What this process has made last, by key.
_made: dict[str, list[Holder]] = {}
#: How many sets of holders a process keeps: a function may ask two.
_KEPT = 2


@dataclass(frozen=True, eq=False)
class HoldersHere:
    """Holders that every process makes for itself when it is first asked.

    Args:
        key: What tells them from others.
        makers: Makes each.
    """

    key: str
    makers: tuple[Maker, ...]

    def ask(self, question: object) -> Sequence[Any]:
        """Return the answers of all shards, in their order."""
        if self.key not in _made:
            while len(_made) >= _KEPT:
                del _made[next(iter(_made))]
            _made[self.key] = [make() for make in self.makers]
        return [holder(question) for holder in _made[self.key]]

    def forget(self) -> None:
        """Let go of what this process has made."""
        _made.pop(self.key, None)
