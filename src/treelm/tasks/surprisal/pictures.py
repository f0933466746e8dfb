"""Pictures of surprisal, made while the table is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from treelm.corpus.files import write_atomically
from treelm.errors import UsageError, option
from treelm.models.interface.model import LanguageModel
from treelm.tasks.surprisal.measures import parsing_part
from treelm.tasks.surprisal.parser_states import parser_states
from treelm.tasks.surprisal.rows import SentenceRows, SurprisalRow
from treelm.view.axes import can_be_drawn
from treelm.view.parser_states import draw_parser_states_svg, draw_parser_states_text
from treelm.view.picture_files import (
    check_picture,
    check_picture_or_text,
    is_picture,
    picture_content,
)
from treelm.view.surprisal_chart import WordBar, draw_surprisal
from treelm.view.svg import stack_svg

#: Number of sentences drawn.
MOST_DRAWN = 20


class ParserStateDrawings:
    """Draws the parser state after each word.

    Args:
        model: An incremental parser, or a mixture with one.
        path: File to write, a picture if it ends with ``.svg`` or ``.html``.
        count: How many stacks after each word.
    """

    def __init__(self, model: LanguageModel, path: Path, count: int) -> None:
        if count < 1:
            raise UsageError(f"{option('best')} must be 1 or more.")
        check_picture_or_text(path)
        if parsing_part(model) is None:
            parser_states(model, ())
        self._model, self._path, self._count = model, path, count

    def write(self, sentences: Iterable[tuple[str, ...]]) -> None:
        """Write the drawings of some sentences."""
        found = [
            (words, parser_states(self._model, words, count=self._count)) for words in sentences
        ]
        if is_picture(self._path):
            title = f"Parser states after each word ({self._model.system} model)"
            drawn = [
                draw_parser_states_svg(each, title=f"Parser states: {' '.join(words)}")
                for words, each in found
            ]
            svg = stack_svg(drawn, title=title) if drawn else ""
            content = picture_content(self._path, svg, title)
        else:
            texts = (draw_parser_states_text(each) for _, each in found)
            content = ("\n\n".join(texts) + "\n").encode()
        with write_atomically(self._path) as out:
            out.write(content)


class SurprisalPlot:
    """Keeps the first sentences that pass by, and draws them at the end.

    Args:
        model: The model.
        path: File of the bars, or None.
        drawings: Drawings of parser states, or None.
    """

    def __init__(
        self, model: LanguageModel, path: Path | None, drawings: ParserStateDrawings | None
    ) -> None:
        if path is not None:
            check_picture(path)
        self._system, self._path, self._drawings = model.system, path, drawings
        self._kept: list[SentenceRows] = []

    def watch(self, sentences: Iterable[SentenceRows]) -> Iterator[SentenceRows]:
        """Yield the rows as they come."""
        wanted = self._path is not None or self._drawings is not None
        for rows in sentences:
            if wanted and len(self._kept) < MOST_DRAWN:
                self._kept.append(rows)
            yield rows

    def write(self) -> None:
        """Write the requested pictures."""
        kept = [[row for row in rows if row.word != "</s>"] for rows in self._kept if rows]
        if self._path is not None:
            # One scale for all sentences: equal heights are equal values.
            finite = [row.surprisal for rows in self._kept for row in rows]
            highest = max(filter(can_be_drawn, finite), default=1.0)
            pictures = [_picture(rows, self._system, highest) for rows in self._kept if rows]
            title = f"Surprisal of each word in bits ({self._system} model)"
            svg = stack_svg(pictures, title=title) if pictures else ""
            with write_atomically(self._path) as out:
                out.write(picture_content(self._path, svg, title))
        if self._drawings is not None:
            self._drawings.write(tuple(row.word for row in rows) for rows in kept)


def _picture(rows: Sequence[SurprisalRow], system: str, highest: float) -> str:
    bars = [WordBar(row.word, row.surprisal, is_unknown=bool(row.oov)) for row in rows]
    title = f"Surprisal ({system}): {' '.join(row.word for row in rows)}"
    return draw_surprisal([(system, bars)], title=title, highest=highest)
