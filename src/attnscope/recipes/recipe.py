"""The contents of a recipe's module.

A module defines ``Config`` (settings with their reasons), ``QUICK`` (a smaller problem on the same
code path), ``HEADLINE`` (measurements for the terminal; ``SHOWN``, where there is one, says which
of several ways), ``measure``, ``draw``, and ``CLAIMS``; ``EXAMPLES``, where there is one, says
which stored examples a report shows (`attnscope.report.examples`), and ``TRAINS = False`` that it
trains nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol, cast, runtime_checkable

from attnscope.claims.verdicts import Predicate
from attnscope.errors import UsageError
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.registry import Entry
from attnscope.runs.result import Record, Result
from attnscope.runs.spec import Settings

Charts = Mapping[str, Any]


@runtime_checkable
class RecipeModule(Protocol):
    """A recipe's module."""

    Config: type[Settings]
    QUICK: Mapping[str, Any]
    HEADLINE: Sequence[str]
    CLAIMS: Mapping[str, Predicate]

    def measure(self, config: Any, lab: Lab) -> Sequence[Record]:
        """Train what is needed and measure it."""

    def draw(self, result: Result, units: Sequence[Logged]) -> Charts:
        """Return the figures by name, from the result and the logs alone."""


def module_of(entry: Entry) -> RecipeModule:
    """Import a recipe's module."""
    if sys.flags.optimize > 1:  # Their figures are altair's, which reads docstrings.
        raise UsageError(
            f"{entry.name} cannot be loaded under python -OO, which removes the docstrings that "
            "altair needs; use python or python -O."
        )
    return cast(RecipeModule, import_module(entry.module))
