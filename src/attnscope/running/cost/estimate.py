"""The estimate that ``attnscope show`` prints: training, evaluating, measuring and drawing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from attnscope.recipes.recipe import module_of
from attnscope.recipes.registry import find
from attnscope.running.cost.measuring import measuring_cost
from attnscope.running.cost.plan import planned_units
from attnscope.running.cost.timing import (
    measure_paces,
    seconds_of_evaluations,
    seconds_of_units,
)
from attnscope.running.duration import about
from attnscope.running.run import choose_device, job_count, read_config
from attnscope.training.unit import Unit


@dataclass(frozen=True)
class Estimate:
    """Time of a run on this machine.

    Attributes
    ----------
    seconds
        Of the whole run, on all cores or the GPU.
    measuring
        Those of them that come after training: measuring and drawing, in one process.
    by_dataset
        Seconds of training and evaluating each data set's units alone.
    units, finished
        Number of units, and of those that the workspace has already.
    """

    seconds: float
    measuring: float
    by_dataset: Mapping[str, float]
    units: int
    finished: int
    device: Literal["cpu", "cuda"]
    jobs: int

    @property
    def sentence(self) -> str:
        """The estimate in words."""
        if not self.units:
            return "It trains nothing: it takes seconds."
        place = f"on {self.jobs} cores" if self.device == "cpu" else "on the GPU"
        left = f", {self.finished} of them finished in the workspace" if self.finished else ""
        parts = ""
        if len(self.by_dataset) > 1:
            each = (f"{name} {about(time)[6:]}" for name, time in self.by_dataset.items())
            parts = f" ({', '.join(each)})"
        return (
            f"{about(self.seconds).capitalize()} {place}: to train and evaluate {self.units} units"
            f"{parts}{left}, and {about(self.measuring)} to measure and draw."
        )


def estimate(
    recipe: str,
    settings: Mapping[str, Any] | None = None,
    *,
    seeds: int | None = None,
    quick: bool = False,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    jobs: int | None = None,
    out: str | Path = "runs",
) -> Estimate:
    """Return how long a run takes on this machine, from a few timed steps of its units.

    The parameters are those of `attnscope.run`. Finished units of the workspace are not trained
    again; they are measured.
    """
    entry = find(recipe)
    config = read_config(entry, settings, seeds=seeds, quick=quick)
    place = choose_device(device)
    count = job_count(place, jobs)
    units = planned_units(module_of(entry), config, place)
    left = [unit for unit in units if not _is_finished(unit, Path(out))]
    paces = measure_paces(units, {})
    datasets = {unit.source.dataset: None for unit in left}
    each = {
        name: seconds_of_units([u for u in left if u.source.dataset == name], paces, count)
        for name in datasets
    }
    after = measuring_cost(entry.name).after(seconds_of_evaluations(units, paces))
    seconds = seconds_of_units(left, paces, count) + after
    return Estimate(seconds, after, each, len(units), len(units) - len(left), place, count)


def _is_finished(unit: Unit, workspace: Path) -> bool:
    return (unit.folder(workspace).path / "done.json").is_file()
