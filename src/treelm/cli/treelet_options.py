"""The transforms of treelets, as options name them: those that are left out."""

from __future__ import annotations

from collections.abc import Sequence

from treelm.errors import UsageError
from treelm.transforms.treelet import TREELET_TRANSFORMS


def transform_options(without: Sequence[str] | None, *, untransformed: bool) -> dict[str, object]:
    """Return the option ``transforms`` that leaves some out, or nothing if all are meant.

    Args:
        without: Transforms to leave out.
        untransformed: Whether all are left out.

    Raises:
        UsageError: if there is no such transform.
    """
    for name in without or ():
        if name not in TREELET_TRANSFORMS:
            raise UsageError(
                f'there is no treelet transform "{name}"; there are: '
                f"{', '.join(TREELET_TRANSFORMS)}."
            )
    if untransformed:
        return {"transforms": ()}
    if without is None:
        return {}
    return {"transforms": [name for name in TREELET_TRANSFORMS if name not in without]}
