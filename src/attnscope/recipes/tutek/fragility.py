"""The fragility of trained models: their metrics under uniform and permuted attention."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from attnscope.analysis.classification import usual_average
from attnscope.analysis.fragility import (
    Fragility,
    compute_fragility,
    difference_intervals,
    extra_drops,
    fragility_intervals,
)
from attnscope.recipes.kit.baselines import baseline_rows
from attnscope.recipes.kit.sheet import Sheet, rng
from attnscope.recipes.tutek.evaluation import held_out
from attnscope.recipes.tutek.units import ModelVariant, TutekConfig, TutekUnits
from attnscope.runs.result import Measurement
from attnscope.training.loaded import loaded_model
from attnscope.training.trained_unit import TrainedUnit

MODIFIED = ("uniform", "permuted")
COLUMNS = {
    "f1_trained": "F1 (%), learned attention",
    "f1_drop_uniform": "change of F1, uniform attention",
    "f1_drop_permuted": "change of F1, permuted attention",
}
FRAGILITY = ("accuracy_trained", "majority", "bag_of_words", *COLUMNS)


class FragilityConfig(TutekConfig):
    """Settings of recipes that measure fragility."""

    permutations: int = Field(100, ge=1)
    """Permutations of each text's attention, as in Jain and Wallace's test."""


def measure_fragility(
    units: Sequence[TrainedUnit], permutations: int, device: str
) -> list[Fragility]:
    """Run trained units, one by one, under trained, uniform and permuted attention."""
    batch = held_out(units[0].unit.source).batch.to(device)
    return [compute_fragility(loaded_model(unit, device), batch, permutations) for unit in units]


def fragility_rows(
    sheet: Sheet,
    runs: TutekUnits,
    permutations: int,
    device: str,
    axes_of: Callable[[ModelVariant], Mapping[str, Any]] = lambda variant: variant.axes,
) -> list[Measurement]:
    """Return the metrics of every model, their changes, and how they compare with the base's."""
    names = {"trained": "trained"} | {f"{m}_change": f"drop_{m}" for m in MODIFIED}
    found = {key: measure_fragility(runs.units[key], permutations, device) for key in runs.units}
    rows = baseline_rows(sheet, runs.source, held_out(runs.source).examples)
    average = usual_average(runs.source.output_words)
    for variant, own in found.items():
        axes, intervals = axes_of(variant), fragility_intervals(own, rng=rng(), average=average)
        for condition, name in names.items():
            for metric, interval in intervals[condition].items():
                rows.append(sheet.row(f"{metric}_{name}", interval, axes, share=True))
        base = found.get(replace(variant, model="base"))
        if base is None or variant.model == "base":
            continue
        less = difference_intervals(own, base, rng=rng(), average=average)["f1"]
        rows.append(sheet.row("f1_difference", less, axes, share=True))
        for name in MODIFIED:
            more, of = extra_drops(own, base, name, average=average), {"modification": name}
            rows.append(sheet.mean("extra_drop", more, {**axes, **of}, share=True))
    return rows
