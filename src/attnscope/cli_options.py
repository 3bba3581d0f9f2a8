"""Options that several verbs share."""

from __future__ import annotations

from typing import Annotated

import typer


def import_modules(names: list[str] | None) -> list[str] | None:
    """Import what ``--import`` names."""
    if names:
        from attnscope.recipes.registry import add

        for name in names:
            add(name)
    return names


Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Import = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        help="A module or Python file of your own that defines kinds or a recipe; repeatable.",
        callback=import_modules,
    ),
]
