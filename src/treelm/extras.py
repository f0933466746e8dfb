"""Optional packages: imported when used, with advice when missing."""

from __future__ import annotations

import importlib
from types import ModuleType

from treelm.errors import MissingExtra

#: The extra of treelm that installs each package.
EXTRAS = {
    "scipy": "svm",
    "sklearn": "svm",
    "polars": "frames",
    "nltk": "nltk",
    "eflomal": "align",
    "sacrebleu": "translation",
    "spacy": "spacy",
    "torch": "neural",
    "lm_eval": "harness",
    "transformers": "neural",
    "stanza": "stanza",
    "fastapi": "web",
    "uvicorn": "web",
    "ray": "cluster",
    "fsspec": "cluster",
    "statsmodels": "mixed",
}


def import_extra(module: str, purpose: str) -> ModuleType:
    """Return an optional module, imported now.

    Args:
        module: Its name, for example ``nltk.tree``.
        purpose: What the user wanted, as the start of a sentence: ``"Converting to nltk.Tree"``.

    Raises:
        MissingExtra: if it is not installed; the message contains the pip command.
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise MissingExtra(
            f'{purpose} needs the optional package "{package}", which is not installed. '
            f'Install it with: pip install "treelm[{EXTRAS[package]}]"'
        ) from error
