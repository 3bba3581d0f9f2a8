"""The claims of the four papers, one entry each: what is claimed, where, and what decides it.

The list is data (``catalogue.csv``); the predicates stand beside the recipes that feed them.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class CatalogueEntry:
    """One claim.

    Attributes
    ----------
    id
        ``paper.name``, for example ``snell.uniform-probe``.
    paper
        ``snell``, ``sunlu``, ``tutek`` or ``aitken``.
    where
        Tables, figures and sections of the paper.
    statement
        What is claimed, in our words.
    decided_by
        Which numbers decide it, and how.
    recipes
        The recipes that measure them, for example ``snell/table5``.
    options
        ``key=value`` pairs that the recipes are run with.
    """

    id: str
    paper: str
    where: str
    statement: str
    decided_by: str
    recipes: tuple[str, ...]
    options: tuple[str, ...]


@cache
def catalogue() -> tuple[CatalogueEntry, ...]:
    """Return every claim, paper by paper."""
    with files("attnscope.claims").joinpath("catalogue.csv").open(encoding="utf-8") as lines:
        return tuple(_entry(row) for row in csv.DictReader(lines))


def _entry(row: dict[str, str]) -> CatalogueEntry:
    recipes, options = _list(row.pop("recipes")), _list(row.pop("options"))
    return CatalogueEntry(**row, recipes=recipes, options=options)


def _list(cell: str) -> tuple[str, ...]:
    return tuple(cell.split(";")) if cell else ()
