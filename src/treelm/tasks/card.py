"""The card of a model, as model hubs show it: what it is, what it was made from, how it is used."""

from __future__ import annotations

import json
from collections.abc import Mapping

from treelm.characters import visible
from treelm.corpus.files import Source, read_lines, source_name
from treelm.errors import CorpusFormatError
from treelm.models.interface.model import LanguageModel
from treelm.version import __version__

_USE = """\
```python
import treelm

model = treelm.load("{name}")
{call}
```
"""


def model_card(
    model: LanguageModel,
    name: str,
    *,
    language: str | None = None,
    license: str | None = None,  # noqa: A002
    scores: Mapping[str, object] | None = None,
) -> str:
    """Return a model card in Markdown; what is before it, between lines of dashes, is for the hub.

    Args:
        model: The model.
        name: What it is called.
        language: Code of the language of its words, such as ``en``.
        license: Name of the licence under which it is passed on, such as ``cc-by-4.0``.
        scores: What it was measured with, by name.
    """
    head: dict[str, object] = {"library_name": "treelm", "tags": ["treelm", model.system]}
    if language is not None:
        head["language"] = language
    if license is not None:
        head["license"] = license
    if scores:
        head["scores"] = dict(scores)
    tasks = [str(task.value) for task in model.abilities]
    example = "The boat was late ." if model.tokenizer is None else "The boat was late."
    if language not in (None, "en"):
        example = "..."  # a sentence of that language
    wanted = [name for name in ("surprisal", "parse", "classify", "score") if name in tasks]
    call = f'model.{wanted[0]}("{example}")' if wanted else "model.summary()"
    lines = [
        "---",
        # Every line of JSON is one of YAML, so that no name is read as something else.
        *(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in head.items()),
        "---",
        "",
        f"# {visible(name)}",
        "",
        f"A {model.system} model of [treelm](https://github.com/treelm/treelm), a package of "
        f"syntactic language models. It can: {', '.join(tasks)}.",
        "",
        _USE.format(name=visible(name), call=call),
        "## Numbers",
        "",
        *_table(model.summary()),
        "",
        "It takes raw text, one sentence at a time."
        if model.tokenizer
        else "It takes tokenized text, with spaces between the words.",
        f"Scores are {model.info.exactness}; probabilities "
        f"{'add up to 1' if model.info.normalized else 'need not add up to 1'}.",
        *(f"{note}" for note in model.notes()),
        "",
        *(["## Measured", "", *_table(scores), ""] if scores else []),
        "## Training data",
        "",
        *_corpora(model),
        "",
        "## Options",
        "",
        *_table(model.config.model_dump(mode="json")),
        "",
        f"Written by `treelm card`, version {__version__}.",
    ]
    return "\n".join(lines) + "\n"


def read_scores(source: Source) -> Mapping[str, object]:
    """Return the measurements in a JSON file.

    Raises:
        CorpusFormatError: if it is not an object of numbers and texts.
    """
    text = "\n".join(read_lines(source))
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorpusFormatError(
            f"{source_name(source)}: not JSON ({error}). "
            'Measurements are an object such as {"F1 on gum": 83.3}.',
            code="E_FORMAT",
        ) from error
    if not isinstance(found, dict) or not all(
        isinstance(value, str | int | float) for value in found.values()
    ):
        raise CorpusFormatError(
            f"{source_name(source)}: measurements are one object of numbers or texts by name, "
            'such as {"F1 on gum": 83.3}.',
            code="E_FORMAT",
        )
    return found


def _table(values: Mapping[str, object]) -> list[str]:
    rows = [f"| {name} | {_cell(value)} |" for name, value in values.items() if value is not None]
    return ["| name | value |", "|---|---|", *rows]


def _cell(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return visible(text).replace("|", "\\|")


def _corpora(model: LanguageModel) -> list[str]:
    if not model.corpora:
        return ["Nothing is known about it: the model was read from a file of another program."]
    rows = [
        f"| {_cell(each.name)} | {each.sentences} | {each.tokens} | `{each.sha256[:12]}` |"
        for each in model.corpora
    ]
    return ["| corpus | sentences | words | sha256 |", "|---|---|---|---|", *rows]
