"""Models of treelm in the lm-evaluation-harness: ``--model treelm --model_args path=FOLDER``.

The harness knows the models that it brings along; ``python -m treelm.interop.harness`` is its
program with ours among them. Texts are tokenized as ours are: into sentences, and these into words.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from treelm.corpus.sentences import drop_invisible, split_sentences
from treelm.corpus.tokenize import detokenize, tokenize_words
from treelm.extras import import_extra
from treelm.models.interface.scores import exact_sums

if TYPE_CHECKING:
    from treelm.models.interface.model import LanguageModel

_PURPOSE = "The evaluation harness"
#: Longest text that is generated where nothing says how long, in words.
_LONGEST = 256


class Continuation(NamedTuple):
    """The part of a sentence that is scored.

    Args:
        context: Tokens of the sentence that are given.
        words: Tokens that are scored.
        has_end: Whether the end of the sentence is scored too.
    """

    context: tuple[str, ...]
    words: tuple[str, ...]
    has_end: bool


def continuations(context: str, continuation: str) -> Iterator[Continuation]:
    """Yield what is scored of each sentence of a text.

    Sentences end where another follows; the last one ends too if there is no context, since whole
    sentences are compared then. A word that begins in the context and ends after it is scored.

    Args:
        context: What is given.
        continuation: What follows it, a space at its beginning included.

    Examples:
        >>> list(continuations("He left. The", " boat didn't."))
        [Continuation(context=('The',), words=('boat', 'did', "n't", '.'), has_end=False)]
        >>> [(each.words, each.has_end) for each in continuations("", " He left.")]
        [(('He', 'left', '.'), True)]
    """
    given = _letters(context)
    sentences = split_sentences(context + continuation)
    seen = 0
    for number, sentence in enumerate(sentences, 1):
        found = tokenize_words(sentence)
        first = 0
        for word, end in zip(found.words, found.ends, strict=True):
            seen += _letters(word)
            if seen <= given:
                first = end
        is_last = number == len(sentences)
        if seen > given:
            has_end = not is_last or not context.strip()
            yield Continuation(found.tokens[:first], found.tokens[first:], has_end)


def _letters(text: str) -> int:
    return sum(not character.isspace() for character in drop_invisible(text))


class HarnessScorer:
    """Answers the three questions of the harness.

    Args:
        model: Any model that scores; what is given before a continuation needs one that goes word
            by word.
        threads: Kernel threads.
    """

    def __init__(self, model: LanguageModel, *, threads: int = 1) -> None:
        self._model = model
        self._threads = threads

    def loglikelihood(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[float, bool]]:
        """Return log probability of continuations, and whether each is what comes first to mind.

        That is looked at where there is a context; a whole text never is.

        Raises:
            UnsupportedTask: ``E_NOT_INCREMENTAL`` for a context, if the model scores whole
                sentences only.
        """
        asked = [list(continuations(*pair)) for pair in pairs]
        whole = [
            each.words for group in asked for each in group if each.has_end and not each.context
        ]
        sums = iter(self._sentences(whole).tolist())
        found = []
        for (context, _), group in zip(pairs, asked, strict=True):
            total = 0.0
            for each in group:
                if each.has_end and not each.context:
                    total += next(sums)
                else:
                    total += self._model.continuation(
                        each.words, each.context, eos=each.has_end
                    ).log_prob
            found.append((total, bool(context.strip()) and self._is_greedy(group)))
        return found

    def rolling(self, texts: Sequence[str]) -> list[float]:
        """Return the log probabilities of whole texts."""
        return [total for total, _ in self.loglikelihood([("", text) for text in texts])]

    def generate(self, context: str, until: Sequence[str], most: int = _LONGEST) -> str:
        """Return the words that are most probable one after the other.

        Args:
            context: What is given.
            until: What ends the text, besides the end of the sentence.
            most: Words at most.
        """
        sentences = split_sentences(context)
        given = tokenize_words(sentences[-1]).tokens if sentences else ()
        words: list[str] = []
        while len(words) < most:
            (best,) = self._model.top(1, (*given, *words))
            if best.word == "</s>":
                break
            words.append(best.word)
            text = detokenize(words)
            places = [text.find(stop) for stop in until if stop and stop in text]
            if places:
                return text[: min(places)]
        return detokenize(words)

    def _sentences(self, sentences: Sequence[tuple[str, ...]]) -> Any:
        """Return log probabilities that tie where those of `treelm evaluate pairs` do."""
        if not sentences:
            return np.zeros(0)
        own = self._model.incremental
        if own is None:
            return self._model.sentence_log_probs(sentences, threads=self._threads)
        found = own.score_batch(sentences, threads=self._threads)
        return exact_sums(found.log_probs, found.starts)

    def _is_greedy(self, group: Sequence[Continuation]) -> bool:
        """Return whether every scored word is the most probable one in its place."""
        for each in group:
            for place, word in enumerate(each.words):
                (best,) = self._model.top(1, (*each.context, *each.words[:place]))
                if best.word != word:
                    return False
            if each.has_end and self._model.top(1, (*each.context, *each.words))[0].word != "</s>":
                return False
        return True


@functools.cache
def harness_class() -> Any:
    """Return the class of the harness's models that are ours, and register it as ``treelm``.

    Raises:
        MissingExtra: if the harness is not installed.
    """
    # What the harness brings along is registered first, or it would not be there at all.
    import_extra("lm_eval.models", _PURPOSE)
    api = import_extra("lm_eval.api.model", _PURPOSE)
    registry = import_extra("lm_eval.api.registry", _PURPOSE)

    class TreelmHarnessModel(api.LM):  # type: ignore[name-defined, misc]
        """A model folder of treelm.

        Args:
            path: Model folder.
            threads: Kernel threads.
        """

        def __init__(self, path: str, threads: int | str = 1, **unused: object) -> None:
            from treelm.models.registry import load

            del unused  # batch sizes and devices, which are for networks
            super().__init__()
            self._scorer = HarnessScorer(load(path), threads=int(threads))

        def loglikelihood(self, requests: Sequence[Any], **_: object) -> list[tuple[float, bool]]:
            return self._scorer.loglikelihood([each.args for each in requests])

        def loglikelihood_rolling(self, requests: Sequence[Any], **_: object) -> list[float]:
            return self._scorer.rolling([each.args[0] for each in requests])

        def generate_until(self, requests: Sequence[Any], **_: object) -> list[str]:
            found = []
            for each in requests:
                context, options = each.args
                until = options.get("until") or []
                stops = [until] if isinstance(until, str) else until
                most = int(options.get("max_gen_toks", _LONGEST))
                found.append(self._scorer.generate(context, stops, most))
            return found

    return registry.register_model("treelm")(TreelmHarnessModel)


def main() -> None:
    """Run the program of the harness with models of treelm among its own."""
    harness_class()
    import_extra("lm_eval.__main__", _PURPOSE).cli_evaluate()


if __name__ == "__main__":
    main()
