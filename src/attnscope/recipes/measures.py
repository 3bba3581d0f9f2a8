"""The table of measured names that a recipe's results are checked against."""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files
from typing import Any

from attnscope.runs.measures import Measures, read_measures


def measures_of(recipe: str, module: Any = None) -> Measures | None:
    """Return the names that a recipe may measure, or None if any may.

    Parameters
    ----------
    recipe
        Its name; the paper's table is ``measures.csv`` in the paper's package.
    module
        Its module, whose own ``MEASURES`` come first.
    """
    own: Measures | None = getattr(module, "MEASURES", None)
    return own if own is not None else paper_measures(recipe.partition("/")[0])


@cache
def paper_measures(paper: str) -> Measures | None:
    """Return the names that a paper's recipes measure, or None for another name."""
    table = files("attnscope.recipes").joinpath(paper, "measures.csv")
    if not table.is_file():
        return None
    with as_file(table) as path:
        return read_measures(path)
