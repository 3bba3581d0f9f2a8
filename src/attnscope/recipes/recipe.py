"""What a recipe's module offers, and the laboratory that it works in.

A module defines ``Config`` (settings with their reasons), ``QUICK`` (a smaller problem on the same
code path), ``HEADLINE`` (measurements for the terminal; ``SHOWN``, where there is one, says which
of several ways), ``measure``, ``draw``, and ``CLAIMS``; ``EXAMPLES``, where there is one, names the
stored examples that a report shows (`attnscope.recipes.showing`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, cast, runtime_checkable

from attnscope.claims.pool import Decision, Pool
from attnscope.recipes.entry import Entry
from attnscope.runs.result import Measurement, Result
from attnscope.runs.spec import Settings
from attnscope.runs.unit import UnitFolder
from attnscope.training.engine.workers import Workers
from attnscope.training.progress import Progress, Silent
from attnscope.training.registry import read_unit
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Unit


@dataclass
class Lab:
    """Where a recipe trains: processes of a workspace, on a device."""

    workers: Workers
    device: Literal["cpu", "cuda"] = "cpu"
    progress: Progress = field(default_factory=Silent)
    used: dict[str, None] = field(default_factory=dict)

    def train(self, units: Sequence[Unit], title: str) -> list[TrainedUnit]:
        """Train units on the lab's device, or reuse them; they are listed in the result."""
        placed = [unit.model_copy(update={"device": self.device}) for unit in units]
        trained = self.workers.train(placed, self.progress, title)
        self.used.update(dict.fromkeys(unit.folder.name for unit in trained))
        return trained


@dataclass(frozen=True)
class Logged:
    """What figures may use of a unit: its configuration, its data set's name, and its log."""

    config: Mapping[str, Any]
    dataset: str
    rows: Sequence[Mapping[str, Any]]


Charts = Mapping[str, Any]
Predicate = Callable[[Pool], Decision]


@runtime_checkable
class RecipeModule(Protocol):
    """A recipe's module."""

    Config: type[Settings]
    QUICK: Mapping[str, Any]
    HEADLINE: Sequence[str]
    CLAIMS: Mapping[str, Predicate]

    def measure(self, config: Any, lab: Lab) -> list[Measurement]:
        """Train what is needed and measure it."""

    def draw(self, result: Result, units: Sequence[Logged]) -> Charts:
        """Return the figures by name, from the result and the logs alone."""


def module_of(entry: Entry) -> RecipeModule:
    """Import a recipe's module."""
    return cast(RecipeModule, import_module(entry.module))


def read_logged(workspace: Path, result: Result) -> list[Logged]:
    """Read configuration and log of a result's units."""
    folders = [UnitFolder(workspace / "units" / name) for name in result.units]
    return [
        Logged(folder.config, read_unit(folder.config).source.dataset, folder.log)
        for folder in folders
    ]


def command_of(result: Result, module: RecipeModule | None) -> str:
    """Return the command that gives a result: the recipe and the settings that are not defaults.

    Of a recipe that this version does not know, or knows with other settings, the name alone.
    """
    try:
        defaults = {} if module is None else module.Config().model_dump(mode="json")
    except ValueError:
        defaults = {}
    given = {
        key: value
        for key, value in result.config.items()
        if defaults and (key not in defaults or value != defaults[key])
    }
    return " ".join(["attnscope run", result.recipe, *map(_setting, given.items())])


def _setting(item: tuple[str, Any]) -> str:
    key, value = item
    return f"{key}={','.join(map(str, value)) if isinstance(value, list) else value}"
