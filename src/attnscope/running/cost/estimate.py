"""The estimate that ``attnscope show`` prints: units, and the time that they train."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from attnscope.recipes.kit.duration import about
from attnscope.recipes.recipe import module_of
from attnscope.recipes.registry import find
from attnscope.running.cost.plan import planned_units
from attnscope.running.cost.timing import measure_paces, seconds_of_units
from attnscope.running.run import choose_device, job_count, read_config
from attnscope.training.unit import Unit


@dataclass(frozen=True)
class Estimate:
    """Time of a run on this machine.

    Attributes
    ----------
    seconds
        Of training and evaluation, on all cores or the GPU.
    by_dataset
        The same for each data set alone.
    units, finished
        Number of units, and of those that the workspace has already.
    """

    seconds: float
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
            f"{about(self.seconds).capitalize()} {place}{parts} to train and evaluate {self.units} "
            f"units{left}; measuring and drawing come on top."
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

    The parameters are those of `attnscope.run`. Finished units of the workspace cost nothing.
    """
    entry = find(recipe)
    config = read_config(entry, settings, seeds=seeds, quick=quick)
    place = choose_device(device)
    count = job_count(place, jobs)
    units = planned_units(module_of(entry), config, place)
    left = [unit for unit in units if not _is_finished(unit, Path(out))]
    paces = measure_paces(left, {})
    datasets = {unit.source.dataset: None for unit in left}
    each = {
        name: seconds_of_units([u for u in left if u.source.dataset == name], paces, count)
        for name in datasets
    }
    seconds = seconds_of_units(left, paces, count)
    return Estimate(seconds, each, len(units), len(units) - len(left), place, count)


def _is_finished(unit: Unit, workspace: Path) -> bool:
    return (unit.folder(workspace).path / "done.json").is_file()
