"""A profile as a TOML file, with notes in comments."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Sequence

from treelm.characters import visible
from treelm.tasks.new_language.notes import Note
from treelm.trees.profile import Profile

_WIDTH = 110
_BARE_KEY = re.compile(r"^[A-Za-z0-9_-]+$")


def profile_text(profile: Profile, notes: Iterable[Note]) -> str:
    """Return a profile as `load_profile` reads it, each part below the notes on it.

    Args:
        profile: The profile.
        notes: The evidence; that of which someone should look at is marked CHECK.
    """
    by_key: dict[str, list[Note]] = {}
    for note in notes:
        by_key.setdefault(note.key, []).append(note)
    content = profile.model_dump(mode="json", by_alias=True)
    lines = [
        "# Proposed by treelm new-language. CHECK marks what the treebank leaves open; what "
        "each entry",
        "# means: docs/formats/profile.md.",
        "",
        f"name = {_value(content.pop('name'))}",
        f"description = {_value(content.pop('description'))}",
    ]
    for key in ("script", "words with spaces"):
        lines += _comments(by_key.get(key, ()))
    for section, entries in content.items():
        tables = {key: value for key, value in entries.items() if isinstance(value, dict)}
        lines += ["", f"[{section}]"]
        for key, value in entries.items():
            lines += _comments(by_key.get(f"{section}.{key}", ()))
            if key not in tables and value is not None:
                lines.append(f"{key} = {_value(value)}")
        for key, table in tables.items():
            if table:
                lines += ["", f"[{section}.{key}]"]
                for name, value in table.items():
                    lines += _comments(by_key.get(f"{section}.{key}.{name}", ()))
                    lines.append(f"{_key(name)} = {_value(value)}")
    return "\n".join(lines) + "\n"


def _comments(notes: Sequence[Note]) -> list[str]:
    lines = []
    for note in notes:
        text = visible(note.evidence) if note.sure else f"CHECK: {visible(note.evidence)}"
        lines += textwrap.wrap(
            text, _WIDTH, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False
        )
    return lines


def _key(name: str) -> str:
    return name if _BARE_KEY.match(name) else _string(name)


def _string(text: str) -> str:
    # JSON and TOML escape in the same way, but for DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: object, indent: str = "") -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if each is not None}
        if isinstance(kept.get("steps"), list) and len(kept["steps"]) > 1:
            steps = "".join(f"{indent}  {_value(step, indent + '  ')},\n" for step in kept["steps"])
            return f"{{ default = {_value(kept['default'])}, steps = [\n{steps}{indent}] }}"
        inside = ", ".join(f"{_key(key)} = {_value(each, indent)}" for key, each in kept.items())
        return f"{{ {inside} }}" if inside else "{}"
    assert isinstance(value, list)
    items = [_value(each, indent) for each in value]
    short = f"[{', '.join(items)}]"
    if len(short) + len(indent) <= _WIDTH:
        return short
    inner = indent + "  "
    rows = textwrap.wrap(", ".join(items), _WIDTH, break_long_words=False, break_on_hyphens=False)
    return "[\n" + "".join(f"{inner}{row}\n" for row in rows) + f"{indent}]"
