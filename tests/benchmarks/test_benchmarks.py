"""The benchmarks run; how fast is not for a test to say."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from tests.command_line import assert_fine, run_script
from tests.command_line import treelm as run_treelm
from tests.scripts import load_script

import treelm
from treelm.corpus.brackets import read_trees
from treelm.corpus.sample_treebank import sample_path

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "trees.py"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_tree_benchmark_runs_and_prints_every_figure(tmp_path: Path) -> None:
    folder = tmp_path / "few"
    folder.mkdir()
    (folder / "train.mrg").write_text("(S (NP-TMP (NN today)))\n(NN )\n" * 50)
    printed = run_script(SCRIPT, "--treebanks", tmp_path, "--tokens", "2000")
    for figure in ("read, transform, write", "2 threads over 1", "bound", "M tokens/s"):
        assert figure in printed


def test_held_out_benchmark_prints_one_object(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    documents = [f"the dog {word} a cat\nthe cat {word}\n" for word in ("sees", "hears", "likes")]
    text.write_text("\n".join(documents * 10))
    printed = run_script(SCRIPT.with_name("held_out_text.py"), "--text", text, "--order", "3")
    found = json.loads(printed)
    assert found["train_tokens"] == 27 * 8
    assert found["held_out"]["tokens"] == 3 * 8
    assert 0 < found["held_out"]["bits_per_word"] < 3


def test_repeated_text_changes_a_share_of_the_words(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    words = [f"w{number}" for number in range(200)]
    text.write_text(" ".join(words) + "\n\nw1 w1\n")
    options = (text, "--copies", "3", "--share", "0.25")
    printed = run_script(SCRIPT.with_name("repeated_text.py"), *options).split("\n")
    assert printed[:4] == [" ".join(words), "", "w1 w1", printed[3]]
    second, third = printed[3].split(), printed[6].split()
    changed = [word for word, other in zip(words, second, strict=True) if word != other]
    assert 20 < len(changed) < 80
    assert [word for word in second if word.endswith("~1")] == [f"{word}~1" for word in changed]
    assert third == [f"{word}~2" if word in changed else word for word in words]


def test_split_merge_benchmark_prints_every_cycle(tmp_path: Path) -> None:
    trees = tmp_path / "few.mrg"
    trees.write_text("(S (NP (NN rain)) (VP (VB falls) (ADVP (RB today))))\n" * 20)
    printed = run_script(SCRIPT.with_name("split_merge.py"), "--trees", trees, "--cycles", "2")
    for figure in ("20 trees, 60 words", "cycle 2:", "expectation step, 2 threads:"):
        assert figure in printed


def test_treelet_benchmark_prints_every_figure(tmp_path: Path) -> None:
    options = ("--treebanks", tmp_path, "--tokens", "8000", "--memory", "512M")
    printed = run_script(SCRIPT.with_name("treelet.py"), *options)
    for figure in ("count, 2 threads", "M tokens/s", "peak memory", "24 to 26 words"):
        assert figure in printed


def test_hhmm_benchmark_prints_every_figure(tmp_path: Path) -> None:
    trees = tmp_path / "few.mrg"
    trees.write_text("(S (NP (NN rain)) (VP (VB falls) (ADVP (RB today))))\n" * 20)
    printed = run_script(SCRIPT.with_name("hhmm.py"), "--trees", trees, "--sentences", "3")
    for figure in ("beam 2000, ratio 1e-05", "cached", "r^2 of a line", "2 threads over 1"):
        assert figure in printed


def test_experiment_benchmark_measures_every_word(tmp_path: Path) -> None:
    options = ("--work", tmp_path / "work", "--trees", sample_path(), "--words", "60")
    script = SCRIPT.with_name("experiment.py")
    printed = run_script(script, *options, "--beam-width", "20")
    assert "60 words, beam 20, 2 threads" in printed
    for what in ("text, HHMM", "text, 5-gram", "stimuli, both", "the same, all measures"):
        assert re.search(rf"{what}: [\d.]+ processor s, .* 60 rows, .* load", printed)


def test_latent_benchmark_compares_two_charts(tmp_path: Path) -> None:
    text, trees = tmp_path / "text.txt", tmp_path / "few.mrg"
    text.write_text("the dog sees the cat\n" * 3)
    trees.write_text(
        "(ROOT (S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (DT the) (NN cat)))))\n" * 3
    )
    printed = run_script(SCRIPT.with_name("lsvm.py"), "--text", text, "--trees", trees, "--json")
    rows = json.loads(printed)["rows"]
    assert [row["words"] for row in rows] == ["5-10"] * 3


def test_topic_benchmark_prints_every_figure(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    documents = [f"the dog {word} a cat\nthe cat {word}\n" for word in ("sees", "hears", "likes")]
    text.write_text("\n".join(documents * 10))
    printed = run_script(SCRIPT.with_name("topics.py"), "--text", text, "--topics", "6")
    for figure in ("PLSA, one iteration", "E-step (events)", "planned", "agree: True", "reading"):
        assert figure in printed


def test_rescoring_benchmark_prints_every_figure(tmp_path: Path) -> None:
    texts = [" ".join(tree.words) for tree in treelm.sample_treebank()][:40]
    lists = tmp_path / "nbest"
    lists.write_text(
        "".join(f"{n // 4} ||| {text} ||| f= 1 ||| 0\n" for n, text in enumerate(texts))
    )
    model = treelm.train("ngram", [text.split() for text in texts], order=2, smoothing="kn")
    assert isinstance(model, treelm.NgramModel)
    model.write_arpa(tmp_path / "lm.arpa")
    printed = run_script(
        SCRIPT.with_name("rescoring.py"),
        *("--lists", lists, "--arpa", tmp_path / "lm.arpa", "--hhmm-sentences", "1"),
    )
    assert "5-gram: 10 lists" in printed
    assert "HHMM: 1 lists" in printed


def test_tables_of_the_page_are_replaced_between_their_marks() -> None:
    peers = load_script(SCRIPT.with_name("peers.py"))
    page = "a\n<!-- ngram: begin -->\nold\n<!-- ngram: end -->\nb\n"
    table = peers.rows(("work", "treelm"), [("score", r"3 \1")])
    assert peers.replace_table(page, "ngram", table) == (
        "a\n<!-- ngram: begin -->\n| work | treelm |\n| --- | --- |\n| score | 3 \\1 |\n"
        "<!-- ngram: end -->\nb\n"
    )
    with pytest.raises(ValueError, match="no marks of the table parsing"):
        peers.replace_table(page, "parsing", table)
    written = (SCRIPT.parents[1] / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    for name in ("ngram", "parsing"):
        assert table in peers.replace_table(written, name, table)


def test_decoder_benchmark_prints_every_figure(tmp_path: Path) -> None:
    table = b"rain ||| rain ||| 0.5\nfalls ||| falls ||| 0.5\nfalls ||| fell ||| 0.4\n"
    (tmp_path / "phrase-table.gz").write_bytes(gzip.compress(table))
    arpa = "\\data\\\nngram 1=5\n\n\\1-grams:\n-1\t<unk>\n-99\t<s>\n-0.5\t</s>\n-0.5\train\n-0.6\tfalls\n\n\\end\\\n"
    (tmp_path / "lm5.arpa.gz").write_bytes(gzip.compress(arpa.encode()))
    names = ("Distortion", "LM", "WordPenalty", "PhrasePenalty", "TranslationModel")
    lines = [f"{name}0= 0.5" for name in (*names, "UnknownWordPenalty")]
    (tmp_path / "weights.ini").write_text("\n".join(lines))
    (tmp_path / "val.de").write_text("rain falls rain falls rain falls rain\n" * 8)
    printed = run_script(SCRIPT.with_name("decoder.py"), "--data", tmp_path)
    for figure in ("n-gram, stack", "n-gram, cube", "ms/sentence", "r^2 of a line", "peak memory"):
        assert figure in printed


def test_scaling_benchmark_keeps_what_one_process_took(tmp_path: Path) -> None:
    text, trees = tmp_path / "text.txt", tmp_path / "trees.mrg"
    text.write_text("rain falls\n")
    trees.write_text("(S (NP (NN rain)) (VP (VBZ falls)))\n" * 30)
    files = ("--text", text, "--model", tmp_path, "--trees", trees, "--works", "treelets")
    script, kept = SCRIPT.with_name("scaling.py"), tmp_path / "kept"
    first = run_script(script, *files, "--keep", kept, "--workers")
    again = run_script(script, *files, "--keep", kept, "--workers", "2")
    assert "treelets\tserial\t1" in first
    assert "serial" not in again
    assert "treelets\tprocesses\t2" in again


def test_memory_plan_benchmark_compares_a_plan_with_a_training(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the dog sees a cat\nrain falls\n\n" * 50)
    found = json.loads(run_script(SCRIPT.with_name("memory_plan.py"), "--text", text))
    assert found["tokens"] == 50 * 9
    assert found["plan_over_use"] == found["planned_peak_bytes"] / found["peak_bytes"]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_three_nodes_benchmark_loses_a_node(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    trees, text, model = sample_path(), tmp_path / "text.txt", tmp_path / "grammar"
    words = [" ".join(tree.words) for tree in read_trees(trees)]
    text.write_text("\n".join(words))
    assert_fine(run_treelm("train", "pcfg", "--trees", trees, "-o", model))
    files = ("--text", text, "--trees", trees, "--model", model, "--work", tmp_path / "work")
    options = ("--words", "9000", "--em-words", "6000", "--works", "composite")
    printed = run_script(SCRIPT.with_name("three_nodes.py"), *files, *options)
    [found] = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    assert found["is_same"]
    assert 0 < found["lost_after"] < found["nodes"]


def test_scaling_benchmark_compares_many_workers_with_one_process(tmp_path: Path) -> None:
    text, figures = tmp_path / "text.txt", tmp_path / "figures.jsonl"
    text.write_text("the dog sees a cat\nrain falls\n" * 50)
    options = ("--text", text, "--model", tmp_path, "--works", "counting", "--quick")
    printed = run_script(SCRIPT.with_name("scaling.py"), *options, "--json", figures)
    found = [json.loads(line) for line in figures.read_text().splitlines()]
    assert [(each["engine"], each["workers"]) for each in found] == [
        ("serial", 1),
        ("processes", 1),
        ("processes", 2),
    ]
    assert found[2]["efficiency"] == found[2]["speed_up"] / 2
    assert printed.count("counting\t") == 3


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="time is read from /proc")
def test_page_benchmark_times_the_models_there_are(tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    trees = treelm.TreeCorpus((sample_path(),))
    treelm.train("hhmm", trees, beam_width=50).save(tmp_path / "en-hhmm")
    options = ("-m", tmp_path / "en-hhmm", "--rounds", "2", "--no-browser")
    found = json.loads(run_script(SCRIPT.with_name("page.py"), *options))
    assert set(found) == {"load before", "en-hhmm surprisal", "en-hhmm states", "load after"}
    assert 0 < found["en-hhmm states"]["median"] <= found["en-hhmm states"]["longest"]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_serve_benchmark_counts_every_answer(tmp_path: Path) -> None:
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    text = [["rain", "fell"], ["it", "rained"]]
    treelm.train("ngram", text, order=1, smoothing="kn").save(tmp_path / "rain")
    options = ("-m", tmp_path / "rain", "--clients", "3", "--seconds", "3", "--threads", "1")
    found = json.loads(run_script(SCRIPT.with_name("serve.py"), *options))
    assert found["models"] == ["rain"]
    assert found["failures"] == {}
    assert found["statuses"]["200"] == found["milliseconds"]["all"]["n"] > 0
    assert len(found["resident_megabytes"]) > 1
    assert (found["exit_status"], found["complaints"]) == (0, "")
