"""Figure 1: the price of another attention for an adversary trained to predict alike (Eq. 6).

An adversary is trained for every seed of every model and every λ until its training loss stops
falling, and compared with the model that it imitates. The attention that a search finds for each
text alone with the output held in place (Jain & Wallace) is measured with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Annotated, Any, Literal

import altair as alt
import numpy as np
from pydantic import Field

from attnscope.analysis.adversary import Search, find_adversaries
from attnscope.analysis.imitation import Imitated, compare_with_base, curve_gap
from attnscope.claims.decide import above
from attnscope.claims.table import Cells, Claim, Needs, Part
from attnscope.data.corpus import Corpus
from attnscope.figures.charts import Axis, Guide, Panel, beside, curves, points
from attnscope.figures.palette import CLASSIFIERS
from attnscope.recipes.kit import plots
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.settings import EachOnce, Names, Several
from attnscope.recipes.recipe import Charts
from attnscope.recipes.tutek.evaluation import LABELS, held_out, name_of, sheet_of
from attnscope.recipes.tutek.units import (
    SIZES,
    SMALL,
    Attentions,
    ModelVariant,
    TutekConfig,
    TutekUnits,
    deviations,
    train_corpora,
    training_of,
    variants,
)
from attnscope.runs.result import Measurement, Result
from attnscope.theory.divergence import LARGEST_JSD
from attnscope.training.imitation import Imitation
from attnscope.training.loaded import loaded_model
from attnscope.training.unit import Unit, every

_MODELS = ("base", "mlm", "tying")
# An adversary starts from other weights than its model.
_OTHER_SEED = 100

Strengths = Annotated[tuple[Annotated[float, Field(ge=0)], ...], Several, EachOnce]


class Config(TutekConfig):
    """Settings of figure 1."""

    corpus: Names = Field(("tutek-sst", "tutek-20news-uncut"), min_length=1)
    """Labelled corpora, known ones by name and your own by folder; one with short texts and one
    with long ones."""
    attention: Attentions = Field(("additive",), min_length=1)
    """Attentions to train; the paper does not say which it has."""
    lambdas: Strengths = Field((0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.3, 1), min_length=2)
    """Weights λ of the distance between attentions. The paper gives none; JSD is at most .69 and
    TVD at most 1, so that these reach from nothing to all. Between .01 and .1 attention leaves the
    base's: most of the curve lies there."""
    adversary_epochs: int = Field(80, ge=1)
    """Epochs of the adversaries at most, Wiegreffe and Pinter's."""
    patience: int = Field(10, ge=0)
    """Epochs without a lower training loss after which an adversary stops; the weights with the
    lowest count. Wiegreffe and Pinter's. 0: all epochs, and the last weights count."""
    adversary_steps: int = Field(20_000, ge=1)
    """Training steps of the adversaries at most."""
    searched: int = Field(500, ge=1)
    """Texts for which another attention is searched, at most."""
    search_steps: int = Field(500, ge=1)
    """Steps of that search, Jain and Wallace's."""


QUICK = SMALL | {"lambdas": [0, 1], "adversary_steps": 120, "searched": 40, "search_steps": 40}
HEADLINE = ("jsd", "tvd", "tvd_difference", "search_jsd")

Adversaries = Mapping[tuple[ModelVariant, float], Sequence[Imitated]]


def imitator_of(config: Config, base: Unit, divergence: float) -> Unit:
    """Return the adversary of a unit for one λ; it is trained without labels."""
    source = base.source
    assert isinstance(source, Corpus)
    term = Imitation(base=base, which="best", divergence=divergence)
    longer = {"epochs": config.adversary_epochs, "most_steps": config.adversary_steps}
    training = training_of(config.model_copy(update=longer), source, (term,))
    if config.patience:
        epochs = every(source.epoch(config.batch_size), training.steps)
        stop = {"best_by": "training_loss", "patience": config.patience, "evaluate_at": epochs}
        training = training.model_copy(update=stop)
    return base.model_copy(update={"training": training, "seed": base.seed + _OTHER_SEED})


def imitators(config: Config, runs: TutekUnits) -> dict[tuple[ModelVariant, float], list[Unit]]:
    """Return all adversaries of a corpus's models."""
    plan = {}
    for (variant, units), strength in product(runs.units.items(), config.lambdas):
        plan[variant, strength] = [imitator_of(config, one.unit, strength) for one in units]
    return plan


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train the models and their adversaries, and compare each pair on held-out texts."""
    corpora = train_corpora(config, lab, variants(config, _MODELS))
    # A base's settings are part of its adversary's, its device among them: as it was trained.
    trained = lab.train([imitators(config, runs) for runs in corpora], "adversaries")
    which: Literal["best", "last"] = "best" if config.patience else "last"
    rows: list[Measurement] = []
    for runs, adversaries in zip(corpora, trained, strict=True):
        batch, found = held_out(runs.source).batch.to(lab.device), {}
        for (variant, strength), units in adversaries.items():
            own = (loaded_model(unit, lab.device, which) for unit in units)
            bases = (loaded_model(unit, lab.device) for unit in runs.units[variant])
            pairs = zip(own, bases, strict=True)
            found[variant, strength] = [compare_with_base(*pair, batch) for pair in pairs]
        rows += _curve_rows(config, runs.source, found)
        rows += _search_rows(config, runs, lab.device)
    return rows


def _curve_rows(config: Config, source: Corpus, found: Adversaries) -> list[Measurement]:
    sheet = sheet_of(source, range(config.seeds))
    rows = []
    # Points (JSD, TVD) of each seed's curve over λ.
    points_of: dict[ModelVariant, list[list[tuple[float, float]]]] = {}
    for (variant, strength), each in found.items():
        axes = {**variant.axes, "lambda": strength}
        for name, column in (("jsd", "divergence"), ("tvd", "distance")):
            values = np.stack([getattr(one, column).numpy() for one in each])
            rows.append(sheet.crossed(name, values, axes))
            for seed, texts in enumerate(values):
                mean = float(texts.mean())
                rows.append(sheet.point(f"{name}_of_seed", mean, axes, len(texts), seeds=(seed,)))
        own = points_of.setdefault(variant, [[] for _ in each])
        for place, one in enumerate(each):
            own[place].append((float(one.divergence.mean()), float(one.distance.mean())))
    for variant, own in points_of.items():
        if variant.model != "base":
            base = points_of[ModelVariant("base", variant.attention)]
            gaps = [curve_gap(*pair) for pair in zip(own, base, strict=True)]
            rows.append(sheet.mean("tvd_difference", gaps, variant.axes))
    return rows


def _search_rows(config: Config, runs: TutekUnits, device: str) -> list[Measurement]:
    """Return how far attention can move with the output held, for seed 0 of every model."""
    sheet = sheet_of(runs.source, (0,))
    batch = held_out(runs.source).batch.spread(config.searched).to(device)
    search = Search(steps=config.search_steps)
    rows = []
    for variant, units in runs.units.items():
        found = find_adversaries(loaded_model(units[0], device), batch, search).divergence
        near = {"share above .6": float((found > 0.6).float().mean())}
        rows.append(sheet.crossed("search_jsd", found.numpy()[None], variant.axes, found=near))
    return rows


CLAIMS = {
    "tutek.adversary": Claim(
        Cells("tvd_difference", ("dataset", "attention")),
        (
            Part("", "tvd_difference", above, given={"model": "mlm"}, shown=False),
            Part("TVD, less the base model's:", "tvd_difference", each="model"),
            Part("JSD of the search:", "search_jsd", each="model"),
        ),
        Needs(seeds=5, sizes=SIZES),
        deviation=deviations,
    )
}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw TVD over JSD, one panel a corpus: the mean over seeds as a line, seeds as dots."""
    attentions = plots.axis_values(result.select("jsd"), "attention")
    panels = []
    for dataset in plots.datasets(result.select("jsd")):
        panels += [_panel(result, dataset, attention) for attention in attentions]
    return {"fig1": beside(*panels, columns=2)}


def _panel(result: Result, dataset: str, attention: str) -> alt.LayerChart:
    lines = _points(result, dataset, "", attention)
    dots = _points(result, dataset, "_of_seed", attention)
    top = 1.1 * max(dot["y"] for dot in dots)
    panel = Panel(
        Axis("distance of attentions, JSD (nats)", domain=(0, 0.72)),
        Axis("distance of predictions, TVD", domain=(0, top)),
        {LABELS[name]: CLASSIFIERS[name] for name in _MODELS},
        title=f"{dataset}, {attention}",
        guides=(Guide([(LARGEST_JSD, 0), (LARGEST_JSD, top)], "ln 2", at="start"),),
    )
    unnamed = Panel(panel.x, panel.y, panel.colours, labels="none")
    names = {"x": "x", "y": "y", "group": "group"}
    return points(dots, unnamed, **names) + curves(lines, panel, detail="group", **names)


def _points(result: Result, dataset: str, suffix: str, attention: str) -> list[dict[str, Any]]:
    jsd, tvd = (
        result.select(f"{name}{suffix}", dataset, attention=attention) for name in ("jsd", "tvd")
    )
    heights = {(str(row.axes), row.seeds): row.value for row in tvd}
    return [
        {"x": row.value, "y": heights[str(row.axes), row.seeds], "group": name_of(row)}
        for row in jsd
    ]
