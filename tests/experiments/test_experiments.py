"""Every recipe runs, on data of a few hundred sentences; what it finds there means nothing."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.command_line import run_script
from tests.experiments.resuming import assert_resumes
from tests.experiments.small_data import (
    HHMM,
    PARSERS_AS_LMS,
    PHENOMENA,
    RECIPES,
    TREEBANKS,
    lsvm_options,
    treelet_options,
    write_data,
    write_garden_paths,
    write_parallel_data,
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a data folder in the layout that recipes expect."""
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


@pytest.fixture(scope="session")
def every_stop(request: pytest.FixtureRequest) -> bool:
    """Whether recipes are killed after every file that they keep, which takes many minutes.

    Otherwise those that take long run once, and short ones are killed now and then.
    """
    return bool(request.config.getoption("--campaign"))


def common(data: Path, output: Path) -> list[str]:
    """Return the options of all recipes."""
    return ["--data", str(data), "--output", str(output), "--threads", "1", "--seed", "3"]


def run(recipe: str, data: Path, output: Path, *options: str) -> tuple[dict[str, object], str]:
    """Run a recipe and return its results and its tables."""
    script = RECIPES / recipe / "run.py"
    assert run_script(script, *common(data, output), *options).strip() == str(output)
    results = json.loads((output / "results.json").read_text())
    return results, (output / "tables.md").read_text()


def values(results: dict[str, object], table: str) -> dict[tuple[str, str], float]:
    """Return the numbers of one table by model and metric."""
    rows = results["results"]
    assert isinstance(rows, list)
    return {(row["model"], row["metric"]): row["value"] for row in rows if row["table"] == table}


def test_blimp(data: Path, tmp_path: Path) -> None:
    options = ("--order", "3", "--held-out-every", "10")
    results, tables = run("blimp", data, tmp_path / "report", *options)
    overall = values(results, "Accuracy, all pairs")
    models = ("5-gram reuters", "5-gram un-debates", "5-gram eltec", "mixture")
    assert set(overall) == {
        (model, f"{measure}, {ties}")
        for model in models
        for measure in ("log probability", "SLR")
        for ties in ("ties wrong", "ties half")
    }
    assert all(overall[model, "log probability, ties wrong"] > 0.5 for model in models)
    by_phenomenon = values(results, "By phenomenon, SLR, ties half")
    assert set(by_phenomenon) == {(model, name) for model in models for name in PHENOMENA}
    known = values(results, "Accuracy, no unknown word")
    assert set(known) == set(overall)
    assert "exact McNemar, Holm" in tables
    assert "| 5-gram (Warstadt et al.) | log probability, ties wrong | - | not run |" in tables
    assert "| frumious | 40 |" in tables
    assert len(list((tmp_path / "report/scores").iterdir())) == 8


def test_trigram_negatives(data: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    options = ("--sizes", "80", "40", "15", "--smallest", "20", "--order", "3", "--keep", str(kept))
    results, tables = run("trigram_negatives", data, tmp_path / "report", *options)
    lines = {name: (kept / name).read_text().splitlines() for name in ("gen.txt", "pos_train.txt")}
    assert [len(part) for part in lines.values()] == [80, 40]
    assert not set(lines["gen.txt"]) & set(lines["pos_train.txt"])
    assert all(len(line.split()) >= 5 for line in (kept / "neg_test.txt").read_text().splitlines())
    found = values(results, "Trigram pseudo-negatives")
    assert ("5-gram on POS_TRAIN", "average precision") in found
    assert ("5-gram on POS_TRAIN + GEN_TEXT", "accuracy") in found
    curve = values(results, "Learning curve: POS_TRAIN, then GEN_TEXT")
    assert ("5-gram on 40 sentences", "accuracy") in curve
    for size, model in ((40, "5-gram on POS_TRAIN"), (120, "5-gram on POS_TRAIN + GEN_TEXT")):
        assert curve[f"5-gram on {size} sentences", "accuracy"] == found[model, "accuracy"]
    assert "redrawn: too short" in tables
    assert "| 0.679 |" in tables


def test_noisy_treebanks(data: Path, tmp_path: Path) -> None:
    kept = tmp_path / "noisy.tsv"
    results, tables = run(
        "noisy_treebanks", data, tmp_path / "report", "--count", "400", "--keep", str(kept)
    )
    rows = [line.split("\t") for line in kept.read_text().splitlines()]
    assert len(rows) == 400
    shares = values(results, "Share of each type")
    for (error, _), share in shares.items():
        assert share == sum(row[1] == error for row in rows) / 400
        assert f"Examples: {error}" in tables
    # Whatever the seed, counts are near what the weights say where a type applies.
    section = tables.split("## Types made against the weights")[1].split("##")[0]
    cells = [line.split("|") for line in section.splitlines() if line.startswith("| ")][1:]
    assert all(abs(float(row[-2])) < 4 for row in cells if row[1].strip() in {e for e, _ in shares})


def test_hhmm(data: Path, tmp_path: Path, every_stop: bool) -> None:
    script = RECIPES / "hhmm/run.py"
    once, often = tmp_path / "once", tmp_path / "often"
    printed = run_script(script, *common(data, once), *HHMM)
    options = (*common(data, often), *HHMM)
    assert_resumes(script, options, once=once, often=often, files=1 if every_stop else 40)
    parts = ("perplexity", "sweeps", "unknown", "reading", "garden")
    reports = [str(once / part) for part in parts]
    assert [line for line in printed.splitlines() if line in reports] == reports
    results = json.loads((once / "perplexity/results.json").read_text())
    found = values(results, "Perplexity, in domain")
    for model in ("1-gram", "5-gram", "HHMM", "5-gram + HHMM", "big 5-gram + HHMM"):
        assert found[model, "perplexity"] > 1
    tables = (once / "perplexity/tables.md").read_text()
    assert "209.13" in tables
    assert "Claim (b)" in tables
    ratios = values(results, "Ratios of perplexities")
    assert ("HHMM / 5-gram", "ratio of perplexities") in ratios
    assert ("5-gram + HHMM / better part", "ratio of perplexities") in ratios
    unknown = json.loads((once / "unknown/results.json").read_text())
    spelled = values(unknown, "Open vocabulary: perplexity")
    for known in ("all words", "words seen twice", "words seen twice, signatures"):
        for system in ("5-gram", "HHMM"):
            assert spelled[f"{system}, {known}", "open perplexity"] > 1
    assert values(unknown, "Open vocabulary: ratios of perplexities").keys() >= {
        ("HHMM, words seen twice / 5-gram, words seen twice", "ratio of open perplexities"),
        ("HHMM, words seen twice / 5-gram, all words", "ratio of open perplexities"),
    }
    curve = (once / "lambda/gum.csv").read_text().splitlines()
    assert curve[0] == "lambda,ppl"
    assert len(curve) == 13
    sweeps = (once / "sweeps/tables.md").read_text()
    assert "Share of trees that fit a stack" in sweeps
    assert "bits per word" in sweeps
    assert "| estimation counts |" in sweeps
    assert "What a model's surprisal adds" in (once / "reading/tables.md").read_text()
    assert "Surprisal of the critical word" in (once / "garden/tables.md").read_text()


def test_parsers_as_lms(data: Path, tmp_path: Path) -> None:
    once, often = tmp_path / "once", tmp_path / "often"
    models = ("--models", str(once / "models"))
    results, tables = run("parsers_as_lms", data, once / "report", *PARSERS_AS_LMS, *models)
    again = (*common(data, often / "report"), *PARSERS_AS_LMS, "--models", str(often / "models"))
    script = RECIPES / "parsers_as_lms/run.py"
    assert_resumes(script, again, once=once, often=often, files=1)
    for name in TREEBANKS:
        found = values(results, f"Perplexity of {name}")
        assert set(found) == {
            ("5-gram", "perplexity (exact)"),
            ("PCFG", "perplexity (exact)"),
            ("PCFG-LA", "perplexity (lower bound)"),
            ("5-gram + PCFG", "perplexity (exact)"),
            ("TREELET-TRANS", "perplexity (lower bound)"),
            ("TREELET-RULE", "perplexity (lower bound)"),
            ("TREELET", "perplexity (lower bound)"),
            ("HEADLEX", "perplexity (lower bound)"),
        }
        assert all(1 < value < 10_000 for value in found.values())
        assert f"| {name} | 3 | nothing: exact | 0.0000 | 1.0000 |" in tables
        assert f"| {name} | 3 | pruned, accurate |" in tables
    assert (once / "models/pcfg-la/manifest.json").exists()


def test_treelet(data: Path, tmp_path: Path, every_stop: bool) -> None:
    options = treelet_options(data, tmp_path)
    once, often = tmp_path / "once", tmp_path / "often"
    results, tables = run("treelet", data, once / "report", *options)
    script, again = RECIPES / "treelet/run.py", (*common(data, often / "report"), *options)
    if every_stop:
        assert_resumes(script, again, once=once, often=often, files=1)
    for name in TREEBANKS:
        found = values(results, f"Perplexity on {name} (Table 2)")
        assert ("TREELET + 5-GRAM", "perplexity with ends") in found
        assert all(1 < value < 100_000 for value in found.values())
    for table in ("Trigram pseudo-negatives (Table 4)", "Noisy sentences (Table 5)"):
        assert all(0 <= value <= 1 for value in values(results, table).values())
    assert ("TREELET", "pairwise accuracy") in values(
        results, "References against translations (Table 6)"
    )
    assert ("without vp_flattening", "perplexity with ends") in values(results, "One thing changed")
    assert ("without vp_flattening", "accuracy, trigram pseudo-negatives") in values(
        results, "One thing changed"
    )
    assert "Perplexity by training size" in tables
    assert "Samples (Table 1)" in tables
    normalised = values(results, "Trigram pseudo-negatives: what the score is normalised by")
    for model in ("TREELET-RULE", "TREELET", "5-GRAM"):
        own = {metric for name, metric in normalised if name == model}
        assert "accuracy by log probability, a threshold for each length" in own
        assert len(own) == 5
    by_trees = values(results, "Trigram pseudo-negatives by trees of a sentence")
    assert {metric for _, metric in by_trees} == {"accuracy, k = 1", "accuracy, k = 10"}
    for kind in ("one error", "trigram model", "translation (ted, phrase-based)"):
        assert tables.count(f"## Negatives (Table 3): {kind}") == 1
    noisy = values(results, "Noisy sentences (Table 5)")
    assert ("PCFG-LA, same words", "accuracy") in values(
        results, "Trigram pseudo-negatives (Table 4)"
    )
    rivals = ("classifier, CFG rules", "classifier, rerank features")
    for model in ("PCFG-LA", "PCFG-LA, same words", *rivals):
        assert (model, "independent accuracy") in noisy
        assert (model, "pairwise accuracy") in noisy
    judged = values(results, "Trigram models of more or less text")
    assert (
        judged["TREELET", "accuracy"]
        == values(results, "Trigram pseudo-negatives (Table 4)")["TREELET", "accuracy"]
    )


def test_lsvm(data: Path, tmp_path: Path, every_stop: bool) -> None:
    once, often = tmp_path / "once", tmp_path / "often"
    once.mkdir()
    often.mkdir()
    results, tables = run("lsvm", data, once / "report", *lsvm_options(data, once))
    script, options = RECIPES / "lsvm/run.py", lsvm_options(data, often)
    again = (*common(data, often / "report"), *options)
    if every_stop:
        assert_resumes(script, again, once=once, often=often, files=1)
    found = values(results, "Trigram pseudo-negatives (Table 1)")
    models = {model for model, _ in found}
    assert {"MLE", "MLE + length", "Trigram-Poly", "LSVM-Gx", "LSVM-MLE without memory"} <= models
    assert {"Rerank features", "TSG fragments", "TREELET SLR"} <= models
    assert all(0 <= value <= 1 for value in found.values())
    pairs = values(results, "References against translations (Table 1)")
    assert ("LSVM-MLE", "pairwise accuracy") in pairs
    parser = "score of the parser (PCFG-LA)"
    assert (parser, "pairwise accuracy") in pairs
    assert (parser, "accuracy") in found
    kernels = values(
        results, "Polynomial kernel over n-grams, by landmarks of Nystroem's approximation"
    )
    assert ("5 landmarks", "accuracy") in kernels
    assert ("exact: a landmark for every training sentence", "accuracy") in kernels
    rounds = values(results, "Rounds of training")
    assert rounds["LSVM-Gx", "best round on dev"] == rounds["LSVM-Gx", "rounds run"] == 1
    accuracy = {model: value for (model, metric), value in found.items() if metric == "accuracy"}
    lost = values(results, "What LSVM-MLE loses without memory, and with fixed trees")
    for name in ("LSVM-MLE without memory", "LSVM-MLE with fixed trees"):
        assert lost[f"LSVM-MLE - {name}", "difference of accuracies"] == pytest.approx(
            accuracy["LSVM-MLE"] - accuracy[name]
        )
    fragments = values(results, "Fragments and single rules, on dev")
    assert ("fragments of treebanks, and all rules", "accuracy") in fragments
    for (model, metric), value in fragments.items():
        if metric == "difference from CFG rules":
            own = fragments[model, "accuracy"] - fragments["CFG rules", "accuracy"]
            assert value == pytest.approx(own)
    moved = values(results, "Hidden trees before and after training (Section 5.5)")
    assert all(0 <= value <= 1 for value in moved.values())
    assert "A tree of LSVM-Gx (Figure 1)" in tables
    for title in ("Order of the paper", "Unlabelled F1 of hidden trees (Table 3)", "Not run"):
        assert title in tables
    if find_spec("sacrebleu") is not None:
        # The references stand first in all lists, so nothing is better than the translator.
        assert "| baseline | - | 100.00 | 100.00 | 26.21 |" in tables
        assert "| + LSVM-MLE | 0 | 100.00 | 100.00 | 26.30 |" in tables


@pytest.mark.skipif(find_spec("sacrebleu") is None, reason="BLEU is sacreBLEU's")
def test_translation(data: Path, tmp_path: Path) -> None:
    write_parallel_data(data)
    options = ("--seeds", "1", "--beam", "5", "--beams", "5", "--timed", "1", "--cycles", "1")
    options += ("--alignment", str(data / "mt/multi30k/train.links"), "--rerank-seeds", "1")
    options += ("--pairs", "20", "--rounds", "1", "--list-size", "3", "--epochs", "4")
    options += ("--beam-pops", "20", "--stacks", "2", "--test-pops", "400", "--equal-pops", "500")
    report = tmp_path / "report"
    results, tables = run(
        "translation", data, report, *options, "--reranked", "val", "--method", "mira"
    )
    translated = values(results, "Translation of sentences of 1 to 20 words")
    # Every word has one translation, and nothing has to move.
    for system in (
        *("n-gram", "n-gram, HHMM beam 5", "n-gram, HHMM beam 5, 400 pops"),
        "n-gram, as much time as with the HHMM",
    ):
        assert translated[system, "BLEU"] == pytest.approx(100)
    timed = values(results, "Seconds per sentence, by the words of the source")
    for system in ("n-gram, stack", "n-gram, cube", "n-gram, HHMM beam 5, cube, 20 pops"):
        assert timed[system, "up to 10 words"] > 0
    assert "Growth with the size of stacks" in tables
    assert "| 5 | 12 | 24 |" in tables  # systems, sentences, different translations
    assert (tmp_path / "report.work/judge/readability.key.json").is_file()
    reranked = values(results, "Reranked n-best lists, ten folds (Table 4 of the composite paper)")
    assert reranked["oracle", "BLEU of all"] == pytest.approx(100)
    assert reranked["first of the lists, tuned on these", "BLEU of all"] < 100
    # The reference has the best features in every list.
    for row in (
        *("features as they are", "+ latent SVM", "+ 5-gram/2-SLM", "+ mixture of n-grams"),
        *("+ 5-gram/PLSA", "+ 5-gram/PLSA, own topics", "all together"),
        "+ 5-gram/2-SLM + 2-gram/4-SLM + 5-gram/PLSA",
        "+ 3-gram, 5-gram of more open text, 2-SLM, treelet",
    ):
        assert reranked[f"{row}, seed 3", "BLEU of all"] == pytest.approx(100)
    pairs = values(results, "References against translations (Table 6 of the treelet paper)")
    assert pairs["3-gram", "pairwise accuracy"] in (0, 1)  # of one pair
    assert "| given |" in tables
    assert "own, with orientations" in tables
    assert "Growth with length" in tables
    again, _ = run("translation", data, report, *options, "--reranked", "val", "--method", "mira")
    assert values(again, "Translation of sentences of 1 to 20 words") == translated


def test_languages(data: Path, tmp_path: Path) -> None:
    options = ("--languages", "english", "--cycles", "1", "--k", "5", "--beam-width", "50")
    models = ("--models", str(tmp_path / "models"))
    results, tables = run("languages", data, tmp_path / "report", *options, *models)
    parses = values(results, "Parses, english")
    assert 0.3 < parses["PCFG-LA", "labelled f1"] < 1
    perplexities = {
        model: value for (model, _), value in values(results, "Perplexity, english").items()
    }
    assert len(perplexities) == 6
    by_words = perplexities["5-gram + HHMM, by words"]
    assert by_words < min(perplexities["5-gram"], perplexities["HHMM"])
    assert "5-gram + TREELET, by sentences" in tables
    again, _ = run(
        "languages", data, tmp_path / "test", *options, *models, "--split", "test", "--limit", "5"
    )
    assert values(again, "Parses, english").keys() == parses.keys()


def test_package_of_models_is_made_by_one_command(data: Path, tmp_path: Path) -> None:
    package = RECIPES.parent / "packages/treelm-is"
    recipe = (package / "models.toml").read_text(encoding="utf-8")
    for old, new in {
        "icepahc": "gum",
        '"icelandic"': '"english"',
        "cycles = 3": "cycles = 1, split_iterations = 3",
    }.items():
        assert old in recipe
        recipe = recipe.replace(old, new)
    (tmp_path / "models.toml").write_text(recipe, encoding="utf-8")
    made = []
    for name in ("first", "second"):
        folder = tmp_path / name
        options = ("--data", str(data), "--recipe", str(tmp_path / "models.toml"))
        assert run_script(package / "build_models.py", *options, "--folder", str(folder)) == ""
        files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
        made.append({str(file.relative_to(folder)): file.read_bytes() for file in files})
    assert {name.partition("/")[0] for name in made[0]} == {"is-parser", "is-hhmm", "is-ngram"}
    assert made[0] == made[1]
    assert b"F1 on the first 1500 sentences of dev" in made[0]["is-parser/README.md"]
    assert b"IcePaHC" in made[0]["is-parser/README.md"]


def test_reading_times(data: Path, tmp_path: Path) -> None:
    write_garden_paths(data)
    options = ("--work", str(tmp_path / "work"), "--folds", "5", "--beam-width", "20")
    results, tables = run("reading_times", data, tmp_path / "report", *options)
    gains = values(results, "What a model adds to length, frequency and position")
    models = {model for model, _ in gains}
    assert {"5-gram", "HHMM", "PCFG", "PLSA", "2-SLM", "5-gram + HHMM"} <= models
    assert {"3-gram/2-SLM/PLSA", "5-gram + 3-gram/2-SLM/PLSA"} <= models
    ready = values(results, "Ready models: What a model adds to the en-ngram")
    assert {model for model, _ in ready} == {"en-hhmm", "en-mixture"}
    added = values(results, "What a model adds to the 5-gram")
    assert {model for model, _ in added} == models - {"5-gram"}
    assert "The same without unknown words" in tables
    paths = values(results, "Interaction: the effect in NP/Z minus that in NP/S, in bits")
    models |= {"en-ngram", "en-hhmm", "en-mixture"}
    assert {model for model, _ in paths} == models
    suites = values(results, "Test suites: share of items for which all predictions hold")
    assert len(suites) == 6 * len(models)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "work/models").glob("*/*")}
    again, _ = run("reading_times", data, tmp_path / "again", *options, "--parts", "reading")
    assert values(again, "What a model adds to the 5-gram") == added
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
    rows = published_rows(data, tmp_path)
    assert {name: len(cells) for name, *cells in rows} == {"lstm.csv": 4, "gpt2.csv": 4}
    assert rows[1][1:] == [
        "+2.00 [+2.00, +2.00]",
        "+5.00 [+5.00, +5.00]",
        "+3.00 [+3.00, +3.00]",
        "+3.00 [+3.00, +3.00]",
    ]


def published_rows(data: Path, folder: Path) -> list[list[str]]:
    """Surprisals in the formats in which others publish them, measured beside the recipe's own."""
    table = (data / "reading/naturalstories/words.tsv").read_text().splitlines()
    words = [row.split("\t") for row in table[1:]]
    tokens = [f"1\t{n}\t{row[2]}\t{n * 7 % 11}\n" for n, row in enumerate(words, 1)]
    tokens[4] = "1\t5\tUNK-LC\t3\n"
    (folder / "lstm.csv").write_text("sentence_id\ttoken_id\ttoken\tsurprisal\n" + "".join(tokens))
    effects = {"NPS": 2, "NPZ": 5, "MVRR": 3}
    (folder / "gpt2.csv").write_text(
        "item,condition,disambPosition_0idx,word_pos,sum_surprisal_base2\n"
        + "".join(
            f"{item},{kind}_{level},1.0,{place},{10 + (level == 'AMB') * effect * place}\n"
            for item in (1, 2)
            for kind, effect in effects.items()
            for level in ("AMB", "UAMB")
            for place in (0, 1, 2)
        )
    )
    files = ("--stories", folder / "lstm.csv", "--garden", folder / "gpt2.csv")
    options = ("--data", data, "--work", folder / "work", "--folds", "5")
    script = RECIPES / "reading_times/published.py"
    printed = run_script(script, *map(str, (*options, *files)))
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines()]
