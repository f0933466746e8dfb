"""Planning a training run over parses: types, bytes, time, and what fits.

Types of the given parses are counted on a sample of their events, chosen by a hash. How many more
EM will count is estimated from a few sentences that a small model searches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from treelm.estimation.lattice import Ids
from treelm.models.composite.config import CompositeConfig
from treelm.models.composite.follow_up import SENTENCES_AT_ONCE
from treelm.models.composite.memory_plan import (
    COMPARED,
    EM_EVENTS_A_SECOND,
    KEPT_BY_CUTOFF,
    PLSA_PAIRS_A_SECOND,
    PROGRAM_BYTES,
    MemoryPlan,
    NodePlan,
    plsa_bytes,
)
from treelm.models.composite.parsed_text import ParsedText, PreparedTrees
from treelm.models.composite.parts import PARTS, CompositeShape, Mixtures, pieces
from treelm.models.composite.plan_sizes import (
    Sampled,
    StemSize,
    building_peak,
    collecting_peak,
    record_bytes,
    sample_types,
)
from treelm.models.composite.search_sample import Columns, Stage, search_sample

#: Events of partial parses that are weighted and sorted per second.
ROWS_A_SECOND = 1.0e6
#: Bytes per word while trees become actions. Measured.
READ_BYTES = 330

Sampling = dict[tuple[str, Columns], tuple[Sampled, Sampled]]


def plan_parses(
    prepared: PreparedTrees,
    config: CompositeConfig,
    *,
    held_out: ParsedText | None = None,
    memory: int | None = None,
) -> MemoryPlan:
    """Return the plan of the training of a composite model.

    Args:
        prepared: The training sentences.
        config: Options.
        held_out: Held-out sentences for the weights.
        memory: Available memory in bytes.
    """
    plain = CompositeShape(
        config.model_copy(update={"topics": 0}), len(prepared.vocabulary), prepared.codes
    )
    stems = {part: [node.columns for node in plain.lattices[part].nodes] for part in plain.lattices}
    found, rows = _given(prepared, plain, stems)
    stages = search_sample(prepared, plain, stems) if config.heads else {}
    tokens = 0 if held_out is None else held_out.tokens
    planned = _Planned(prepared, config, found, rows, stages, tokens)
    fitting = [
        keep
        for keep in COMPARED
        if keep <= config.topics
        and (memory is None or max(planned.keeping(keep).stages().values()) <= memory)
    ]
    cutoffs = [
        cut
        for cut, _ in KEPT_BY_CUTOFF
        if memory is None or sum(planned.cutting(cut).tables().values()) <= memory
    ]
    return MemoryPlan(
        prepared.text.tokens,
        tuple(planned.nodes()),
        sum(planned.tables().values()),
        planned.stages(),
        planned.seconds(),
        cutoff=cutoffs[0] if cutoffs else None,
        keep_topics=fitting[-1] if fitting else None,
        memory=memory,
    )


def _given(
    prepared: PreparedTrees, shape: CompositeShape, stems: dict[str, list[Columns]]
) -> tuple[Sampling, dict[str, int]]:
    """Return the types of the given parses by part and columns, and their rows."""
    text = prepared.text
    numbers = text.document_numbers
    columns: dict[str, list[Ids]] = {part: [] for part in stems}
    outcomes: dict[str, list[Ids]] = {part: [] for part in stems}
    for first, last in pieces(text):
        part = text.part(first, last)
        # Every sentence has one topic, the number of its document, so that rows identify theirs.
        of_document = Mixtures(
            np.arange(len(part) + 1, dtype=np.uint64),
            numbers[first:last].astype(np.uint32),
            np.ones(len(part)),
        )
        rows, _ = shape.events(part, part.lists, np.ones(len(part)), of_document)
        for name in stems:
            columns[name].append(rows[name][0])
            outcomes[name].append(rows[name][1])
    found: Sampling = {}
    sizes = {}
    for name, kinds in stems.items():
        table, follow = np.concatenate(columns[name]), np.concatenate(outcomes[name])
        sizes[name] = len(follow)
        documents = int(numbers[-1]) + 1 if name == "predictor" else 1
        document: npt.NDArray[np.int32] = np.zeros(len(follow), np.int32)
        if name == "predictor":
            document = table[:, -1].astype(np.int32)
        for seen in kinds:
            contexts = [table[:, c] for c in seen]
            found[name, seen] = (
                sample_types((*contexts, follow), len(seen) + 1, document, documents),
                sample_types(contexts, len(seen), document, documents),
            )
    return found, sizes


@dataclass(frozen=True)
class _Planned:
    """Everything a plan is made of.

    Args:
        prepared: The training sentences.
        config: Options.
        found: Types of the given parses, by part and columns.
        rows: Rows of the given parses, by part.
        searched: Counts of EM in a few sentences.
        held_out: Number of held-out words and sentence ends for the weights.
    """

    prepared: PreparedTrees
    config: CompositeConfig
    found: Sampling
    rows: dict[str, int]
    searched: dict[str, Stage]
    held_out: int

    def keeping(self, topics: int) -> _Planned:
        """Return the plan with another number of topics kept."""
        return self._with(keep_topics=topics)

    def cutting(self, cutoff: float) -> _Planned:
        """Return the plan with another cut-off."""
        return self._with(cutoff=cutoff)

    def _with(self, **options: float) -> _Planned:
        return replace(self, config=self.config.model_copy(update=options))

    @property
    def rounds(self) -> list[str]:
        """The kinds of EM that will run."""
        config = self.config
        kinds = ["n-best"] if config.iterations and (config.heads or config.topics) else []
        return [*kinds, "follow-up"] if config.follow_up and config.heads else kinds

    def whole(self, part: str, stage: str) -> list[StemSize]:
        """Return the tables of a part before anything is cut."""
        topics = self.config.topics if part == "predictor" else 0
        sizes = []
        for (name, seen), (event, context) in self.found.items():
            if name != part:
                continue
            size = StemSize(
                seen,
                event.types,
                context.types,
                event.topics(topics, self.config.keep_topics),
                context.topics(topics, self.config.keep_topics),
            )
            if stage in self.searched:
                size = size.scaled(*self.searched[stage].growth(part, seen))
            sizes.append(size)
        return sizes

    def kept(self, part: str, stage: str) -> list[StemSize]:
        """Return the tables after the cut-off."""
        whole, cutoff = self.whole(part, stage), self.config.least_count
        if part != "predictor" or cutoff <= 0:
            return whole
        topics = 1.0
        if self.config.topics:
            topics = float(np.interp(cutoff, *np.array(KEPT_BY_CUTOFF).T))
        if stage not in self.searched:
            return [size.scaled(1.0, 1.0, topics) for size in whole]
        kinds = self.searched[stage].kinds
        return [size.scaled(*kinds[part, size.columns].kept(cutoff), topics) for size in whole]

    def tables(self) -> dict[str, int]:
        """Return the bytes of the tables of each part at the end."""
        return self._tables(self.rounds[-1] if self.rounds else "counting")

    def _tables(self, stage: str) -> dict[str, int]:
        parts = self.rows if stage != "follow-up" else ("predictor",)
        found = {part: sum(size.bytes for size in self.kept(part, stage)) for part in parts}
        before = {"follow-up": "n-best" if "n-best" in self.rounds else "counting"}.get(stage)
        return found if before is None else self._tables(before) | found

    def nodes(self) -> list[NodePlan]:
        """Return the types of the predictor's nodes at the end."""
        nodes = []
        words = self.config.order - 1
        for size in self.kept("predictor", self.rounds[-1] if self.rounds else "counting"):
            seen = sum(column < words for column in size.columns)
            heads = len(size.columns) - seen
            nodes.append(NodePlan(seen, topics=False, types=size.entries, heads=heads))
            if self.config.topics:
                nodes.append(NodePlan(seen, topics=True, types=size.topics, heads=heads))
        return nodes

    def stages(self) -> dict[str, int]:
        """Return the peak memory of each stage."""
        text, config = self.prepared.text, self.config
        arrays = sum(array.nbytes for array in vars(text).values())
        held = PROGRAM_BYTES + arrays
        stages = {"reading": held + READ_BYTES * len(text.ids)}
        if config.topics:
            words, documents = len(self.prepared.vocabulary), int(text.document_numbers[-1]) + 1
            shares = config.keep_topics * len(text.ids)
            stages["plsa"] = held + plsa_bytes(words, documents, config.topics) + 12 * len(text.ids)
            held += 8 * config.topics * (words + documents)
            stages["plsa"] = max(stages["plsa"], held + 44 * shares)
            stages["counting"] = held + 8 * shares + self._counting("counting")
        else:
            stages["counting"] = held + self._counting("counting")
        tables = sum(self._tables("counting").values())
        for stage in self.rounds:
            # All contexts of the held-out sentences stay, as weights are found on them; the
            # memory of their search stays with the allocator.
            contexts = 0
            if stage == "follow-up":
                contexts = int(self.held_out * self.searched[stage].new_rows)
            check = 2 * (20 + 4 * (config.order - 1 + config.heads)) * contexts
            weighing = self._row_bytes(contexts) // 2
            if stage == "follow-up":
                weighing += self._tables(stage)["predictor"]
            more = held + check + tables + max(self._counting(stage), weighing)
            if stage == "n-best":
                again = config.iterations > 1
                searched = self.searched.get(stage)
                lists = 0.0 if searched is None else searched.list_bytes * text.tokens
                more += int(lists * (3 if again else 1)) + (tables if again else 0)
                tables = sum(self._tables(stage).values())
            elif config.follow_up > 1:
                more += self._tables(stage)["predictor"]
            stages[stage] = more
        return stages

    def _counting(self, stage: str) -> int:
        """Return the peak bytes while events are collected and tables are built."""
        parts = self.rows if stage != "follow-up" else {"predictor": 0}
        rows = {part: self._rows(part, stage) for part in parts}
        records = {part: self._record(part) for part in parts}
        other = sum(rows[part] * records[part] for part in parts if part != "predictor")
        whole, kept = self.whole("predictor", stage), self.kept("predictor", stage)
        most = max(whole, key=lambda size: len(size.columns)).rows
        collecting = collecting_peak(rows["predictor"], most, records["predictor"])
        building = building_peak(whole, kept, records["predictor"])
        later = sum(
            size.bytes for part in PARTS if part in parts for size in self.kept(part, stage)
        )
        return max(collecting + other + self._piece(stage), building + other, later)

    def _piece(self, stage: str) -> int:
        """Return the bytes of the events of a piece of the text, in the follow-up EM."""
        if stage != "follow-up":
            return 0
        words = min(SENTENCES_AT_ONCE, len(self.prepared.text)) / len(self.prepared.text)
        contexts = words * self.prepared.text.tokens * self.searched[stage].rows["predictor"]
        return self._row_bytes(int(contexts))

    def _row_bytes(self, contexts: int) -> int:
        """Return the bytes of contexts, including what Python computes for each."""
        width = self.config.order - 1 + self.config.heads
        if not self.config.topics:
            return contexts * (8 * width + 72)
        return contexts * (4 * width + 20 + self.config.keep_topics * (12 * width + 90))

    def _rows(self, part: str, stage: str) -> int:
        rows = float(self.rows[part])
        if stage in self.searched:
            rows = self.searched[stage].rows[part] * self.prepared.text.tokens
        return int(rows * (self.config.keep_topics if self._has_topics(part) else 1))

    def _record(self, part: str) -> int:
        shape = CompositeShape(self.config, len(self.prepared.vocabulary), self.prepared.codes)
        return record_bytes(shape.limits(part), shape.lattices[part].outcomes)

    def _has_topics(self, part: str) -> bool:
        return part == "predictor" and self.config.topics > 0

    def seconds(self) -> dict[str, float]:
        """Return the time of one iteration of each kind, on one core."""
        tokens, config = self.prepared.text.tokens, self.config
        found = {}
        if config.topics:
            pairs = int(self.found["predictor", ()][0].documents.sum())
            found["plsa"] = pairs * config.topics / 200 / PLSA_PAIRS_A_SECOND
        topics = config.keep_topics if config.topics else 1
        for stage in self.rounds:
            searched = self.searched.get(stage)
            if searched is None:
                found[stage] = tokens * topics / EM_EVENTS_A_SECOND
                continue
            # Topics are summed wherever a word is predicted, and events are counted by topic.
            rows = tokens * topics * searched.rows["predictor"]
            search = tokens * searched.seconds * (1 + 0.2 * (topics - 1))
            found[stage] = search + rows / ROWS_A_SECOND
        return found
