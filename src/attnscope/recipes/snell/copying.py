"""Copying tasks: the paper's training, the outcome of each seed, and their curves of accuracy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from attnscope.analysis.agreement import argmax_at
from attnscope.analysis.intervals import Interval, rate_interval
from attnscope.analysis.learning import LEARNED_AT, learned, steps_to
from attnscope.claims.decide import Outcome
from attnscope.claims.pool import Pool
from attnscope.data.tasks import CopyTask
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.recipes.kit.lab import Logged
from attnscope.recipes.kit.sheet import Sheet
from attnscope.runs.result import Measurement
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Training, Unit, every


def copy_unit(
    task: CopyTask, seed: int, *, steps: int, batch_size: int, model: Seq2SeqSpec, **training: Any
) -> Unit:
    """Return the paper's way of training: Adam, fresh data, an evaluation every 10 steps."""
    settings = {"evaluate_at": every(10, steps)} | training
    return Unit(
        source=task,
        model=model,
        training=Training(steps=steps, batch_size=batch_size, **settings),
        seed=seed,
    )


def accuracy_at(unit: TrainedUnit, step: int) -> float:
    """Return the accuracy at an evaluated step."""
    return float(unit.log_row(step)["accuracy"])


def reached_at(unit: TrainedUnit, step: int | None = None) -> int | None:
    """Return the first step at which a unit had learned, up to some step; None if there is none."""
    rows = [row for row in unit.log if step is None or row["step"] <= step]
    return steps_to([row["accuracy"] for row in rows], [row["step"] for row in rows])


def outcomes(
    units: Sequence[TrainedUnit], dataset: str, step: int, **axes: str | int
) -> list[Measurement]:
    """Return per seed accuracy and steps to .95, and over all seeds how many learned."""
    sheet = Sheet(dataset, seeds=[unit.unit.seed for unit in units])
    rows = []
    for index, unit in enumerate(units):
        run = {"step": step, "run": index, **axes}
        n, seeds = unit.unit.training.examples, (unit.unit.seed,)
        reached = reached_at(unit, step)
        steps = math.nan if reached is None else reached
        rows.append(sheet.point("accuracy", accuracy_at(unit, step), run, n, seeds=seeds))
        rows.append(sheet.point("steps_to_95", steps, run, n, seeds=seeds))
    count = sum(learned(accuracy_at(unit, step)) for unit in units)
    rate = rate_interval(count, len(units))
    interval = Interval(count, rate.low * rate.n, rate.high * rate.n, rate.n)
    return [*rows, sheet.row("seeds_learned", interval, {"step": step, **axes})]


def read_outcomes(pool: Pool, **axes: Any) -> list[Outcome]:
    """Return the outcomes that `outcomes` measured, run by run."""
    reached = {_run(row): row.value for row in pool.select("steps_to_95", **axes)}
    found = []
    for row in pool.select("accuracy", **axes):
        steps = reached[_run(row)]
        found.append(Outcome(learned(row.number), None if steps is None else int(steps)))
    return found


def _run(row: Measurement) -> tuple[Any, ...]:
    return (*sorted(row.axes.items()), row.seeds)


def attention_on_gold(unit: TrainedUnit) -> float:
    """Return how often the stored attention is largest at the position to be copied."""
    score = unit.stored("attention")
    hits = argmax_at(score.values, score.batch.gold, score.input_mask)
    return float(hits[score.target_mask].nanmean())


def accuracy_curves(
    groups: Mapping[str, Sequence[Logged]],
    colours: Mapping[str, str],
    steps: int,
    **panel: Any,
) -> Any:
    """Draw accuracy against training steps, one curve for each unit.

    Parameters
    ----------
    groups, colours
        Units and colour by label.
    steps
        The end of the axis.
    **panel
        Fields of `attnscope.figures.charts.Panel`.
    """
    from attnscope.figures.charts import Axis, Guide, Panel, curves

    rows = []
    for label, units in groups.items():
        for run, unit in enumerate(units):
            points = [{"step": row["step"], "accuracy": row["accuracy"]} for row in unit.rows]
            rows += [point | {"group": label, "run": run} for point in points]
    frame = Panel(
        Axis("training steps", domain=(0, steps)),
        Axis("accuracy on held-out sequences", domain=(0, 1)),
        dict(colours),
        guides=[Guide([(0, LEARNED_AT), (steps, LEARNED_AT)])],
        **panel,
    )
    return curves(rows, frame, x="step", y="accuracy", group="group", detail="run")
