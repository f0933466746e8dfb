"""Types of the C++ kernels; checked against the compiled module by stubtest."""

import enum
from collections.abc import Callable, Sequence
from typing import Any, final

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
    separators: str
    compounds: list[str]
    renamed: list[tuple[str, str]]
    flatten: list[tuple[str, str]]
    spellings: list[tuple[str, str, str]]
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

def rank_feature_hash(name: str) -> int: ...
def rank_features(
    trees: PackedTrees, profile: Profile
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]: ...

@final
class TreeRanker:
    def __init__(
        self, features: npt.NDArray[np.uint64], weights: npt.NDArray[np.float32]
    ) -> None: ...
    def weight(self, feature: int) -> float: ...
    def score(
        self, trees: PackedTrees, profile: Profile, *, threads: int
    ) -> npt.NDArray[np.float64]: ...

@final
class RankingLists:
    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    @property
    def tree_count(self) -> int: ...
    def add(
        self,
        trees: PackedTrees,
        profile: Profile,
        *,
        starts: npt.NDArray[np.uint64],
        scores: npt.NDArray[np.float64],
        best: npt.NDArray[np.uint8],
        threads: int,
    ) -> None: ...
    def frequent(self, least: int) -> npt.NDArray[np.uint64]: ...
    def keep(self, features: npt.NDArray[np.uint64]) -> None: ...
    def loss(
        self, weights: npt.NDArray[np.float64], *, threads: int
    ) -> tuple[float, npt.NDArray[np.float64]]: ...
    def fit(
        self,
        weights: npt.NDArray[np.float64],
        *,
        regularization: float,
        iterations: int,
        threads: int,
    ) -> npt.NDArray[np.float64]: ...
    def choose(self, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.uint32]: ...

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
    def encode_words(self, encoder: TextEncoder) -> None: ...

@final
class BinaryTrees:
    def __len__(self) -> int: ...
    @property
    def symbols(self) -> list[str]: ...
    @property
    def phrasal(self) -> int: ...
    @property
    def words(self) -> list[str]: ...
    @property
    def cycles(self) -> int: ...
    @property
    def bad_roots(self) -> int: ...
    @property
    def node_symbol(self) -> npt.NDArray[np.uint32]: ...
    @property
    def node_left(self) -> npt.NDArray[np.uint32]: ...
    @property
    def node_right(self) -> npt.NDArray[np.uint32]: ...
    @property
    def node_word(self) -> npt.NDArray[np.uint32]: ...
    @property
    def tree_source(self) -> npt.NDArray[np.uint32]: ...
    @property
    def tree_start(self) -> npt.NDArray[np.uint32]: ...

@final
class BinaryTreeBuilder:
    def __init__(self, *, left_branching: bool, keep_cycles: bool = False) -> None: ...
    def add(self, trees: PackedTrees) -> None: ...
    def finish(self) -> BinaryTrees: ...

@final
class ChartGrammar:
    def __init__(
        self,
        *,
        phrasal: int,
        substates: npt.NDArray[np.int32],
        unary_rules: npt.NDArray[np.int32],
        binary_rules: npt.NDArray[np.int32],
        unary_weights: npt.NDArray[np.float64],
        binary_weights: npt.NDArray[np.float64],
    ) -> None: ...

@final
class ExactGrammar:
    def __init__(
        self,
        *,
        phrasal: int,
        substates: npt.NDArray[np.int32],
        unary_rules: npt.NDArray[np.int32],
        binary_rules: npt.NDArray[np.int32],
        unary_weights: npt.NDArray[np.float64],
        binary_weights: npt.NDArray[np.float64],
    ) -> None: ...

@final
class ChartLexicon:
    def __init__(
        self,
        *,
        phrasal: int,
        substates: npt.NDArray[np.int32],
        entry_starts: npt.NDArray[np.int64],
        entry_symbols: npt.NDArray[np.int32],
        entry_scores: npt.NDArray[np.float64],
        openness: npt.NDArray[np.float64],
        open_scores: npt.NDArray[np.float64],
    ) -> None: ...

class Decoding(enum.Enum):
    MAX_RULE_PRODUCT = 0
    MAX_RULE_SUM = 1
    VARIATIONAL = 2
    VITERBI = 3
    NONE = 4

@final
class ChartParser:
    def __init__(
        self, levels: Sequence[tuple[ChartGrammar, ChartLexicon, Sequence[int]]]
    ) -> None: ...
    def parse(
        self,
        words: npt.NDArray[np.uint32],
        starts: npt.NDArray[np.uint64],
        *,
        beam: float,
        edges: float,
        thresholds: list[float],
        decoding: Decoding,
        max_unary: int,
        intermediate: npt.NDArray[np.uint8],
        work_limit: int,
        threads: int,
    ) -> tuple[
        npt.NDArray[np.uint8],
        npt.NDArray[np.float64],
        npt.NDArray[np.float64],
        npt.NDArray[np.uint32],
        npt.NDArray[np.uint32],
        npt.NDArray[np.uint64],
    ]: ...

_TreeLists = tuple[
    npt.NDArray[np.uint8],
    npt.NDArray[np.uint64],
    npt.NDArray[np.float64],
    npt.NDArray[np.uint64],
    npt.NDArray[np.uint32],
    npt.NDArray[np.uint32],
]
_Forests = tuple[
    npt.NDArray[np.uint64],
    npt.NDArray[np.uint64],
    npt.NDArray[np.uint64],
    npt.NDArray[np.uint32],
    npt.NDArray[np.uint32],
    npt.NDArray[np.uint32],
    npt.NDArray[np.float64],
    npt.NDArray[np.uint32],
    npt.NDArray[np.uint32],
    npt.NDArray[np.uint32],
    npt.NDArray[np.float32],
]

def parse_k_best(
    parser: ChartParser,
    words: npt.NDArray[np.uint32],
    starts: npt.NDArray[np.uint64],
    *,
    beam: float,
    edges: float,
    thresholds: list[float],
    decoding: Decoding,
    max_unary: int,
    visible_start: npt.NDArray[np.uint32],
    visible_label: npt.NDArray[np.uint32],
    k: int,
    k_max_pops: int,
    work_limit: int,
    threads: int,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float64], _TreeLists]: ...
def parse_forests(
    parser: ChartParser,
    words: npt.NDArray[np.uint32],
    starts: npt.NDArray[np.uint64],
    *,
    beam: float,
    edges: float,
    thresholds: list[float],
    max_unary: int,
    least: float,
    work_limit: int,
    threads: int,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float64], _Forests]: ...
def check_forests(arrays: _Forests, *, symbols: int, phrasal: int) -> None: ...
def forest_log_probs(
    arrays: _Forests,
    grammar: ExactGrammar,
    lexicon: ChartLexicon,
    words: npt.NDArray[np.uint32],
    *,
    threads: int,
) -> npt.NDArray[np.float64]: ...
def forest_k_best(
    arrays: _Forests,
    *,
    phrasal: int,
    visible_start: npt.NDArray[np.uint32],
    visible_label: npt.NDArray[np.uint32],
    max_unary: int,
    k: int,
    k_max_pops: int,
    threads: int,
) -> _TreeLists: ...
def check_tree_lists(
    *,
    labels: int,
    word_start: npt.NDArray[np.uint64],
    list_start: npt.NDArray[np.uint64],
    score: npt.NDArray[np.float64],
    tree_start: npt.NDArray[np.uint64],
    label: npt.NDArray[np.uint32],
    size: npt.NDArray[np.uint32],
) -> None: ...
def write_tree_lists(
    *,
    labels: list[str],
    words: list[str],
    word_start: npt.NDArray[np.uint64],
    list_start: npt.NDArray[np.uint64],
    score: npt.NDArray[np.float64],
    tree_start: npt.NDArray[np.uint64],
    label: npt.NDArray[np.uint32],
    size: npt.NDArray[np.uint32],
    scores: bool,
) -> bytes: ...

@final
class InsideScorer:
    def __init__(
        self,
        grammar: ExactGrammar,
        lexicon: ChartLexicon,
        plain: ExactGrammar | None,
        plain_lexicon: ChartLexicon | None,
    ) -> None: ...
    def score(
        self,
        words: npt.NDArray[np.uint32],
        starts: npt.NDArray[np.uint64],
        *,
        work_limit: int,
        threads: int,
    ) -> npt.NDArray[np.float64]: ...
    def items(
        self, words: npt.NDArray[np.uint32]
    ) -> tuple[
        float,
        npt.NDArray[np.uint32],
        npt.NDArray[np.float64],
        npt.NDArray[np.float64],
    ]: ...

@final
class PrefixChart:
    @property
    def log_prefix(self) -> float: ...
    @property
    def log_whole(self) -> float: ...
    @property
    def bytes(self) -> int: ...
    def __len__(self) -> int: ...

@final
class PrefixScorer:
    def __init__(self, grammar: ExactGrammar, lexicon: ChartLexicon) -> None: ...
    def score(
        self,
        words: npt.NDArray[np.uint32],
        starts: npt.NDArray[np.uint64],
        *,
        work_limit: int,
        threads: int,
    ) -> npt.NDArray[np.float64]: ...
    def start(self) -> PrefixChart: ...
    def extend(self, chart: PrefixChart, word: int) -> PrefixChart: ...
    def next(
        self, chart: PrefixChart, words: npt.NDArray[np.uint32]
    ) -> npt.NDArray[np.float64]: ...

@final
class HhmmState:
    def __init__(self, data: bytes) -> None: ...
    def to_bytes(self) -> bytes: ...
    def same(self, other: HhmmState) -> bool: ...
    def key(self, kind: str, best: int) -> bytes: ...
    def stacks(self, count: int) -> list[tuple[float, list[int]]]: ...
    def measures(self) -> tuple[float, float, float, float]: ...
    @property
    def initial(self) -> bool: ...
    @property
    def hash(self) -> int: ...
    def __len__(self) -> int: ...

@final
class HhmmGrammar:
    def __init__(
        self,
        *,
        symbols: int,
        phrasal: int,
        end: int,
        depth: int,
        rules: npt.NDArray[np.int32],
        left: npt.NDArray[np.float64],
        right: npt.NDArray[np.float64],
        row_of: npt.NDArray[np.int32],
        row_start: npt.NDArray[np.int64],
        row_symbol: npt.NDArray[np.int32],
        row_value: npt.NDArray[np.float64],
        word_start: npt.NDArray[np.int64],
        word_tag: npt.NDArray[np.int32],
        word_value: npt.NDArray[np.float64],
        unigram: npt.NDArray[np.float64],
        end_share: float,
        word_table: BackoffTable | None,
        tag_table: BackoffTable | None,
        tag_shares: npt.NDArray[np.float64],
        tag_power: float,
    ) -> None: ...

# Log probability, first word, moves; after each word: id, rank and log probability.
_StackHistory = tuple[
    float,
    int,
    npt.NDArray[np.uint32],
    npt.NDArray[np.uint64],
    npt.NDArray[np.uint64],
    npt.NDArray[np.float64],
]

@final
class HhmmSearch:
    def __init__(
        self,
        grammar: HhmmGrammar,
        *,
        beam: int,
        ratio: float,
        epsilon: float,
        single: bool,
        cache_bytes: int,
    ) -> None: ...
    def initial(self) -> HhmmState: ...
    def advance(
        self, state: HhmmState, word: int
    ) -> tuple[float, float, float, bool, HhmmState]: ...
    def advance_tags(
        self,
        state: HhmmState,
        tags: npt.NDArray[np.uint32],
        values: npt.NDArray[np.float64],
        unigram: float,
    ) -> tuple[float, float, float, bool, HhmmState]: ...
    def advance_many(
        self, states: Sequence[HhmmState], words: npt.NDArray[np.uint32], *, threads: int
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], list[HhmmState]]: ...
    def finish(self, state: HhmmState) -> float: ...
    def next_tags(self, state: HhmmState) -> npt.NDArray[np.float64]: ...
    def emissions(self, state: HhmmState, word: int) -> npt.NDArray[np.float64]: ...
    def next_words(self, state: HhmmState) -> npt.NDArray[np.float64]: ...
    def score(
        self,
        words: npt.NDArray[np.uint32],
        starts: npt.NDArray[np.uint64],
        *,
        measured: bool,
        threads: int,
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], int]: ...
    def parse(
        self, words: npt.NDArray[np.uint32], starts: npt.NDArray[np.uint64], *, threads: int
    ) -> tuple[
        npt.NDArray[np.float64],
        npt.NDArray[np.uint32],
        npt.NDArray[np.uint32],
    ]: ...
    def partial_parses(
        self,
        words: Sequence[tuple[int | None, npt.NDArray[np.uint32], npt.NDArray[np.float64]]],
        count: int,
    ) -> tuple[list[list[_StackHistory]], list[_StackHistory]]: ...
    def stats(self) -> dict[str, float]: ...
    def reset_stats(self) -> None: ...
    def forget(self) -> None: ...

def sample_fragments(
    *,
    starts: npt.NDArray[np.int64],
    rules: npt.NDArray[np.int32],
    labels: npt.NDArray[np.int32],
    sizes: npt.NDArray[np.int32],
    rule_log_probs: npt.NDArray[np.float64],
    label_count: int,
    concentration: float,
    stop: float,
    sweeps: int,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.uint64]]: ...

@final
class FragmentCover:
    def __init__(
        self,
        *,
        starts: npt.NDArray[np.int64],
        tokens: npt.NDArray[np.int32],
        counts: npt.NDArray[np.uint64],
        rule_labels: npt.NDArray[np.int32],
        label_count: int,
    ) -> None: ...
    def derive(
        self,
        *,
        starts: npt.NDArray[np.int64],
        rules: npt.NDArray[np.int32],
        labels: npt.NDArray[np.int32],
        sizes: npt.NDArray[np.int32],
        threads: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> tuple[
        npt.NDArray[np.int64],
        npt.NDArray[np.int32],
        npt.NDArray[np.int32],
        npt.NDArray[np.int32],
    ]: ...

def best_weighted_trees(
    *,
    symbols: int,
    rules: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float64],
    root_weights: npt.NDArray[np.float64],
    tags: npt.NDArray[np.int32],
    tag_weights: npt.NDArray[np.float64],
    tag_starts: npt.NDArray[np.int64],
    sentence_starts: npt.NDArray[np.int64],
    threads: int,
    progress: Callable[[int, int], None] | None = None,
    plain: bool = False,
) -> tuple[
    npt.NDArray[np.float64],
    npt.NDArray[np.int64],
    npt.NDArray[np.int64],
    npt.NDArray[np.uint32],
    npt.NDArray[np.uint32],
]: ...

@final
class TreeRecipe:
    def __init__(
        self,
        profile: Profile,
        *,
        strip: bool,
        simplify: bool,
        unescape: bool,
        respell: bool,
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

@final
class WordEncoder:
    def __init__(
        self,
        symbols: list[str],
        is_signature: bytes,
        late: list[tuple[int, int, int]],
        rules: SignatureRules | None,
    ) -> None: ...
    def __len__(self) -> int: ...
    def encode(self, word: str, position: int) -> int: ...
    def encode_training(self, word: str, sentence: int, position: int) -> int: ...
    def encode_words(self, words: Sequence[str]) -> npt.NDArray[np.uint32]: ...

@final
class TextEncoder:
    def __init__(
        self, vocabulary: WordEncoder | None, *, training: bool, first_sentence: int
    ) -> None: ...
    def feed(self, block: bytes) -> None: ...
    def finish(self) -> None: ...
    def add_sentence(self, words: Sequence[str]) -> None: ...
    def take(
        self,
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64], npt.NDArray[np.uint32]]: ...
    def words(self) -> list[str]: ...
    def counts(self) -> npt.NDArray[np.uint64]: ...
    def first_counts(self) -> npt.NDArray[np.uint64]: ...
    @property
    def sentences(self) -> int: ...
    @property
    def tokens(self) -> int: ...
    @property
    def unknown(self) -> int: ...

@final
class StreamRule:
    def __init__(
        self,
        *,
        seed: int,
        probability: float,
        start_after: int,
        signatures: SignatureRules | None,
    ) -> None: ...
    def feed(
        self,
        encoder: TextEncoder,
        ids: npt.NDArray[np.uint32],
        starts: npt.NDArray[np.uint64],
    ) -> None: ...
    def entry_sentence(self) -> npt.NDArray[np.uint64]: ...
    def entry_position(self) -> npt.NDArray[np.uint64]: ...
    def replaced(self) -> npt.NDArray[np.uint64]: ...
    def signatures(self) -> list[str]: ...
    def signature_counts(self) -> npt.NDArray[np.uint64]: ...

def line_hashes(text: bytes, *, least_words: int) -> npt.NDArray[np.uint64]: ...
def lower_case(text: str) -> str: ...
def numbers_text(values: npt.NDArray[np.float64]) -> str: ...
def random_bits(seed: int, stream: int, counter: int) -> int: ...
def random_uniform(seed: int, stream: int, counter: int) -> float: ...

NO_ID: int

@final
class EventCounts:
    @property
    def rows(self) -> int: ...
    @property
    def columns(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def spilled(self) -> bool: ...
    @property
    def bytes(self) -> int: ...
    @property
    def bits(self) -> list[int]: ...
    @property
    def keys(self) -> npt.NDArray[np.uint64]: ...
    @property
    def counts(self) -> npt.NDArray[np.uint32]: ...
    def unpacked(self, first: int, last: int) -> npt.NDArray[np.uint32]: ...

@final
class EventCounter:
    def __init__(
        self, columns: int, *, threads: int, run_rows: int, memory: int, folder: str
    ) -> None: ...
    def add(self, rows: npt.NDArray[np.uint32], weights: npt.NDArray[np.uint64] | None) -> None: ...
    def add_sequences(
        self, ids: npt.NDArray[np.uint32], starts: npt.NDArray[np.uint64], *, end: int, pad: int
    ) -> None: ...
    def merge(self, counts: EventCounts) -> None: ...
    def finish(self, progress: Callable[[int, int], None] | None) -> EventCounts: ...
    @property
    def total(self) -> int: ...

@final
class ChainCounts:
    def __init__(
        self,
        events: EventCounts,
        *,
        widths: list[int],
        pads: list[int],
        token_counts: bool,
        keep_tokens: bool,
        threads: int,
    ) -> None: ...
    @property
    def levels(self) -> int: ...
    def size(self, level: int) -> int: ...
    def counts_of_counts(self, level: int) -> list[int]: ...
    def entries(
        self, level: int
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.uint32]]: ...
    def contexts(
        self, level: int
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64], npt.NDArray[np.uint64]]: ...
    def look_up(
        self, level: int, rows: npt.NDArray[np.uint32]
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], npt.NDArray[np.uint64]]: ...

@final
class SequenceCounts:
    def __init__(
        self,
        events: EventCounts,
        *,
        widths: list[int],
        pads: list[int],
        outcomes: int,
        token_counts: bool,
        keep_tokens: bool,
        threads: int,
        use_up: bool,
    ) -> None: ...
    @property
    def levels(self) -> int: ...
    def size(self, level: int) -> int: ...
    def counts_of_counts(self, level: int) -> list[int]: ...

@final
class StreamedCounts:
    def __init__(
        self,
        events: EventCounts,
        *,
        widths: list[int],
        pads: list[int],
        token_counts: bool,
        threads: int,
        memory: int,
        folder: str,
        progress: Callable[[int, int], None] | None,
    ) -> None: ...
    @property
    def levels(self) -> int: ...
    def size(self, level: int) -> int: ...
    def counts_of_counts(self, level: int) -> list[int]: ...

def event_counts(
    bits: list[int],
    keys: npt.NDArray[np.uint64],
    counts: npt.NDArray[np.uint32],
    *,
    total: int,
    largest: list[int],
) -> EventCounts: ...

@final
class KeptBlocks:
    def __init__(self) -> None: ...

def count_sequences(
    ids: npt.NDArray[np.uint32],
    starts: npt.NDArray[np.uint64],
    *,
    columns: int,
    end: int,
    pad: int,
    threads: int,
    progress: Callable[[int, int], None] | None,
) -> EventCounts: ...
def memory_to_count(
    *, words: int, sequences: int, columns: int, largest: int, threads: int
) -> int: ...
def memory_to_estimate(
    events: EventCounts, *, widths: list[int], pads: list[int], keep_tokens: bool
) -> int: ...
def memory_of_sequences(
    events: EventCounts, *, widths: list[int], pads: list[int], keep_tokens: bool, use_up: bool
) -> int: ...

@final
class TableShape:
    def __init__(
        self,
        *,
        widths: list[int],
        outcomes: int,
        first_contexts: int,
        entries: list[list[int]],
        contexts: list[list[int]],
        sequence: bool,
        value_bits: int,
        base_size: int,
        pad: int,
        empty_weight: float,
        compact: bool,
    ) -> None: ...
    @property
    def widths(self) -> list[int]: ...
    @property
    def outcomes(self) -> int: ...
    @property
    def first_contexts(self) -> int: ...
    @property
    def entries(self) -> list[list[int]]: ...
    @property
    def contexts(self) -> list[list[int]]: ...
    @property
    def sequence(self) -> bool: ...
    @property
    def value_bits(self) -> int: ...
    @property
    def base_size(self) -> int: ...
    @property
    def pad(self) -> int: ...
    @property
    def empty_weight(self) -> float: ...
    @property
    def compact(self) -> bool: ...

@final
class BackoffTable:
    def __init__(
        self,
        shape: TableShape,
        slots: npt.NDArray[np.uint8],
        index: npt.NDArray[np.uint32],
        codebooks: npt.NDArray[np.float32],
    ) -> None: ...
    @property
    def shape(self) -> TableShape: ...
    @property
    def slots(self) -> npt.NDArray[np.uint8]: ...
    @property
    def index(self) -> npt.NDArray[np.uint32]: ...
    @property
    def codebooks(self) -> npt.NDArray[np.float32]: ...
    @property
    def spilled(self) -> bool: ...
    def forget(self) -> None: ...
    def log_probabilities(
        self, level: int, rows: npt.NDArray[np.uint32], base: npt.NDArray[np.float64] | None
    ) -> npt.NDArray[np.float64]: ...
    def distribution(self, context: list[int]) -> npt.NDArray[np.float64]: ...
    def backoffs(self, level: int, contexts: npt.NDArray[np.uint32]) -> npt.NDArray[np.float64]: ...
    def advance(
        self, contexts: npt.NDArray[np.uint32], words: npt.NDArray[np.uint32]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint32]]: ...
    def score_sequences(
        self,
        ids: npt.NDArray[np.uint32],
        starts: npt.NDArray[np.uint64],
        *,
        start: int,
        end: int,
        threads: int,
    ) -> npt.NDArray[np.float64]: ...
    def rows(
        self, level: int, *, with_carriers: bool
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.float64], npt.NDArray[np.float64]]: ...

@final
class NgramState:
    def __init__(self, context: Sequence[int], first: bool, model: bytes) -> None: ...
    @property
    def context(self) -> tuple[int, ...]: ...
    @property
    def first(self) -> bool: ...
    @property
    def model(self) -> bytes: ...
    def payload(self) -> bytes: ...
    def to_bytes(self) -> bytes: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class NgramSentence:
    def word_rows(self, index: int) -> tuple[list[float], list[bool]]: ...

@final
class NgramReader:
    def __init__(
        self,
        table: BackoffTable,
        words: WordEncoder,
        model: bytes,
        *,
        start: int,
        end: int,
        unknown_by_option: bool,
        step: type,
    ) -> None: ...
    def initial(self, *, position_matters: bool) -> NgramState: ...
    def fragment(self) -> NgramState: ...
    @property
    def advance(self) -> Callable[[object, object], Any]: ...
    def advance_id(self, state: NgramState, word: int) -> Any: ...
    def finish(self, state: NgramState) -> float: ...
    def matched_words(self, state: NgramState, word: int) -> int: ...
    def advance_many(
        self, states: Sequence[object], words: Sequence[object]
    ) -> tuple[npt.NDArray[np.float64], list[Any], int] | None: ...
    def score(
        self, sentence: object, eos: bool
    ) -> tuple[float, float | None, bool, NgramSentence] | None: ...
    def score_similar(
        self, lists: Sequence[Sequence[object]]
    ) -> npt.NDArray[np.float64] | None: ...
    @property
    def advances(self) -> int: ...
    def reset(self) -> None: ...

@final
class PhraseTable:
    def __init__(
        self,
        *,
        words: npt.NDArray[np.uint8],
        word_starts: npt.NDArray[np.uint64],
        source_words: npt.NDArray[np.uint32],
        source_starts: npt.NDArray[np.uint64],
        target_words: npt.NDArray[np.uint32],
        target_starts: npt.NDArray[np.uint64],
        row_starts: npt.NDArray[np.uint32],
        targets: npt.NDArray[np.uint32],
        scores: npt.NDArray[np.float64],
        point_starts: npt.NDArray[np.uint64],
        points: npt.NDArray[np.uint8],
        orientations: npt.NDArray[np.float64],
        longest_source: int,
        has_deletions: bool,
    ) -> None: ...
    def arrays(self) -> dict[str, npt.NDArray[Any]]: ...
    @property
    def sources(self) -> int: ...
    @property
    def score_count(self) -> int: ...
    @property
    def longest_source(self) -> int: ...
    @property
    def has_deletions(self) -> bool: ...
    @property
    def has_alignments(self) -> bool: ...
    @property
    def has_reordering(self) -> bool: ...
    def __len__(self) -> int: ...

@final
class PhraseTableReader:
    def __init__(self, *, allow_deletion: bool) -> None: ...
    def feed(self, block: bytes) -> None: ...
    def finish(self) -> PhraseTable: ...

@final
class ReorderingReader:
    def __init__(self, table: PhraseTable) -> None: ...
    def feed(self, block: bytes) -> None: ...
    def finish(self) -> PhraseTable: ...
    @property
    def unused(self) -> int: ...

@final
class SearchModel: ...

def ngram_search_model(
    phrases: PhraseTable,
    table: BackoffTable,
    words: WordEncoder,
    *,
    start: int,
    end: int,
    oov_log_prob: float | None,
) -> SearchModel: ...
def hhmm_search_model(
    phrases: PhraseTable,
    grammar: HhmmGrammar,
    words: WordEncoder,
    *,
    beam: int,
    ratio: float,
    epsilon: float,
    single: bool,
    key: str,
    best: int,
    state_bytes: int,
) -> SearchModel: ...
def slm_search_model(
    phrases: PhraseTable,
    search: SlmSearch,
    words: WordEncoder,
    *,
    unigrams: npt.NDArray[np.float64],
    topics: npt.NDArray[np.uint32],
    shares: npt.NDArray[np.float64],
    state_bytes: int,
) -> SearchModel: ...
def mixture_search_model(parts: Sequence[SearchModel], weights: Sequence[float]) -> SearchModel: ...
def python_search_model(phrases: PhraseTable, model: object) -> SearchModel: ...

@final
class PhraseDecoder:
    def __init__(
        self,
        table: PhraseTable,
        models: Sequence[SearchModel],
        weights: npt.NDArray[np.float64],
        *,
        stack_size: int,
        log_threshold: float,
        distortion_limit: int,
        table_limit: int,
        max_phrase_length: int,
        early_discard: bool,
        cube: bool,
        pop_limit: int,
        coverage_pops: int,
        max_seconds: float,
        max_bytes: int,
    ) -> None: ...
    def translate(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        first: int,
        n_best: int,
        distinct: bool,
        alignments: bool,
        graph: bool,
        threads: int,
    ) -> list[
        tuple[
            list[tuple[str, list[float], float, str]],
            bool,
            int,
            tuple[int, int, int, int, int, int],
            float,
            str,
        ]
    ]: ...

@final
class ChainSampler:
    def __init__(
        self, table: BackoffTable, base: npt.NDArray[np.float64] | None, *, never: int
    ) -> None: ...
    def draw(
        self,
        contexts: npt.NDArray[np.uint32],
        seed: int,
        streams: npt.NDArray[np.uint64],
        counters: npt.NDArray[np.uint64],
    ) -> npt.NDArray[np.uint32]: ...

def estimate_table(
    counts: ChainCounts | SequenceCounts | StreamedCounts,
    shape: TableShape,
    *,
    discounts: list[tuple[float, float, float]],
    weights: list[list[float]],
    by_ratio: bool,
    min_counts: list[int],
    base: npt.NDArray[np.float64] | None,
    use_up: bool,
    progress: Callable[[int, int], None] | None,
) -> BackoffTable: ...
def compact_table(
    table: BackoffTable,
    *,
    code_bits: int,
    folder: str,
    progress: Callable[[int, int], None] | None,
) -> BackoffTable: ...
def quantize_table(
    table: BackoffTable,
    *,
    bits: int,
    threads: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[BackoffTable, tuple[int, float, float], tuple[int, float, float]]: ...

@final
class ArpaReader:
    def __init__(self) -> None: ...
    def feed(self, block: bytes) -> None: ...
    def finish(self) -> None: ...
    @property
    def words(self) -> list[str]: ...
    @property
    def order(self) -> int: ...
    @property
    def has_unknown(self) -> bool: ...
    def build(self, *, double_precision: bool, threads: int) -> BackoffTable: ...

def write_arpa(table: BackoffTable, words: list[str], write: Callable[[bytes], object]) -> None: ...

class EventSite(enum.Enum):
    WORD = 0
    TAG = 1
    PHRASE = 2
    CHILD = 3

class EventAttribute(enum.Enum):
    WORD = 0
    SYMBOL = 1
    LABEL = 2
    PARENT = 3
    GRANDPARENT = 4
    LEFT = 5
    RIGHT = 6
    YIELD = 7
    RULE = 8
    PARENT_RULE = 9

@final
class EventTemplate:
    def __init__(self, site: EventSite, columns: list[tuple[EventAttribute, int]]) -> None: ...

@final
class EventExtractor:
    def __init__(
        self,
        templates: list[EventTemplate],
        encoder: WordEncoder | None,
        *,
        training: bool,
        marked_tags: list[str],
    ) -> None: ...
    def extract(self, trees: PackedTrees) -> list[npt.NDArray[np.uint32]]: ...
    def count(
        self, batches: list[PackedTrees], counters: list[EventCounter], *, threads: int
    ) -> None: ...
    @property
    def label_bases(self) -> list[str]: ...
    @property
    def labels(self) -> list[str]: ...
    @property
    def words(self) -> list[str]: ...
    @property
    def yields(self) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]: ...
    @property
    def rules(self) -> npt.NDArray[np.uint32]: ...
    @property
    def word_count(self) -> int: ...
    @property
    def sentence_end(self) -> int: ...
    @property
    def sentence_start(self) -> int: ...
    @property
    def sentences(self) -> int: ...
    @property
    def tokens(self) -> int: ...

@final
class YieldModel:
    def __init__(
        self,
        conditional: BackoffTable,
        unconditional: BackoffTable,
        *,
        symbol_of: npt.NDArray[np.uint32],
        seen_symbols: int,
        unknown: bool,
        seen_parents: npt.NDArray[np.bool_],
        weight: float,
    ) -> None: ...
    def probabilities(
        self,
        parents: npt.NDArray[np.uint32],
        symbols: npt.NDArray[np.uint32],
        starts: npt.NDArray[np.uint64],
        *,
        threads: int,
    ) -> npt.NDArray[np.float64]: ...
    def log_probability(self, parent: int, symbols: npt.NDArray[np.uint32]) -> float: ...

@final
class YieldSampler:
    def __init__(self, model: YieldModel) -> None: ...
    def draw(self, parent: int, seed: int, stream: int, counter: int) -> list[int]: ...

@final
class TreeletModel:
    def __init__(
        self,
        *,
        labels: list[str],
        yield_labels: npt.NDArray[np.uint32],
        yield_starts: npt.NDArray[np.uint64],
        rules: npt.NDArray[np.uint32],
        nonterminal: BackoffTable,
        terminal: BackoffTable,
        base: YieldModel,
        encoder: WordEncoder,
        recipe: TreeRecipe,
        marked_tags: list[str],
    ) -> None: ...
    def score(
        self,
        trees: PackedTrees,
        starts: npt.NDArray[np.uint64],
        *,
        transform: bool,
        threads: int,
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint32], int, int]: ...
    def score_each(
        self, batches: list[PackedTrees], *, transform: bool, threads: int
    ) -> list[tuple[npt.NDArray[np.float64], npt.NDArray[np.uint32], int, int]]: ...

@final
class TreeletSampler:
    def __init__(self, model: TreeletModel, is_tag: npt.NDArray[np.bool_]) -> None: ...
    def draw(
        self,
        seed: int,
        first: int,
        count: int,
        *,
        max_words: int,
        max_depth: int,
        threads: int,
    ) -> tuple[PackedTrees, npt.NDArray[np.uint8], npt.NDArray[np.float64]]: ...

@final
class HeadlexExtractor:
    def __init__(self, profile: Profile, encoder: WordEncoder, *, training: bool) -> None: ...
    def count(
        self, batches: list[PackedTrees], counters: list[EventCounter], *, threads: int
    ) -> None: ...
    @property
    def labels(self) -> list[str]: ...
    @property
    def no_word(self) -> int: ...
    @property
    def sentences(self) -> int: ...
    @property
    def tokens(self) -> int: ...

@final
class HeadlexModel:
    def __init__(
        self,
        *,
        labels: list[str],
        is_child: npt.NDArray[np.bool_],
        tables: list[BackoffTable],
        encoder: WordEncoder,
        recipe: TreeRecipe,
    ) -> None: ...
    def score(
        self, trees: PackedTrees, starts: npt.NDArray[np.uint64], *, threads: int
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint32], int, int]: ...
    def score_each(
        self, batches: list[PackedTrees], *, threads: int
    ) -> list[tuple[npt.NDArray[np.float64], npt.NDArray[np.uint32], int, int]]: ...

@final
class LatentTrees:
    def __init__(
        self,
        rules: npt.NDArray[np.int32],
        node_rule: npt.NDArray[np.uint32],
        node_left: npt.NDArray[np.uint32],
        node_right: npt.NDArray[np.uint32],
        tree_start: npt.NDArray[np.uint32],
    ) -> None: ...
    def __len__(self) -> int: ...
    def expect(
        self,
        substates: npt.NDArray[np.int32],
        weights: npt.NDArray[np.float64],
        counts: npt.NDArray[np.float64],
        *,
        threads: int,
    ) -> npt.NDArray[np.float64]: ...
    def log_probs(
        self, substates: npt.NDArray[np.int32], weights: npt.NDArray[np.float64], *, threads: int
    ) -> npt.NDArray[np.float64]: ...
    def merge_gains(
        self,
        substates: npt.NDArray[np.int32],
        weights: npt.NDArray[np.float64],
        shares: npt.NDArray[np.float64],
        *,
        threads: int,
    ) -> npt.NDArray[np.float64]: ...

def split_rules(
    rules: npt.NDArray[np.int32],
    before: npt.NDArray[np.int32],
    after: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float64],
    *,
    noise: float,
    seed: int,
    stream: int,
) -> npt.NDArray[np.float64]: ...
def merge_rules(
    rules: npt.NDArray[np.int32],
    before: npt.NDArray[np.int32],
    after: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float64],
    target: npt.NDArray[np.int32],
    share: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]: ...
def normalize_rules(
    rules: npt.NDArray[np.int32],
    substates: npt.NDArray[np.int32],
    counts: npt.NDArray[np.float64],
    previous: npt.NDArray[np.float64],
    *,
    rule_filter: float,
    threads: int,
) -> None: ...
def smooth_rules(
    rules: npt.NDArray[np.int32],
    substates: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float64],
    *,
    groups: npt.NDArray[np.int32],
    others: bool,
    phrasal_share: float,
    lexical_share: float,
    threads: int,
) -> None: ...
def substate_totals(
    rules: npt.NDArray[np.int32],
    substates: npt.NDArray[np.int32],
    counts: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]: ...

@final
class LatticeShape:
    def __init__(
        self,
        columns: int,
        outcomes: int,
        topics: bool,
        nodes: Sequence[tuple[list[int], list[int]]],
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def stems(self) -> list[list[int]]: ...

@final
class LatticeEvents:
    def __init__(
        self, shape: LatticeShape, limits: npt.NDArray[np.uint32], *, threads: int
    ) -> None: ...
    def add(
        self,
        columns: npt.NDArray[np.uint32],
        outcomes: npt.NDArray[np.uint32],
        counts: npt.NDArray[np.int64],
    ) -> None: ...
    def take(
        self,
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.int64]]: ...
    def tables(
        self, progress: Callable[[int, int], None] | None = None, *, least: int = 0
    ) -> LatticeTables: ...

@final
class LatticeTables:
    def __init__(
        self, shape: LatticeShape, stems: Sequence[dict[str, npt.NDArray[Any]]]
    ) -> None: ...
    def stem_arrays(self, stem: int) -> dict[str, npt.NDArray[Any]]: ...
    @property
    def bytes(self) -> int: ...
    def types(self, node: int) -> int: ...
    def frequencies(
        self, edges: npt.NDArray[np.int64], columns: npt.NDArray[np.uint32], outcome: int
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint8]]: ...
    def refill(self, counts: npt.NDArray[np.int64]) -> None: ...
    def cut(self, least: int) -> LatticeTables: ...

@final
class LatticeCheck:
    def __init__(
        self,
        tables: LatticeTables,
        edges: npt.NDArray[np.int64],
        columns: npt.NDArray[np.uint32],
        outcomes: npt.NDArray[np.uint32],
        weights: npt.NDArray[np.float64],
        *,
        threads: int,
    ) -> None: ...
    def step(
        self, values: npt.NDArray[np.float64], *, least: float, threads: int
    ) -> tuple[npt.NDArray[np.float64], float]: ...
    def log_likelihood(self, values: npt.NDArray[np.float64], *, threads: int) -> float: ...

@final
class LatticeModel:
    def __init__(
        self,
        tables: LatticeTables,
        edges: npt.NDArray[np.int64],
        values: npt.NDArray[np.float64],
    ) -> None: ...
    def probs(
        self, columns: npt.NDArray[np.uint32], outcomes: npt.NDArray[np.uint32], *, threads: int
    ) -> npt.NDArray[np.float64]: ...
    def distribution(self, columns: npt.NDArray[np.uint32]) -> npt.NDArray[np.float64]: ...
    def topic_probs(
        self,
        columns: npt.NDArray[np.uint32],
        outcomes: npt.NDArray[np.uint32],
        topics: npt.NDArray[np.uint32],
    ) -> npt.NDArray[np.float64]: ...

def lattice_weights(
    shape: LatticeShape, edges: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]: ...
def soften_lattice_weights(
    shape: LatticeShape,
    edges: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    share: float,
) -> npt.NDArray[np.float64]: ...

@final
class DocumentWords:
    def __init__(
        self, ids: npt.NDArray[np.uint32], starts: npt.NDArray[np.uint64], words: int
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def pairs(self) -> int: ...
    def counts(
        self,
        word_topics: npt.NDArray[np.float64],
        document_topics: npt.NDArray[np.float64],
        *,
        threads: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> npt.NDArray[np.int64]: ...
    def expect(
        self,
        word_topics: npt.NDArray[np.float64],
        document_topics: npt.NDArray[np.float64],
        *,
        threads: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]: ...
    @property
    def block_size(self) -> int: ...
    @property
    def blocks(self) -> int: ...
    def part(self, first: int, last: int) -> DocumentWords: ...
    def __getstate__(self) -> tuple[Any, ...]: ...
    def __setstate__(self, state: tuple[Any, ...], /) -> None: ...

def draw_word_topics(words: int, topics: int, seed: int) -> npt.NDArray[np.float64]: ...

@final
class TopicText:
    def __init__(
        self,
        ids: npt.NDArray[np.uint32],
        starts: npt.NDArray[np.uint64],
        documents: npt.NDArray[np.uint64],
        *,
        order: int,
        start: int,
        end: int,
    ) -> None: ...
    def __len__(self) -> int: ...

def add_topic_events(
    text: TopicText,
    topics: npt.NDArray[np.uint32],
    shares: npt.NDArray[np.float64],
    word_topics: npt.NDArray[np.float64],
    events: LatticeEvents,
    progress: Callable[[int, int], None] | None = None,
) -> None: ...
def expect_topics(
    model: LatticeModel,
    tables: LatticeTables,
    text: TopicText,
    topics: npt.NDArray[np.uint32],
    shares: npt.NDArray[np.float64],
    counts: npt.NDArray[np.int64],
    *,
    threads: int,
    progress: Callable[[int, int], None] | None = None,
) -> npt.NDArray[np.float64]: ...
def score_topics(
    model: LatticeModel,
    text: TopicText,
    prior: npt.NDArray[np.float64],
    *,
    rate: float,
    keep: int,
    checks: bool,
    threads: int,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[
    npt.NDArray[np.float64],
    npt.NDArray[np.uint32],
    npt.NDArray[np.uint32],
    npt.NDArray[np.float64],
]: ...
def topics_so_far(
    text: TopicText,
    word_topics: npt.NDArray[np.float64],
    prior: npt.NDArray[np.float64],
    *,
    rate: float,
    threads: int,
    progress: Callable[[int, int], None] | None = None,
) -> npt.NDArray[np.float64]: ...
def topic_step(
    shares: npt.NDArray[np.float64],
    probs: npt.NDArray[np.float64],
    *,
    keep: int,
    rate: float,
) -> tuple[float, npt.NDArray[np.float64]]: ...

@final
class SlmState:
    def __init__(self, data: bytes) -> None: ...
    def to_bytes(self) -> bytes: ...
    def same(self, other: SlmState) -> bool: ...
    def hypotheses(self) -> list[tuple[float, int, list[tuple[int, int]]]]: ...
    @property
    def initial(self) -> bool: ...
    @property
    def hash(self) -> int: ...
    def __len__(self) -> int: ...

_Rows = tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.int64]]

@final
class SlmShape:
    def __init__(
        self,
        *,
        words: int,
        tags: int,
        phrases: int,
        order: int,
        heads: int,
        head_labels: bool,
        unary_moves: bool,
    ) -> None: ...
    @property
    def labels(self) -> int: ...
    @property
    def moves(self) -> int: ...
    def events(
        self,
        words: npt.NDArray[np.uint32],
        starts: npt.NDArray[np.uint64],
        mixture_starts: npt.NDArray[np.uint64],
        topics: npt.NDArray[np.uint32],
        shares: npt.NDArray[np.float64],
        sentence_starts: npt.NDArray[np.uint64],
        actions: npt.NDArray[np.uint16],
        action_starts: npt.NDArray[np.uint64],
        weights: npt.NDArray[np.float64],
        word_shares: npt.NDArray[np.float64],
        *,
        threads: int,
    ) -> tuple[_Rows, _Rows, _Rows, npt.NDArray[np.int64]]: ...

@final
class SlmSearch:
    def __init__(
        self,
        shape: SlmShape,
        predictor: LatticeModel,
        tagger: LatticeModel | None,
        constructor: LatticeModel | None,
        *,
        stack_size: int,
        threshold: float,
        beam: float,
        merge: bool,
        topics: int,
    ) -> None: ...
    def initial(self) -> SlmState: ...
    def check(self, state: SlmState) -> None: ...
    def advance(
        self,
        state: SlmState,
        word: int,
        topics: npt.NDArray[np.uint32],
        shares: npt.NDArray[np.float64],
    ) -> tuple[float, SlmState]: ...
    def finish(
        self,
        state: SlmState,
        topics: npt.NDArray[np.uint32],
        shares: npt.NDArray[np.float64],
    ) -> float: ...
    def distribution(
        self,
        state: SlmState,
        topics: npt.NDArray[np.uint32],
        shares: npt.NDArray[np.float64],
    ) -> npt.NDArray[np.float64]: ...
    def topic_probs(self, state: SlmState, word: int) -> npt.NDArray[np.float64]: ...
    def score(
        self,
        words: npt.NDArray[np.uint32],
        starts: npt.NDArray[np.uint64],
        mixture_starts: npt.NDArray[np.uint64],
        topics: npt.NDArray[np.uint32],
        shares: npt.NDArray[np.float64],
        *,
        threads: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> npt.NDArray[np.float64]: ...
    def best_parses(
        self,
        words: npt.NDArray[np.uint32],
        starts: npt.NDArray[np.uint64],
        mixture_starts: npt.NDArray[np.uint64],
        topics: npt.NDArray[np.uint32],
        shares: npt.NDArray[np.float64],
        *,
        count: int,
        threads: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> tuple[
        npt.NDArray[np.uint64],
        npt.NDArray[np.uint16],
        npt.NDArray[np.uint64],
        npt.NDArray[np.float64],
    ]: ...
    def score_parses(
        self,
        words: npt.NDArray[np.uint32],
        starts: npt.NDArray[np.uint64],
        mixture_starts: npt.NDArray[np.uint64],
        topics: npt.NDArray[np.uint32],
        shares: npt.NDArray[np.float64],
        sentence_starts: npt.NDArray[np.uint64],
        actions: npt.NDArray[np.uint16],
        action_starts: npt.NDArray[np.uint64],
        *,
        threads: int,
    ) -> npt.NDArray[np.float64]: ...
    def events(
        self,
        words: npt.NDArray[np.uint32],
        starts: npt.NDArray[np.uint64],
        mixture_starts: npt.NDArray[np.uint64],
        topics: npt.NDArray[np.uint32],
        shares: npt.NDArray[np.float64],
        sentence_starts: npt.NDArray[np.uint64],
        actions: npt.NDArray[np.uint16],
        action_starts: npt.NDArray[np.uint64],
        weights: npt.NDArray[np.float64],
        *,
        threads: int,
    ) -> tuple[_Rows, _Rows, _Rows, npt.NDArray[np.int64]]: ...
    def frontiers(
        self,
        words: npt.NDArray[np.uint32],
        starts: npt.NDArray[np.uint64],
        mixture_starts: npt.NDArray[np.uint64],
        topics: npt.NDArray[np.uint32],
        shares: npt.NDArray[np.float64],
        *,
        threads: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32], npt.NDArray[np.float64]]: ...
    def score_documents(
        self,
        words: npt.NDArray[np.uint32],
        starts: npt.NDArray[np.uint64],
        documents: npt.NDArray[np.uint64],
        prior: npt.NDArray[np.float64],
        *,
        rate: float,
        keep: int,
        threads: int,
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]: ...

class MiraLists:
    def __init__(
        self,
        features: npt.NDArray[np.float64],
        starts: npt.NDArray[np.int64],
        statistics: npt.NDArray[np.int64],
        *,
        metric: str,
    ) -> None: ...
    def __len__(self) -> int: ...
    def run_pass(
        self,
        weights: npt.NDArray[np.float64],
        background: npt.NDArray[np.float64],
        *,
        order: npt.NDArray[np.int64],
        mobility: npt.NDArray[np.float64],
        most_step: float,
        decay: float,
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]: ...

def upper_envelopes(
    offsets: npt.NDArray[np.float64],
    slopes: npt.NDArray[np.float64],
    starts: npt.NDArray[np.int64],
) -> tuple[
    npt.NDArray[np.int64],
    npt.NDArray[np.float64],
    npt.NDArray[np.int64],
    npt.NDArray[np.int64],
]: ...
def symmetrize_links(
    source_starts: npt.NDArray[np.uint64],
    target_starts: npt.NDArray[np.uint64],
    forward: npt.NDArray[np.uint32],
    forward_starts: npt.NDArray[np.uint64],
    backward: npt.NDArray[np.uint32],
    backward_starts: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]: ...

class PhrasePairs:
    def __init__(
        self,
        source_words: Sequence[str],
        source: npt.NDArray[np.uint32],
        source_starts: npt.NDArray[np.uint64],
        target_words: Sequence[str],
        target: npt.NDArray[np.uint32],
        target_starts: npt.NDArray[np.uint64],
        links: npt.NDArray[np.uint32],
        link_starts: npt.NDArray[np.uint64],
        *,
        longest: int,
        min_count: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    def table_lines(self, first: int, last: int) -> bytes: ...
    def reordering_lines(self, first: int, last: int) -> bytes: ...
