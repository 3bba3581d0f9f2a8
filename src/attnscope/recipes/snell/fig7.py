"""Figure 7: where the keyword's information is, when attention is uniform for long (§6.1).

The classifier is trained under uniform attention to tell whether word 1 occurs. On positive
sequences the log-odds γ_l of attending to l alone are followed at the keyword, one position after
it, on average, and at the last position. Whether the paper's encoder reads in one direction or
both is open, so both are run. Sequences whose keyword stands last are left out: two of the four
would coincide.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from attnscope.analysis.intervals import Interval, crossed_interval
from attnscope.claims.decide import all_of, verdict
from attnscope.claims.pool import Decision, Pool, interval_of, undecided
from attnscope.data.tasks import KeywordTask
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent
from attnscope.models.intervention import Uniform
from attnscope.recipes.recipe import Charts, Lab, Logged
from attnscope.runs.result import Measurement, Result, measured
from attnscope.runs.spec import Settings
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Training, Unit, every, merged

PLACES = ("keyword", "next", "mean", "last")
ENCODERS: dict[str, Literal[1, 2]] = {"unidirectional": 1, "bidirectional": 2}
# What the paper expects of the four, from largest to smallest; ≫ between all but the last two.
HYPOTHESES = {
    "hypothesis 1": (("keyword", "mean"), ("mean", "last"), ("last", "next")),
    "hypothesis 2": (("keyword", "next"), ("next", "mean"), ("mean", "last")),
    "observation 3": (("last", "next"), ("next", "mean"), ("mean", "keyword")),
}
_EARLY = 60  # steps of the left panels: the early regime and its end
_MUCH, _ABOUT = 0.15, 0.10  # in units of the four curves' range


class Config(Settings):
    """Settings of figure 7; sizes are those of the paper's classifier."""

    seeds: int = Field(10, ge=1)  # the paper shows one run
    steps: int = Field(4000, ge=1)  # the classifiers' budget; the late regime is there long before
    batch_size: int = Field(32, ge=1)
    length: int = Field(40, ge=2)
    types: int = Field(40, ge=2)
    embedding: int = Field(300, ge=1)
    hidden: int = Field(256, ge=1)
    examples: int = Field(200, ge=4)  # half of them positive


QUICK = {
    "seeds": 2,
    "steps": 300,
    "length": 12,
    "types": 12,
    "embedding": 64,
    "hidden": 64,
}
HEADLINE = ("gamma", "accuracy")


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train under uniform attention and follow γ at the four places."""
    task = KeywordTask(length=config.length, types=config.types)
    # The early regime is over after some 25 steps, so it is looked at every other step.
    schedule = merged(every(2, _EARLY), every(10, 200), every(50, 1000), every(250, config.steps))
    training = Training(
        steps=config.steps,
        batch_size=config.batch_size,
        evaluate_at=schedule,
        attention={"cross": Uniform()},
        examples=config.examples,
        stored=config.examples,
        scores=(LexicalProbe(),),
    )
    units = {}
    for encoder, directions in ENCODERS.items():
        model = ClassifierSpec(
            embedding=config.embedding,
            encoder=Recurrent(hidden=config.hidden, directions=directions),
        )
        units[encoder] = [
            Unit(source=task, model=model, training=training, seed=seed)
            for seed in range(config.seeds)
        ]
    rows: list[Measurement] = []
    for encoder, group in lab.train(units, "keyword").items():
        for step in training.schedule:
            rows += _four_places(group, step, encoder)
    return rows


def _four_places(units: Sequence[TrainedUnit], step: int, encoder: str) -> list[Measurement]:
    axes: dict[str, str | int | float] = {"step": step, "encoder": encoder}
    dataset = units[0].unit.source.dataset
    seeds = [unit.unit.seed for unit in units]
    rng = np.random.default_rng(0)
    gamma = torch.stack([_gamma(unit, step) for unit in units]).numpy()
    curves = {place: gamma[:, :, index] for index, place in enumerate(PLACES)}
    means = {place: crossed_interval(values, rng=rng) for place, values in curves.items()}
    rows = [
        measured("gamma", dataset, interval, axes | {"place": place}, seeds)
        for place, interval in means.items()
    ]
    heights = [interval.value for interval in means.values()]
    span = max(heights) - min(heights)
    for high, low in combinations(PLACES, 2):
        gap = crossed_interval((curves[high] - curves[low]) / span, rng=rng)
        rows.append(measured("gap", dataset, gap, axes | {"from": high, "to": low}, seeds))
    accuracy = [row["accuracy"] for unit in units for row in unit.log if row["step"] == step]
    value = float(np.mean(accuracy))
    rows.append(
        Measurement(
            name="accuracy",
            dataset=dataset,
            axes=axes,
            value=value,
            low=min(accuracy),
            high=max(accuracy),
            n=len(seeds),
            seeds=tuple(seeds),
        )
    )
    return rows


def _gamma(unit: TrainedUnit, step: int) -> Float[Tensor, "sentence place"]:
    """Return γ at the four places of every positive sequence whose keyword does not stand last."""
    score = unit.stored("lexical_probe", step)
    place = score.batch.gold[:, 0]
    length = score.values.shape[-1]
    kept = (place >= 0) & (place < length - 1)
    gamma, place = score.values[kept, 0], place[kept, None]
    return torch.stack(
        [
            gamma.gather(1, place)[:, 0],
            gamma.gather(1, place + 1)[:, 0],
            gamma.mean(1),
            gamma[:, -1],
        ],
        1,
    )


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw the four curves with their intervals: the first steps, then all, for both encoders."""
    from attnscope.figures.charts import Axis, Panel, band, beside
    from attnscope.figures.palette import POSITIONS

    names = {
        "keyword": "at the keyword",
        "next": "one after it",
        "mean": "mean of all",
        "last": "at the last position",
    }
    last = result.config["steps"]

    def panel(encoder: str, title: str, steps: Axis) -> Any:
        frame = Panel(
            steps,
            Axis("log-odds γ of the right answer"),
            {names[place]: POSITIONS[place] for place in PLACES},
            title=f"{encoder.capitalize()} encoder, {title}",
        )
        rows = [
            {
                "step": row.axes["step"],
                "value": row.value,
                "low": row.value if row.low is None else row.low,
                "high": row.value if row.high is None else row.high,
                "group": names[str(row.axes["place"])],
            }
            for row in result.select("gamma", encoder=encoder)
            if steps.domain and int(row.axes["step"]) <= steps.domain[1]
        ]
        return band(rows, frame, x="step", group="group")

    early = Axis("training steps", domain=(0, min(_EARLY, last)))
    whole = Axis("training steps", domain=(0, last))
    panels = [
        panel(encoder, title, axis)
        for encoder in ENCODERS
        for title, axis in (("first steps", early), ("all steps", whole))
    ]
    return {"fig7": beside(*panels, columns=2)}


def local_then_last(pool: Pool) -> Decision:
    """Decide snell.local-then-last."""
    if len(pool.select("gamma")[0].seeds) < pool.needed(5):
        return undecided("needs at least 5 seeds")
    parts, evidence = [], {}
    for encoder in ENCODERS:
        steps = sorted({int(row.axes["step"]) for row in pool.select("gap", encoder=encoder)})
        true = {
            name: [step for step in steps if _true_at(pool, encoder, step, gaps)]
            for name, gaps in HYPOTHESES.items()
        }
        evidence[encoder] = {name: _told(found) for name, found in true.items()}
        early, late = true["hypothesis 2"], true["observation 3"]
        parts += [
            verdict(bool(early) and min(early) < steps[-1] / 4, True),
            verdict(steps[-1] in late, True),
            verdict(not true["hypothesis 1"], True),
        ]
    note = "early: within the first quarter of training; late: at its end"
    deviation = "both kinds of encoder: the paper does not say which it has"
    return Decision(all_of(parts), evidence, deviation, note)


def _true_at(pool: Pool, encoder: str, step: int, gaps: Sequence[tuple[str, str]]) -> bool:
    found = [_gap(pool, encoder, step, high, low) for high, low in gaps]
    much = all(gap.value >= _MUCH and gap.low > 0 for gap in found[:-1])
    return much and abs(found[-1].value) <= _ABOUT


def _gap(pool: Pool, encoder: str, step: int, high: str, low: str) -> Interval:
    for first, second, sign in ((high, low, 1), (low, high, -1)):
        rows = pool.select("gap", encoder=encoder, step=step, **{"from": first, "to": second})
        if rows:
            gap = interval_of(rows[0])
            low_end, high_end = sorted((sign * gap.low, sign * gap.high))
            return Interval(sign * gap.value, low_end, high_end, gap.n)
    raise KeyError((high, low))


def _told(steps: Sequence[int]) -> str:
    if not steps:
        return "at no evaluated step"
    return f"at {len(steps)} evaluated steps from {steps[0]} to {steps[-1]}"


CLAIMS = {"snell.local-then-last": local_then_last}
