"""Named pipelines, as the command line offers them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from treelm.errors import UsageError
from treelm.transforms.binarize import Binarize, Direction
from treelm.transforms.clean import Clean
from treelm.transforms.lexicalize import Lexicalize
from treelm.transforms.markovize import Markovize
from treelm.transforms.right_corner import RightCorner
from treelm.transforms.transform import Pipeline
from treelm.transforms.treelet import Treelet, VerbLabel, transforms_without
from treelm.transforms.unary_chains import MergeUnaryChains
from treelm.trees.profile import ProfileSource


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOptions:
    """All options of the named pipelines.

    Args:
        profile: Language profile.
        temporal: Temporal nouns of the treelet transforms.
        without: Treelet transforms to leave out.
        vp_label: Whose annotation a flattened verb phrase keeps.
        direction: Way in which binarization branches.
        horizontal_order: Sisters remembered by binarization; None for the pipeline's own default.
        vertical_order: Ancestors remembered by Markovization, the node itself included.
    """

    profile: ProfileSource = "english"
    temporal: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    vp_label: VerbLabel = "lowest"
    direction: Direction = "right"
    horizontal_order: int | None = None
    vertical_order: int = 2


def _treelet(options: PipelineOptions) -> Pipeline:
    step = Treelet(
        profile=options.profile,
        temporal=options.temporal,
        transforms=frozenset(transforms_without(options.without)),
        vp_label=options.vp_label,
    )
    return Pipeline((step,))


def _binarize(options: PipelineOptions) -> Pipeline:
    order = options.horizontal_order
    return Pipeline((Binarize(direction=options.direction, horizontal_order=order),))


def _markovize(options: PipelineOptions) -> Pipeline:
    order = 1 if options.horizontal_order is None else options.horizontal_order
    step = Markovize(horizontal_order=order, vertical_order=options.vertical_order)
    return Pipeline((step,))


def _right_corner(options: PipelineOptions) -> Pipeline:
    order = 2 if options.horizontal_order is None else options.horizontal_order
    return Pipeline(
        (
            MergeUnaryChains(),
            Binarize(direction=options.direction, horizontal_order=order),
            RightCorner(),
        )
    )


#: The pipeline of each name; the reader cleans trees before any of them, so the others need not.
PIPELINES: dict[str, Callable[[PipelineOptions], Pipeline]] = {
    "clean": lambda options: Pipeline((Clean(profile=options.profile),)),
    "treelet": _treelet,
    "binarize": _binarize,
    "unary-chains": lambda _: Pipeline((MergeUnaryChains(),)),
    "markovize": _markovize,
    "right-corner": _right_corner,
    "lexicalize": lambda _: Pipeline((Lexicalize(),)),
}


def named_pipeline(name: str, options: PipelineOptions | None = None) -> Pipeline:
    """Return the pipeline of that name.

    Raises:
        UsageError: if there is none.

    Examples:
        >>> [step.name for step in named_pipeline("right-corner").steps]
        ['merge_unary_chains', 'binarize', 'right_corner']
    """
    if name not in PIPELINES:
        raise UsageError(f'there is no pipeline "{name}"; choose from: {", ".join(PIPELINES)}.')
    return PIPELINES[name](options or PipelineOptions())
