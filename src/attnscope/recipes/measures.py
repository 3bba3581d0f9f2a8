"""The table of measured names that a recipe's results are checked against."""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files
from typing import Any

from attnscope.runs.measures import Measures, read_measures

_PAPERS = "attnscope.recipes."


@cache
def paper_measures(package: str) -> Measures:
    """Return the names that a paper's recipes measure, from ``measures.csv`` in its package."""
    with as_file(files(package).joinpath("measures.csv")) as path:
        return read_measures(path)


def measures_of(module: Any) -> Measures | None:
    """Return the names that a recipe's module declares, its paper's by default, or None."""
    own: Measures | None = getattr(module, "MEASURES", None)
    package = getattr(module, "__package__", None) or ""
    return paper_measures(package) if own is None and package.startswith(_PAPERS) else own
