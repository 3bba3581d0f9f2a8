"""Panels that figures 3 to 6 have in common: paths, planes and matrices of stored values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attnscope.figures.palette import SIDES, TRANSLATED, WORDS
from attnscope.recipes.aitken.shared_claims import TRANSLATION
from attnscope.runs.result import Measurement, Result

if TYPE_CHECKING:
    import altair as alt

NAMES = {"aed": "AED", "ao": "AO"}


# Of a product the decoder's part stands first.
_LETTERS = {"muD": "μ", "muE": "μ", "chiD": "χ", "chiE": "χ", "deltahD": "Δh", "deltahE": "Δh"}
_DATASETS = {"one-to-one-3": "one-to-one", "escan": "eSCAN"}


def term_symbols(name: str) -> str:
    """Return ``muD.chiE+muD.deltahE`` as ``μ·χ + μ·Δh``, and other words as they are."""
    if "." not in name:
        return name
    return " + ".join(
        "·".join(_LETTERS[part] for part in term.split(".")) for term in name.split("+")
    )


def dataset_name(dataset: str) -> str:
    """Return a data set's name as the paper has it."""
    if dataset.endswith(TRANSLATION):
        return "English–French"
    return _DATASETS.get(dataset, dataset)


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


_ROOM = 1.25


def plane_panel(
    rows: Sequence[Measurement], title: str, colours: Mapping[str, str] = WORDS
) -> alt.LayerChart:
    """Draw input-delta components (dots), input components (crosses) and readouts (lines)."""
    from attnscope.figures.panel import Axis, Panel, framed, grouped, y_channel

    places = _places(rows, "point", "word", "number")
    values = [
        {"x": x, "y": y, "group": TRANSLATED.get(word, word), "point": point, "word": word}
        for (point, word, _), (x, y) in places.items()
        if point != "origin"
    ]
    groups = {value["group"] for value in values}
    shown = {word: colour for word, colour in colours.items() if word in groups}
    panel = Panel(Axis("PC 1"), Axis("PC 2"), shown, title, labels="legend")
    y = y_channel(panel.y)
    dots, crosses, ends = (
        [value for value in values if value["point"] == point]
        for point in ("state", "component", "readout")
    )
    origins = [place for (point, *_), place in places.items() if point == "origin"]
    lines = [end | {"x": x, "y": height} for x, height in origins for end in ends] + ends
    # Readouts end near the words' own crosses: their names stand above or below.
    above, below = (
        [end for _, height in origins for end in ends if (end["y"] >= height) == up]
        for up in (True, False)
    )
    # Room for the names.
    room = [
        end | {"x": x + _ROOM * (end["x"] - x), "y": height + _ROOM * (end["y"] - height)}
        for x, height in origins
        for end in ends
    ]
    layers = [
        grouped(dots, panel).mark_circle(size=26, opacity=0.35).encode(y=y),
        grouped(lines, panel).mark_line(strokeWidth=1.6).encode(y=y, detail="word:N"),
        grouped(crosses, panel)
        .mark_point(shape="cross", angle=45, size=110, filled=True, opacity=1)
        .encode(y=y),
        grouped(above, panel).mark_text(dy=-13, fontSize=10).encode(y=y, text="word:N"),
        grouped(below, panel).mark_text(dy=14, fontSize=10).encode(y=y, text="word:N"),
        grouped(room, panel).mark_point(opacity=0, size=0).encode(y=y),
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
