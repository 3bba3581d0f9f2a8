"""Tables 1 and 2: accuracy of four models over seven scaling factors, and how even attention is.

The paper reports one run of each cell; here several seeds are averaged, with an interval over seeds
and test texts. As in the paper the epoch with the highest accuracy on the development part is the
one that is tested; λ is called best by the same part, so that no test text chooses anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import altair as alt
import numpy as np
from pydantic import Field

from attnscope.analysis.intervals import Interval
from attnscope.claims.decide import about_equal, above
from attnscope.claims.pool import Pool
from attnscope.claims.table import Cell, Cells, Claim, Needs, Part
from attnscope.figures.charts import Axis, Panel, beside, curves, points
from attnscope.figures.palette import ROLES, SCORES
from attnscope.figures.panel import data, x_channel, y_channel
from attnscope.recipes.kit import plots
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.sheet import rng
from attnscope.recipes.recipe import Charts
from attnscope.recipes.sunlu.corpora import answers_of, sheet_of, statistics_rows
from attnscope.recipes.sunlu.units import (
    CORPORA,
    MODELS,
    SCALES,
    SIZES,
    Models,
    Plan,
    Scales,
    SunluConfig,
    SunluUnits,
    Variant,
    deviations,
    train,
)
from attnscope.runs.result import Measurement, Result


class Config(SunluConfig):
    """Settings of the grid."""

    models: Models = Field(MODELS, min_length=1)
    """Models of the grid: dot-product attention over words (DP), LSTM states (DP-L) or affine
    states (DP-A), and additive attention (AD)."""
    scales: Scales = Field(SCALES, min_length=2)
    """Scaling factors λ of the grid, the paper's; "best" needs two."""


QUICK = {
    "corpus": "grammar-sentiment",
    "seeds": 2,
    "scales": (0.001, 10.0, 10_000.0),
    "embedding": 20,
    "hidden": 20,
    "lstm_hidden": 10,
    "epochs": 3,
}
HEADLINE = (
    "accuracy",
    "majority",
    "bag_of_words",
    "drop",
    "entropy",
    "avg_length",
    "vocab_size",
    "train_size",
    "val_size",
    "group_size",
    "left_out",
)


def plan(config: Config) -> Plan:
    """Return the cells of the grid, with their seeds."""
    cells = [Variant(model, scale) for model in config.models for scale in config.scales]
    return dict.fromkeys(cells, config.seeds)


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train the grid on every corpus and test every cell."""
    rows: list[Measurement] = []
    for runs in train(config, plan(config), lab):
        rows += statistics_rows(runs.source, config.rule)
        for model in config.models:
            rows += _column(runs, model, config, lab.device)
    return rows


def _column(runs: SunluUnits, model: str, config: Config, device: str) -> list[Measurement]:
    """Return a model's column of Table 2."""
    sheet = sheet_of(runs.source, range(config.seeds), "table2", percent=True)
    cells, dev = {}, {}
    for scale in config.scales:
        units = runs.cells[Variant(model, scale)]
        cells[scale] = answers_of(units, runs.source, device)
        dev[scale] = float(np.mean([unit.log_row(unit.best_step)["accuracy"] for unit in units]))
    best = max(config.scales, key=lambda scale: dev[scale])
    rows: list[Measurement] = []
    for scale, cell in cells.items():
        axes, printed = Variant(model, scale).axes, {"model": model, "lambda": scale}
        found, accuracy = {"dev accuracy": 100 * dev[scale]}, cell.accuracy(rng=rng())
        rows.append(sheet.row("accuracy", accuracy, axes, share=True, found=found, variant=printed))
        # How much better the best λ is on the same seeds and texts.
        drop = cells[best].accuracy(rng=rng(), less=cell)
        drop = Interval(0.0, 0.0, 0.0, drop.n) if scale == best else drop
        rows.append(sheet.row("drop", drop, axes, share=True, found={"best": best}))
        rows.append(sheet.crossed("entropy", cell.entropy, axes))
    return rows


def _whole_grid(pool: Pool, cells: Sequence[Cell]) -> str:
    """Return a note if the paper's grid is not complete."""
    whole = [
        cell
        for cell in cells
        if {row.axes["lambda"] for row in cell.select("drop", **{"lambda": None})} >= set(SCALES)
    ]
    if pool.quick or len(whole) == len(CORPORA) * len(MODELS):
        return ""
    return "needs four corpora, four models, seven values of λ and three seeds at full size"


def _every_cell(scale: float, *parts: Part) -> Claim:
    """Return a claim about all four models on all four corpora at one λ."""
    return Claim(
        Cells("drop", ("dataset", "model"), {"lambda": scale, "model": MODELS}, decide=CORPORA),
        parts,
        Needs(seeds=3, sizes=SIZES, also=_whole_grid),
        deviation=deviations,
    )


CLAIMS = {
    # Worse than at the model's best λ.
    "sunlu.small-lambda": _every_cell(
        0.001,
        Part("drop at .001", "drop", above),
        Part("drop at 1", "drop", given={"lambda": 1.0}),
    ),
    # About as good as at the best λ, and attention even.
    "sunlu.large-lambda": _every_cell(
        10_000.0,
        Part("drop", "drop", about_equal, 3.0),
        Part("entropy", "entropy", above, 0.99),
    ),
}

_TITLES = {"accuracy": "accuracy (%)", "entropy": "entropy of attention, α, over log L"}
_TICKS = (0.001, 1.0, 10.0, 100.0, 10_000.0)
# Colours that stay apart in every vision, and factors of λ that keep intervals from overlapping.
_COLOURS = {
    "DP": ROLES["control"],
    "DP-L": ROLES["hard"],
    "DP-A": ROLES["mixed"],
    "AD": SCORES["gold"],
}
_ASIDE = (0.85, 0.95, 1.05, 1.18)


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw accuracy over λ for every corpus, the paper's cells as open diamonds, and entropy."""
    datasets = plots.datasets(result.select("accuracy"))
    charts = {}
    for figure, name in (("table2", "accuracy"), ("entropy", "entropy")):
        panels = [_panel(result.select(name, dataset), dataset) for dataset in datasets]
        charts[figure] = beside(*panels, columns=min(2, len(datasets)))
    return charts


_WORDS = {"DP": "dot", "DP-L": "dot, LSTM", "DP-A": "dot, affine", "AD": "additive"}


def _named(model: str) -> str:
    return f"{_WORDS[model]}, {model}"


def _panel(rows: Sequence[Measurement], dataset: str) -> alt.LayerChart:
    present = plots.axis_values(rows, "model")
    colours = {_named(model): colour for model, colour in _COLOURS.items() if model in present}
    scales = sorted(plots.axis_values(rows, "lambda"))
    ticks = [scale for scale in _TICKS if scale in scales] or scales
    panel = Panel(
        Axis("scaling factor λ", "log", (scales[0] / 2, scales[-1] * 2), ticks, "~g"),
        Axis(_TITLES[rows[0].name], domain=plots.span(rows)),
        colours,
        title=dataset,
        width=340,
    )
    aside = dict(zip(colours, _ASIDE, strict=False))
    lines, printed = [], []
    for row in rows:
        model, scale = _named(str(row.axes["model"])), float(row.axes["lambda"])
        lines.append(plots.ends(row) | {"lambda": scale * aside[model], "model": model})
        if row.published is not None:
            printed.append({"x": scale, "y": row.published, "group": model})
    names = {"x": "lambda", "y": "value", "group": "model"}
    thin = curves(lines, replace(panel, labels="none"), detail="model", **names)
    dots = points(lines, panel, low="low", high="high", **names)
    layers = [*thin.layer, *dots.layer]
    heading = alt.TitleParams(dataset)
    if printed:
        scale_of = alt.Scale(domain=list(colours), range=list(colours.values()))
        colour = alt.Color("group:N", scale=scale_of, legend=None)
        diamonds = alt.Chart(data(printed)).mark_point(shape="diamond", size=55, strokeWidth=1.2)
        layers.append(diamonds.encode(x=x_channel(panel.x), y=y_channel(panel.y), color=colour))
        heading = alt.TitleParams(dataset, subtitle="diamonds: published values")
    return alt.LayerChart(layer=layers).properties(
        width=panel.width, height=panel.height, title=heading
    )
