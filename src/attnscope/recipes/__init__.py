"""Recipes: which units, what is measured on them, which figure. One file per table or figure.

Each paper's package lists its recipes as a plain table, so that listing them imports no torch.
"""

from __future__ import annotations

from attnscope.errors import UsageError, suggestion
from attnscope.recipes.aitken import RECIPES as AITKEN
from attnscope.recipes.entry import Entry
from attnscope.recipes.snell import RECIPES as SNELL
from attnscope.recipes.sunlu import RECIPES as SUNLU
from attnscope.recipes.tutek import RECIPES as TUTEK


def entries() -> tuple[Entry, ...]:
    """Return all recipes."""
    return (*SNELL, *SUNLU, *TUTEK, *AITKEN)


def find(name: str) -> Entry:
    """Return a recipe by its name, or say which one may have been meant."""
    by_name = {entry.name: entry for entry in entries()}
    if name not in by_name:
        raise UsageError(f"No recipe {name!r}; {suggestion(name, by_name)}")
    return by_name[name]
