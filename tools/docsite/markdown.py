"""Small pieces of Markdown that generated pages share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any

Pages = dict[str, str]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; bars and line breaks in a cell are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")


def code(text: object) -> str:
    """Return text as code, also where it has backticks; nothing for an empty one."""
    text = str(text)
    return f"`` {text} ``" if "`" in text else f"`{text}`" if text else ""


def first_sentence(docstring: str | None) -> str:
    """Return the first paragraph of a docstring up to its first full stop, as Markdown."""
    paragraph = (docstring or "").strip().partition("\n\n")[0]
    sentence = re.split(r"(?<=[.:])\s+(?=[A-Z`])", " ".join(paragraph.split()))[0]
    return prose(sentence)


def prose(text: str) -> str:
    """Return a docstring's text as Markdown: its double backticks single, its stars plain."""
    return re.sub(r"``([^`]+)``", r"`\1`", text).replace("*", "\\*").rstrip(":")


def minutes(value: float | None) -> str:
    """Return minutes as people say them."""
    if value is None:
        return "–"
    return f"{value:g} min" if value < 120 else f"{value / 60:.0f} h"


def type_name(field: Any) -> str:
    """Return the type of a pydantic field without the modules of its parts."""
    annotation = field.annotation
    plain = inspect.isclass(annotation) and "[" not in str(annotation)
    text = annotation.__name__ if plain else str(annotation)
    text = re.sub(r"Annotated\[(.+?), \w+\(.*?\)\]", r"\1", text)
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", text).replace("NoneType", "None")
