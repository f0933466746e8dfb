"""Reading-time studies: single readers, cross-validation, mixed models, tables and scripts for R.

Numbers of R were made once, by R 4.2.2 with lme4 1.1-31 (Debian 12), from the script and the table
that treelm writes; the formula of single readers without its random effect of words.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.models.ngram_models import sample_sentences, small_ngram
from tests.models.reading import BIT, LETTER, simulated_readers, write_reading_data

from treelm.corpus.reading_times import (
    read_times,
    read_zoned_trees,
    same_words,
    sentences_of_times,
)
from treelm.errors import CorpusFormatError, UsageError
from treelm.tasks.evaluate.mixed_models import mixed_gain
from treelm.tasks.evaluate.reading_power import held_out_likelihoods, power
from treelm.tasks.evaluate.reading_script import KEYS, joined_table, r_script
from treelm.tasks.evaluate.reading_study import read_study_words, reading_study
from treelm.tasks.evaluate.reading_times import (
    ReadingTable,
    base_predictors,
    fit_reading,
    reading_table,
)
from treelm.tasks.evaluate.regression import Order, fit_linear


def simulated_table() -> ReadingTable:
    times, sentences, columns = simulated_readers()
    return reading_table(times, sentences, columns)


def story_table(folder: Path) -> ReadingTable:
    """Natural Stories with the bits of words and of pairs of words in the stories themselves."""
    times = read_times(folder / "words.tsv")
    words = {each.key: each.word.lower() for each in times}
    ones, pairs = Counter(words.values()), Counter(pairwise(words.values()))
    before = {key: words.get((key[0], key[1] - 1), "") for key in words}
    columns = {
        "frequency": {key: -math.log2(ones[word] / len(words)) for key, word in words.items()},
        "pairs": {
            key: -math.log2((pairs[before[key], word] + 1) / (ones[before[key]] + len(ones)))
            for key, word in words.items()
        },
    }
    return reading_table(times, list(read_zoned_trees(folder / "trees.mrg")), columns, spill_over=2)


# -- single readers -------------------------------------------------------------------------


def test_effects_of_simulated_readers_are_found() -> None:
    table = simulated_table()
    assert table.has_readers
    assert len(table) == 12 * 40 * 5
    fit = fit_reading(table, base_predictors(table, ["surprisal"]))
    per_bit = fit.coefficient("surprisal") / table.predictors["surprisal"].std()
    per_letter = fit.coefficient("length") / table.predictors["length"].std()
    assert per_bit == pytest.approx(BIT, abs=0.006)
    assert per_letter == pytest.approx(LETTER, abs=0.004)


def test_readers_are_taken_out_as_factors_are_in_r() -> None:
    """``lm(log_time ~ ... + reader)``."""
    found = power(simulated_table(), "surprisal", rounds=100)
    assert found.coefficients["surprisal"] == pytest.approx(0.08168625374)
    assert found.t == pytest.approx(24.20394592)
    assert found.ratio.delta_log_likelihood == pytest.approx(264.059743, abs=1e-6)
    noise = power(simulated_table(), "noise", rounds=100)
    assert noise.t == pytest.approx(-2.870276489686)
    assert noise.ratio.delta_log_likelihood == pytest.approx(4.218076, abs=1e-6)


def test_held_out_words_tell_an_effect_from_noise() -> None:
    table = simulated_table()
    effect, noise = power(table, "surprisal", rounds=500), power(table, "noise", rounds=500)
    gain = effect.held_out
    intervals = (gain.over_sentences, gain.over_items, gain.over_readers)
    assert all(each is not None and 0 < each.low < gain.per_word < each.high for each in intervals)
    assert noise.held_out.per_word < 0.001
    assert noise.held_out.over_sentences.low < 0 < noise.held_out.over_sentences.high
    assert effect.held_out == power(table, "surprisal", rounds=500).held_out


def test_held_out_likelihood_is_that_of_other_sentences() -> None:
    """One part of the cross-validation, worked out with a column for each reader."""
    table = simulated_table()
    names = base_predictors(table, ["surprisal"])
    found = held_out_likelihoods(table, names, folds=5, seed=3)
    order = np.argsort(np.random.PCG64(3).random_raw(40), kind="stable")
    test = np.isin(table.sentences, order[2::5])
    dummies = np.eye(12)[table.reader_numbers]
    matrix = np.column_stack([dummies, *(table.predictors[n] for n in table.labels(names))])
    weights = np.linalg.lstsq(matrix[~test], table.log_times[~test], rcond=None)[0]
    residuals = table.log_times - matrix @ weights
    variance = (residuals[~test] ** 2).mean()
    wanted = -0.5 * (np.log(2 * np.pi * variance) + residuals[test] ** 2 / variance)
    assert found[test] == pytest.approx(wanted)
    with pytest.raises(UsageError, match="40 sentences cannot be divided into 41 parts"):
        held_out_likelihoods(table, names, folds=41, seed=1)


def test_mixed_models_of_readers_are_those_of_lme4() -> None:
    """``lmer(log_time ~ ... + (1 + surprisal | reader), REML = FALSE)``."""
    pytest.importorskip("statsmodels")
    found = mixed_gain(simulated_table(), "surprisal")
    assert found.formula.endswith("surprisal_before + (1 + surprisal | reader)")
    assert found.larger.log_likelihood == pytest.approx(1032.203761, abs=1e-4)
    assert found.delta_log_likelihood == pytest.approx(17.867745, abs=1e-4)
    assert found.coefficient == pytest.approx(0.081686253743, rel=1e-5)
    assert found.error == pytest.approx(0.005576563795, rel=1e-4)
    deviations = np.sqrt(np.diag(found.larger.covariance))
    assert deviations == pytest.approx([0.206809169, 0.015435247], rel=1e-3)
    assert math.sqrt(found.larger.residual_variance) == pytest.approx(0.154697737, rel=1e-5)
    assert found.converged


#: What R finds on the means of Natural Stories.
STORIES = {
    "n": 5064,
    "estimate": 0.00343593041556,
    "t": 1.93008064589343,
    "delta": 6.084107,
    "mixed_log_likelihood": 4841.408982,
    "mixed_delta": 5.631268,
    "mixed_estimate": 0.00309034894211,
}


# -- means ----------------------------------------------------------------------------------


@pytest.mark.needs_data
def test_natural_stories_give_the_numbers_of_r(shared_data: Path) -> None:
    """``lm(log_time ~ ...)`` on the means of Natural Stories 1 to 6."""
    table = story_table(shared_data / "reading/naturalstories")
    found = power(table, "pairs", rounds=100)
    assert found.ratio.n == STORIES["n"]
    assert found.coefficients["pairs"] == pytest.approx(STORIES["estimate"])
    assert found.t == pytest.approx(STORIES["t"])
    assert found.ratio.delta_log_likelihood == pytest.approx(STORIES["delta"], abs=1e-6)


@pytest.mark.needs_data
def test_mixed_models_of_natural_stories_are_those_of_lme4(shared_data: Path) -> None:
    """``lmer(log_time ~ ... + (1 | item), REML = FALSE)``."""
    pytest.importorskip("statsmodels")
    table = story_table(shared_data / "reading/naturalstories")
    found = mixed_gain(table, "pairs")
    assert found.larger.log_likelihood == pytest.approx(STORIES["mixed_log_likelihood"], abs=1e-4)
    assert found.delta_log_likelihood == pytest.approx(STORIES["mixed_delta"], abs=1e-3)
    assert found.coefficient == pytest.approx(STORIES["mixed_estimate"], rel=1e-4)
    assert found.converged


# -- errors of neighbours -------------------------------------------------------------------


def test_robust_errors_have_their_definition() -> None:
    """Newey and West's sum over all pairs of observations of one series."""
    random = np.random.default_rng(4)
    x, y = random.normal(size=(2, 60))
    series, places = np.repeat([0, 1], 30), np.r_[np.arange(30), np.arange(5, 35)]
    places[40:] += 2  # a gap
    fit = fit_linear(y, {"x": x})
    middle = np.zeros((2, 2))
    for i in range(60):
        for j in range(60):
            lag = abs(places[i] - places[j])
            if series[i] == series[j] and lag <= 3:
                product = np.outer(fit.matrix[i], fit.matrix[j]) * fit.residuals[i]
                middle += (1 - lag / 4) * product * fit.residuals[j]
    bread = np.linalg.inv(fit.matrix.T @ fit.matrix)
    error = math.sqrt((bread @ middle @ bread)[1, 1])
    order = Order(series, places)
    assert fit.robust_t("x", order, lags=3) == pytest.approx(fit.coefficient("x") / error)


def test_autocorrelation_is_found() -> None:
    values = np.tile([1.0, -1.0], 20)
    order = Order(np.zeros(40, np.int64), np.arange(40))
    assert order.autocorrelation(values) == pytest.approx(-1)
    assert order.autocorrelation(values, 2) == pytest.approx(1)
    assert math.isnan(order.autocorrelation(values, 40))


# -- words, sentences, keys -----------------------------------------------------------------


def test_words_are_enough(tmp_path: Path) -> None:
    model = small_ngram(order=3)
    times, trees = write_reading_data(tmp_path, model, shift=0, sentences=60)
    alone, beside = read_study_words(times), read_study_words(times, trees)
    joined = " ".join(word for each in alone.sentences for word in each.words)
    assert joined == " ".join(word for each in beside.sentences for word in each.words)
    # The sample has a few sentences that end in a colon, which punctuation does not tell.
    assert len(alone.sentences) == pytest.approx(len(beside.sentences), abs=3)


def test_sentences_of_a_column_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"
    rows = ["item\tposition\tsentence\tword\tmean_rt", "1\t1\ta\tNo.\t300", "1\t2\ta\tIt\t300"]
    path.write_text("\n".join([*rows, '1\t3\tb\t"Yes!"\t300', ""]))
    found = sentences_of_times(read_times(path))
    assert [each.words for each in found] == [("No", ".", "It"), ("``", "Yes", "!", "''")]
    assert found[1].zones == ((1, 3),) * 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("zebra", "zebras"), r'words.tsv:4: .*"zebras," in the table and "zebra," in the trees'),
        (("zebra", "the"), r"words.tsv:4: .* It is that of zone 2 there"),
    ],
)
def test_words_that_differ_are_refused(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    words = ["We", "the", "zebra,", "saw."]
    rows = [f"1\t{n}\t{word}\t300" for n, word in enumerate(words, 1)]
    table = "\n".join(["item\tzone\tword\tmean_rt", *rows, ""])
    times, trees = tmp_path / "words.tsv", tmp_path / "trees.mrg"
    trees.write_text(
        "(S (X We/1.1) (X the/1.2) (X zebra/1.3.1) (, ,/1.3.2) (X saw/1.4.1) (. ./1.4.2))\n"
    )
    times.write_text(table)
    sentences = list(read_zoned_trees(trees))
    assert len(same_words(read_times(times), sentences, times)) == 4
    times.write_text(table.replace(*change))
    with pytest.raises(CorpusFormatError, match=message) as caught:
        same_words(read_times(times), sentences, times)
    assert (caught.value.code, caught.value.line) == ("E_TIMES_WORDS", 4)
    # One word in four is too many to be left out.
    with pytest.raises(CorpusFormatError, match=r"differ|is that of|same release"):
        same_words(read_times(times), sentences, times, dropping=True)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["1\t1\tthe\t300\ta", "1\t1\tthe\t310\ta"], "words.tsv:3: .* stand in line 2 already"),
        (["1\t1\tthe\t300\ta", "1\t1\tThe\t310\tb"], 'words.tsv:3: .* "The" here and "the"'),
        (["1\t1\tthe\t300\t"], "words.tsv:2: .* and a reader"),
    ],
)
def test_keys_of_readers_are_checked(tmp_path: Path, rows: list[str], message: str) -> None:
    path = tmp_path / "words.tsv"
    path.write_text("\n".join(["item\tzone\tword\tRT\tsubject", *rows, ""]))
    with pytest.raises(CorpusFormatError, match=message):
        read_times(path, "RT")


def test_previous_times_are_those_of_the_same_reader() -> None:
    times, sentences, columns = simulated_readers(readers=3)
    table = reading_table(times, sentences, columns, previous_time=True)
    time_of = {(each.reader, each.key): each.time for each in times}
    place = 77
    key = (table.readers[place], (int(table.items[place]), int(table.zones[place]) - 1))
    assert table.predictors["previous_time"][place] == pytest.approx(math.log(time_of[key] or 1))
    assert base_predictors(table)[0] == "previous_time"


# -- whole studies --------------------------------------------------------------------------


def test_study_of_several_models(tmp_path: Path) -> None:
    model = small_ngram(order=3)
    times, trees = write_reading_data(tmp_path, model, shift=0)
    models = {
        "true": model,
        "1-gram": small_ngram(order=1, vocabulary=model.vocabulary),
        "small": small_ngram(sample_sentences()[:100], order=2),
    }
    study = reading_study(
        read_study_words(times, trees), models, baseline="1-gram", spill_over=2, folds=5
    )
    record = study.to_record()
    assert study.models == ("true", "small")
    assert record["model"] == "true"
    best = study.result("true", ["1-gram"])
    assert best.held_out.over_sentences.low > 0
    assert best.ratio.predictors == 3
    assert study.result("true", [], "known").ratio.n < best.ratio.n
    assert record["unknown"] == best.ratio.n - study.result("true", [], "known").ratio.n
    assert set(study.perplexities) == {"true", "1-gram", "small"}
    assert ET.fromstring(study.picture()).tag.endswith("svg")
    with pytest.raises(UsageError, match="not the baseline"):
        reading_study(read_study_words(times, trees), {"a": model}, baseline="a")
    with pytest.raises(UsageError, match="same name"):
        reading_study(read_study_words(times, trees), {"a b": model, "a-b": model})


def test_study_without_known_words_says_so(tmp_path: Path) -> None:
    model = small_ngram(order=2)
    times, trees = write_reading_data(tmp_path, model, shift=0)
    models = {"true": model, "tiny": small_ngram(["The boat left ."], order=2)}
    study = reading_study(read_study_words(times, trees), models)
    assert study.note is not None
    assert {each.words for each in study.results} == {"all"}
    assert str(study.to_record()["note"]).startswith("known words alone: ")


def test_joined_table_has_all_keys_and_predictors() -> None:
    table = simulated_table()
    header, first, *rest = joined_table(table).splitlines()
    assert tuple(header.split("\t")) == (*KEYS, *table.predictors)
    cells = dict(zip(header.split("\t"), first.split("\t"), strict=True))
    assert cells["reader"] == "reader 1"
    assert float(cells["log_time"]) == table.log_times[0]
    assert float(cells["surprisal_before"]) == table.predictors["surprisal_before"][0]
    assert len(rest) == len(table) - 1


def test_script_for_r_has_the_formulae() -> None:
    script = r_script(simulated_table(), ["surprisal"], [], "words.tsv")
    terms = "length + length_before + position + frequency + frequency_before"
    assert f'base <- "{terms}"' in script
    assert f'surprisal = "{terms} + surprisal + surprisal_before"' in script
    assert 'surprisal = "(1 + surprisal | reader) + (1 | item:zone)"' in script
    assert "lme4::lmer" in script
    assert "brms::brm" in script
    assert script.count("(") == script.count(")")


EXPERIMENT = "subject,item,condition,position,word,rt\n" + "".join(
    f"s{reader},a{item},{condition},{place},{word},{300 + 7 * reader + 31 * place % 50}\n"
    for reader in range(3)
    for item in (1, 2)
    for condition, text in (("x", "the old boat left us ."), ("y", "the old boat came too ."))
    for place, word in enumerate(text.split(), 1)
)


def test_texts_are_told_apart_by_several_columns(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text(EXPERIMENT)
    with pytest.raises(CorpusFormatError, match=r"item and condition: item item condition"):
        read_times(path, "rt")
    words = read_study_words(path, column="rt", item=("item", "condition"))
    assert [each.words[3] for each in words.sentences] == ["left", "came"] * 2
    model = small_ngram(order=2)
    table = reading_study(words, {"m": model}, spill_over=0).table
    assert set(table.texts) == {"a1 x", "a1 y", "a2 x", "a2 y"}
    line = joined_table(table).splitlines()[1].split("\t")
    assert (line[KEYS.index("item")], line[KEYS.index("reader")]) == ("a1 x", "s0")


def test_times_are_read_from_parquet(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    path = tmp_path / "times.csv"
    path.write_text(EXPERIMENT)
    polars.read_csv(path).write_parquet(tmp_path / "times.parquet")
    columns = ("item", "condition")
    found = read_times(tmp_path / "times.parquet", "rt", item=columns)
    assert found == read_times(path, "rt", item=columns)


def test_trees_go_with_texts_that_have_numbers(tmp_path: Path) -> None:
    times, trees = tmp_path / "times.tsv", tmp_path / "trees.mrg"
    times.write_text("item\tzone\tword\tmean_rt\nstory\t1\train\t300\n")
    trees.write_text("(S (NN rain/1.1))\n")
    with pytest.raises(UsageError, match="name their text by a number"):
        read_study_words(times, trees)
