"""Systems by name: loaded from a folder, or trained, without knowing their classes."""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
from pathlib import Path
from typing import Any

from treelm.corpus.corpus import TextCorpus, TreeCorpus
from treelm.errors import ModelFileError, UsageError
from treelm.models.interface.model import LanguageModel
from treelm.store.folder import ModelFolder, open_folder

#: Name of a system -> where its class is; imported when it is used.
SYSTEMS = {
    "ngram": "treelm.models.ngram.model:NgramModel",
    "pcfg": "treelm.models.pcfg.model:PcfgModel",
    "pcfg_la": "treelm.models.pcfg_la.model:PcfgLaModel",
    "hhmm": "treelm.models.hhmm.model:HhmmModel",
    "composite": "treelm.models.composite.model:CompositeModel",
    "treelet": "treelm.models.treelet.model:TreeletModel",
    "headlex": "treelm.models.headlex.model:HeadlexModel",
    "plsa": "treelm.models.plsa.model:PlsaModel",
    "lsvm": "treelm.models.lsvm.model:LatentSvmModel",
    "trigram_svm": "treelm.models.trigram_svm.model:TrigramSvmModel",
    "tree_features": "treelm.models.tree_features.model:TreeFeaturesModel",
    "interpolated": "treelm.models.mixture.model:InterpolatedModel",
    "interpolated_sentences": "treelm.models.mixture.model:InterpolatedSentences",
}


def system_class(name: str) -> type[LanguageModel]:
    """Return the class of a system; hyphens and underscores are the same.

    Raises:
        UsageError: if there is no such system.
    """
    path = SYSTEMS.get(name.replace("-", "_"))
    if path is None:
        close = difflib.get_close_matches(name, SYSTEMS, n=1)
        guess = f' Did you mean "{close[0]}"?' if close else ""
        raise UsageError(f'there is no system "{name}".{guess} Systems: {", ".join(SYSTEMS)}.')
    module, _, attribute = path.partition(":")
    found: type[LanguageModel] = getattr(importlib.import_module(module), attribute)
    return found


def load(folder: str | os.PathLike[str], *, verify: bool = False) -> LanguageModel:
    """Return the model saved in a folder, whatever its system; its tables are mapped, not read.

    Args:
        folder: A model folder.
        verify: Read everything and compare checksums first.

    Raises:
        ModelFileError: if there is no model, or it is damaged.
    """
    return from_folder(open_folder(Path(folder), verify=verify))


def from_folder(folder: ModelFolder) -> LanguageModel:
    """Return the model in an opened folder; mixtures open their parts with this."""
    name = folder.manifest.system
    if name not in SYSTEMS:
        raise ModelFileError(
            f"{folder.path} holds a model of the system {name!r}, which this treelm does not know. "
            f"It knows: {', '.join(SYSTEMS)}. A newer treelm may have written it.",
            code="E_MODEL_SYSTEM",
        )
    return system_class(name).from_folder(folder)


def train(system: str, corpus: TextCorpus | TreeCorpus, **options: Any) -> LanguageModel:
    """Train a model.

    Args:
        system: Name of the system, such as ``ngram``.
        corpus: What it is trained on.
        options: Options of the system, such as ``order=3``, and what its `train` takes besides,
            such as ``vocabulary`` and ``threads``.

    Raises:
        UsageError: for an option that the system does not have, or an impossible value.
    """
    kind = system_class(system)
    taken = {
        name
        for name, parameter in inspect.signature(kind.train).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    config = {name: value for name, value in options.items() if name not in taken}
    besides = {name: value for name, value in options.items() if name in taken}
    return kind.train(corpus, kind.make_config(config), **besides)
