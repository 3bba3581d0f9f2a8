"""The units that a recipe trains, found without training any.

The recipe's own ``measure`` runs in a laboratory that records units instead of training them, up
to the first measurement on one of them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NoReturn

from attnscope.recipes.kit.lab import Lab, filled
from attnscope.recipes.recipe import RecipeModule
from attnscope.runs.spec import Settings
from attnscope.training.engine.workers import Workers
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Unit


class NotTrained(Exception):
    """A recipe measures a unit that is only planned."""


class PlannedUnit(TrainedUnit):
    """A unit with settings and without files: reading any of them ends the plan."""

    trained = False

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self._examples = {}

    @property
    def folder(self) -> NoReturn:  # type: ignore[override]
        """Raise `NotTrained`."""
        raise NotTrained(self.unit.name)


@dataclass
class PlanningLab(Lab):
    """A laboratory that records the units it is given."""

    units: list[Unit] = field(default_factory=list)

    def train(self, plan: Any, title: str) -> Any:
        """Record units; return them untrained, in the shape in which they were given."""
        placed = self.placed(plan)
        self.units += placed
        return filled(plan, iter([PlannedUnit(unit) for unit in placed]))


def planned_units(
    module: RecipeModule, config: Settings, device: Literal["cpu", "cuda"] = "cpu"
) -> list[Unit]:
    """Return each unit that a recipe trains, once.

    Units that depend on measurements of others, as the candidates of ``snell/fig6`` do, are listed
    as far as they are known beforehand.
    """
    if not getattr(module, "TRAINS", True):
        return []
    lab = PlanningLab(Workers(Path("planned")), device)
    with suppress(NotTrained):
        module.measure(config, lab)
    return list({unit.folder(Path()).name: unit for unit in lab.units}.values())
