"""Language models as the decoder's kernel reads them."""

from __future__ import annotations

from treelm import _native
from treelm.kernel_errors import kernel_errors
from treelm.models.interface.model import LanguageModel, Task

_MEBIBYTE = 1 << 20
#: Memory of a composite model's states within a sentence, unless more are in use.
_STATE_BYTES = 256 * _MEBIBYTE


def search_model(phrases: _native.PhraseTable, model: LanguageModel) -> _native.SearchModel:
    """Return what a decoder asks about words.

    N-gram models, HHMMs, composite models whose topics do not move, and mixtures of these are read
    by the kernel itself. Any other incremental model is asked in batches through `advance_many`.
    Unknown words are their symbols: a decoder that spelled them would leave them out.

    Args:
        phrases: The phrases, whose words are looked up once.
        model: The model.

    Raises:
        UnsupportedTask: if it does not go word by word.
    """
    model.require(Task.DECODE)
    model = model.closed
    with kernel_errors("preparing a language model"):
        own = _kernel_model(phrases, model)
        if own is not None:
            return own
        incremental = model.incremental
        assert incremental is not None  # what the task demands
        return _native.python_search_model(phrases, incremental)


def _kernel_model(phrases: _native.PhraseTable, model: LanguageModel) -> _native.SearchModel | None:
    """Return a model that the kernel reads itself, or None if it cannot."""
    from treelm.models.composite.model import CompositeModel
    from treelm.models.hhmm.model import HhmmModel
    from treelm.models.mixture.model import InterpolatedModel
    from treelm.models.ngram.model import NgramModel

    if type(model) is NgramModel:
        return _native.ngram_search_model(
            phrases,
            model.table.native,
            model.vocabulary.encoder,
            start=model.word_ids.start,
            end=model.word_ids.end,
            oov_log_prob=model.config.oov_log_prob,
        )
    if type(model) is HhmmModel and not model.reads_spelling:
        config = model.config
        key, best = config.recombination
        return _native.hhmm_search_model(
            phrases,
            model.tables.grammar,
            model.vocabulary.encoder,
            beam=config.beam_width or 0,
            ratio=config.beam_ratio,
            epsilon=config.robust_epsilon,
            single=config.precision == "fast",
            key=key,
            best=best,
            state_bytes=config.cache_mebibytes * _MEBIBYTE,
        )
    if type(model) is CompositeModel and model.has_fixed_states:
        return _native.slm_search_model(
            phrases,
            model.parts.search,
            model.vocabulary.encoder,
            unigrams=model.unigram_log_probs,
            topics=model.first_topics[0],
            shares=model.first_topics[1],
            state_bytes=_STATE_BYTES,
        )
    if type(model) is InterpolatedModel:
        counting = [pair for pair in zip(model.parts, model.weights, strict=True) if pair[1] > 0]
        parts = [_kernel_model(phrases, part) for part, _ in counting]
        own = [part for part in parts if part is not None]
        if len(own) == len(parts):
            return _native.mixture_search_model(own, [weight for _, weight in counting])
    return None
