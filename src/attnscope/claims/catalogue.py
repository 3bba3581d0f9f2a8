"""The papers' claims in words, one entry each: the statement, its place, and what decides it.

The list is data (``catalogue.csv``), so that reading it imports no recipe; how a claim is decided
is written next to the recipe that measures it (`attnscope.claims.table`).
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
        Which numbers decide it, and how, as fixed before any run.
    recipes
        The recipes that measure them, for example ``snell/table5``.
    options
        ``key=value`` pairs that the recipes are run with.
    words, because
        The paper's own words as a second reading, which then gives the verdict, and the reason for
        it; empty where the rule above is the only one.
    listed
        Whether it is one of the papers' claims; a user's own is not.
    """

    id: str
    paper: str
    where: str
    statement: str
    decided_by: str
    recipes: tuple[str, ...]
    options: tuple[str, ...]
    words: str = ""
    because: str = ""
    listed: bool = True


@cache
def catalogue() -> tuple[CatalogueEntry, ...]:
    """Return every claim, paper by paper."""
    with files("attnscope.claims").joinpath("catalogue.csv").open(encoding="utf-8") as lines:
        return tuple(_entry(row) for row in csv.DictReader(lines))


def _entry(row: dict[str, str]) -> CatalogueEntry:
    lists = {name: tuple(filter(None, row.pop(name).split(";"))) for name in ("recipes", "options")}
    return CatalogueEntry(**row, **lists)  # type: ignore[arg-type]
