"""Options that several verbs share."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from attnscope.errors import UsageError


def import_modules(names: list[str] | None) -> list[str] | None:
    """Import what ``--import`` names."""
    if names:
        from attnscope.recipes.registry import add

        for name in names:
            add(name)
    return names


def read_settings_of(texts: list[str] | None) -> dict[str, Any]:
    """Return ``key=value`` arguments as settings."""
    return dict(_setting(text) for text in texts or [])


def _setting(text: str) -> tuple[str, Any]:
    key, sign, value = text.partition("=")
    if not sign:
        raise UsageError(f"{text!r} is not a setting; write key=value, for example seeds=5.")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Import = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        help="A module or Python file of your own that defines kinds or a recipe; repeatable.",
        callback=import_modules,
    ),
]
