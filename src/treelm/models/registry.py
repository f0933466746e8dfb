"""Systems by name: loaded from a folder or trained, without knowing their classes.

An entry of `SYSTEMS`, or one of another package under the entry point ``treelm.systems``, is all
that `treelm.train`, the command line, its help and the contract tests need to know of a system.
Nothing of a system is imported before it is used.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, overload

from treelm.characters import visible
from treelm.errors import ModelFileError, UsageError, option

if TYPE_CHECKING:
    from treelm.corpus.brackets import ReadOptions
    from treelm.corpus.corpus import TextCorpus, TreeCorpus
    from treelm.corpus.sentence_filter import SentenceFilter
    from treelm.models.inputs import Input
    from treelm.models.interface.config import Config
    from treelm.models.interface.model import LanguageModel
    from treelm.models.run import Run
    from treelm.store.folder import ModelFolder

OwnModel = TypeVar("OwnModel", bound="LanguageModel")

#: How the name of a folder of transformers begins.
NEURAL = "hf:"
#: Where other packages name systems of theirs.
ENTRY_POINT = "treelm.systems"


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A kind of model.

    Args:
        name: Its name, with underscores; on the command line with hyphens.
        model: ``module:Class`` of its models.
        train: ``module:function`` that trains one.
        config: ``module:Class`` of its options.
        summary: What it is, in one sentence.
        example: Arguments of ``treelm train NAME`` for a first try, without the output.
        takes_memory: Whether training honours a memory limit.
        is_resumable: Whether an interrupted training can be resumed.
        is_stored: Whether model folders carry its name; if not, its models are those of another
            system, trained in a way of its own.
        has_rounds: Whether the record of a training lists its rounds.
        takes_workers: Whether training can be done by many workers.
        takes_shards: Whether workers can add up its counts in shards.
    """

    name: str
    model: str
    train: str
    config: str
    summary: str
    example: str
    takes_memory: bool = False
    is_resumable: bool = False
    is_stored: bool = True
    has_rounds: bool = False
    takes_workers: bool = False
    takes_shards: bool = False

    @property
    def model_class(self) -> type[LanguageModel]:
        """The class of its models."""
        found: type[LanguageModel] = _resolved(self.model)
        return found

    @property
    def trainer(self) -> Callable[..., LanguageModel]:
        """What trains a model: ``trainer(data, config, *, run, ...)``."""
        found: Callable[..., LanguageModel] = _resolved(self.train)
        return found

    @property
    def config_class(self) -> type[Config]:
        """The class of its options."""
        found: type[Config] = _resolved(self.config)
        return found

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What it is trained on, the main thing first."""
        from treelm.models.inputs import inputs_of

        return inputs_of(self.trainer)

    def make_config(self, options: Mapping[str, object], others: Iterable[str] = ()) -> Config:
        """Return checked options.

        Args:
            options: Options by name; those left out have their defaults.
            others: What else could have been given in the same place, for the error.

        Raises:
            UsageError: naming the option that does not exist or has an impossible value.
        """
        from treelm.models.interface.config import make_config

        return make_config(self.config_class, options, self.name, others)


SYSTEMS: dict[str, System] = {
    system.name: system
    for system in (
        System(
            name="ngram",
            model="treelm.models.ngram.model:NgramModel",
            train="treelm.models.ngram.train:train_ngram",
            config="treelm.models.ngram.config:NgramConfig",
            summary="Train an n-gram model.",
            example="--order 3 --text train.txt",
            takes_memory=True,
        ),
        System(
            name="pcfg",
            model="treelm.models.pcfg.model:PcfgModel",
            train="treelm.models.pcfg.train:train_pcfg",
            config="treelm.models.pcfg.config:PcfgConfig",
            summary="Read a grammar off a treebank.",
            example="--trees train.mrg",
        ),
        System(
            name="pcfg_la",
            model="treelm.models.pcfg_la.model:PcfgLaModel",
            train="treelm.models.pcfg_la.train:train_pcfg_la",
            config="treelm.models.pcfg_la.config:PcfgLaConfig",
            summary="Learn the subcategories of a treebank grammar by splitting and merging.",
            example="--trees train.mrg --cycles 5 --seed 1",
            is_resumable=True,
            takes_workers=True,
        ),
        System(
            name="hhmm",
            model="treelm.models.hhmm.model:HhmmModel",
            train="treelm.models.hhmm.train:train_hhmm",
            config="treelm.models.hhmm.config:HhmmConfig",
            summary="Train an HHMM: an incremental right-corner parser as a language model.",
            example="--trees train.mrg --depth 4",
        ),
        System(
            name="slm",
            model="treelm.models.composite.model:CompositeModel",
            train="treelm.models.composite.train:train_composite",
            config="treelm.models.composite.config:SlmConfig",
            summary="Train a structured language model (Chelba and Jelinek 2000).",
            example="--trees train.mrg --held-out dev.mrg",
            is_resumable=True,
            is_stored=False,
            has_rounds=True,
            takes_workers=True,
            takes_shards=True,
        ),
        System(
            name="composite",
            model="treelm.models.composite.model:CompositeModel",
            train="treelm.models.composite.train:train_composite",
            config="treelm.models.composite.config:CompositeConfig",
            summary="Train a composite n-gram, structured and topic model (Tan et al. 2011).",
            example="--trees train.mrg --held-out dev.mrg --order 3 --heads 2 --topics 200",
            is_resumable=True,
            has_rounds=True,
            takes_workers=True,
            takes_shards=True,
        ),
        System(
            name="plsa",
            model="treelm.models.plsa.model:PlsaModel",
            train="treelm.models.plsa.train:train_plsa",
            config="treelm.models.plsa.config:PlsaConfig",
            summary="Train a topic model (PLSA), or with --order 2 and more an n-gram/PLSA model.",
            example="--text train.txt --topics 200 --order 3",
            is_resumable=True,
            takes_workers=True,
        ),
        System(
            name="treelet",
            model="treelm.models.treelet.model:TreeletModel",
            train="treelm.models.treelet.train:train_treelet",
            config="treelm.models.treelet.config:TreeletConfig",
            summary="Train a treelet model (Pauls and Klein 2012).",
            example="--trees train.mrg --parser grammar",
            takes_memory=True,
        ),
        System(
            name="headlex",
            model="treelm.models.headlex.model:HeadlexModel",
            train="treelm.models.headlex.train:train_headlex",
            config="treelm.models.headlex.config:HeadlexConfig",
            summary="Train a head-lexicalised model, after Collins's first.",
            example="--trees train.mrg",
            takes_memory=True,
        ),
        System(
            name="lsvm",
            model="treelm.models.lsvm.model:LatentSvmModel",
            train="treelm.models.lsvm.train:train_lsvm",
            config="treelm.models.lsvm.config:LatentSvmConfig",
            summary="Train a latent SVM over hidden trees (Cherry and Quirk 2008).",
            example="--good a.txt --bad b.txt --dev-good c.txt --dev-bad d.txt --trees train.mrg",
            is_resumable=True,
            takes_workers=True,
        ),
        System(
            name="trigram_svm",
            model="treelm.models.trigram_svm.model:TrigramSvmModel",
            train="treelm.models.trigram_svm.train:train_trigram_svm",
            config="treelm.models.trigram_svm.config:TrigramSvmConfig",
            summary="Train an SVM over the words, pairs and triples of a sentence.",
            example="--good a.txt --bad b.txt",
        ),
        System(
            name="tree_features",
            model="treelm.models.tree_features.model:TreeFeaturesModel",
            train="treelm.models.tree_features.train:train_tree_features",
            config="treelm.models.tree_features.config:TreeFeaturesConfig",
            summary="Train a classifier by features of one parse of each sentence.",
            example="--features rerank --parser parser --good a.txt --bad b.txt",
        ),
        System(
            name="tree_ranker",
            model="treelm.models.tree_ranker.model:TreeRankerModel",
            train="treelm.models.tree_ranker.train:train_tree_ranker",
            config="treelm.models.tree_ranker.config:TreeRankerConfig",
            summary="Train a ranker that chooses among the best trees of a parser.",
            is_resumable=True,
            example="--trees train.mrg --parser grammar",
        ),
        System(
            name="interpolated",
            model="treelm.models.mixture.model:InterpolatedModel",
            train="treelm.models.mixture.train:train_interpolated",
            config="treelm.models.mixture.config:MixtureOptions",
            summary="Mix models word by word, or sentence by sentence where one needs whole "
            "sentences; the weights are found on held-out text.",
            example="--models a b --held-out dev.txt",
        ),
        System(
            name="interpolated_sentences",
            model="treelm.models.mixture.model:InterpolatedSentences",
            train="treelm.models.mixture.train:train_interpolated_sentences",
            config="treelm.models.mixture.config:MixtureOptions",
            summary="Mix models sentence by sentence; the weights are found on held-out text.",
            example="--models a b --held-out dev.txt",
        ),
    )
}


def _resolved(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)


def systems() -> Mapping[str, System]:
    """Return all systems by name: our own, and those of other packages that are installed."""
    return {**_installed(), **SYSTEMS}


@functools.cache
def _installed() -> Mapping[str, System]:
    """Return the systems that other packages name."""
    from importlib.metadata import entry_points

    found = {}
    for entry in entry_points(group=ENTRY_POINT):
        try:
            system = entry.load()
        except Exception as error:  # whatever the code of another package raises
            raise UsageError(
                f'the entry point "{entry.name}" of {ENTRY_POINT} ({entry.value}) cannot be loaded '
                f"({error}). Mend or remove the package that has it."
            ) from error
        if not isinstance(system, System):
            raise UsageError(
                f'the entry point "{entry.name}" of {ENTRY_POINT} ({entry.value}) is no '
                "`treelm.models.registry.System`. Mend or remove the package that has it."
            )
        found[system.name] = system
    return found


def find_system(name: str) -> System:
    """Return a system by its name; hyphens and underscores are the same.

    Raises:
        UsageError: if there is no such system.
    """
    plain = name.replace("-", "_")
    known = SYSTEMS if plain in SYSTEMS else systems()
    if plain not in known:
        close = difflib.get_close_matches(plain, known, n=1)
        guess = f' Did you mean "{close[0]}"?' if close else ""
        raise UsageError(f'there is no system "{name}".{guess} Systems: {", ".join(known)}.')
    return known[plain]


@overload
def load(folder: str | os.PathLike[str], *, verify: bool = False) -> LanguageModel: ...
@overload
def load(
    folder: str | os.PathLike[str], kind: type[OwnModel], *, verify: bool = False
) -> OwnModel: ...
def load(
    folder: str | os.PathLike[str],
    kind: type[LanguageModel] | None = None,
    *,
    verify: bool = False,
) -> LanguageModel:
    """Return the model saved in a folder, whatever its system; its tables are mapped, not read.

    Args:
        folder: A model folder; or the name of a ready model of an installed package, such as
            ``en-parser``, if there is no folder of that name; or ``hf:FOLDER`` for a causal
            language model of transformers.
        kind: The class that the model must have, such as ``treelm.NgramModel``, so that type
            checkers know it; by default any.
        verify: Read everything and compare checksums first.

    Raises:
        ModelFileError: if there is no model, or it is damaged; ``E_MODEL_SYSTEM`` if it is of
            another class.
    """
    from treelm.models.ready import model_folder
    from treelm.store.folder import read_folder

    name = os.fspath(folder)
    if name.startswith(NEURAL):
        from treelm.models.neural.model import load_neural

        model: LanguageModel = load_neural(name.removeprefix(NEURAL))
    else:
        model = read_folder(model_folder(folder), from_folder, verify=verify)
    if kind is not None and not isinstance(model, kind):
        raise ModelFileError(
            f"{visible(os.fspath(folder))}: the class of the model is {type(model).__name__}, not "
            f"{kind.__name__}. Load it without naming a class, or name another folder.",
            code="E_MODEL_SYSTEM",
        )
    return model


def names_model(source: str | os.PathLike[str]) -> bool:
    """Return whether `load` is meant to read this, and not some reader of files."""
    name = os.fspath(source)
    return name.startswith(NEURAL) or os.path.isdir(name)  # noqa: PTH112  # pathlib is slow to load


def from_folder(folder: ModelFolder) -> LanguageModel:
    """Return the model in an opened folder; mixtures open their parts with this."""
    return class_of(folder).opened(folder)


def class_of(folder: ModelFolder) -> type[LanguageModel]:
    """Return the class of the model in an opened folder.

    Raises:
        ModelFileError: ``E_MODEL_SYSTEM`` if nobody here knows its system.
    """
    name = folder.manifest.system
    known = SYSTEMS if name in SYSTEMS else systems()
    if name not in known or not known[name].is_stored:
        stored = ", ".join(system.name for system in known.values() if system.is_stored)
        raise ModelFileError(
            f"{visible(str(folder.path))} contains a model of an unknown system, {name!r}. This "
            f"treelm knows: {stored}. A newer treelm, or a package that is not installed, may have "
            "written it.",
            code="E_MODEL_SYSTEM",
        )
    return known[name].model_class


def train(
    system: str,
    data: Any,
    *,
    reading: ReadOptions | None = None,
    tokenizer: str | None = None,
    **options: Any,
) -> LanguageModel:
    """Train a model.

    Args:
        system: Name of the system, such as ``ngram``.
        data: What it is trained on: files, a list of sentences as lists of words, a list of trees,
            or a corpus; for classifiers `LabelledSentences` or a pair of good and bad sentences;
            for mixtures a list of models or of model folders.
        reading: How files of trees are read.
        tokenizer: How raw text becomes words like those that the model is trained on: ``penn`` as
            `treelm.tokenize` does it, for English, ``simple`` for other languages with spaces, or
            ``segment`` for those without. The model then takes strings for raw text. By default
            they are tokenized, and split at white space.
        options: Options of the system, such as ``order=3``; what it is given besides, such as
            ``vocabulary``, ``held_out`` or ``parser``, as files or objects; and how the training is
            run, such as ``threads``, ``memory="4G"`` or ``progress`` (see `Run`).

    Raises:
        UsageError: for an option that the system does not have, or an impossible value.

    Examples:
        >>> model = train("ngram", [["rain", "fell"], ["it", "rained"]], order=1, smoothing="kn")
        >>> [word.word for word in model.surprisal("rain fell")]
        ['rain', 'fell']
    """
    from dataclasses import fields

    from treelm.corpus.brackets import DEFAULT_OPTIONS
    from treelm.models.inputs import as_input
    from treelm.models.run import Run

    found = find_system(system)
    inputs = {wanted.name: wanted for wanted in found.inputs}
    first = next(iter(inputs))
    if first in options:
        raise UsageError(f'{found.name}: "{first}" is what it is trained on, and given already.')
    how = [field.name for field in fields(Run)]
    run = _run_of({name: options.pop(name) for name in how if name in options})
    given = {first: data} | {name: options.pop(name) for name in inputs if name in options}
    config = found.make_config(options, others=[*inputs, *how])
    made = {
        name: as_input(inputs[name], value, reading=reading or DEFAULT_OPTIONS, run=run)
        for name, value in given.items()
    }
    return train_system(found, made, config, run, tokenizer=tokenizer)


def _run_of(given: dict[str, Any]) -> Run:
    """Return how a training is run; sizes and folders may be given as strings."""
    from pathlib import Path

    from treelm.models.run import Run
    from treelm.parallel.memory import MemoryLimit

    if isinstance(given.get("memory"), str):
        given["memory"] = MemoryLimit.parse(given["memory"])
    if isinstance(given.get("checkpoint"), str):
        given["checkpoint"] = Path(given["checkpoint"])
    run = Run(**given)
    if run.threads < 1:
        raise UsageError(f"threads is {run.threads}; at least one is needed.")
    if run.shards is not None and run.shards < 1:
        raise UsageError(f"shards is {run.shards}; at least one is needed.")
    if run.shards is not None and run.checkpoint is None:
        raise UsageError("shards needs a checkpoint folder, which keeps the pieces of a round.")
    if run.resume and run.checkpoint is None:
        raise UsageError("resume needs the checkpoint folder of the interrupted training.")
    return run


def train_system(
    system: System,
    inputs: Mapping[str, Any],
    config: Config,
    run: Run,
    *,
    tokenizer: str | None = None,
    **others: Any,
) -> LanguageModel:
    """Train a model: where `treelm.train` and the command line meet.

    Args:
        system: The system.
        inputs: What it is trained on, by the names of its parameters.
        config: Its options.
        run: How the training is run.
        tokenizer: Name of the tokenizer that the model has for raw text; None for that which all
            models of a mixture share, else for none.
        others: What else its training function is told.

    Raises:
        UsageError: if something that it needs is missing, or there is no such tokenizer.
    """
    if tokenizer is not None:
        from treelm.models.interface.raw_text import check_tokenizer

        check_tokenizer(tokenizer)
    missing = [wanted.name for wanted in system.inputs if wanted.is_required]
    missing = [name for name in missing if inputs.get(name) is None]
    if missing:
        raise UsageError(f"{system.name}: {', '.join(map(option, missing))} must be given.")
    for name, given, ability in (
        ("memory", run.memory is not None, "takes_memory"),
        ("resume", run.resume, "is_resumable"),
        ("checkpoint", run.checkpoint is not None, "is_resumable"),
        ("executor", run.executor.threads is not None, "takes_workers"),
        ("shards", run.shards is not None, "takes_shards"),
    ):
        if given and not getattr(system, ability):
            able = ", ".join(each.name for each in systems().values() if getattr(each, ability))
            raise UsageError(
                f"{system.name}: its training has no option {option(name)}; leave it out. Systems "
                f"that have it: {able}."
            )
    if run.shard_parameters and run.shards is None:
        raise UsageError(
            f"{option('shard_parameters')} holds tables in as many shards as {option('shards')} "
            "says; give both."
        )
    listened_to: Mapping[str, Any] = {}
    learnt_from = inputs
    if getattr(config, "unknown", "symbol") == "spelling":
        _check_text(system, learnt_from)
    elif getattr(config, "spelling_min_count", 1) > 1:
        raise UsageError(
            f"{system.name}: {option('spelling_min_count')} makes a spelling model smaller; there "
            f"is one with {option('unknown')} spelling only."
        )
    if run.sentence_hashes:
        listened_to = _listened_to(system, inputs)
        inputs = {**inputs, **listened_to}
    first, *rest = (wanted.name for wanted in system.inputs)
    keywords = {name: inputs[name] for name in rest if name in inputs}
    model = system.trainer(inputs.get(first), config, run=run, **keywords, **others)
    remembered = _sentences_of(listened_to)
    if remembered is not None:
        model.remember(remembered)
    if getattr(config, "unknown", "symbol") == "spelling":
        model = _spelled(model, system, config, learnt_from, run)
    if run.sentence_hashes:
        _check_tuning_text(model, inputs.get(first), inputs)
    return model if tokenizer is None else model.with_tokenizer(tokenizer)


def _listened_to(system: System, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a model is trained on, without what it is tuned or measured on.

    The sentences of text are hashed while the training reads it.
    """
    from treelm.corpus.corpus import TextCorpus
    from treelm.corpus.sentence_filter import overheard

    names = {system.inputs[0].name, "text", "trees"} & inputs.keys()
    found = {name: inputs[name] for name in names}
    return {
        name: overheard(value) if isinstance(value, TextCorpus) else value
        for name, value in found.items()
    }


def _training_text(system: System, inputs: Mapping[str, Any]) -> list[TextCorpus | TreeCorpus]:
    """Return what a model is trained on, without what it is tuned or measured on."""
    from treelm.models.inputs import corpora_in

    names = dict.fromkeys((system.inputs[0].name, "trees", "text"))
    return corpora_in(inputs[name] for name in names if name in inputs)


def _check_text(system: System, inputs: Mapping[str, Any]) -> None:
    """Refuse to learn spellings from counts, before hours of work."""
    if not _training_text(system, inputs):
        raise UsageError(
            f"{system.name}: {option('unknown')} spelling learns from the training text how "
            "unknown words are spelled, and counts have none. Train the model on the text itself."
        )


def _spelled(
    model: LanguageModel, system: System, config: Config, inputs: Mapping[str, Any], run: Run
) -> LanguageModel:
    """Return the model with a spelling model of the unknown words of its training data.

    It is stored as the other tables of the model are.
    """
    from treelm.models.interface.spelled import with_spelling
    from treelm.models.interface.train_spelling import train_spelling

    spelling = train_spelling(
        model.vocabulary,
        _training_text(system, inputs),
        min_count=getattr(config, "spelling_min_count", 1),
        threads=run.threads,
        progress=run.progress,
    )
    if bits := getattr(config, "bits", None):
        spelling = spelling.quantized(bits, threads=run.threads, progress=run.progress)
    if getattr(config, "layout", "hashed") == "compact":
        spelling = spelling.compacted(progress=run.progress)
    return with_spelling(model, spelling)


def _sentences_of(inputs: Mapping[str, Any]) -> SentenceFilter | None:
    """Return the sentences of all corpora among the inputs of a training."""
    from treelm.corpus.sentence_filter import filter_of_corpora
    from treelm.models.inputs import corpora_in

    return filter_of_corpora(corpora_in(inputs.values()))


def _check_tuning_text(model: LanguageModel, learnt_from: Any, inputs: Mapping[str, Any]) -> None:
    """Warn if a model was tuned on the sentences that it, or a part of it, was trained on."""
    from treelm.corpus.corpus import TreeCorpus, TreeSentences
    from treelm.corpus.files import can_be_read_twice
    from treelm.corpus.labelled import LabelledSentences
    from treelm.corpus.sentence_filter import filter_of_corpora
    from treelm.models.inputs import corpora_in
    from treelm.models.interface.trained_model import corpus_name
    from treelm.models.interface.training_sentences import warn_of_tuning_text

    known = model.training_sentences
    if isinstance(learnt_from, LabelledSentences):  # and not from the trees of its grammar
        labelled = filter_of_corpora(corpora_in([learnt_from]))
        known = () if labelled is None else (labelled,)
    for corpus in corpora_in(inputs.get(name) for name in ("held_out", "tuning")):
        if all(map(can_be_read_twice, corpus.paths)):
            sentences = TreeSentences(corpus) if isinstance(corpus, TreeCorpus) else corpus
            warn_of_tuning_text(known, sentences, corpus_name(corpus))
