"""Files of parses: what goes in comes out, nothing is lost, damage is told."""

from __future__ import annotations

import gc
import math
import os
import random
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from treelm.corpus.brackets import read_trees
from treelm.corpus.corpus import TreeCorpus
from treelm.errors import CorpusFormatError, InputFileError, TreelmWarning, UsageError
from treelm.grammar import forest_writer
from treelm.grammar.forest_file import ForestFile
from treelm.grammar.forest_format import ForestHeader, pack_batch
from treelm.grammar.forest_writer import open_forest
from treelm.grammar.k_best import KBest, text_of
from treelm.models.interface.cached_parser import CachedParser
from treelm.models.interface.parser import ArrayParser
from treelm.models.pcfg.model import PcfgModel
from treelm.models.registry import train

HEADER = ForestHeader(k=5, parser="p", options={"pruning": "default"})
Sentences = list[tuple[str, ...]]


@pytest.fixture(scope="module")
def model(sample_file: Path) -> PcfgModel:
    found = train("pcfg", TreeCorpus((sample_file,)))
    assert isinstance(found, PcfgModel)
    return found


@pytest.fixture(scope="module")
def sentences(sample_file: Path) -> Sentences:
    trees = list(read_trees(sample_file))[:20]
    return [*(tree.words for tree in trees), (), ("zzz", "日本"), trees[0].words]


@pytest.fixture(scope="module")
def lists(model: PcfgModel, sentences: Sentences) -> list[KBest | None]:
    return model.k_best_many(sentences, 5)


def write(path: Path, sentences: Sentences, lists: list[KBest | None], size: int = 7) -> None:
    with open_forest(path, HEADER) as writer:
        given = iter(sentences)
        writer.skip(given)
        for first in range(writer.sentences, len(sentences), size):
            writer.add(sentences[first : first + size], lists[first : first + size])
        writer.finish()


@pytest.fixture
def path(tmp_path: Path, sentences: Sentences, lists: list[KBest | None]) -> Path:
    found = tmp_path / "a.forest"
    write(found, sentences, lists)
    return found


def test_what_goes_in_comes_out(
    path: Path, sentences: Sentences, lists: list[KBest | None]
) -> None:
    with ForestFile(path) as file:
        assert (len(file), file.is_complete, file.header) == (len(sentences), True, HEADER)
        assert text_of(list(file)) == text_of(lists)
        assert text_of(file[3:9]) == text_of(lists[3:9])
        for place in (22, 0, 11, -1):
            found, given = file[place], lists[place]
            assert found is not None
            assert given is not None
            assert text_of([found]) == text_of([given])
            assert (found.words, found.log_prob, found.status, found.is_limited) == (
                given.words,
                given.log_prob,
                given.status,
                given.is_limited,
            )
        assert file[20] is None
        with pytest.raises(IndexError):
            file[23]
        file.verify()


def test_forests_can_be_kept(tmp_path: Path, model: PcfgModel, sentences: Sentences) -> None:
    path = tmp_path / "forests.forest"
    header = HEADER.model_copy(update={"content": "forests"})
    with open_forest(path, header) as writer:
        for first in range(0, len(sentences), 9):
            some = sentences[first : first + 9]
            writer.add_forests(some, model.forests_many(some))
        writer.add_forests([()], [None])
        writer.finish()
    with ForestFile(path) as file:
        file.verify()
        for found, given in zip(file, model.k_best_many(sentences, 5), strict=False):
            if given is None or given.is_fallback:
                assert not found
            else:
                assert text_of([found]) == text_of([given])
        kept = [forest for number in range(3) for forest in file.forests(number)]
        sums = model.forest_log_probs(kept)
        assert sums.tolist() == model.forest_log_probs(model.forests_many(sentences)).tolist()
        whole, good = file.arrays(0)
    bad = tmp_path / "bad.forest"
    for name, array in (
        ("nodes", good["nodes"][::-1].copy()),
        ("sizes", good["sizes"] * 100),
        ("sizes", good["sizes"][:1]),
        ("edge_head", good["edge_head"][::-1].copy()),
        ("edge_right", good["edge_right"].astype(np.float64)),
        ("node_expected", -good["node_expected"]),
        ("visible_label", good["visible_label"] + 1000),
        ("visible_start", good["visible_start"][:-1]),
        ("symbols", good["symbols"][:5]),
        ("status", good["status"] + 9),
        ("log_prob", good["log_prob"][1:]),
        ("more", good["nodes"]),
    ):
        bad.write_bytes(header.to_bytes() + pack_batch(whole, {**good, name: array}).to_bytes(b""))
        with pytest.raises(CorpusFormatError) as caught, ForestFile(bad) as file:
            file.verify()
        assert caught.value.code == "E_FOREST_FILE"
    with ForestFile(path) as file, pytest.raises(IndexError):
        file[len(file)]


def test_trees_of_any_parser_can_be_kept(
    tmp_path: Path, model: PcfgModel, sentences: Sentences, lists: list[KBest | None]
) -> None:
    path = tmp_path / "trees.forest"
    with open_forest(path, HEADER) as writer:
        writer.add(sentences, model.k_best_many(sentences, 5))
        with pytest.raises(UsageError, match="contains white space"):
            writer.add([("a b",)], [[]])
        with pytest.raises(UsageError, match="words"):
            writer.add([("other",)], [model.parse("zzz")])
        writer.finish()
    with ForestFile(path) as file:
        assert text_of(list(file)) == text_of(lists)


def test_best_trees_come_in_batches(path: Path, lists: list[KBest | None]) -> None:
    with ForestFile(path) as file:
        batches = list(file.best_trees())
    assert len(batches) == 4
    assert [str(tree) for batch in batches for tree in batch] == [
        str(found[0].tree) for found in lists if found
    ]


def test_a_file_stands_for_a_parser(
    path: Path, model: PcfgModel, sentences: Sentences, lists: list[KBest | None]
) -> None:
    parser = CachedParser(ForestFile(path))
    assert isinstance(parser, ArrayParser)
    assert text_of(parser.k_best_many(sentences, 5)) == text_of(lists)
    # A file has no grammar to ask for the probability of a tree.
    best = [found[0]._replace(tree_log_prob=math.nan) if found else None for found in lists]
    assert repr(parser.parse_many(sentences)) == repr(best)
    expected = [parse._replace(tree_log_prob=math.nan) for parse in model.parse(sentences[2], 3)]
    assert repr(parser.parse(" ".join(sentences[2]), 3)) == repr(expected)
    assert parser.parse("") == []
    assert parser.file.find(sentences[-1]) == 0
    assert parser.file.find(("not", "there")) is None
    with pytest.raises(UsageError, match="no parse of") as caught:
        parser.parse("not there")
    assert caught.value.code == "E_NOT_CACHED"
    with pytest.raises(UsageError, match="the 5 best"):
        parser.parse(sentences[0], 6)
    with pytest.raises(UsageError):
        parser.parse(sentences[0], 0)


def prefixes(data: bytes) -> Iterator[bytes]:
    for end in sorted({*range(0, 300, 7), *range(300, len(data), 97), len(data) - 1}):
        yield data[:end]


def test_a_file_cut_anywhere_is_read_up_to_there_and_finished(
    path: Path, tmp_path: Path, sentences: Sentences, lists: list[KBest | None]
) -> None:
    whole = path.read_bytes()
    cut = tmp_path / "cut.forest"
    lengths = set()
    for data in prefixes(whole):
        cut.write_bytes(data)
        if len(data) >= len(HEADER.to_bytes()):
            with ForestFile(cut) as file:
                assert not file.is_complete
                assert text_of(list(file)) == text_of(lists[: len(file)])
                lengths.add(len(file))
        else:
            with pytest.raises(CorpusFormatError):
                ForestFile(cut)
        write(cut, sentences, lists)
        assert cut.read_bytes() == whole
    assert lengths == {0, 7, 14, 21, 23}


def test_flipped_bytes_are_told(path: Path, tmp_path: Path) -> None:
    whole = path.read_bytes()
    bad = tmp_path / "bad.forest"
    chance = random.Random(1)
    for place in sorted({*range(200), *chance.sample(range(len(whole)), 200)}):
        data = bytearray(whole)
        data[place] ^= 1 << chance.randrange(8)
        bad.write_bytes(data)
        with pytest.raises(CorpusFormatError) as caught, ForestFile(bad) as file:
            file.verify()
        assert caught.value.code == "E_FOREST_FILE"


def test_forged_arrays_are_refused(path: Path, tmp_path: Path) -> None:
    with ForestFile(path) as file:
        sentences, good = file.arrays(0)
    forged = tmp_path / "forged.forest"
    largest = np.iinfo(np.uint64).max
    for name, array in (
        ("trees", good["trees"] + 1),
        ("trees", np.full(7, largest, dtype=np.uint64)),
        ("nodes", good["nodes"][::-1].copy()),
        ("size", good["size"][::-1].copy()),
        ("size", np.zeros_like(good["size"])),
        ("label", good["label"] + np.uint8(200)),
        ("label", good["label"].astype(np.float64)),
        ("score", good["score"][1:]),
        ("status", np.full(7, 99, dtype=np.uint8)),
        ("labels", np.full(3, 255, dtype=np.uint8)),
        ("log_prob", good["log_prob"].reshape(-1, 1)),
        ("more", good["score"]),
    ):
        frame = pack_batch(sentences, {**good, name: array}).to_bytes(b"")
        forged.write_bytes(HEADER.to_bytes() + frame)
        with pytest.raises(CorpusFormatError) as caught, ForestFile(forged) as file:
            file.verify()
        assert caught.value.code == "E_FOREST_FILE"


def test_another_text_model_or_option_is_refused(
    path: Path, sentences: Sentences, lists: list[KBest | None]
) -> None:
    before = path.read_bytes()
    for header in (
        HEADER.model_copy(update={"k": 6}),
        HEADER.model_copy(update={"parser": "q"}),
        HEADER.model_copy(update={"options": {}}),
    ):
        with pytest.raises(UsageError) as caught, open_forest(path, header):
            pass
        assert caught.value.code == "E_FOREST_OTHER"
    assert path.read_bytes() == before
    for other in (sentences[::-1], sentences[:5], [*sentences[:-1], ("x",)]):
        with pytest.raises(UsageError, match="another text"):
            write(path, other, lists)
    with (
        open_forest(path, HEADER),
        pytest.raises(UsageError, match="another program"),
        open_forest(path, HEADER),
    ):
        pass
    with open_forest(path, HEADER, restart=True) as writer:
        assert writer.sentences == 0


def test_more_text_may_follow(
    tmp_path: Path, path: Path, sentences: Sentences, lists: list[KBest | None]
) -> None:
    grown = tmp_path / "grown.forest"
    write(grown, sentences[:14], lists)
    write(grown, sentences, lists)
    assert grown.read_bytes() == path.read_bytes()


def test_what_is_no_file_of_parses_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFileError):
        ForestFile(tmp_path / "missing.forest")
    with pytest.raises(InputFileError):
        ForestFile(tmp_path)
    for content in (b"(S (NN a))\n", os.urandom(500), b"treelmF\x02" + bytes(50)):
        other = tmp_path / "other.forest"
        other.write_bytes(content)
        with pytest.raises(CorpusFormatError) as caught:
            ForestFile(other)
        assert caught.value.code == "E_FOREST_FILE"
        with pytest.raises(CorpusFormatError), open_forest(other, HEADER):
            pass
        assert other.read_bytes() == content


def frame_starts(path: Path) -> list[int]:
    """Where batches begin, and where the mark of the end does."""
    with ForestFile(path) as file:
        return [file.start, *(batch.end for batch in file.batches)]


def test_zeros_after_any_batch_are_cut_off_with_a_warning(
    path: Path, tmp_path: Path, sentences: Sentences, lists: list[KBest | None]
) -> None:
    """What a loss of power leaves: a longer file, of which the last blocks never came to the disk."""
    whole = path.read_bytes()
    other = tmp_path / "b.forest"
    for done, place in enumerate(frame_starts(path)):
        for more in (52, 4096, (1 << 20) + 100):
            other.write_bytes(whole[:place] + bytes(more))
            with ForestFile(other) as file:  # reading takes what is whole
                assert (len(file.batches), file.is_complete) == (done, False)
                assert file.end == place
                file.verify()
            with pytest.warns(TreelmWarning, match=f"first {done} batches"):
                write(other, sentences, lists)
            assert other.read_bytes() == whole
    other.write_bytes(whole + bytes(4096))
    with ForestFile(other) as file:
        assert file.is_complete
    with pytest.warns(TreelmWarning, match="damaged"):
        write(other, sentences, lists)
    assert other.read_bytes() == whole


def test_zeros_from_anywhere_in_the_last_batch_are_cut_off(
    path: Path, tmp_path: Path, sentences: Sentences, lists: list[KBest | None]
) -> None:
    whole = path.read_bytes()
    other = tmp_path / "b.forest"
    *_, last, end = frame_starts(path)
    random_places = random.Random(1).sample(range(last + 52, end), 40)
    for place in (*range(last, last + 52), *random_places, end - 1):
        other.write_bytes(whole[:place] + bytes(end - place))
        with pytest.warns(TreelmWarning, match="parsed again"):
            write(other, sentences, lists)
        assert other.read_bytes() == whole


def test_zeros_in_the_header_of_a_new_file_begin_it_anew(
    path: Path, tmp_path: Path, sentences: Sentences, lists: list[KBest | None]
) -> None:
    whole = path.read_bytes()
    other = tmp_path / "b.forest"
    header = len(HEADER.to_bytes())
    for place in (0, 1, 8, 12, 16, header - 1):
        other.write_bytes(whole[:place] + bytes(5000 - place))
        write(other, sentences, lists)
        assert other.read_bytes() == whole
    other.write_bytes(whole[:20] + bytes(header - 20) + whole[header:])
    with pytest.raises(CorpusFormatError):  # batches follow: nothing is thrown away
        write(other, sentences, lists)


def test_damage_before_whole_batches_is_refused_and_nothing_is_thrown_away(
    path: Path, tmp_path: Path, sentences: Sentences, lists: list[KBest | None]
) -> None:
    whole = path.read_bytes()
    other = tmp_path / "b.forest"
    first, second, *_ = frame_starts(path)
    damaged = whole[:first] + bytes(second - first) + whole[second:]
    other.write_bytes(damaged)
    with pytest.raises(CorpusFormatError) as caught:
        write(other, sentences, lists)
    assert caught.value.code == "E_FOREST_FILE"
    assert other.read_bytes() == damaged


def test_a_frame_that_claims_more_than_its_content_can_have_is_refused(
    path: Path, tmp_path: Path
) -> None:
    whole = path.read_bytes()
    with ForestFile(path) as file:
        frame = file.batches[0].frame
        start = file.start
    other = tmp_path / "b.forest"
    for changed in (
        frame._replace(stored=frame.raw * 2 + 5000),
        frame._replace(raw=1 << 33),
        frame._replace(stored=1 << 63, raw=1 << 63),
    ):
        other.write_bytes(whole[:start] + changed.to_bytes() + whole[start + 52 :])
        os.truncate(other, 1 << 30)  # no file is too short for the claim
        with pytest.raises(CorpusFormatError, match="no batch at byte"):
            ForestFile(other)


def test_the_end_is_marked_when_everything_else_is_on_the_disk(
    tmp_path: Path,
    sentences: Sentences,
    lists: list[KBest | None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        sizes.append(os.fstat(descriptor).st_size)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    path = tmp_path / "a.forest"
    write(path, sentences, lists)
    assert sizes == [frame_starts(path)[-1], path.stat().st_size]
    monkeypatch.setattr(forest_writer, "_SECONDS_AT_RISK", -1.0)
    write(tmp_path / "b.forest", sentences, lists)
    assert set(frame_starts(path)) < set(sizes)


def test_a_file_that_nobody_needs_is_closed_at_once(path: Path) -> None:
    gc.disable()
    try:
        file = ForestFile(path)
        assert file[0] is not None
        alive = weakref.ref(file)
        del file
        assert alive() is None
    finally:
        gc.enable()
