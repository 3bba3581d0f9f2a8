"""Figure 1: what another attention costs an adversary that is trained to predict alike (Eq. 6).

An adversary is trained for every seed of every model and every λ, and its last weights are compared
with the model that it imitates. Beside it stands the attention that a search finds for each text
alone with the output held in place (Jain & Wallace).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from attnscope.analysis.adversary import Search, find_adversaries
from attnscope.analysis.imitation import Imitated, compare_with_base
from attnscope.analysis.intervals import Interval, crossed_interval, mean_interval
from attnscope.claims.decide import above, all_of
from attnscope.claims.pool import Decision, Pool, interval_of
from attnscope.data.corpus import Corpus
from attnscope.recipes.options import Names
from attnscope.recipes.recipe import Charts, Lab, Logged
from attnscope.recipes.tutek.colours import LABELS, MODELS
from attnscope.recipes.tutek.held_out import best_model, held_out, last_model, part_of
from attnscope.recipes.tutek.judging import (
    against,
    cells,
    deviations,
    evidence_of,
    full_size,
    too_few,
)
from attnscope.recipes.tutek.rows import Rows, axes_of, rng
from attnscope.recipes.tutek.units import (
    SMALL,
    Attentions,
    Numbers,
    Runs,
    TutekConfig,
    Which,
    train_corpora,
    training_of,
)
from attnscope.runs.result import Measurement, Result
from attnscope.theory.divergence import LARGEST_JSD
from attnscope.training.imitation import Imitation
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Unit

_MODELS = ("base", "mlm", "tying")
# An adversary starts from other weights than its model.
_OTHER_SEED = 100
_PLACES = 101  # of the common range at which two curves are compared


class Config(TutekConfig):
    """Settings of figure 1."""

    corpus: Names = Field(("tutek-sst", "tutek-20news"), min_length=1)  # one short, one long
    attention: Attentions = Field(("additive",), min_length=1)  # the paper does not say which
    # The paper gives no λ. Its published code has some 5e-4 with a divergence that has no upper
    # bound; JSD has one, .69, and TVD is at most 1, so that these reach from nothing to all.
    lambdas: Numbers = Field((0, 0.01, 0.1, 1), min_length=2)
    searched: int = Field(500, ge=1)  # texts for which an attention is searched, at most
    search_steps: int = Field(500, ge=1)  # Jain and Wallace's


QUICK = SMALL | {
    "lambdas": [0, 1],
    "searched": 40,
    "search_steps": 40,
}
HEADLINE = ("jsd", "tvd", "tvd_difference", "search_jsd")


def imitator_of(config: Config, base: Unit, divergence: float) -> Unit:
    """Return the adversary of a unit for one λ; it knows no labels."""
    source = base.source
    assert isinstance(source, Corpus)
    term = Imitation(base=base, which="best", divergence=divergence)
    training = training_of(config, source, (term,))
    return base.model_copy(update={"training": training, "seed": base.seed + _OTHER_SEED})


def imitators(config: Config, runs: Runs) -> dict[tuple[Which, float], list[Unit]]:
    """Return all adversaries of a corpus's models."""
    return {
        (which, strength): [imitator_of(config, trained.unit, strength) for trained in units]
        for which, units in runs.units.items()
        for strength in config.lambdas
    }


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train the models and their adversaries, and compare each pair on held-out texts."""
    models = [Which(name, attention) for attention in config.attention for name in _MODELS]
    corpora = train_corpora(config, lab, models)
    # A base's settings are part of its adversary's, its device among them: as it was trained.
    trained = lab.train([imitators(config, runs) for runs in corpora], "adversaries")
    made: list[Measurement] = []
    for runs, adversaries in zip(corpora, trained, strict=True):
        found = {
            (which, strength): [
                _compared(imitator, base, lab.device)
                for imitator, base in zip(each, runs.units[which], strict=True)
            ]
            for (which, strength), each in adversaries.items()
        }
        made += _curve_rows(config, runs, found)
        made += _search_rows(config, runs, lab.device)
    return made


def _compared(imitator: TrainedUnit, base: TrainedUnit, device: str) -> Imitated:
    batch = held_out(base.unit.source).batch.to(device)
    return compare_with_base(last_model(imitator, device), best_model(base, device), batch)


Found = Mapping[tuple[Which, float], Sequence[Imitated]]


def _curve_rows(config: Config, runs: Runs, found: Found) -> list[Measurement]:
    rows = Rows(runs.source, range(config.seeds))
    made = []
    curves: dict[Which, list[list[tuple[float, float]]]] = {}
    for (which, strength), each in found.items():
        axes = axes_of(which) | {"lambda": strength}
        for name, column in (("jsd", "divergence"), ("tvd", "distance")):
            values = np.stack([getattr(one, column).numpy() for one in each])
            made.append(rows.row(name, crossed_interval(values, rng=rng()), axes))
            for seed, numbers in enumerate(values):
                mean = Interval(float(numbers.mean()), np.nan, np.nan, len(numbers))
                made.append(rows.row(f"{name}_of_seed", mean, axes, seeds=(seed,)))
        points = curves.setdefault(which, [[] for _ in each])
        for place, one in enumerate(each):
            points[place].append((float(one.divergence.mean()), float(one.distance.mean())))
    for which, own in curves.items():
        if which.model != "base":
            base = curves[Which("base", which.attention)]
            gaps = [curve_gap(*pair) for pair in zip(own, base, strict=True)]
            interval = mean_interval(gaps, rng=rng())
            made.append(rows.row("tvd_difference", interval, axes_of(which)))
    return made


def curve_gap(one: Sequence[tuple[float, float]], other: Sequence[tuple[float, float]]) -> float:
    """Return the mean of y₁(x) − y₂(x) over the x that both curves reach, NaN if there are none.

    Parameters
    ----------
    one, other
        Points (x, y) in any order; between them a curve is straight.
    """
    first, second = (np.array(sorted(points)) for points in (one, other))
    low = max(first[0, 0], second[0, 0])
    high = min(first[-1, 0], second[-1, 0])
    if not low < high:
        return float("nan")
    places = np.linspace(low, high, _PLACES)
    gap = np.interp(places, *first.T) - np.interp(places, *second.T)
    return float(gap.mean())


def _search_rows(config: Config, runs: Runs, device: str) -> list[Measurement]:
    """Return how far attention can move with the output held, for seed 0 of every model."""
    rows = Rows(runs.source, (0,))
    batch = part_of(held_out(runs.source).batch, config.searched).to(device)
    search = Search(steps=config.search_steps)
    made = []
    for which, units in runs.units.items():
        found = find_adversaries(best_model(units[0], device), batch, search)
        interval = mean_interval(found.divergence.numpy(), rng=rng())
        near = {"share above .6": float((found.divergence > 0.6).float().mean())}
        made.append(rows.row("search_jsd", interval, axes_of(which), found=near))
    return made


def adversary(pool: Pool) -> Decision:
    """Decide tutek.adversary: the MLM model's adversaries pay more TVD; tying beside."""
    pool = full_size(pool)
    every = cells(pool, "tvd_difference", "attention", "model")
    evidence = evidence_of(every)
    evidence |= {
        f"search, {key}": shown
        for key, shown in evidence_of(cells(pool, "search_jsd", "model", seeds=1)).items()
    }
    found = {key: row for key, row in every.items() if key[2] == "mlm"}
    if not found:
        return too_few("a corpus with five seeds", 0, evidence)
    parts = [above(interval_of(row)) for row in found.values()]
    corpora = {key[0] for key in found}
    return Decision(all_of(parts), evidence, deviations(pool, corpora), against(found, parts))


CLAIMS = {"tutek.adversary": adversary}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw TVD over JSD, one panel a corpus: the mean over seeds as a line, seeds as dots."""
    from attnscope.figures.charts import Axis, Guide, Panel, beside, curves, points

    panels = []
    attentions = dict.fromkeys(str(row.axes["attention"]) for row in result.select("jsd"))
    for dataset in dict.fromkeys(row.dataset for row in result.select("jsd")):
        for attention in attentions:
            where = {"attention": attention}
            lines = _points(result, dataset, "", **where)
            dots = _points(result, dataset, "_of_seed", **where)
            top = 1.1 * max(dot["y"] for dot in dots)
            bound = Guide([(LARGEST_JSD, 0), (LARGEST_JSD, top)], "ln 2", at="start")
            panel = Panel(
                Axis("JSD of attention (nats)", domain=(0, 0.72)),
                Axis("TVD of predictions", domain=(0, top)),
                {LABELS[name]: MODELS[name] for name in _MODELS},
                title=f"{dataset}, {attention}",
                guides=(bound,),
            )
            unnamed = Panel(panel.x, panel.y, panel.colours, labels="none")
            names = {"x": "x", "y": "y", "group": "group"}
            panels.append(
                points(dots, unnamed, **names) + curves(lines, panel, detail="group", **names)
            )
    return {"fig1": beside(*panels, columns=2)}


def _points(result: Result, dataset: str, suffix: str, **axes: str) -> list[dict[str, Any]]:
    tvd = {
        (row.axes["model"], row.axes["lambda"], row.seeds): row.value
        for row in result.select(f"tvd{suffix}", dataset, **axes)
    }
    return [
        {
            "x": row.value,
            "y": tvd[row.axes["model"], row.axes["lambda"], row.seeds],
            "group": LABELS[str(row.axes["model"])],
        }
        for row in result.select(f"jsd{suffix}", dataset, **axes)
    ]
