"""The contents of a recipe's module.

A module defines ``Config`` (settings with their reasons), ``QUICK`` (a smaller problem on the same
code path), ``HEADLINE`` (measurements for the terminal; ``SHOWN``, where there is one, says which
of several ways), ``measure``, ``draw``, and ``CLAIMS``; ``EXAMPLES``, where there is one, says
which stored examples a report shows (`attnscope.report.examples`), and ``TRAINS = False`` that it
trains nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

from attnscope.claims.verdicts import Predicate
from attnscope.claims.wording import plain_setting
from attnscope.errors import UsageError
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.registry import Entry, argument_of
from attnscope.runs.result import Record, Result
from attnscope.runs.spec import Settings
from attnscope.runs.unit import UnitFolder
from attnscope.training.registry import read_unit

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


def read_logged(workspace: Path, result: Result) -> list[Logged]:
    """Read configuration and log of a result's units."""
    folders = [UnitFolder(workspace / "units" / name, workspace) for name in result.units]
    return [
        Logged(folder.config, read_unit(folder.config).source.dataset, folder.log)
        for folder in folders
    ]


def command_of(result: Result, module: RecipeModule | None) -> str:
    """Return the command that gives a result: the recipe and the settings that are not defaults.

    Of a recipe that this version does not know, or knows with other settings, the name alone.
    """
    quick = result.scale == "quick"
    try:
        smaller = dict(module.QUICK) if module is not None and quick else {}
        defaults = {} if module is None else module.Config(**smaller).model_dump(mode="json")
    except ValueError:
        defaults = {}
    given = {
        key: value
        for key, value in result.config.items()
        if defaults and (key not in defaults or value != defaults[key])
    }
    settings = [f"{key}={plain_setting(value)}" for key, value in given.items()]
    options = ["--quick"] if quick else []
    if result.variant and not _HASHED.fullmatch(result.variant):
        options += ["--name", result.variant]
    return " ".join(["attnscope run", argument_of(result.recipe), *settings, *options])


# Variants that follow from the settings, as `attnscope.running.naming` makes them.
_HASHED = re.compile(r"[0-9a-f]{6}|quick|quick-[0-9a-f]{6}")
