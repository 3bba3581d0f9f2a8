"""Panels that figures 3 to 6 have in common: paths, planes and matrices of stored values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attnscope.runs.result import Measurement, Result

if TYPE_CHECKING:
    import altair as alt

NAMES = {"aed": "AED", "ao": "AO"}
# As in the paper: the encoder orange, the decoder purple.
SIDES = {"encoder": "#D55E00", "decoder": "#7B3FA0"}
# A word on both sides has one colour.
WORDS = {
    "run": "#0072B2",
    "walk": "#009E73",
    "jump": "#D55E00",
    "left": "#9B118B",
    "and": "#E69F00",
    "twice": "#56B4E9",
    "<eos>": "#5F5F63",
}
OUTPUTS = {"RUN": "run", "WALK": "walk", "JUMP": "jump", "LTURN": "left", "<eos>": "<eos>"}
MODEL_COLOURS = {"AED": "#0072B2", "AO": "#DC3A12"}


def path_panel(rows: Sequence[Measurement], title: str) -> alt.LayerChart:
    """Draw temporal components in time's order, lighter when early; a square first, a star last."""
    import altair as alt

    from attnscope.figures.panel import Axis, Panel, framed, grouped, y_channel

    places = _places(rows, "side", "step")
    values = [
        {"x": x, "y": y, "group": side, "step": step} for (side, step), (x, y) in places.items()
    ]
    last = {
        side: max((v["step"] for v in values if v["group"] == side), default=0) for side in SIDES
    }
    panel = Panel(Axis("PC 1"), Axis("PC 2"), SIDES, title, labels="legend")
    light = alt.Opacity("step:Q", scale=alt.Scale(range=[0.35, 1.0]), legend=None)
    line, dots, first, end = (
        grouped(part, panel)
        for part in (
            values,
            values,
            [value for value in values if value["step"] == 1],
            [value for value in values if value["step"] == last[value["group"]]],
        )
    )
    y = y_channel(panel.y)
    layers = [
        line.mark_line(strokeWidth=1, opacity=0.5).encode(y=y, order="step:Q"),
        dots.mark_circle(size=30).encode(y=y, opacity=light),
        first.mark_point(shape="square", size=90, filled=True, opacity=1).encode(y=y),
        end.mark_point(shape=_STAR, size=150, filled=True, opacity=1).encode(y=y),
    ]
    return framed(layers, values, panel)


_STAR = (
    "M0,-1L0.235,-0.324L0.951,-0.309L0.38,0.124L0.588,0.809L0,0.4L-0.588,0.809L-0.38,0.124"
    "L-0.951,-0.309L-0.235,-0.324Z"
)


def plane_panel(
    rows: Sequence[Measurement], title: str, colours: Mapping[str, str] = WORDS
) -> alt.LayerChart:
    """Draw input-delta components (dots), input components (crosses) and readouts (lines)."""
    from attnscope.figures.panel import Axis, Panel, framed, grouped, y_channel

    places = _places(rows, "point", "word", "number")
    values = [
        {"x": x, "y": y, "group": OUTPUTS.get(word, word), "point": point, "word": word}
        for (point, word, _), (x, y) in places.items()
        if point != "origin"
    ]
    panel = Panel(Axis("PC 1"), Axis("PC 2"), colours, title, labels="legend")
    y = y_channel(panel.y)
    dots, crosses, ends = (
        [value for value in values if value["point"] == point]
        for point in ("state", "component", "readout")
    )
    origins = [place for (point, *_), place in places.items() if point == "origin"]
    lines = [end | {"x": x, "y": height} for x, height in origins for end in ends] + ends
    layers = [
        grouped(dots, panel).mark_circle(size=26, opacity=0.35).encode(y=y),
        grouped(lines, panel).mark_line(strokeWidth=1.6).encode(y=y, detail="word:N"),
        grouped(crosses, panel)
        .mark_point(shape="cross", angle=45, size=110, filled=True, opacity=1)
        .encode(y=y),
        grouped(ends, panel).mark_text(dy=-7, fontSize=10).encode(y=y, text="word:N"),
    ]
    return framed(layers, values, panel)


def example_panel(result: Result, model: str, title: str) -> alt.LayerChart:
    """Draw the attention on one sequence, with its words."""
    inputs, outputs = (
        [str(row.axes["word"]) for row in result.select("example", model=model, side=side)]
        for side in ("input", "output")
    )
    cells = result.select("attention", model=model)
    return _cells_panel(cells, inputs, outputs, title, "attention", 11)


def temporal_panel(result: Result, model: str, title: str) -> alt.LayerChart:
    """Draw the attention of temporal components alone, the paper's inset."""
    cells = result.select("temporal_attention", model=model)
    out, inp = (
        1 + max((int(row.axes[axis]) for row in cells), default=0) for axis in ("out", "inp")
    )
    inputs, outputs = ([str(place + 1) for place in range(size)] for size in (inp, out))
    return _cells_panel(cells, inputs, outputs, title, "softmax μ·μ", 8)


def _cells_panel(
    cells: Sequence[Measurement],
    columns: Sequence[str],
    rows: Sequence[str],
    title: str,
    value_title: str,
    cell: int,
) -> alt.LayerChart:
    from attnscope.figures.charts import heatmap

    matrix = [[0.0] * len(columns) for _ in rows]
    for row in cells:
        matrix[int(row.axes["out"])][int(row.axes["inp"])] = row.value or 0.0
    return heatmap(
        matrix,
        columns=columns,
        rows=rows,
        x_title="input",
        y_title="output",
        value_title=value_title,
        title=title,
        domain=(0.0, 1.0),
        cell=cell,
    )


def _places(rows: Sequence[Measurement], *axes: str) -> dict[tuple[Any, ...], tuple[float, float]]:
    """Return the two coordinates of every point; those of a point stand in two measurements."""
    found: dict[tuple[Any, ...], dict[int, float]] = {}
    for row in rows:
        point = tuple(row.axes[axis] for axis in axes)
        found.setdefault(point, {})[int(row.axes["pc"])] = row.value or 0.0
    return {point: (place[1], place[2]) for point, place in found.items() if len(place) == 2}


def readout_products(
    cells: Sequence[Measurement], title: str, *, cell: int, value_format: str | None = None
) -> alt.LayerChart:
    """Draw the products of readouts with input components, the least one lightest."""
    from attnscope.figures.charts import heatmap

    outputs, inputs = (
        list(dict.fromkeys(str(row.axes[axis]) for row in cells)) for axis in ("output", "input")
    )
    found = {(row.axes["output"], row.axes["input"]): row.value or 0.0 for row in cells}
    return heatmap(
        [[found[output, word] for word in inputs] for output in outputs],
        columns=inputs,
        rows=outputs,
        x_title="input component",
        y_title="readout",
        value_title="product",
        title=title,
        domain=(min(found.values()), max(found.values())),
        cell=cell,
        value_format=value_format,
    )
