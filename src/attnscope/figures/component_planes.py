"""Components in a plane: temporal paths, and words with their readouts (aitken Fig. 2–4, 6a)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from attnscope.figures.palette import SIDES, TRANSLATED, WORDS
from attnscope.figures.panel import Axis, Panel, framed, grouped, y_channel
from attnscope.runs.pictures import Plane

_STAR = (
    "M0,-1L0.235,-0.324L0.951,-0.309L0.38,0.124L0.588,0.809L0,0.4L-0.588,0.809L-0.38,0.124"
    "L-0.951,-0.309L-0.235,-0.324Z"
)
# How much longer than a readout its place in the panel is, for its name.
_ROOM = 1.25


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
