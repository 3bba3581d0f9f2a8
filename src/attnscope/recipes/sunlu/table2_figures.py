"""Table 2 as curves: accuracy and evenness of attention over λ, one panel a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from attnscope.recipes.recipe import Charts, Logged
from attnscope.runs.result import Measurement, Result

if TYPE_CHECKING:
    import altair as alt


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw accuracy over λ for every corpus, the paper's cells as open diamonds, and entropy."""
    from attnscope.figures.charts import beside

    datasets = list(dict.fromkeys(row.dataset for row in result.select("accuracy")))
    accuracy = [_panel(result, name, "accuracy") for name in datasets]
    entropy = [_panel(result, name, "entropy") for name in datasets]
    columns = min(2, len(datasets))
    return {
        "table2": beside(*accuracy, columns=columns),
        "entropy": beside(*entropy, columns=columns),
    }


_TITLES = {"accuracy": "accuracy (%)", "entropy": "entropy of α / log L"}


def _panel(result: Result, dataset: str, name: str) -> alt.LayerChart:
    import altair as alt

    from attnscope.figures.charts import Axis, Panel, curves, points
    from attnscope.figures.panel import data, x_channel, y_channel

    rows = result.select(name, dataset)
    colours = {model: colour for model, colour in _colours().items() if _of(rows, model)}
    scales = sorted({float(row.axes["lambda"]) for row in rows})
    ticks = [scale for scale in (0.001, 1.0, 10.0, 100.0, 10_000.0) if scale in scales] or scales
    x = Axis("scaling factor λ", "log", (scales[0] / 2, scales[-1] * 2), ticks, "~g")
    y = Axis(_TITLES[name], domain=_reach(rows))
    lines = [
        {
            # Models side by side, so that their intervals can be told apart.
            "lambda": float(row.axes["lambda"])
            * _ASIDE[list(colours).index(str(row.axes["model"]))],
            "model": row.axes["model"],
            **row.model_dump(include={"value", "low", "high"}),
        }
        for row in rows
    ]
    panel = Panel(x, y, colours, title=dataset, width=340)
    names = {"x": "lambda", "y": "value", "group": "model"}
    dots = points(lines, panel, low="low", high="high", **names)
    thin = curves(lines, replace(panel, labels="none"), detail="model", **names)
    layers: list[Any] = [*thin.layer, *dots.layer]
    heading = alt.TitleParams(dataset)
    printed = [
        {"x": row.axes["lambda"], "y": row.published, "group": row.axes["model"]}
        for row in rows
        if row.published is not None
    ]
    if printed:
        scale = alt.Scale(domain=list(colours), range=list(colours.values()))
        colour = alt.Color("group:N", scale=scale, legend=None)
        diamonds = alt.Chart(data(printed)).mark_point(shape="diamond", size=55, strokeWidth=1.2)
        layers.append(diamonds.encode(x=x_channel(x), y=y_channel(y), color=colour))
        heading = alt.TitleParams(dataset, subtitle="diamonds: published values")
    return alt.LayerChart(layer=layers).properties(
        width=panel.width, height=panel.height, title=heading
    )


_ASIDE = (0.85, 0.95, 1.05, 1.18)


def _of(rows: Sequence[Measurement], model: str) -> list[Measurement]:
    return [row for row in rows if row.axes["model"] == model]


def _reach(rows: Sequence[Measurement]) -> tuple[float, float]:
    ends = [
        end
        for row in rows
        for end in (row.value, row.low, row.high, row.published)
        if end is not None
    ]
    low, high = min(ends), max(ends)
    room = 0.05 * ((high - low) or 1.0)
    return low - room, high + room


def _colours() -> dict[str, str]:
    """Return a colour for each model, from those that stay apart in every vision."""
    from attnscope.figures.palette import ROLES, SCORES

    return {
        "DP": ROLES["control"],
        "DP-L": ROLES["hard"],
        "DP-A": ROLES["mixed"],
        "AD": SCORES["gold"],
    }
