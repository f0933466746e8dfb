"""What people ask most often, in one call each: a model or its folder, and sentences.

A sentence is a string that is split at white space, or a sequence of words; `treelm.tokenize` makes
such sentences of raw text. Several sentences are any iterable of these, a `TextCorpus`, or the path
of a file with one sentence per line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, overload

from treelm.corpus.corpus import SentenceInDocument, TextCorpus
from treelm.corpus.files import Source
from treelm.corpus.words import Words, sentences_of
from treelm.errors import UsageError
from treelm.models.interface.model import LanguageModel, Task
from treelm.models.interface.partial_parses import PartialParses
from treelm.models.interface.raw_text import shared_tokenizing
from treelm.models.interface.scores import WordScore
from treelm.models.mixture.model import InterpolatedModel, InterpolatedSentences
from treelm.models.mixture.model import interpolate as mix
from treelm.models.mixture.train import fit_interpolation
from treelm.models.registry import load
from treelm.tasks.partial_parses import partial_parser
from treelm.tasks.surprisal.stimuli import measure_stimuli, read_stimuli, stimuli_of_frame
from treelm.tasks.surprisal.surprisal import surprisal_rows
from treelm.trees.tree import Tree

#: A model, or the folder it was saved in.
ModelSource = LanguageModel | Source
#: Sentences; a path is that of a file with one sentence per line.
Sentences = Iterable[Words] | os.PathLike[str]

#: Sentences that are parsed at once.
_PARSED_AT_ONCE = 512


def loaded(model: ModelSource) -> LanguageModel:
    """Return a model, loaded if a folder is given."""
    return model if isinstance(model, LanguageModel) else load(model)


@overload
def parse(  # type: ignore[overload-overlap]  # a string is a sentence, not an iterable of them
    model: ModelSource, sentences: str, *, threads: int = 1
) -> Tree | None: ...
@overload
def parse(model: ModelSource, sentences: Sentences, *, threads: int = 1) -> list[Tree | None]: ...
def parse(
    model: ModelSource, sentences: str | Sentences, *, threads: int = 1
) -> Tree | list[Tree | None] | None:
    """Return the best tree of a sentence, or of each of several sentences.

    `LanguageModel.parse` gives several trees of a sentence, and their scores.

    Args:
        model: A model that parses, or its folder.
        sentences: One sentence as a string, or several sentences.
        threads: Kernel threads; results do not depend on it.

    Returns:
        A tree for a string, otherwise a list of trees; None for a sentence without words. A
        sentence for which the grammar has no tree gets a flat one.

    Raises:
        UnsupportedTask: if the model does not parse.

    Examples:
        >>> import treelm
        >>> from treelm.corpus.sample_treebank import sample_path
        >>> model = treelm.train("pcfg", treelm.TreeCorpus((sample_path(),)))
        >>> print(treelm.parse(model, "The old ferry left ."))
        (ROOT (S (NP (DT The) (JJ old) (NN ferry)) (VP (VBN left)) (. .)))
    """
    parser = loaded(model)
    parser.require(Task.PARSE)
    if isinstance(sentences, str):
        return parse(parser, [sentences], threads=threads)[0]
    batch = [each.words for each in _in_documents(sentences, parser)]
    found: list[Tree | None] = []
    for first in range(0, len(batch), _PARSED_AT_ONCE):
        some = parser.parse_many(batch[first : first + _PARSED_AT_ONCE], threads=threads)
        found.extend(None if each is None else each.tree for each in some)
    return found


@overload
def surprisal(  # type: ignore[overload-overlap]  # a string is a sentence, as in `parse`
    model: ModelSource, sentences: str, *, eos: bool = False, threads: int = 1
) -> list[WordScore]: ...
@overload
def surprisal(
    model: ModelSource, sentences: Sentences, *, eos: bool = False, threads: int = 1
) -> list[list[WordScore]]: ...
def surprisal(
    model: ModelSource, sentences: str | Sentences, *, eos: bool = False, threads: int = 1
) -> list[WordScore] | list[list[WordScore]]:
    """Return the surprisal of every word of a sentence, or of each of several sentences.

    Args:
        model: A model that goes word by word, or its folder.
        sentences: One sentence as a string, or several sentences. Files and a `TextCorpus` are read
            in documents, which some models remember; other sentences stand alone.
        eos: Whether a last entry ``</s>`` stands for the end of each sentence.
        threads: Kernel threads; results do not depend on it.

    Returns:
        A list for a string, otherwise a list of lists. Each entry has the attributes ``word``,
        ``surprisal`` in bits, ``log_prob`` (natural) and ``oov``.

    Raises:
        UnsupportedTask: ``E_NOT_INCREMENTAL`` if the model scores whole sentences only.

    Examples:
        >>> import treelm
        >>> from treelm.corpus.sample_treebank import sample_path
        >>> model = treelm.train("pcfg", treelm.TreeCorpus((sample_path(),)))
        >>> for each in treelm.surprisal(model, "The ferry left ."):
        ...     print(f"{each.word:6} {each.surprisal:5.2f}")
        The     4.62
        ferry   6.83
        left    7.73
        .       4.90
    """
    if isinstance(sentences, str):
        return surprisal(model, [sentences], eos=eos, threads=threads)[0]
    own = loaded(model)
    rows = surprisal_rows(own, _in_documents(sentences, own), eos=eos, threads=threads)
    return [[WordScore(row.word, row.log_prob, row.oov) for row in sentence] for sentence in rows]


def partial_parses(model: ModelSource, sentence: Words, k: int = 5) -> PartialParses:
    """Return what a parser holds possible after each word of a sentence: the k best partial trees.

    Each has a probability given the words so far, and says whether it survives: a garden path is
    where the tree that wins in the end is not the first, or not even among those shown.

    Args:
        model: A model that parses word by word, a mixture with one, or its folder.
        sentence: A sentence; a string is taken as the model takes it, raw if it has a tokenizer.
        k: Most trees after each word.

    Returns:
        ``steps``, one for each word, with the best ``trees``, and the trees of the ``whole``
        sentence. In a notebook it shows itself, with a slider over the words.

    Raises:
        UnsupportedTask: if the model does not give partial trees.
        TooLongSentence: ``E_TOO_LONG``.

    Examples:
        >>> import treelm
        >>> from treelm.corpus.sample_treebank import sample_path
        >>> model = treelm.train("hhmm", treelm.TreeCorpus((sample_path(),)))
        >>> parses = treelm.partial_parses(model, "The old ferry left .", k=2)
        >>> for tree in parses.steps[1].trees:
        ...     print(f"{tree.probability:.3f} {tree.tree}")
        0.962 (ROOT (… (NP (DT The) (… (JJ old)))))
        0.037 (ROOT (… (NP (DT The) (JJ old))))
    """
    own = loaded(model)
    [words] = sentences_of(own.taken([sentence]))
    return partial_parser(own).partial_parses(words, k)


def surprisal_table(
    models: ModelSource | Mapping[str, ModelSource],
    stimuli: Any,
    *,
    measures: str | Sequence[str] = (),
    sentence: str | Sequence[str] = (),
    document: str | Sequence[str] = (),
    tokenizing: bool | None = None,
    threads: int = 1,
) -> Any:
    """Return a table of stimuli as a data frame of polars, with columns of models added.

    It is what ``treelm surprisal --stimuli`` writes; `to_pandas` of the result makes a data frame
    of pandas.

    Args:
        models: A model or its folder, or several by the names that their columns get.
        stimuli: A file (tab-separated, .csv or .parquet) or a data frame of polars or pandas, with
            a column ``word`` and those that tell sentences apart, or with a column ``sentence`` of
            whole sentences.
        measures: Measures of a parser: ``"all"``, or names such as ``["entropy", "depth"]``.
        sentence: Columns whose values tell sentences apart; see `read_stimuli`.
        document: Columns whose values tell documents apart, which models with topics remember from
            sentence to sentence; without them every sentence stands alone.
        tokenizing: Whether words are raw text; by default if all models have a tokenizer.
        threads: Kernel threads; results do not depend on it.

    Raises:
        MissingExtra: without polars, which the extra ``frames`` brings.
        CorpusFormatError: ``E_STIMULI`` for what is no table of stimuli.
        UsageError: if a column would be there twice.

    Examples:
        >>> import treelm
        >>> text = [["rain", "fell"], ["it", "rained"]]
        >>> model = treelm.train("ngram", text, order=1, smoothing="kn")
        >>> import polars
        >>> frame = polars.DataFrame({"item": [1], "sentence": ["it rained"]})
        >>> treelm.surprisal_table(model, frame)["word"].to_list()
        ['it', 'rained']
    """
    several = isinstance(models, Mapping)
    named = models if isinstance(models, Mapping) else {"": models}
    own = {name: loaded(model) for name, model in named.items()}
    raw = tokenizing
    if raw is None:
        raw = all(model.tokenizer is not None for model in own.values())
    is_file = isinstance(stimuli, str | os.PathLike)
    read = read_stimuli if is_file else stimuli_of_frame
    table = read(stimuli, _names(sentence), tokenizing=raw)
    table = replace(table, tokenize=shared_tokenizing(own.values()))
    if document:
        table = table.in_documents(_names(document))
    plain = {name: model.with_tokenizer(None) for name, model in own.items()}
    found = measure_stimuli(
        plain if several else plain[""], table, measures=_names(measures), threads=threads
    )
    return found.to_frame()


def _names(given: str | Sequence[str]) -> Sequence[str]:
    """Return names of which one may be given alone."""
    return (given,) if isinstance(given, str) else given


def interpolate(
    models: Sequence[ModelSource],
    weights: Sequence[float] | None = None,
    held_out: Sentences | str | None = None,
    *,
    threads: int = 1,
) -> InterpolatedModel | InterpolatedSentences:
    """Return the mixture of models: word by word if all of them go word by word.

    Args:
        models: Models that know the same words, or their folders.
        weights: One for each, adding up to 1; without weights and held-out text all are equal.
        held_out: Text on which the weights are found: a file with one sentence per line, or
            sentences, none of which a model was trained on.
        threads: Kernel threads; results do not depend on it.

    Raises:
        UsageError: if both weights and held-out text are given; ``E_WEIGHTS`` for weights that do
            not fit.
        VocabularyError: ``E_VOCABULARY_MISMATCH`` if the models know different words.
    """
    parts = [loaded(model) for model in models]
    if held_out is None:
        equal = [1.0 / len(parts)] * len(parts) if parts else []
        return mix(parts, equal if weights is None else weights)
    if weights is not None:
        raise UsageError("weights are either given or found on held-out text: give one of the two.")
    text = TextCorpus((held_out,)) if isinstance(held_out, (str, os.PathLike)) else held_out
    fit = fit_interpolation(parts, text, threads=threads)
    return mix(parts, fit.weights, log_likelihood=fit.log_likelihoods[-1])


def _in_documents(sentences: Sentences, model: LanguageModel) -> Iterator[SentenceInDocument]:
    """Yield sentences with their documents; those that are not read from files stand alone.

    Strings are taken as the model takes them: raw if it has a tokenizer.
    """
    text = TextCorpus((sentences,)) if isinstance(sentences, os.PathLike) else sentences
    if isinstance(text, TextCorpus):
        yield from text.with_documents()
        return
    for number, words in enumerate(sentences_of(model.taken(text))):
        yield SentenceInDocument(number, words)
