"""A panel's frame: axes, colours, guides, and the names of the groups next to their curves.

The pieces of `charts` draw the inside of a panel; the frame is the same for all of them, so that
all figures of the project read alike.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import altair as alt

from attnscope.figures.palette import NEUTRAL, ink

Rows = Sequence[Mapping[str, Any]]
Values = list[dict[str, Any]]

_LINE_HEIGHT = 13  # pixels from one line of a label to the next
_GAP = 4  # pixels between two labels


@dataclass(frozen=True)
class Axis:
    """Title (with its unit), scale and range of an axis."""

    title: str
    scale: Literal["linear", "log", "sqrt", "symlog"] = "linear"
    domain: tuple[float, float] | None = None
    ticks: Sequence[float] | None = None
    format: str | None = None


@dataclass(frozen=True)
class Guide:
    """A dashed line to read data against: a threshold, a diagonal, a predicted law.

    Its label is right of its last point, or (``at="start"``) above its first point, where a
    threshold has room while the curves are still far from it.
    """

    points: Sequence[tuple[float, float]]
    label: str = ""
    at: Literal["start", "end"] = "end"


@dataclass(frozen=True)
class Panel:
    """The frame of a panel: everything but its data.

    Parameters
    ----------
    x, y : Axis
        The axes.
    colours : mapping
        Colour of each group, in the order of drawing: a later group is drawn on top. The groups'
        names are their labels and may have several lines.
    title : str
        Title over the panel.
    labels : {"direct", "legend", "none"}
        Where groups are named: at the end of their curves, in a legend, or nowhere.
    guides : sequence of Guide
        Lines to read the data against.
    width, height : int
        Size of the plot in pixels, without axes and labels.
    """

    x: Axis
    y: Axis
    colours: Mapping[str, str]
    title: str = ""
    labels: Literal["direct", "legend", "none"] = "direct"
    guides: Sequence[Guide] = ()
    width: int = 260
    height: int = 190


def plain(value: Any) -> Any:
    """Return a value as JSON holds it: no numpy scalars, None for what is not finite."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def select(rows: Rows, **columns: str) -> Values:
    """Keep the named columns under fixed names, which need no escaping in vega's field paths."""
    optional = {"low", "high", "published"}
    return [
        {
            key: plain(row.get(name) if key in optional else row[name])
            for key, name in columns.items()
        }
        for row in rows
    ]


def drawable(values: Values, axis: Axis) -> Values:
    """Return rows whose intervals a logarithmic axis can show.

    An end at or below 0 is drawn a decade below the smallest number, where the panel ends.
    """
    if axis.scale != "log":
        return values
    numbers = [row[key] for row in values for key in ("y", "low", "high") if row[key] is not None]
    least = min((number for number in numbers if number > 0), default=1.0) / 10
    return [row | {"low": _at_least(least, row["low"])} for row in values]


def _at_least(least: float, value: float | None) -> float | None:
    return None if value is None else max(least, value)


def data(values: Values) -> alt.Data:
    """Hand rows over as one JSON text: altair would check and copy each row many times over."""
    return alt.Data(values=json.dumps(values), format=alt.DataFormat(type="json"))


def grouped(values: Values, panel: Panel) -> alt.Chart:
    """Start a layer: its data, its x axis and the colours of its groups."""
    scale = alt.Scale(domain=list(panel.colours), range=list(panel.colours.values()))
    legend = None
    if panel.labels == "legend":
        # As many names in a line as the panel is wide, at about six pixels a letter.
        longest = max(map(len, panel.colours), default=0)
        legend = alt.Legend(
            title=None,
            orient="bottom",
            columns=max(1, panel.width // (6 * longest + 26)),
            symbolType="stroke",
            symbolStrokeWidth=2,
            symbolOpacity=1,
        )
    colour = alt.Color("group:N", scale=scale, legend=legend)
    return alt.Chart(data(values)).encode(x=x_channel(panel.x), color=colour)


def x_channel(axis: Axis, field: str = "x") -> alt.X:
    """Encode a column along the horizontal axis."""
    return alt.X(f"{field}:Q", title=axis.title, scale=_scale(axis), axis=_ticks(axis))


def y_channel(axis: Axis, field: str = "y") -> alt.Y:
    """Encode a column along the vertical axis."""
    return alt.Y(f"{field}:Q", title=axis.title, scale=_scale(axis), axis=_ticks(axis))


def _scale(axis: Axis) -> alt.Scale:
    if axis.domain is None:
        return alt.Scale(type=axis.scale, zero=False)
    return alt.Scale(type=axis.scale, domain=list(axis.domain), nice=False)


def _ticks(axis: Axis) -> alt.Axis:
    # All requested ticks are shown; vega would thin them to a tick count.
    options: dict[str, Any] = {"tickCount": 5}
    if axis.ticks is not None:
        options = {"values": list(axis.ticks), "labelOverlap": False}
    if axis.format is not None:
        options["format"] = axis.format
    return alt.Axis(**options)


def framed(layers: Sequence[alt.Chart], values: Values, panel: Panel) -> alt.LayerChart:
    """Put guides under the layers, and labels next to them."""
    unknown = {row["group"] for row in values} - set(panel.colours)
    if unknown:
        raise ValueError(f"no colour for group {sorted(map(str, unknown))}")
    guides = [_guide(guide, panel) for guide in panel.guides]
    named = [guide for guide in panel.guides if guide.label]
    labels = [
        _label(guide.points[-1], guide.label, NEUTRAL) for guide in named if guide.at == "end"
    ]
    if panel.labels == "direct":
        labels = [*_group_labels(values, panel), *labels]
    edge = max([*(label.x for label in labels), *(panel.x.domain or ())], default=0.0)
    labels = _spread([replace(label, x=edge) for label in labels], values, panel)
    labels += [
        replace(_label(guide.points[0], guide.label, NEUTRAL), nudge=-8.0)
        for guide in named
        if guide.at == "start"
    ]
    texts = [_text(label, panel) for label in labels]
    return alt.LayerChart(layer=[*guides, *layers, *texts]).properties(
        width=panel.width, height=panel.height, title=alt.TitleParams(panel.title)
    )


def _guide(guide: Guide, panel: Panel) -> alt.Chart:
    values = [{"x": x, "y": y} for x, y in guide.points]
    line = alt.Chart(data(values)).mark_line(
        color=NEUTRAL, strokeWidth=1.2, strokeDash=[4, 3], clip=True
    )
    return line.encode(x=x_channel(panel.x), y=y_channel(panel.y), order="x:Q")


@dataclass(frozen=True)
class _Label:
    x: float
    y: float
    lines: tuple[str, ...]
    colour: str
    nudge: float = 0.0


def _label(point: tuple[float, float], text: str, colour: str) -> _Label:
    return _Label(*point, tuple(text.split("\n")), ink(colour))


def _group_labels(values: Values, panel: Panel) -> list[_Label]:
    """Name each group at the right, at the mean height where its curves end."""
    labels = []
    for name, colour in panel.colours.items():
        mine = [row for row in values if row["group"] == name and row["y"] is not None]
        if mine:
            end = max(row["x"] for row in mine)
            last = [row["y"] for row in mine if row["x"] == end]
            labels.append(_label((end, sum(last) / len(last)), name, colour))
    return labels


def _spread(labels: Sequence[_Label], values: Values, panel: Panel) -> list[_Label]:
    """Nudge labels up or down until none overlaps another."""
    heights = [row["y"] for row in values if row["y"] is not None]
    bounds = panel.y.domain or (min(heights, default=0.0), max(heights, default=1.0))
    # Nearest the top first; each label then starts no higher than the one above it ends.
    wanted = sorted(
        ((_pixel(label.y, bounds, panel), label) for label in labels), key=lambda pair: pair[0]
    )
    halves = [_LINE_HEIGHT * len(label.lines) / 2 for _, label in wanted]
    places: list[float] = []
    free = -math.inf
    for (middle, _), half in zip(wanted, halves, strict=True):
        places.append(max(middle, free + half))
        free = places[-1] + half + _GAP
    # Labels pushed below the panel move back up, and push those above them.
    floor = panel.height + _LINE_HEIGHT / 2
    for index, half in reversed(list(enumerate(halves))):
        places[index] = min(places[index], floor - half)
        floor = places[index] - half - _GAP
    return [
        replace(label, nudge=place - middle)
        for place, (middle, label) in zip(places, wanted, strict=True)
    ]


_BENDS: dict[str, Callable[[float], float]] = {
    "linear": float,
    "log": lambda value: math.log(max(value, 1e-300)),
    "sqrt": lambda value: math.copysign(math.sqrt(abs(value)), value),
    "symlog": lambda value: math.copysign(math.log1p(abs(value)), value),
}


def _pixel(value: float, bounds: tuple[float, float], panel: Panel) -> float:
    """Distance of a value from the panel's top, near enough to keep labels apart."""
    bend = _BENDS[panel.y.scale]
    low, high, middle = bend(bounds[0]), bend(bounds[1]), bend(value)
    share = (middle - low) / (high - low) if high > low else 0.5
    return panel.height * (1 - min(1.0, max(0.0, share)))


def _text(label: _Label, panel: Panel) -> alt.Chart:
    mark = alt.Chart(data([{"x": label.x, "y": label.y}])).mark_text(
        text=list(label.lines),
        color=label.colour,
        align="left",
        baseline="middle",
        dx=7,
        dy=label.nudge - _LINE_HEIGHT * (len(label.lines) - 1) / 2,
        fontSize=11,
        lineHeight=_LINE_HEIGHT,
    )
    return mark.encode(x=x_channel(panel.x), y=y_channel(panel.y))
