"""Measures of parser states, tables of stimuli, pictures."""

from __future__ import annotations

import csv
import io
import json
import math
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from tests.models.hhmm_cases import PRESIDENT, exact_model, sample_model
from tests.models.ngram_models import small_ngram
from tests.models.toy_model import ToyModel
from tests.tasks.refused_files import assert_content_refused

import treelm
from treelm.corpus.corpus import sentences_in_documents
from treelm.errors import CorpusFormatError, TreelmWarning, UnsupportedTask, UsageError
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.states import State
from treelm.models.mixture.model import interpolate
from treelm.tasks.surprisal.measures import MEASURES, chosen_measures, measure_sentences
from treelm.tasks.surprisal.parser_states import parser_states
from treelm.tasks.surprisal.pictures import ParserStateDrawings, SurprisalPlot
from treelm.tasks.surprisal.stimuli import (
    measure_stimuli,
    model_names,
    read_stimuli,
    stimuli_of_frame,
)
from treelm.tasks.surprisal.surprisal import surprisal_rows
from treelm.tasks.surprisal.tables import TableFormat, table_lines
from treelm.view.parser_states import draw_parser_states_svg, draw_parser_states_text
from treelm.view.surprisal_chart import WordBar, draw_surprisal

TEXT = "The president meets the board"
#: The parts of its surprisal: the grammar of the president leaves a choice of structure at the end
#: only, and one of words at determiners and nouns.
SYNTACTIC = [0, 0, 0, 0, 0, 1]
LEXICAL = [1, 1, 0, 1, 1, 0]


def test_measures_have_their_definitions() -> None:
    found = measure_sentences(exact_model(PRESIDENT, 2), [TEXT, "The president meets"])
    assert {name: values[:6].tolist() for name, values in found.items()} == {
        "syntactic": SYNTACTIC,
        "lexical": LEXICAL,
        "entropy": [0, 0, 0, 1, 1, 0],
        "entropy_reduction": [0, 0, 0, 0, 0, 1],
        "depth": [1, 1, 2, 2, 1, 0],
        "open_nodes": [0, 0, 1, 1.5, 0.5, 0],
        "embedding_difference": [1, 0, 1, 0.5, -1, -1.5],
        "stacks": [1, 1, 1, 2, 2, 0],
        "beam_mass": [1, 1, 1, 1, 1, 0],
    }
    assert all((values[6:9] == values[:3]).all() for values in found.values())


def test_surprisal_is_its_syntactic_and_lexical_part() -> None:
    """The definitions, worked out tag by tag from the distribution over tags before each word."""
    model = sample_model(depth=2, beam_width=50)
    sentences = ["The ferry left the old harbour .", "It never came back", "Frumious left ."]
    epsilon, table = model.config.robust_epsilon, model.tables.words
    symbols = model.tables.rules.symbols
    found = measure_sentences(model, sentences)
    wanted, surprisal = [], []
    for sentence in sentences:
        state: State = model.initial()
        for place, word in enumerate(sentence.split()):
            tags = model.next_tags(state)
            number = model.word_ids.word(word, first=not place)
            own = slice(*table.start[number : number + 2].tolist())
            pairs = zip(table.tag[own], table.value[own], strict=True)
            can_emit = [symbols[tag] for tag, value in pairs if value > 0]
            mass = sum(tags.get(tag, 0.0) for tag in can_emit)
            wanted.append((1 - epsilon) * mass + epsilon * (1 - table.end_share))
            log_prob, state = model.advance(state, word)
            surprisal.append(-log_prob / math.log(2))
        wanted.append(math.exp(model.finish(state)))
        surprisal.append(-model.finish(state) / math.log(2))
    assert found["syntactic"] == pytest.approx(-np.log2(wanted), abs=1e-6)
    assert found["syntactic"] + found["lexical"] == pytest.approx(np.array(surprisal), abs=1e-9)
    assert (found["lexical"] >= 0).all()
    ends = np.cumsum([len(sentence.split()) + 1 for sentence in sentences]) - 1
    assert (found["lexical"][ends] == 0).all()


def test_regions_add_up_the_parts_of_surprisal(tmp_path: Path) -> None:
    path = tmp_path / "items.tsv"
    path.write_text("item\tword\n1\tThe ferry\n1\tleft .\n")
    model = sample_model(depth=2, beam_width=50)
    frame = measure_stimuli(model, read_stimuli(path), measures=["all"])
    place = {name: frame.columns.index(name) for name in frame.columns}
    for row in frame.rows:
        parts = row[place["syntactic"]], row[place["lexical"]]
        assert sum(map(float, map(str, parts))) == pytest.approx(row[place["surprisal"]])


def test_stimuli_stand_alone_unless_documents_are_named(tmp_path: Path) -> None:
    path = tmp_path / "items.tsv"
    text = ["rain fell", "it rained", "rain fell"]
    path.write_text("text\tsentence\n" + "".join(f"1\t{each}\n" for each in text))
    corpus = tmp_path / "train.txt"
    corpus.write_text("rain fell\n\nit rained\n\nsun shone\n\nit shone\n" * 10)
    model = treelm.train("plsa", corpus, topics=2, seed=1, eta=0.2)
    alone = measure_stimuli(model, read_stimuli(path))
    assert [row[4:] for row in alone.rows[:2]] == [row[4:] for row in alone.rows[4:]]
    together = measure_stimuli(model, read_stimuli(path).in_documents(["text"]))
    assert together.rows[:2] == alone.rows[:2]
    assert together.rows[4][4] != alone.rows[4][4]
    with pytest.raises(UsageError, match='no column "page"'):
        read_stimuli(path).in_documents(["page"])
    path.write_text("sent_id\tpage\tword\n1\t1\tthe\n1\t2\train\n")
    with pytest.raises(UsageError, match="belongs to two documents"):
        read_stimuli(path).in_documents(["page"])


def test_measures_are_those_the_model_has() -> None:
    hhmm = sample_model(depth=2, beam_width=20)
    mixture = interpolate([small_ngram(order=2, vocabulary=hhmm.vocabulary), hhmm], [0.5, 0.5])
    assert chosen_measures(hhmm, ["all"]) == MEASURES
    assert chosen_measures(mixture, ["depth", "entropy"]) == ("entropy", "depth")
    assert chosen_measures(small_ngram(order=2), ["all"]) == ()
    with pytest.raises(UnsupportedTask, match="hhmm"):
        chosen_measures(ToyModel.of(), ["depth"])
    with pytest.raises(UsageError, match="there is no measure"):
        chosen_measures(hhmm, ["width"])


@pytest.mark.parametrize("form", ["tsv", "csv", "jsonl", "itemmeasures", "minicons"])
def test_measures_are_columns_of_every_table(form: TableFormat) -> None:
    model = exact_model(PRESIDENT, 2)
    rows = surprisal_rows(model, sentences_in_documents([TEXT]), measures=["all"], eos=True)
    lines = b"".join(table_lines(rows, form, MEASURES)).decode().splitlines()
    if form == "minicons":
        assert json.loads(lines[0])[0] == ["The", 1.0]
        return
    if form == "jsonl":
        table = [json.loads(line) for line in lines]
    else:
        separator = {"tsv": "\t", "csv": ",", "itemmeasures": " "}[form]
        table = list(csv.DictReader(io.StringIO("\n".join(lines)), delimiter=separator))
    assert [float(row["open_nodes"]) for row in table] == [0, 0, 1, 1.5, 0.5, 0]
    assert [row["word"] for row in table] == [*TEXT.split(), "</s>"]
    assert list(table[0])[-9:] == list(MEASURES)


def test_measures_are_columns_of_parquet() -> None:
    polars = pytest.importorskip("polars")
    rows = surprisal_rows(
        exact_model(PRESIDENT, 2), sentences_in_documents([TEXT]), measures=["depth"]
    )
    frame = polars.read_parquet(io.BytesIO(b"".join(table_lines(rows, "parquet", ["depth"]))))
    assert frame["depth"].to_list() == [1, 1, 2, 2, 1]


# -- stimuli --------------------------------------------------------------------------------

STIMULI = "item\tcondition\tregion\tword\tnote\n" + "".join(
    f"{item}\t{condition}\t{region}\t{word}\tn\n"
    for item, condition in ((2, "b"), (1, "a"))
    for region, word in enumerate(("The president", "meets", "the", '"'), 1)
)


@pytest.mark.parametrize("form", ["tsv", "csv", "jsonl"])
def test_stimuli_keep_their_rows(tmp_path: Path, form: TableFormat) -> None:
    path = tmp_path / "items.tsv"
    path.write_text(STIMULI)
    model = exact_model(PRESIDENT, 2, robust_epsilon=1e-5)
    made = measure_stimuli(model, read_stimuli(path), measures=["depth"]).to_bytes(form).decode()  # type: ignore[arg-type]
    if form == "jsonl":
        rows = [json.loads(line) for line in made.splitlines()]
    elif form == "csv":
        rows = list(csv.DictReader(io.StringIO(made)))
    else:
        header, *lines = (line.split("\t") for line in made.splitlines())
        rows = [dict(zip(header, line, strict=True)) for line in lines]
    assert [[row["item"], row["word"]] for row in rows] == [
        line.split("\t")[:4:3] for line in STIMULI.splitlines()[1:]
    ]
    assert [round(float(row["surprisal"]), 3) for row in rows[:3]] == [2, 0, 1]
    assert [int(row["oov"]) for row in rows[:4]] == [0, 0, 0, 1]
    assert [float(row["depth"]) for row in rows[:3]] == [1, 2, 2]
    assert [row["surprisal"] for row in rows[:4]] == [row["surprisal"] for row in rows[4:]]


def test_stimuli_of_csv_are_unquoted(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text('sentence,word\n1,"the, board"\n1,meets\n')
    table = read_stimuli(path)
    assert table.rows == (("1", "the, board"), ("1", "meets"))
    assert list(table.sentences()) == [[("the,", "board"), ("meets",)]]


@pytest.mark.parametrize(
    "content", ["", "item\tregion\n1\t1\n", "item\tword\n1\n", "item\tword\n1\t \n"]
)
def test_stimuli_that_are_none_are_refused(tmp_path: Path, content: str) -> None:
    assert_content_refused(read_stimuli, tmp_path / "items.tsv", content, "E_STIMULI")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_stimuli_of_csv_may_have_other_separators(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "items.csv"
    rows = [["item", "time", "word"], ["1", '"0,5"', "The cat"], ["1", '"0;7"', "sat"]]
    path.write_text("".join(f"{separator.join(row)}\n" for row in rows))
    table = read_stimuli(path)
    assert table.columns == ("item", "time", "word")
    assert table.rows == (("1", "0,5", "The cat"), ("1", "0;7", "sat"))


@pytest.mark.parametrize("code", ["utf-16", "utf-16-le", "utf-32"])
def test_stimuli_in_another_encoding_are_named_so(tmp_path: Path, code: str) -> None:
    path = tmp_path / "items.csv"
    path.write_bytes("item,word\n1,The\n1,cat\n1,sat\n".encode(code))
    with pytest.raises(CorpusFormatError, match=f"encoded in UTF-{code[4:6]}") as caught:
        read_stimuli(path)
    assert caught.value.code == "E_ENCODING"


def test_stimuli_without_words_tell_their_columns(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text("item,Word\n1,The\n")
    with pytest.raises(CorpusFormatError, match=r'called "word", or .* Columns: item, Word\.'):
        read_stimuli(path)


def test_stimuli_of_a_whole_text_in_one_sentence_are_doubted(tmp_path: Path) -> None:
    path = tmp_path / "story.tsv"
    path.write_text("item\tline\tword\n" + "".join(f"1\t{n // 10}\tword\n" for n in range(201)))
    with pytest.warns(TreelmWarning, match=r"longest sentence has 201 words.*same item are one"):
        read_stimuli(path)
    assert read_stimuli(path, ["item", "line"]).longest == 10


def test_stimuli_need_to_say_what_a_sentence_is(tmp_path: Path) -> None:
    path = tmp_path / "items.tsv"
    path.write_text("word\nthe\n")
    with pytest.raises(UsageError, match="no column"):
        read_stimuli(path)
    path.write_text("item\tword\tsurprisal\n1\tthe\t2\n")
    with pytest.raises(UsageError, match="already"):
        measure_stimuli(ToyModel.of(), read_stimuli(path))


def test_stimuli_of_whole_sentences_get_a_row_for_each_word(tmp_path: Path) -> None:
    path = tmp_path / "items.tsv"
    path.write_text("item\tsentence\n1\tThe president meets\n2\tThe president meets\n")
    table = read_stimuli(path)
    assert table.columns == ("item", "sentence", "position", "word")
    assert [row[0::2] for row in table.rows] == [(i, p) for i in "12" for p in (1, 2, 3)]
    assert [row[3] for row in table.rows[:3]] == ["The", "president", "meets"]
    assert len(list(table.sentences())) == 2
    with pytest.raises(UsageError, match="every row is a whole sentence"):
        read_stimuli(path, ["item"])


def test_stimuli_of_the_same_words_in_a_row_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "items.tsv"
    path.write_text("sentence\nThe president\nThe president\n")
    model = exact_model(PRESIDENT, 2)
    rows = measure_stimuli(model, read_stimuli(path)).rows
    assert rows[:2] == rows[2:]
    assert [row[3:] for row in rows[:2]] == [row[3:] for row in measured("The president", model)]


def measured(sentence: str, model: LanguageModel) -> list[tuple[object, ...]]:
    """The rows of one sentence, as the table has them."""
    return [
        (sentence, place, each.word, each.surprisal, each.log_prob, int(each.oov))
        for place, each in enumerate(model.surprisal(sentence), 1)
    ]


def test_stimuli_of_several_models_have_columns_of_each(tmp_path: Path) -> None:
    path = tmp_path / "items.tsv"
    path.write_text(STIMULI)
    parser, toy = exact_model(PRESIDENT, 2, robust_epsilon=1e-5), ToyModel.of()
    table = measure_stimuli({"p": parser, "toy": toy}, read_stimuli(path), measures=["all"])
    added = table.columns[5:]
    assert added[:4] == ("surprisal_p", "log_prob_p", "oov_p", "surprisal_parts_p")
    assert "depth_p" in added
    assert added[-4:] == ("surprisal_toy", "log_prob_toy", "oov_toy", "surprisal_parts_toy")
    alone = measure_stimuli(toy, read_stimuli(path))
    assert [row[-4:] for row in table.rows] == [row[-4:] for row in alone.rows]


def test_regions_keep_their_parts(tmp_path: Path) -> None:
    path = tmp_path / "items.tsv"
    path.write_text(STIMULI)
    model = exact_model(PRESIDENT, 2, robust_epsilon=1e-5)
    table = measure_stimuli(model, read_stimuli(path))
    place = table.columns.index("surprisal_parts")
    for row in table.rows:
        parts = [float(part) for part in str(row[place]).split()]
        assert len(parts) == len(str(row[3]).split())
        assert sum(parts) == pytest.approx(row[5])


def test_stimuli_are_read_from_parquet_and_frames(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    path = tmp_path / "items.tsv"
    path.write_text("item\tword\n1\tThe\n1\tpresident\n")
    frame = polars.DataFrame({"item": [1, 1], "word": ["The", "president"]})
    frame.write_parquet(tmp_path / "items.parquet")
    wanted = read_stimuli(path)
    model = exact_model(PRESIDENT, 2)
    for kept in (
        read_stimuli(tmp_path / "items.parquet"),
        stimuli_of_frame(frame, tokenizing=False),
    ):
        assert (kept.columns, kept.numbers) == (wanted.columns, wanted.numbers)
        assert list(kept.sentences()) == list(wanted.sentences())
        # So that the result can be joined with the frame again.
        assert measure_stimuli(model, kept).to_frame()["item"].to_list() == [1, 1]
    found = measure_stimuli(model, wanted).to_frame()
    assert found["word"].to_list() == ["The", "president"]
    assert found["surprisal"].to_list() == [
        each.surprisal for each in model.surprisal("The president")
    ]
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 is not enough")
    with pytest.raises(CorpusFormatError, match="not a parquet file"):
        read_stimuli(tmp_path / "broken.parquet")
    with pytest.raises(UsageError, match="a file or a data frame, not an object of the type list"):
        stimuli_of_frame([], tokenizing=False)


def test_frames_with_missing_words_are_refused() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"item": [1, 1], "word": ["The", float("nan")]})
    with pytest.raises(CorpusFormatError, match="such as NA or null taken for a missing value"):
        stimuli_of_frame(frame, tokenizing=False)


def test_surprisal_tables_take_one_name_alone() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"text": [1, 1], "word": ["The", "president"]})
    model = exact_model(PRESIDENT, 2)
    table = treelm.surprisal_table(model, frame, measures="depth", sentence="text")
    assert table.columns[2:] == ["surprisal", "log_prob", "oov", "depth"]
    assert "beam_mass" in treelm.surprisal_table(model, frame, measures="all", sentence="text")
    with pytest.raises(UsageError, match="here every model starts each sentence anew"):
        treelm.surprisal_table(model, frame, sentence="text", document="text")
    with pytest.raises(UsageError, match='no column "story"'):
        treelm.surprisal_table(model, frame, sentence="text", document="story")


def test_measures_that_no_model_has_are_refused() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"item": [1], "word": ["a"]})
    models = {"x": ToyModel.of(), "y": ToyModel.of()}
    with pytest.raises(UnsupportedTask, match='"entropy" describes the states of a parser'):
        treelm.surprisal_table(models, frame, measures=["entropy"])
    with pytest.raises(UsageError, match='no measure "entorpy"'):
        treelm.surprisal_table(models, frame, measures=["entorpy"])


#: Tables whose rows would be put together into sentences that nobody wrote.
DOUBTFUL = {
    "the rows of item 1 do not stand together": [(1, "a"), (2, "b"), (1, "c"), (2, "d")],
    "the words of item 1 are the same 3 times over": [(1, "a"), (1, "b")] * 3,
    "the words of item 1 are the same 2 times over": [(1, "a"), (1, "a"), (1, "b"), (1, "b")],
}


@pytest.mark.parametrize("message", DOUBTFUL)
def test_stimuli_that_stand_in_an_odd_order_are_doubted(tmp_path: Path, message: str) -> None:
    path = tmp_path / "items.tsv"
    path.write_text("item\tword\n" + "".join(f"{i}\t{word}\n" for i, word in DOUBTFUL[message]))
    with pytest.warns(TreelmWarning, match=message):
        read_stimuli(path)


def test_stimuli_of_several_readers_one_after_the_other_are_not_doubted(tmp_path: Path) -> None:
    path = tmp_path / "items.tsv"
    rows = [(r, i, w) for r in "AB" for i in "12" for w in ("the", "dog", "barks", "barks")]
    path.write_text("reader\titem\tword\n" + "".join("\t".join(row) + "\n" for row in rows))
    assert len(list(read_stimuli(path).sentences())) == 4


def test_stimuli_whose_condition_changes_within_a_sentence_are_doubted(tmp_path: Path) -> None:
    path = tmp_path / "items.tsv"
    path.write_text("sent_id\tcondition\tword\n1\ta\tthe\n1\ta\tdog\n1\tb\tthe\n1\tb\tcat\n")
    with pytest.warns(TreelmWarning, match="the column condition changes within the sentence"):
        read_stimuli(path)
    assert len(list(read_stimuli(path, ["sent_id", "condition"]).sentences())) == 2


def test_cells_of_stimuli_stay_cells(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text('item,note,word\n1,"two\tcells\nor lines",a\n')
    made = measure_stimuli(ToyModel.of(), read_stimuli(path))
    header, row, *rest = made.to_bytes("tsv").decode().split("\n")
    assert (rest, len(row.split("\t"))) == ([""], len(header.split("\t")))
    assert json.loads(made.to_bytes("jsonl"))["note"] == "two\tcells\nor lines"


def test_models_of_the_same_name_are_refused() -> None:
    with pytest.raises(UsageError, match='two models are called "x"'):
        model_names(["a/x", "b/x/"])


# -- pictures -------------------------------------------------------------------------------


def test_parser_states_have_the_most_probable_stacks() -> None:
    found = parser_states(exact_model(PRESIDENT, 2), TEXT, count=2)
    assert [state.word for state in found] == TEXT.split()
    assert found[3].stacks == (("S/NP; DT", 0.5), ("S/VP; VP/NP; DT", 0.5))
    drawn = draw_parser_states_text(found)
    assert "the  1.00 bits\n   0.500 █████       S/NP; DT" in drawn
    picture = draw_parser_states_svg(found, title=TEXT)
    assert ET.fromstring(picture).tag.endswith("svg")
    assert picture.count("S/VP; VP/NP; DT") >= 2
    with pytest.raises(UnsupportedTask):
        parser_states(ToyModel.of(), TEXT)


def test_surprisal_chart_shows_conditions_beside_each_other() -> None:
    bars = [
        [WordBar("the", 2.0), WordBar(word, value)] for word, value in (("a", 1), ("b", np.inf))
    ]
    picture = draw_surprisal([("one", bars[0]), ("two", bars[1])], title="two")
    assert ET.fromstring(picture).tag.endswith("svg")
    assert picture.count("<rect") == 1 + 2 + 4
    assert "b: ∞" in picture
    with pytest.raises(ValueError, match="same number of words"):
        draw_surprisal([("one", bars[0]), ("two", bars[1][:1])], title="two")


def test_pictures_are_made_while_rows_pass(tmp_path: Path) -> None:
    model = exact_model(PRESIDENT, 2)
    drawings = ParserStateDrawings(model, tmp_path / "states.txt", 2)
    plot = SurprisalPlot(model, tmp_path / "plot.svg", drawings)
    rows = list(plot.watch(surprisal_rows(model, sentences_in_documents([TEXT, TEXT]), eos=True)))
    assert len(rows) == 2
    plot.write()
    assert ET.fromstring((tmp_path / "plot.svg").read_text()).tag.endswith("svg")
    assert (tmp_path / "states.txt").read_text().count("meets  0.00 bits") == 2


def test_search_reaches_into_mixtures() -> None:
    store = sample_model(depth=2, beam_width=20)
    ngram = small_ngram(order=2, vocabulary=store.vocabulary)
    mixture = interpolate([ngram, store], [0.5, 0.5]).with_search(beam_width=3)
    assert mixture.info.beam == 3
    with pytest.raises(UsageError, match=r"no search with beam_width.*: hhmm"):
        ngram.with_search(beam_width=3)
    with pytest.raises(UsageError, match="stack_size"):
        mixture.with_search(stack_size=3)
