"""F1 under trained, uniform and permuted attention, and which model loses more of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from attnscope.analysis.classification import METRICS, classification_metrics, metric_intervals
from attnscope.analysis.fragility import Fragility, compute_fragility, fragility_intervals
from attnscope.analysis.intervals import Interval
from attnscope.data.corpus import Corpus
from attnscope.recipes.kit.sheet import Sheet, rng
from attnscope.recipes.tutek.evaluation import average_of, best_model, held_out
from attnscope.recipes.tutek.units import ModelVariant
from attnscope.runs.result import Measurement
from attnscope.training.trained_unit import TrainedUnit

MODIFIED = ("uniform", "permuted")
# A change is negative where the score falls, as the paper prints it.
_NAMES = {
    "trained": "{}_trained",
    "uniform_change": "{}_drop_uniform",
    "permuted_change": "{}_drop_permuted",
}

PerSeed = Sequence[Fragility]


def measure_fragility(
    units: Sequence[TrainedUnit], permutations: int, device: str
) -> list[Fragility]:
    """Run trained units, one by one, under trained, uniform and permuted attention."""
    batch = held_out(units[0].unit.source).batch.to(device)
    return [compute_fragility(best_model(unit, device), batch, permutations) for unit in units]


def intervals_of(found: PerSeed, source: Corpus) -> Mapping[str, Mapping[str, Interval]]:
    """Return the intervals of all metrics by condition."""
    return fragility_intervals(found, rng=rng(), average=average_of(source))


def fragility_rows(
    sheet: Sheet, source: Corpus, found: PerSeed, axes: Mapping[str, Any]
) -> list[Measurement]:
    """Return all four metrics of a model: trained, and their changes."""
    intervals = intervals_of(found, source)
    return [
        sheet.row(name.format(metric), intervals[condition][metric], axes, share=True)
        for condition, name in _NAMES.items()
        for metric in METRICS
    ]


def comparison_rows(
    sheet: Sheet,
    source: Corpus,
    found: Mapping[ModelVariant, PerSeed],
    axes_of: Callable[[ModelVariant], Mapping[str, Any]],
) -> list[Measurement]:
    """Return every other model's F1, and its drops, compared with the base model's.

    ``f1_difference`` is paired over seeds and examples; ``extra_drop`` is how many points of F1
    more than the base model a model loses, seed by seed.
    """
    rows = []
    for variant, own in found.items():
        base = found.get(ModelVariant("base", variant.attention, variant.layers))
        if base is None or variant.model == "base":
            continue
        axes = axes_of(variant)
        rows.append(sheet.row("f1_difference", _f1_difference(source, own, base), axes, share=True))
        for name in MODIFIED:
            extra = _drops(source, own, name) - _drops(source, base, name)
            rows.append(sheet.mean("extra_drop", extra, {**axes, "modification": name}, share=True))
    return rows


def _f1_difference(source: Corpus, own: PerSeed, base: PerSeed) -> Interval:
    """Return F1 less that of the base model, over the same seeds and examples."""
    labels, average = own[0].labels.numpy(), average_of(source)
    mine, reference = (
        np.stack([each.predicted("trained").numpy() for each in part]) for part in (own, base)
    )
    return metric_intervals(labels, mine, rng=rng(), average=average, baseline=reference)["f1"]


def _drops(source: Corpus, found: PerSeed, modification: str) -> np.ndarray:
    """Return how much F1 each seed loses, positive where it falls."""
    average = average_of(source)

    def f1(each: Fragility, condition: str) -> float:
        labels, answers = each.labels.numpy(), each.predicted(condition).numpy()
        return float(classification_metrics(labels, answers, average=average)["f1"].mean())

    return np.array([f1(each, "trained") - f1(each, modification) for each in found])
