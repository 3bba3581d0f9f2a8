"""Figure 7: where the keyword's information is, when attention is uniform for long (Eq. 22–24).

The classifier is trained under uniform attention to tell whether word 1 occurs. On positive
sequences the log-odds γ_l of attending to l alone are followed at the keyword, one position after
it, on average, and at the last position. Whether the paper's encoder reads in one direction or
both is open, so both are run. Sequences whose keyword comes last are left out: two of the four
would coincide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from attnscope.analysis.intervals import Interval, crossed_interval
from attnscope.analysis.measures.numbers import Number, number
from attnscope.claims.decide import all_of, any_of, verdict
from attnscope.claims.pool import interval_of
from attnscope.claims.readings import Readings
from attnscope.claims.table import Cell, Cells, Claim, Finding, Needs, NotMeasured
from attnscope.data.tasks import KeywordTask
from attnscope.figures.charts import Axis, Panel, beside
from attnscope.figures.palette import POSITIONS
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent
from attnscope.models.intervention import Uniform
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.plots import band
from attnscope.recipes.kit.settings import RecipeSettings
from attnscope.recipes.kit.sheet import rng
from attnscope.recipes.recipe import Charts
from attnscope.runs.result import Curve, Result
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


class Config(RecipeSettings):
    """Settings of figure 7; sizes are those of the paper's classifier."""

    seeds: int = Field(10, ge=1)
    """Runs of each encoder. The paper shows one; ten give intervals."""
    steps: int = Field(4000, ge=1)
    """Training steps, those of the paper's classifiers; the late regime begins long before."""
    batch_size: int = Field(32, ge=1)
    """Sequences in a training batch, as for the paper's classifiers."""
    length: int = Field(40, ge=2)
    """Words of a sequence."""
    types: int = Field(40, ge=2)
    """Word types, one of which is the keyword."""
    embedding: int = Field(300, ge=1)
    """Embedding size of the paper's classifier."""
    hidden: int = Field(256, ge=1)
    """LSTM size per direction of the paper's classifier."""
    examples: int = Field(200, ge=4)
    """Sequences of each evaluation; half of them have the keyword."""


QUICK = {
    "seeds": 2,
    "steps": 300,
    "length": 12,
    "types": 12,
    "embedding": 64,
    "hidden": 64,
}
HEADLINE = ("gamma", "accuracy")


def measure(config: Config, lab: Lab) -> list[Curve]:
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
    rows: list[Curve] = []
    for encoder, group in lab.train(units, "keyword").items():
        rows += four_places(group, training.schedule, encoder)
    return rows


def four_places(units: Sequence[TrainedUnit], steps: Sequence[int], encoder: str) -> list[Curve]:
    """Return γ at the four places through training, the gaps between them, and accuracy."""
    curves: dict[Number, dict[int, Interval]] = {}
    for step in steps:
        for key, interval in _at_step(units, step).items():
            curves.setdefault(key, {})[step] = interval
    dataset, seeds = units[0].unit.source.dataset, [unit.unit.seed for unit in units]
    return [
        Curve.of(name, dataset, "step", points, {"encoder": encoder, **dict(axes)}, seeds)
        for (name, axes), points in curves.items()
    ]


def _at_step(units: Sequence[TrainedUnit], step: int) -> dict[Number, Interval]:
    stream = rng()
    gamma = torch.stack([_gamma(unit, step) for unit in units]).numpy()
    values = {place: gamma[:, :, index] for index, place in enumerate(PLACES)}
    found = {
        number("gamma", place=place): crossed_interval(each, rng=stream)
        for place, each in values.items()
    }
    heights = [interval.value for interval in found.values()]
    span = max(heights) - min(heights)
    for high, low in combinations(PLACES, 2):
        gap = crossed_interval((values[high] - values[low]) / span, rng=stream)
        found[number("gap", **{"from": high, "to": low})] = gap
    accuracy = [unit.log_row(step)["accuracy"] for unit in units]
    mean = float(np.mean(accuracy))
    found[number("accuracy")] = Interval(mean, min(accuracy), max(accuracy), len(units))
    return found


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


def local_then_last(cell: Cell) -> Finding:
    """Check the three hypotheses on an encoder: the second early, the third late, the first never.

    Early is within the first quarter of training, late at its end.
    """
    measured = _gaps(cell)
    steps = sorted({step for step, _, _ in measured})
    true = {
        name: [step for step in steps if _true_at(measured, step, gaps)]
        for name, gaps in HYPOTHESES.items()
    }
    early, late = true["hypothesis 2"], true["observation 3"]
    parts = [
        verdict(bool(early) and min(early) < steps[-1] / 4, True),
        verdict(steps[-1] in late, True),
        verdict(not true["hypothesis 1"], True),
    ]
    return Finding(all_of(parts), {name: _spoken(found) for name, found in true.items()})


Gaps = Mapping[tuple[int, str, str], Interval]


def _gaps(cell: Cell) -> Gaps:
    """Return each gap by its step and its two places, in either order."""
    found: dict[tuple[int, str, str], Interval] = {}
    for row in cell.select("gap"):
        step, high, low = int(row.axes["step"]), str(row.axes["from"]), str(row.axes["to"])
        found.setdefault((step, high, low), interval_of(row))
        found.setdefault((step, low, high), interval_of(row).scaled(-1))
    return found


def _true_at(measured: Gaps, step: int, gaps: Sequence[tuple[str, str]]) -> bool:
    if any((step, *gap) not in measured for gap in gaps):
        raise NotMeasured("gap")
    found = [measured[step, high, low] for high, low in gaps]
    much = all(gap.value >= _MUCH and gap.low > 0 for gap in found[:-1])
    return much and abs(found[-1].value) <= _ABOUT


def _spoken(steps: Sequence[int]) -> str:
    if not steps:
        return "at no evaluated step"
    return f"at {len(steps)} evaluated steps from {steps[0]} to {steps[-1]}"


_BOTH = Claim(
    Cells("gamma", by=("encoder",)),
    [local_then_last],
    Needs(seeds=5, each={"encoder": tuple(ENCODERS)}),
    deviation="both kinds of encoder: the paper does not say which it has",
    note="early: within the first quarter of training; late: at its end",
)
CLAIMS = {"snell.local-then-last": Readings(replace(_BOTH, over=any_of), _BOTH)}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw the four curves with their intervals: the first steps, then all, for both encoders."""
    names = {
        "keyword": "at the keyword",
        "next": "one after it",
        "mean": "mean of all",
        "last": "at the last position",
    }
    last = result.config["steps"]
    panels = []
    for encoder in ENCODERS:
        for title, end in (("first steps", min(_EARLY, last)), ("all steps", last)):
            frame = Panel(
                Axis("training steps", domain=(0, end)),
                Axis("log-odds γ of the right answer"),
                {names[place]: POSITIONS[place] for place in PLACES},
                title=f"{encoder.capitalize()} encoder, {title}",
            )
            rows = result.select("gamma", encoder=encoder)
            shown = [row for row in rows if int(row.axes["step"]) <= end]
            panels.append(
                band(shown, frame, x="step", group=lambda row: names[str(row.axes["place"])])
            )
    return {"fig7": beside(*panels, columns=2)}
