"""Treelets counted in pieces by many workers: the same bytes as by one process."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parallel.sending_executor import SendingExecutor

from treelm.corpus.brackets import ReadReport
from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.corpus.files import Content
from treelm.corpus.pieces import tree_pieces
from treelm.corpus.sample_treebank import sample_path
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.vocabulary_rules import VocabularyRule, build_vocabulary
from treelm.errors import TreelmError, TreelmWarning
from treelm.events import count_runs
from treelm.models.treelet import count_shards
from treelm.models.treelet.config import TreeletConfig
from treelm.models.treelet.count_shards import count_treelets_in_pieces
from treelm.models.treelet.counts import save_treelet_counts
from treelm.models.treelet.events import TreeletCounts, count_treelets
from treelm.models.treelet.train import with_temporal_nouns
from treelm.parallel.executor import SERIAL, Engine, Executor, executor
from treelm.testing.model_folders import different_files, folder_contents

#: Everything that may matter where trees are cut.
TREES = (
    "\ufeff*x* a comment (with brackets)\n"
    "( (S (NP-TMP (NN today)) (NP-SBJ (PRP I))\n"
    "     (VP (VBP see) (NP (NN rain)))) )\n\n"
    "(S (NP (PRP It)) (VP (VBZ is) (NP (NP (NNP Monday)) (, ,) (NP (NN <unk>))))) (X (X x))\n"
    "(S (NP (-NONE- *)))\n"
    "( (S (NN a)) (S (NN b)) )\n"
    "(S (N^P (NN bad)))\n"
    "(S (NN two words))\n"
    "(FRAG (NN (JJ both) (NN ways)))\n"
    "(S (NP (DT the) (NN end)))"
)


@pytest.fixture
def trees(tmp_path: Path) -> TreeCorpus:
    plain, packed = tmp_path / "plain.mrg", tmp_path / "packed.mrg.gz"
    lines = sample_path().read_text().splitlines()
    plain.write_text("\n".join((TREES, *lines[:40], "")))
    packed.write_bytes(gzip.compress("\n".join((TREES, *lines[40:60])).encode()))
    return TreeCorpus((plain, packed, plain), on_error="skip")


def one_process(corpus: TreeCorpus, config: TreeletConfig, **how: object) -> TreeletCounts:
    return count_treelets(corpus, with_temporal_nouns(config, corpus), **how)  # type: ignore[arg-type]


def saved(counts: TreeletCounts, folder: Path) -> dict[str, object]:
    save_treelet_counts(counts, "full", folder)
    return folder_contents(folder)


def assert_same(one: TreeletCounts, other: TreeletCounts, place: Path) -> None:
    assert not different_files(saved(one, place / "one"), saved(other, place / "other"))


@pytest.fixture
def never_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where one process would do the work."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the pieces were not counted")

    monkeypatch.setattr(count_shards, "count_treelets", refuse)


@pytest.mark.usefixtures("never_alone")
@pytest.mark.parametrize("size", [1, 50, 300, 5000, 1 << 20])
def test_treelet_counts_do_not_depend_on_pieces(
    trees: TreeCorpus, size: int, tmp_path: Path
) -> None:
    reports = ReadReport(), ReadReport()
    config = TreeletConfig()
    with pytest.warns(TreelmWarning, match="several nodes below"):
        found = count_treelets_in_pieces(
            trees, config, SERIAL, tmp_path, piece_bytes=size, report=reports[0]
        )
    with pytest.warns(TreelmWarning, match="several nodes below"):
        expected = one_process(trees, config, report=reports[1])
    assert reports[0] == reports[1]
    assert reports[0].failed == 6
    assert "today" in found.transform.temporal  # type: ignore[operator]
    assert_same(found, expected, tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"plain.mrg", "packed.mrg.gz", "one", "other"}


@pytest.fixture(params=[("processes", 1), ("processes", 2), ("processes", 7), ("ray", 2)])
def many(request: pytest.FixtureRequest) -> Engine:
    if request.param[0] == "ray":
        pytest.importorskip("ray")
    return request.param  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore:.*several nodes below")
@pytest.mark.usefixtures("never_alone")
def test_treelet_counts_do_not_depend_on_workers(
    trees: TreeCorpus,
    many: tuple[Engine, int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(count_runs, "ROWS_A_RANGE", 50)
    with executor(many[0], workers=many[1]) as workers:
        found = count_treelets_in_pieces(
            trees, TreeletConfig(), workers, tmp_path, piece_bytes=2000
        )
    assert_same(found, one_process(trees, TreeletConfig()), tmp_path)


@pytest.mark.filterwarnings("ignore:.*several nodes below", "ignore:no temporal nouns")
@pytest.mark.usefixtures("never_alone")
@pytest.mark.parametrize("rows", [20, 1 << 20])
@pytest.mark.parametrize("variant", ["full", "rule", "trans", "pcfg"])
def test_treelet_counts_of_all_variants_do_not_depend_on_ranges(
    trees: TreeCorpus, variant: str, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(count_runs, "ROWS_A_RANGE", rows)
    config = TreeletConfig.model_validate({"variant": variant, "transforms": ()})
    known = Vocabulary.from_counts({"the": 3, "rain": 2, "nowhere": 1})
    sending = SendingExecutor()
    for vocabulary in (None, known):
        found = count_treelets_in_pieces(
            trees, config, sending, tmp_path, vocabulary=vocabulary, piece_bytes=3000
        )
        assert found.marked_tags == ("NN",)
        assert_same(found, one_process(trees, config, vocabulary=vocabulary), tmp_path)
    assert ("_MergeRange" in sending.maps) == (rows == 20)


@pytest.mark.parametrize(
    "bad",
    [
        "(S (NN open)\n",
        "(S (NN a)))\n",
        "stray\n",
        "(S (<s> a))\n",
        "(S (NN <s>))\n",
        "\xff",
        "*x* (\n",
    ],
)
@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.filterwarnings("ignore:.*several nodes below")
def test_treelet_counts_fail_or_skip_as_one_process_does(
    bad: str, on_error: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.mrg"
    good = sample_path().read_text().splitlines(keepends=True)[:30]
    path.write_bytes("".join((*good[:12], bad, *good[12:])).encode("latin-1"))
    corpus = TreeCorpus(path, on_error=on_error)  # type: ignore[arg-type]

    def outcome(pieces: Executor | None) -> object:
        report = ReadReport()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if pieces is None:
                    counts = one_process(corpus, TreeletConfig(), report=report)
                else:
                    counts = count_treelets_in_pieces(
                        corpus, TreeletConfig(), pieces, tmp_path, piece_bytes=300, report=report
                    )
        except TreelmError as error:
            return type(error), error.code, str(error)
        return report, saved(counts, tmp_path / ("one" if pieces is None else "other"))

    one, other = outcome(None), outcome(SendingExecutor())
    assert isinstance(one, tuple)
    assert isinstance(other, tuple)
    assert one[:-1] == other[:-1]
    if isinstance(one[-1], dict):
        assert not different_files(one[-1], other[-1])
    else:
        assert one[-1] == other[-1]


@pytest.mark.filterwarnings("ignore:no temporal nouns")
def test_treelet_counts_with_words_that_enter_late_are_those_of_one_process(
    tmp_path: Path,
) -> None:
    corpus = TreeCorpus(sample_path())
    words = [tuple(tree.words) for tree in corpus]
    known = build_vocabulary(TextCorpus.of_sentences(words), VocabularyRule(name="stream", seed=1))
    assert any(item.entry is not None for item in known.entries)
    found = count_treelets_in_pieces(
        corpus, TreeletConfig(), SendingExecutor(), tmp_path, vocabulary=known, piece_bytes=1000
    )
    assert_same(found, one_process(corpus, TreeletConfig(), vocabulary=known), tmp_path)


TREE = st.recursive(
    st.sampled_from(["(A a)", "(B\n b)", "( C\tc )"]),
    lambda inner: st.lists(inner, min_size=1, max_size=3).map(lambda x: f"(P {' '.join(x)})"),
    max_leaves=6,
)


@given(
    st.lists(st.tuples(TREE, st.sampled_from(["\n", " ", "", "\n\n"])), max_size=12),
    st.integers(1, 60),
)
def test_pieces_are_the_file_cut_between_trees(trees: list[tuple[str, str]], size: int) -> None:
    text = "".join(tree + after for tree, after in trees).encode()
    pieces = list(tree_pieces([Content("trees", text)], size))
    assert b"".join(piece.data for piece in pieces) == text
    for before, piece in zip([b"", *(piece.data for piece in pieces)], pieces, strict=False):
        assert piece.data.count(b"(") == piece.data.count(b")")
        assert not before or before.endswith(b"\n")
    lines = 0
    for piece in pieces:
        assert piece.lines_before == lines
        lines += piece.data.count(b"\n")
