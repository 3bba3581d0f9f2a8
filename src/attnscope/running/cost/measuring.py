"""Time of measuring and drawing, after the units are trained.

Measuring reads what was stored at the evaluations, or evaluates trained models once more: its time
grows as the time of all evaluations does, with units, examples, checkpoints and model sizes. The
ratio of the two, and the seconds of drawing, are constants of a recipe. ``measuring.csv`` has them
as quick runs on one CPU core took them; ``tools/measuring.py`` measures them again.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class MeasuringCost:
    """Time of measuring and drawing. The defaults are those of a recipe that nobody has timed.

    Attributes
    ----------
    ratio
        Seconds of measuring for a second of evaluations while training, of all units together.
    seconds
        Of drawing, and of whatever else does not depend on sizes.
    """

    ratio: float = 1.0
    seconds: float = 5.0

    def after(self, evaluations: float) -> float:
        """Return the seconds after training, given those of all evaluations."""
        return self.ratio * evaluations + self.seconds


def measuring_cost(recipe: str) -> MeasuringCost:
    """Return the time of measuring and drawing of a recipe."""
    return _table().get(recipe, MeasuringCost())


@cache
def _table() -> dict[str, MeasuringCost]:
    text = files("attnscope.running.cost").joinpath("measuring.csv").read_text(encoding="utf-8")
    return {
        row["recipe"]: MeasuringCost(float(row["ratio"]), float(row["seconds"]))
        for row in csv.DictReader(text.splitlines())
    }
