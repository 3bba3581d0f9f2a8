"""The worked example, and learned, probed and optimal attention of one sentence, drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from attnscope.recipes.recipe import Charts, Logged
from attnscope.recipes.snell.optimal_attention_claims import EXAMPLE
from attnscope.runs.result import Measurement, Result

_TITLES = {
    "attention": "α, learned",
    "lexical_probe": "β, lexical probe",
    "optimal_attention": "α optimal",
}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw the worked example, and the three scores of one sentence of each corpus."""
    from attnscope.figures.charts import Axis, beside, dots_with_intervals
    from attnscope.figures.palette import SCORES

    names = {
        "beta": ("β", SCORES["lexical_probe"]),
        "alpha_opt": ("α optimal", SCORES["optimal_attention"]),
    }
    lines = [
        {"label": f"{label}, position {row.axes['position']}", **row.model_dump()}
        for name, (label, _) in names.items()
        for row in result.select(name, EXAMPLE)
    ]
    tints = {line["label"]: names[line["name"]][1] for line in lines}
    ticks = (0, 0.25, 0.5, 0.75, 1)
    axis = Axis("probability of the right word (β), weight (α)", domain=(-0.04, 1), ticks=ticks)
    charts = {"worked-example": dots_with_intervals(lines, axis, label="label", colours=tints)}
    cells = result.select("weight")
    for dataset in dict.fromkeys(row.dataset for row in cells):
        mine = [row for row in cells if row.dataset == dataset]
        panels = [_panel([row for row in mine if row.axes["score"] == name]) for name in _TITLES]
        charts[f"sentence-{dataset}"] = beside(*panels)  # type: ignore[assignment]
    return charts


def _panel(cells: Iterable[Measurement]) -> Any:
    from attnscope.figures.charts import heatmap

    rows = list(cells)
    outputs = {int(row.axes["t"]): str(row.axes["output"]) for row in rows}
    inputs = {int(row.axes["l"]): str(row.axes["input"]) for row in rows}
    values = {(row.axes["t"], row.axes["l"]): row.value for row in rows}
    title = _TITLES[str(rows[0].axes["score"])]
    return heatmap(
        [[values[t, place] for place in inputs] for t in outputs],
        columns=list(inputs.values()),
        rows=list(outputs.values()),
        x_title="input",
        y_title="output",
        value_title="",
        title=title,
        domain=(0, 1),
    )
