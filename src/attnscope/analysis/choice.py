"""The choice of a training weight: the highest validation F1 under the model's own attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from attnscope.analysis.answers import read_answers
from attnscope.analysis.classification import usual_average
from attnscope.training.loaded import loaded_model
from attnscope.training.trained_unit import TrainedUnit


@dataclass(frozen=True)
class GridPoint:
    """A weight of a grid: the unit that was trained with it, and its validation F1."""

    unit: TrainedUnit
    f1: float

    @classmethod
    def of(cls, unit: TrainedUnit, device: str) -> GridPoint:
        """Run a classifier on the validation examples that it was evaluated on."""
        if not unit.trained:  # Where the time of a run is estimated, every weight is as good.
            return cls(unit, 0.0)
        source = unit.unit.source
        batch = source.evaluation_batch(unit.unit.training.examples).to(device)
        answers = read_answers([loaded_model(unit, device)], batch)
        return cls(unit, float(answers.metric("f1", usual_average(source.output_words))[0]))


Grid = Mapping[float, GridPoint]
"""The weights that were tried."""


def read_grid(units: Mapping[float, TrainedUnit], device: str) -> Grid:
    """Read the units of each weight, under their own attention."""
    return {weight: GridPoint.of(unit, device) for weight, unit in units.items()}


def best_weight(grid: Grid) -> float:
    """Return the weight of the highest validation F1, of several such weights the smallest."""
    return max(sorted(grid), key=lambda weight: grid[weight].f1)
