"""Table 1's numbers: F1 under trained, uniform and permuted attention, and who loses more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from attnscope.analysis.classification import METRICS, classification_metrics, metric_intervals
from attnscope.analysis.fragility import Fragility, fragility, fragility_intervals
from attnscope.analysis.intervals import Interval, mean_interval
from attnscope.recipes.tutek.held_out import average_of, best_model, held_out
from attnscope.recipes.tutek.rows import Rows, axes_of, point, rng
from attnscope.recipes.tutek.units import Runs, Which
from attnscope.runs.result import Measurement
from attnscope.training.trained_unit import TrainedUnit

MODIFIED = ("uniform", "permuted")
# A change is negative where the score falls, as the paper prints it.
_NAMES = {
    "trained": "{}_trained",
    "uniform_change": "{}_drop_uniform",
    "permuted_change": "{}_drop_permuted",
}
# Which number of a grid's weight is shown by which name.
_ABLATION = {"trained": "ablation_f1"} | {
    f"{name}_change": f"ablation_drop_{name}" for name in MODIFIED
}

Fragilities = Mapping[Which, Sequence[Fragility]]


def measure_fragility(
    units: Sequence[TrainedUnit], permutations: int, device: str
) -> list[Fragility]:
    """Read trained units, one by one, under trained, uniform and permuted attention."""
    source = units[0].unit.source
    batch = held_out(source).batch.to(device)
    return [fragility(best_model(unit, device), batch, permutations) for unit in units]


def fragility_rows(
    rows: Rows, found: Sequence[Fragility], axes: Mapping[str, str | int]
) -> list[Measurement]:
    """Return all four metrics of a model: trained, and their changes."""
    intervals = fragility_intervals(found, rng=rng(), average=average_of(rows.source))
    return [
        rows.row(name.format(metric), intervals[condition][metric], axes, scale=100)
        for condition, name in _NAMES.items()
        for metric in METRICS
    ]


def comparison_rows(
    rows: Rows, found: Fragilities, axes_of: Callable[[Which], dict[str, Any]] = axes_of
) -> list[Measurement]:
    """Return what every other model's F1, and its drops, are beside the base model's.

    ``f1_difference`` is paired over seeds and examples; ``extra_drop`` is how many points of F1
    more than the base model a model loses, seed by seed.
    """
    made = []
    for which, own in found.items():
        base = found.get(Which("base", which.attention, which.layers))
        if base is None or which.model == "base":
            continue
        axes = axes_of(which)
        made.append(rows.row("f1_difference", f1_difference(rows, own, base), axes, scale=100))
        for name in MODIFIED:
            extra = drops(rows, own, name) - drops(rows, base, name)
            here = axes | {"modification": name}
            made.append(rows.row("extra_drop", mean_interval(extra, rng=rng()), here, scale=100))
    return made


def f1_difference(rows: Rows, own: Sequence[Fragility], base: Sequence[Fragility]) -> Interval:
    """Return F1 less that of the base model, over the same seeds and examples."""
    said, reference = (
        np.stack([each.predicted("trained").numpy() for each in part]) for part in (own, base)
    )
    labels = own[0].labels.numpy()
    average = average_of(rows.source)
    return metric_intervals(labels, said, rng=rng(), average=average, baseline=reference)["f1"]


def drops(rows: Rows, found: Sequence[Fragility], modification: str) -> np.ndarray:
    """Return what each seed loses of its F1, positive where it falls."""
    average = average_of(rows.source)

    def f1(each: Fragility, condition: str) -> float:
        said = each.predicted(condition).numpy()
        labels = each.labels.numpy()
        return float(classification_metrics(labels, said, average=average)["f1"].mean())

    return np.array([f1(each, "trained") - f1(each, modification) for each in found])


def choice_rows(runs: Runs, permutations: int, device: str) -> list[Measurement]:
    """Return table 4 and the ablation: each weight's validation F1, what it does, the chosen one.

    What a weight does is measured after it was chosen, and has no part in the choice.
    """
    rows = Rows(runs.source, (0,))
    made = []
    for which, grid in runs.grids.items():
        chosen, axes = runs.weight(which), axes_of(which)
        examples = next(iter(grid.values())).unit.unit.training.examples
        tried = {f"F1 at {weight:g}": round(100 * one.f1, 2) for weight, one in grid.items()}
        made.append(
            rows.row("chosen_weight", point(chosen, examples), axes, found=tried, split="val")
        )
        for weight, one in grid.items():
            here = axes | {"weight": weight}
            f1 = point(100 * one.f1, examples)
            made.append(rows.row("validation_f1", f1, here, split="val"))
            found = measure_fragility([one.unit], permutations, device)
            intervals = fragility_intervals(found, rng=rng(), average=average_of(runs.source))
            made += [
                rows.row(name, intervals[condition]["f1"], here, scale=100)
                for condition, name in _ABLATION.items()
            ]
    return made
