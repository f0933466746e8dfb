"""Sentences of a million words: answered in linear time, or refused before any work."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path

import pytest
from tests.command_line import SANITIZED, assert_refused, processor_time_below, treelm
from tests.every_system import TRAININGS

from treelm.corpus.lengths import TooLongSentence
from treelm.errors import CorpusFormatError
from treelm.grammar.parser_options import ParserOptions
from treelm.grammar.scored_tree import ParseStatus
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.registry import load
from treelm.tasks.evaluate.measured_text import text_of_lines
from treelm.tasks.evaluate.slr import score_text
from treelm.tasks.score import score_lines

pytestmark = pytest.mark.skipif(
    SANITIZED, reason="a million words take minutes under a sanitizer; shorter ones do as well"
)
MILLION = 1_000_000
#: Systems whose time grows faster than the words, or much faster than reading: words they take.
LIMITED = {
    "pcfg": 400,
    "pcfg_la": 400,
    "hhmm": 10_000,
    "slm": 1000,
    "composite": 1000,
    "lsvm": 400,
    "tree_ranker": 400,
    "interpolated": 10_000,
}
#: Systems that look at every word once, whatever the length.
LINEAR = sorted(set(TRAININGS) - set(LIMITED))


#: Processor time in which a million words are answered.
SECONDS = 60


@pytest.fixture(scope="session")
def share(request: pytest.FixtureRequest) -> int:
    """The part of a million words that is answered, and of the time: all only in a campaign."""
    return 1 if request.config.getoption("--campaign") else 5


def words_of_text(models: Path, count: int) -> list[str]:
    """Return words of a text, over and over."""
    text = (models / "train.txt").read_text("utf-8").split()
    return list(islice(cycle(text), count))


def ask(model: LanguageModel, words: list[str]) -> object:
    """Return what a model says about a sentence."""
    return model.classify(words) if model.can(Task.CLASSIFY) else model.score(words)


@pytest.mark.parametrize("system", LIMITED)
def test_a_million_words_are_refused_at_once(system: str, models: Path) -> None:
    model = load(models / system)
    assert model.max_words == LIMITED[system]
    words = words_of_text(models, MILLION)
    with processor_time_below(10), pytest.raises(TooLongSentence) as caught:
        ask(model, words)
    error = caught.value
    assert (error.code, error.words, error.place) == ("E_TOO_LONG", MILLION, 0)
    assert f"at most {LIMITED[system]}" in str(error)
    assert f"`model.with_max_words({MILLION})`" in str(error)


@pytest.mark.parametrize("system", LIMITED)
def test_the_limit_can_be_moved(system: str, models: Path) -> None:
    model = load(models / system)
    words = words_of_text(models, 12)
    assert ask(model.with_max_words(12), words) == ask(model, words)
    with pytest.raises(TooLongSentence, match="at most 11"):
        ask(model.with_max_words(11), words)
    assert model.max_words == LIMITED[system], "the model itself is as before"


@pytest.mark.parametrize("system", LINEAR)
def test_a_million_words_are_answered_in_linear_time(system: str, models: Path, share: int) -> None:
    model = load(models / system)
    assert model.max_words is None
    parses = system == "tree_features"  # as fast as a parser, and not faster
    words = words_of_text(models, MILLION // share // (20 if parses else 1))
    with processor_time_below(SECONDS / share):
        ask(model, words)


READERS: dict[str, Callable[[LanguageModel, list[str]], object]] = {
    "score_many": lambda model, lines: list(model.score_many(lines)),
    "sentence_log_probs": lambda model, lines: model.sentence_log_probs(lines),
    "perplexity": lambda model, lines: model.perplexity(lines),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("system", ["pcfg", "hhmm", "slm", "composite", "interpolated"])
def test_the_sentence_is_named_among_many(system: str, reader: str, models: Path) -> None:
    model = load(models / system).with_max_words(9)
    lines = ["the boat is here ."] * 5000 + ["the " * 10] + ["the boat ."] * 9
    with pytest.raises(TooLongSentence) as caught:
        READERS[reader](model, lines)
    assert (caught.value.place, caught.value.words) == (5000, 10)


@pytest.mark.parametrize("system", ["lsvm", "pcfg_la"])
def test_tables_of_scores_name_the_line(system: str, models: Path) -> None:
    model = load(models / system).with_max_words(9)
    lines = ["the boat is here .", "", "the " * 10]
    with pytest.raises(CorpusFormatError) as caught:
        score_text(model, text_of_lines(lines, "text.txt"))
    assert (caught.value.code, caught.value.path, caught.value.line) == (
        "E_TOO_LONG",
        "text.txt",
        3,
    )
    with pytest.raises(CorpusFormatError, match=r"^text.txt:3: this sentence has 10 words"):
        list(score_lines(model, lines, source="text.txt"))


COMMANDS = {
    "score": ("score -m pcfg_la FILE", "pcfg_la model reads at most 400"),
    "score --pruning": ("score -m pcfg --pruning fast FILE", "pcfg model reads at most 400"),
    "score --floor": ("score -m pcfg --floor 0.1 FILE", "pcfg model reads at most 400"),
    "score --format": ("score -m slm --format tsv FILE", "at most 1000"),
    "surprisal": ("surprisal -m hhmm FILE", "hhmm model reads at most 10000"),
    "classify": ("classify -m lsvm FILE", "lsvm model reads at most 400"),
    "parse": ("parse -m pcfg --long refuse FILE", "at most 200 are parsed together"),
    "parse hhmm": ("parse -m hhmm --long refuse FILE", "at most 1000 are parsed together"),
    "perplexity": ("evaluate perplexity -m hhmm FILE", "hhmm model reads at most 10000"),
    "perplexity of sentences": ("evaluate perplexity -m pcfg_la FILE", "at most 400"),
    "perplexity of a mixture": ("evaluate perplexity -m interpolated FILE", "at most 10000"),
    "pairs": ("evaluate pairs -m composite FILE FILE", "at most 1000"),
    "compare": ("compare pcfg pcfg_la FILE", "at most 400"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_refuse_at_once_with_the_line(command: str, models: Path, tmp_path: Path) -> None:
    line, limit = COMMANDS[command]
    text = tmp_path / "long.txt"
    text.write_text("the boat is here .\n\n" + "the boat " * (MILLION // 2) + "\n", "utf-8")
    arguments = line.replace("FILE", str(text)).split()
    done = treelm(*arguments, cwd=models, processor_seconds=20)
    assert_refused(done, 3, f"{text}:3: this sentence has {MILLION} words")
    assert limit in done.stderr.decode()
    assert f"--max-words {MILLION}" in done.stderr.decode()


@pytest.mark.parametrize("word", [None, "boat"])
def test_parsing_takes_linear_time_with_and_without_punctuation(
    word: str | None, models: Path, share: int
) -> None:
    model = load(models / "pcfg")
    count = 20_000 // share
    words = words_of_text(models, count) if word is None else [word] * count
    with processor_time_below(SECONDS / share):
        (split,) = model.parse_many([words])
    assert split is not None
    assert split.status == ParseStatus.SPLIT
    assert split.tree.words == tuple(words)


def test_a_million_words_get_a_flat_tree(models: Path, share: int) -> None:
    words = words_of_text(models, MILLION // share)
    with processor_time_below(SECONDS / share):
        (flat,) = load(models / "pcfg").parse_many([words], options=ParserOptions(long="flat"))
    assert flat is not None
    assert (flat.status, len(flat.tree.children)) == (ParseStatus.TOO_LONG, len(words))
