"""A causal language model of transformers that goes word by word.

Its tokens are parts of words. A word ends where a token begins the next one, so that what belongs
to a word is the probability of its tokens, times that of a word ending there, divided by that of
one ending before it (Pimentel and Meister 2024, Oh and Schuler 2024). Over a sentence these factors
cancel: its log probability is that of its tokens and the end of the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, NoReturn, Self

import numpy as np
import numpy.typing as npt

from treelm.corpus.encoder import Ids, Places, encode_sentences
from treelm.corpus.lengths import TooLongSentence
from treelm.corpus.vocabulary import Vocabulary
from treelm.corpus.words import Word, Words, sentences_of
from treelm.errors import ModelFileError, UnsupportedTask
from treelm.extras import import_extra
from treelm.models.interface.config import Config
from treelm.models.interface.incremental import IncrementalModel, check_pairs
from treelm.models.interface.model import ModelInfo, Task
from treelm.models.interface.scores import BatchScores
from treelm.models.interface.states import (
    Context,
    State,
    Step,
    Steps,
    check_state_model,
    damaged_state,
    model_fingerprint,
    pack_numbers,
    state_bytes,
    state_payload,
    unpack_numbers,
)
from treelm.models.neural.config import NeuralConfig
from treelm.models.neural.word_pieces import WordPieces
from treelm.store.folder import FolderWriter, ModelFolder
from treelm.store.manifest import Description

#: Texts that the network reads at once.
_AT_ONCE = 16

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NeuralState:
    """The tokens so far, that of the beginning included.

    Args:
        tokens: Their numbers.
        model: The 8 bytes that identify the model.
    """

    tokens: tuple[int, ...]
    model: bytes

    def to_bytes(self) -> bytes:
        """Return the state as bytes."""
        return state_bytes(self.model, pack_numbers(self.tokens))


class _Reading(NamedTuple):
    """What the network says about a text.

    Args:
        tokens: Log probability of each token but the first.
        breaks: After each token, the log probability that a word begins or the text ends.
        ends: After each token, the log probability that the text ends.
    """

    tokens: Numbers
    breaks: Numbers
    ends: Numbers


class NeuralModel(IncrementalModel):
    """A causal language model of transformers.

    Args:
        network: The network, for example ``AutoModelForCausalLM.from_pretrained(...)``.
        tokenizer: Its tokenizer.
        folder: Where they came from.
        vocabulary: Words that count as known; by default those that are one token.
    """

    system: ClassVar[str] = "neural"
    tasks: ClassVar[frozenset[Task]] = frozenset(
        {Task.SCORE, Task.SURPRISAL, Task.PERPLEXITY, Task.DECODE}
    )
    config_class: ClassVar[type[Config]] = NeuralConfig

    def __init__(
        self, network: Any, tokenizer: Any, folder: str = "", vocabulary: Vocabulary | None = None
    ) -> None:
        self._network = network.eval()
        self._tokenizer = tokenizer
        self._torch = import_extra("torch", "A model of transformers")
        self._pieces = WordPieces(tokenizer, network.config.vocab_size)
        self._masks = [
            self._torch.as_tensor(mask, device=network.device)
            for mask in (self._pieces.begins_text, self._pieces.begins_word)
        ]
        self._config = NeuralConfig(folder=folder, architecture=type(network).__name__)
        self._vocabulary = self._pieces.vocabulary() if vocabulary is None else vocabulary
        self._longest = getattr(network.config, "max_position_embeddings", None)

    def with_vocabulary(self, vocabulary: Vocabulary) -> NeuralModel:
        """Return the model with other words that count as known, so that it can be mixed.

        Every word keeps the probability of its spelling, known or not.
        """
        return NeuralModel(self._network, self._tokenizer, self._config.folder, vocabulary)

    @property
    def config(self) -> NeuralConfig:
        """Where it came from."""
        return self._config

    @property
    def vocabulary(self) -> Vocabulary:
        """The words that count as known."""
        return self._vocabulary

    @cached_property
    def info(self) -> ModelInfo:
        """What kind of numbers it gives; it spells more words than its vocabulary has."""
        return ModelInfo(
            exactness="exact", normalized=False, vocabulary=self._vocabulary.fingerprint
        )

    def obstacle(self, task: Task) -> str | None:
        """Return what keeps it from a task; its perplexity is one over words of any spelling."""
        return None if task is Task.PERPLEXITY else super().obstacle(task)

    @cached_property
    def fingerprint(self) -> bytes:
        """8 bytes that identify the model."""
        arrays = {
            name: value.detach().to("cpu", self._torch.float32).numpy()
            for name, value in self._network.state_dict().items()
        }
        return model_fingerprint(
            (self.system, self._config.architecture, self._vocabulary.fingerprint), arrays
        )

    def __repr__(self) -> str:
        return f"NeuralModel({self._config.architecture}, {self._config.folder!r})"

    def details(self) -> dict[str, object]:
        """Return what tells it from others."""
        size = sum(value.numel() for value in self._network.parameters())
        return {"architecture": self._config.architecture, "parameters": size}

    # -- word by word -----------------------------------------------------------------------

    @property
    def reads_spelling(self) -> bool:
        """True: unknown words are spelled."""
        return True

    @property
    def open_vocabulary(self) -> bool:
        """True: every word has a probability of its own."""
        return True

    def initial(self, context: Context | None = None) -> NeuralState:
        """Return the state before any word; documents make no difference."""
        del context
        return NeuralState((self._pieces.start,), self.fingerprint)

    def advance(self, state: State, word: Word) -> Step:
        """Return the natural log probability of a word in a state, and the state after it."""
        steps = self.advance_many([state], [word])
        return Step(float(steps.log_probs[0]), steps.states[0])

    def advance_many(self, states: Sequence[State], words: Sequence[Word]) -> Steps:
        """Return what `advance` gives for each pair, all of them read together."""
        own = [self._own(state) for state in states]
        pairs = zip(own, check_pairs(states, words), strict=True)
        after = [
            NeuralState(
                state.tokens + self._pieces.word(self._spelling(word), first=_is_first(state)),
                self.fingerprint,
            )
            for state, word in pairs
        ]
        self.count("advances", len(after))
        readings = self._read([state.tokens for state in after])
        log_probs = [
            _word_score(found, len(before.tokens) - 1, len(found.breaks) - 1)
            for found, before in zip(readings, own, strict=True)
        ]
        return Steps(np.array(log_probs, dtype=np.float64), list(after))

    def finish(self, state: State) -> float:
        """Return the natural log probability that the sentence ends in this state."""
        (found,) = self._read([self._own(state).tokens])
        return float(found.ends[-1] - found.breaks[-1])

    def state_from_bytes(self, data: bytes) -> NeuralState:
        """Return the state whose `to_bytes` gave these bytes."""
        tokens = unpack_numbers(state_payload(data, self.fingerprint))
        known = range(len(self._pieces.begins_word))
        if not tokens or tokens[0] != self._pieces.start or any(t not in known for t in tokens):
            raise damaged_state()
        return NeuralState(tuple(tokens), self.fingerprint)

    def _own(self, state: State) -> NeuralState:
        check_state_model(state.model, self.fingerprint)
        if not isinstance(state, NeuralState):
            raise TypeError(f"a state of a neural model is needed, not {type(state).__name__}")
        return state

    def _spelling(self, word: Word) -> str:
        if isinstance(word, str):
            return word
        return self._vocabulary.symbols[self.word_ids.word(word, first=False)]

    # -- sentences --------------------------------------------------------------------------

    def score_batch(self, sentences: Sequence[Words], *, threads: int = 1) -> BatchScores:
        """Return the log probability of every word and end of sentences, in flat arrays."""
        del threads
        given = list(sentences_of(sentences))
        text = encode_sentences(given, self._vocabulary)
        texts: list[tuple[int, ...]] = []
        ends: list[list[int]] = []
        for words in given:
            tokens = [self._pieces.start]
            places = [0]
            for place, word in enumerate(words):
                tokens += self._pieces.word(word, first=not place)
                places.append(len(tokens) - 1)
            texts.append(tuple(tokens))
            ends.append(places)
        log_probs: list[float] = []
        for found, places in zip(self._read(texts), ends, strict=True):
            log_probs += [_word_score(found, first, last) for first, last in pairwise(places)]
            log_probs.append(float(found.ends[-1] - found.breaks[-1]))
        return self.batch_scores(np.array(log_probs, np.float64), text.ids, text.starts)

    def score_ids(self, ids: Ids, starts: Places, *, threads: int = 1) -> BatchScores:
        """Return the log probability of sentences given as ids; unknown words are ``<unk>``."""
        symbols = self._vocabulary.symbols
        return self.score_batch(
            [
                [symbols[id_] for id_ in ids[first:last].tolist()]
                for first, last in pairwise(starts.tolist())
            ],
            threads=threads,
        )

    def _read(self, texts: Sequence[tuple[int, ...]]) -> list[_Reading]:
        """Return what the network says about texts of tokens, those of like length together."""
        found: list[_Reading | None] = [None] * len(texts)
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        for place in order[-1:]:
            if self._longest is not None and len(texts[place]) > self._longest:
                raise TooLongSentence(
                    place,
                    len(texts[place]) - 1,
                    f"as tokens it is longer than the {self._longest} that the model reads.",
                )
        for first in range(0, len(order), _AT_ONCE):
            some = order[first : first + _AT_ONCE]
            for place, reading in zip(
                some, self._read_together([texts[p] for p in some]), strict=True
            ):
                found[place] = reading
        return [each for each in found if each is not None]

    def _read_together(self, texts: Sequence[tuple[int, ...]]) -> list[_Reading]:
        torch = self._torch
        width = max(map(len, texts))
        device = self._network.device
        tokens = torch.full((len(texts), width), self._pieces.end, device=device)
        mask = torch.zeros((len(texts), width), dtype=torch.long, device=device)
        for row, text in enumerate(texts):
            tokens[row, : len(text)] = torch.as_tensor(text, device=device)
            mask[row, : len(text)] = 1
        with torch.inference_mode():
            logits = self._network(input_ids=tokens, attention_mask=mask).logits
            scores = logits.float().log_softmax(-1)
            following = scores[:, :-1].gather(-1, tokens[:, 1:, None])[..., 0]
            ends = scores[..., self._pieces.end]
            none = scores.new_full((), -torch.inf)
            breaks = torch.where(self._masks[1], scores, none).logsumexp(-1)
            breaks[:, 0] = torch.where(self._masks[0], scores[:, 0], none).logsumexp(-1)
        arrays = [each.double().cpu().numpy() for each in (following, breaks, ends)]
        return [
            _Reading(
                arrays[0][row, : len(text) - 1],
                arrays[1][row, : len(text)],
                arrays[2][row, : len(text)],
            )
            for row, text in enumerate(texts)
        ]

    # -- files: they are those of transformers ------------------------------------------------

    def description(self) -> Description:
        """Refuse to be saved: its files are those of transformers."""
        self._refuse_to_be_saved()

    def write_files(self, writer: FolderWriter) -> None:
        """Refuse to be saved: its files are those of transformers."""
        del writer
        self._refuse_to_be_saved()

    def _refuse_to_be_saved(self) -> NoReturn:
        raise UnsupportedTask(
            "a model of transformers is saved by its own `save_pretrained`, and loaded by "
            '`treelm.load("hf:FOLDER")`; mixtures with one cannot be saved.'
        )

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Self:
        """Refuse a model folder: there are none of this system."""
        raise ModelFileError(
            f'{folder.path} cannot contain a model of transformers; load it as "hf:FOLDER".',
            code="E_MODEL_SYSTEM",
        )


def _is_first(state: NeuralState) -> bool:
    return len(state.tokens) == 1


def _word_score(found: _Reading, first: int, last: int) -> float:
    """Return the log probability of the word of the tokens after place `first`, up to `last`."""
    spelled = found.tokens[first:last].sum()
    return float(spelled + found.breaks[last] - found.breaks[first])


def load_neural(folder: str) -> NeuralModel:
    """Return the model that transformers saved in a folder; nothing is downloaded or run from it.

    Args:
        folder: What `save_pretrained` of model and tokenizer wrote: weights as safetensors.

    Raises:
        ModelFileError: if there is none.
        MissingExtra: if transformers or torch is not installed.
    """
    transformers = import_extra("transformers", "Reading a model of transformers")
    import_extra("torch", "Reading a model of transformers")
    if not Path(folder).is_dir():
        raise ModelFileError(
            f'there is no folder "{folder}". hf: reads folders of transformers that are here '
            "already: download the model first, for example with `hf download NAME`."
        )
    options = {"local_files_only": True, "trust_remote_code": False}
    bars = transformers.utils.logging
    had_bars = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
        network = transformers.AutoModelForCausalLM.from_pretrained(
            folder, use_safetensors=True, **options
        )
    except (OSError, ValueError, KeyError) as error:
        raise ModelFileError(
            f"{folder}: transformers cannot read a causal language model here ({error})."
        ) from error
    finally:
        if had_bars:
            bars.enable_progress_bar()
    return NeuralModel(network, tokenizer, folder)
