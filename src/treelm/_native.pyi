"""Types of the C++ kernels; checked against the compiled module by stubtest."""

import enum
from typing import final

import numpy as np
import numpy.typing as npt

CORE_VERSION: str
ERROR_SENTENCES: dict[str, str]

class KernelError(RuntimeError): ...

class HeadStepKind(enum.Enum):
    PRIORITY = 0
    ANY = 1
    LAST = 2

@final
class HeadStep:
    def __init__(self, kind: HeadStepKind, from_right: bool, labels: list[str]) -> None: ...

@final
class HeadRow:
    def __init__(self, parent: str, default_right: bool, steps: list[HeadStep]) -> None: ...

@final
class ProfileData:
    def __init__(self) -> None: ...
    root_labels: list[str]
    empty_tags: list[str]
    drop_tags: list[str]
    flatten: list[tuple[str, str]]
    punctuation_tags: list[str]
    punctuation_by_word: bool
    head_rows: list[HeadRow]
    default_right: bool
    coordinators: list[str]
    coordination_skips: list[str]
    closed_tags: list[str]
    closed_prefixes: list[str]
    closed_words: list[str]
    bracket_words: list[str]
    temporal_tags: list[tuple[str, str]]
    temporal_phrases: list[str]
    temporal_function: str
    noun_phrases: list[str]
    noun_phrase_separators: list[str]
    apposition_marks: list[str]
    number_tags: list[str]
    clause_flattening: list[tuple[str, str]]
    verb_phrases: list[str]
    gapped: list[str]
    parent_annotated: list[str]

@final
class Profile:
    def __init__(self, data: ProfileData) -> None: ...

@final
class PackedTrees:
    def __init__(
        self,
        labels: list[tuple[str, str | None, bool, str | None]],
        words: list[str],
        node_label: npt.NDArray[np.uint32],
        node_size: npt.NDArray[np.uint32],
        node_word: npt.NDArray[np.uint32],
        tree_start: npt.NDArray[np.uint32],
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def labels(self) -> list[tuple[str, str | None, bool, str | None]]: ...
    @property
    def words(self) -> list[str]: ...
    @property
    def problems(self) -> list[tuple[str, int, int, int, bytes]]: ...
    @property
    def problem_count(self) -> int: ...
    @property
    def stray_count(self) -> int: ...
    @property
    def token_count(self) -> int: ...
    @property
    def dropped(self) -> int: ...
    @property
    def many_rooted(self) -> int: ...
    @property
    def node_label(self) -> npt.NDArray[np.uint32]: ...
    @property
    def node_size(self) -> npt.NDArray[np.uint32]: ...
    @property
    def node_word(self) -> npt.NDArray[np.uint32]: ...
    @property
    def tree_start(self) -> npt.NDArray[np.uint32]: ...
    @property
    def ordinal(self) -> npt.NDArray[np.uint64]: ...
    @property
    def line(self) -> npt.NDArray[np.uint64]: ...
    def to_brackets(self) -> bytes: ...
    def find_heads(self, profile: Profile) -> npt.NDArray[np.uint32]: ...

@final
class TreeRecipe:
    def __init__(
        self,
        profile: Profile,
        *,
        strip: bool,
        unescape: bool,
        normalize_root: bool,
        max_depth: int,
        treelet: int,
        lowest_verb_label: bool,
        temporal_words: list[str],
    ) -> None: ...
    def apply(self, trees: PackedTrees) -> PackedTrees: ...
    def count_temporal_heads(self, trees: PackedTrees) -> list[tuple[str, int, int]]: ...

@final
class TreeBatch:
    @property
    def trees(self) -> PackedTrees: ...
    @property
    def text(self) -> bytes: ...
    @property
    def written(self) -> int: ...

@final
class TreeStream:
    def __init__(self, recipe: TreeRecipe, *, threads: int, as_text: bool) -> None: ...
    def feed(self, block: bytes, *, flush: bool) -> None: ...
    def finish(self) -> None: ...
    def take(self, *, wait: bool) -> TreeBatch | None: ...
    @property
    def in_flight(self) -> int: ...

@final
class SignatureRules:
    def __init__(
        self,
        *,
        suffixes: list[str],
        plural: str,
        plural_blocked: str,
        lower_case_mark: bool,
        last_character: bool,
    ) -> None: ...
    def signature(self, word: str, position: int, *, known_lower: bool) -> str: ...

def lower_case(text: str) -> str: ...
def random_bits(seed: int, stream: int, counter: int) -> int: ...
def random_uniform(seed: int, stream: int, counter: int) -> float: ...
