"""The state of an incremental parser after each word of a sentence."""

from __future__ import annotations

from treelm.corpus.words import Words, words_of
from treelm.errors import UnsupportedTask
from treelm.models.interface.model import LanguageModel
from treelm.models.interface.scores import bits
from treelm.models.interface.states import State
from treelm.tasks.surprisal.measures import parsing_part
from treelm.view.parser_states import ParserState


def parser_states(model: LanguageModel, sentence: Words, *, count: int = 3) -> list[ParserState]:
    """Return the most probable stacks after each word.

    Args:
        model: An incremental parser, or a mixture with one.
        sentence: The words.
        count: How many stacks.

    Raises:
        UnsupportedTask: if the model does not parse word by word.
    """
    parser = parsing_part(model)
    if parser is None:
        raise UnsupportedTask(
            f"{model.system} models do not parse word by word, so they have no parser states to "
            "show. Use an hhmm model."
        )
    state: State = parser.initial()
    found = []
    for word in words_of(sentence):
        log_prob, state = parser.advance(state, word)
        stacks = tuple((str(s), s.weight) for s in parser.stacks(state, count))
        found.append(ParserState(word, bits(log_prob), stacks))
    return found
