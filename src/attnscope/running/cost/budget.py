"""Sizes that fit a time: which settings of a recipe ``--budget 10m`` makes smaller, and how far.

Only settings that have a smaller quick value, and that the user has not given, change. First seeds,
down to their quick number; then whatever else leaves the models as they are, such as steps and
examples, all by the same power of the way to their quick values; and only if that is not enough,
the sizes of models and tasks too, at their quick values. The first choice that fits is taken. It is
a function of the settings and of the paces that were measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from attnscope.errors import UsageError
from attnscope.recipes.recipe import RecipeModule
from attnscope.running.cost.measuring import MeasuringCost
from attnscope.running.cost.plan import planned_units
from attnscope.running.cost.timing import (
    Paces,
    kind_of,
    measure_paces,
    seconds_of_evaluations,
    seconds_of_units,
)
from attnscope.running.duration import about, seconds_of
from attnscope.running.settings_list import Setting, settings_of
from attnscope.runs.spec import Settings, read_settings
from attnscope.training.progress import Progress
from attnscope.training.unit import Unit

_RUNGS = 8
Changes = dict[str, Any]


@dataclass(frozen=True)
class Fit:
    """Settings that fit a budget, their time in seconds, and what was changed in words."""

    config: Settings
    seconds: float
    sentence: str


def fit_budget(
    module: RecipeModule,
    config: Settings,
    given: Mapping[str, Any],
    budget: str,
    device: Literal["cpu", "cuda"],
    jobs: int,
    progress: Progress,
    measuring: MeasuringCost,
) -> Fit:
    """Return settings whose run fits a budget.

    Parameters
    ----------
    config
        The settings at full size.
    given
        Those that the user has given: they stay.
    budget
        As in ``90s``, ``10m`` or ``1h``: training, evaluating, measuring and drawing.
    jobs
        Number of worker processes.
    measuring
        The recipe's time after training.
    """
    allowed, paces = seconds_of(budget), Paces()
    free = [each for each in settings_of(module) if each.size and each.name not in given]
    sizes, amounts = _sizes(module, config, free, device)
    least = 0.0
    progress.note("Timing a few steps of each kind of model.")
    quick = {each.name: each.quick for each in sizes}
    for changes in (*_ladder(amounts), *_ladder(amounts, quick)):
        plan = _planned(module, config, changes, device)
        if plan is None:
            continue
        smaller, units = plan
        paces = measure_paces(units, paces)
        after = measuring.after(seconds_of_evaluations(units, paces))
        least = seconds_of_units(units, paces, jobs) + after
        if least <= allowed:
            return Fit(smaller, least, _sentence(budget, config, changes, least, after))
    raise UsageError(
        f"--budget {budget}: at its smallest sizes this run takes {about(least)}; give a larger "
        "budget, fewer or smaller corpora, or smaller settings."
    )


def _sizes(
    module: RecipeModule, config: Settings, settings: Sequence[Setting], device: Any
) -> tuple[list[Setting], list[Setting]]:
    """Return the settings that change what is trained, and those that leave the models alone."""
    units = planned_units(module, config, device)
    sizes, amounts = [], []
    for setting in settings:
        plan = _planned(module, config, {setting.name: setting.quick}, device)
        fewer = units if plan is None else plan[1]
        if plan is None or fewer != units:
            sizes.append(setting)
        if fewer != units and _kinds(fewer) <= _kinds(units):
            amounts.append(setting)
    return sizes, amounts


def _kinds(units: Sequence[Unit]) -> set[str]:
    return {kind_of([unit]) for unit in units}


def _ladder(amounts: Sequence[Setting], fixed: Changes | None = None) -> Iterator[Changes]:
    """Yield ever smaller choices of amounts, next to what is fixed."""
    seeds = [each for each in amounts if each.name.endswith("seeds")]
    others = [each for each in amounts if each not in seeds]
    base = dict(fixed or {})
    yield base | {each.name: each.default for each in amounts}
    for rung in range(1, _RUNGS + 1):
        yield base | _at(others, 0) | _at(seeds, rung)
    for rung in range(1, _RUNGS + 1):
        yield base | _at(seeds, _RUNGS) | _at(others, rung)


def _at(settings: Sequence[Setting], rung: int) -> Changes:
    return {each.name: _between(each, rung / _RUNGS) for each in settings}


def _between(setting: Setting, share: float) -> Any:
    """Return a value so far on the way to the quick one.

    A list is whole up to half of it, and so is a number whose quick value 0 leaves something out.
    """
    if isinstance(setting.default, tuple) or setting.quick == 0:
        return setting.default if share < 0.5 else setting.quick
    return round(setting.default * (setting.quick / setting.default) ** share)


def _planned(
    module: RecipeModule, config: Settings, changes: Changes, device: Any
) -> tuple[Settings, list[Unit]] | None:
    """Return settings with some changed, and their units; None where they do not go together."""
    try:
        smaller = read_settings(type(config), dict(config) | changes, "budget")
        return smaller, planned_units(module, smaller, device)
    except UsageError:
        return None


def _sentence(budget: str, config: Settings, changes: Changes, seconds: float, after: float) -> str:
    smaller = {name: value for name, value in changes.items() if value != getattr(config, name)}
    takes = f"{about(seconds)}, of which {about(after)} to measure and draw"
    if not smaller:
        return f"--budget {budget}: the full sizes fit ({takes})."
    chosen = ", ".join(
        f"{name}={_text(value)} (not {_text(getattr(config, name))})"
        for name, value in smaller.items()
    )
    fewer = "Fewer seeds make intervals wider; " if any("seeds" in n for n in smaller) else ""
    costs = f"{fewer}sizes below the papers' leave their claims undecided.".capitalize()
    return f"--budget {budget}: {chosen}; {takes}. {costs}"


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
