"""Panels that aitken's figures have in common: paths, planes, matrices, and names in symbols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from attnscope.figures.charts import heatmap
from attnscope.figures.palette import SIDES, TRANSLATED, WORDS
from attnscope.figures.panel import Axis, Panel, framed, grouped, y_channel
from attnscope.recipes.aitken.units import TRANSLATION
from attnscope.runs.pictures import Matrix, Plane

NAMES = {"aed": "AED", "ao": "AO"}
# Of a product the decoder's part comes first.
_LETTERS = {"muD": "μ", "muE": "μ", "chiD": "χ", "chiE": "χ", "deltahD": "Δh", "deltahE": "Δh"}
_DATASETS = {"one-to-one-3": "one-to-one", "escan": "eSCAN"}
_STAR = (
    "M0,-1L0.235,-0.324L0.951,-0.309L0.38,0.124L0.588,0.809L0,0.4L-0.588,0.809L-0.38,0.124"
    "L-0.951,-0.309L-0.235,-0.324Z"
)
# How much longer than a readout its place in the panel is, for its name.
_ROOM = 1.25


def term_symbols(name: str) -> str:
    """Return ``muD.chiE+muD.deltahE`` as ``μ·χ + μ·Δh``, and other words as they are."""
    if "." not in name:
        return name
    terms = [[_LETTERS[part] for part in term.split(".")] for term in name.split("+")]
    return " + ".join("·".join(letters) for letters in terms)


def dataset_name(dataset: str) -> str:
    """Return a data set's name as the paper has it."""
    if dataset.endswith(TRANSLATION):
        return "English–French"
    return _DATASETS.get(dataset, dataset)


def path_panel(plane: Plane, title: str) -> alt.LayerChart:
    """Draw temporal components in time's order, lighter when early; a square first, a star last."""
    values: list[dict[str, Any]] = [
        {"x": point.x, "y": point.y, "group": point.group, "step": int(point.label)}
        for point in plane.points
    ]
    ends = {value["group"]: value for value in values}  # the last one of each side
    panel = Panel(Axis(plane.x), Axis(plane.y), SIDES, title, labels="legend")
    y = y_channel(panel.y)
    light = alt.Opacity("step:Q", scale=alt.Scale(range=[0.35, 1.0]), legend=None)
    first = [value for value in values if value["step"] == 1]
    big: dict[str, Any] = {"filled": True, "opacity": 1}
    layers = [
        grouped(values, panel).mark_line(strokeWidth=1, opacity=0.5).encode(y=y, order="step:Q"),
        grouped(values, panel).mark_circle(size=30).encode(y=y, opacity=light),
        grouped(first, panel).mark_point(shape="square", size=90, **big).encode(y=y),
        grouped(list(ends.values()), panel).mark_point(shape=_STAR, size=150, **big).encode(y=y),
    ]
    return framed(layers, values, panel)


def plane_panel(plane: Plane, title: str, colours: Mapping[str, str] = WORDS) -> alt.LayerChart:
    """Draw χ + Δh of words (dots, the decoder's dark), their χ (crosses) and readouts (lines).

    Words are coloured by ``colours``, output words as those that they translate.
    """
    kinds: dict[str, list[dict[str, Any]]] = {}
    for label, kind, x, y in plane.points:
        value = {"x": x, "y": y, "group": TRANSLATED.get(label, label), "word": label}
        kinds.setdefault(kind, []).append(value)
    origin = kinds.pop("origin", [{"x": 0.0, "y": 0.0}])[0]
    values = [value for part in kinds.values() for value in part]
    groups = {value["group"] for value in values}
    shown = {word: colour for word, colour in colours.items() if word in groups}
    panel = Panel(Axis(plane.x), Axis(plane.y), shown, title, labels="legend")
    ends = kinds.get("readout", [])
    at_origin = {"x": origin["x"], "y": origin["y"]}
    # Readouts end near the words' own crosses: their names stand above or below.
    above = [end for end in ends if end["y"] >= origin["y"]]
    below = [end for end in ends if end["y"] < origin["y"]]
    room = [
        end | {axis: origin[axis] + _ROOM * (end[axis] - origin[axis]) for axis in "xy"}
        for end in ends
    ]
    height = y_channel(panel.y)
    layers = [
        grouped(kinds.get("state", []), panel).mark_circle(size=26, opacity=0.35),
        grouped([*(end | at_origin for end in ends), *ends], panel)
        .mark_line(strokeWidth=1.6)
        .encode(detail="word:N"),
        grouped(kinds.get("component", []), panel).mark_point(
            shape="cross", angle=45, size=110, filled=True, opacity=1
        ),
        grouped(above, panel).mark_text(dy=-13, fontSize=10).encode(text="word:N"),
        grouped(below, panel).mark_text(dy=14, fontSize=10).encode(text="word:N"),
        grouped(room, panel).mark_point(opacity=0, size=0),
        grouped(kinds.get("decoder state", []), panel).mark_circle(size=26, opacity=0.9),
    ]
    return framed([layer.encode(y=height) for layer in layers], values, panel)


def matrix_panel(
    matrix: Matrix,
    title: str,
    *,
    value_title: str = "attention",
    x_title: str = "input",
    y_title: str = "output",
    domain: tuple[float, float] = (0.0, 1.0),
    **options: Any,
) -> alt.LayerChart:
    """Draw a matrix with its labels."""
    return heatmap(
        matrix.values,
        columns=[str(label) for label in matrix.columns],
        rows=[str(label) for label in matrix.rows],
        x_title=x_title,
        y_title=y_title,
        value_title=value_title,
        title=title,
        domain=domain,
        **options,
    )


def readout_panel(matrix: Matrix, title: str, **options: Any) -> alt.LayerChart:
    """Draw the products of readouts with input components, the least one lightest."""
    known = [value for line in matrix.values for value in line if value is not None]
    return matrix_panel(
        matrix,
        title,
        value_title="product",
        x_title="input component",
        y_title="readout",
        domain=(min(known), max(known)),
        **options,
    )
