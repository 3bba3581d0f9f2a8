"""What the copying recipes share: the paper's training, and how a seed's outcome is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attnscope.analysis.agreement import argmax_at
from attnscope.analysis.intervals import rate_interval
from attnscope.analysis.learning import learned, steps_to
from attnscope.claims.decide import Outcome
from attnscope.claims.pool import Pool
from attnscope.data.tasks import CopyTask
from attnscope.models.seq2seq import Seq2SeqSpec
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
    return next(row["accuracy"] for row in unit.log if row["step"] == step)


def outcomes(
    units: Sequence[TrainedUnit], dataset: str, step: int, **axes: str | int
) -> list[Measurement]:
    """Return per seed accuracy and steps to .95, and over all seeds how many learned."""
    rows = []
    for index, unit in enumerate(units):
        upto = [row for row in unit.log if row["step"] <= step]
        reached = steps_to([row["accuracy"] for row in upto], [row["step"] for row in upto])
        common: dict[str, Any] = {
            "dataset": dataset,
            "axes": {"step": step, "run": index, **axes},
            "n": unit.unit.training.examples,
            "seeds": (unit.unit.seed,),
        }
        rows.append(Measurement(name="accuracy", value=accuracy_at(unit, step), **common))
        rows.append(Measurement(name="steps_to_95", value=reached, **common))
    count = sum(learned(accuracy_at(unit, step)) for unit in units)
    rate = rate_interval(count, len(units))
    rows.append(
        Measurement(
            name="seeds_learned",
            dataset=dataset,
            axes={"step": step, **axes},
            value=count,
            low=rate.low * rate.n,
            high=rate.high * rate.n,
            n=rate.n,
            seeds=tuple(unit.unit.seed for unit in units),
        )
    )
    return rows


def read_outcomes(pool: Pool, **axes: Any) -> list[Outcome]:
    """Return the outcomes that `outcomes` measured, run by run."""
    reached = {_run(row): row.value for row in pool.select("steps_to_95", **axes)}
    return [
        Outcome(learned(row.value or 0.0), _whole(reached[_run(row)]))
        for row in pool.select("accuracy", **axes)
    ]


def _run(row: Measurement) -> tuple[Any, ...]:
    return (*sorted(row.axes.items()), row.seeds)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def attention_on_gold(unit: TrainedUnit) -> float:
    """Return how often the stored attention is largest at the position to be copied."""
    score = unit.stored("attention")
    hits = argmax_at(score.values, score.batch.gold, score.input_mask)
    return float(hits[score.target_mask].nanmean())
