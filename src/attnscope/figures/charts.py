"""Chart pieces that the recipes' figures are composed of.

Each piece takes plain rows (lists of dicts, as in logs and results), the names of the columns to
read, and a `Panel`, and returns an altair chart; `beside` sets several next to each other. Groups
are named at the end of their curves, so that no reader has to match a legend.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import altair as alt

from attnscope.figures.palette import NEUTRAL, SEQUENTIAL
from attnscope.figures.panel import (
    Axis,
    Guide,
    Panel,
    Rows,
    data,
    drawable,
    framed,
    grouped,
    plain,
    select,
    x_channel,
    y_channel,
)

__all__ = [
    "Axis",
    "Guide",
    "Panel",
    "band",
    "beside",
    "curves",
    "dots_with_intervals",
    "heatmap",
    "points",
    "themed",
]

Drawn = TypeVar("Drawn", alt.Chart, alt.LayerChart, alt.ConcatChart)

# The metrics of Arial, and carried by vl-convert: a PNG is the same on every machine.
_FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def curves(rows: Rows, panel: Panel, *, x: str, y: str, group: str, detail: str) -> alt.LayerChart:
    """Draw one thin line for each value of ``detail`` (a seed), coloured by group.

    Parameters
    ----------
    rows : sequence of mappings
        One row per point of a curve.
    panel : Panel
        Axes, colours and labels.
    x, y, group, detail : str
        Columns of ``rows``.
    """
    values = select(rows, x=x, y=y, group=group, detail=detail)
    # One layer per group, so that the order of `colours` decides which group is drawn on top.
    layers = [
        grouped([row for row in values if row["group"] == name], panel)
        .mark_line(strokeWidth=1.1, opacity=0.6, clip=True, strokeJoin="round")
        .encode(y=y_channel(panel.y), detail="detail:N")
        for name in panel.colours
    ]
    return framed(layers, values, panel)


def band(
    rows: Rows,
    panel: Panel,
    *,
    x: str,
    group: str,
    y: str = "value",
    low: str = "low",
    high: str = "high",
) -> alt.LayerChart:
    """Draw a line for each group inside the band from ``low`` to ``high``.

    Parameters
    ----------
    rows : sequence of mappings
        One row per group and x.
    panel : Panel
        Axes, colours and labels.
    x, y, low, high, group : str
        Columns of ``rows``.
    """
    values = drawable(select(rows, x=x, y=y, group=group, low=low, high=high), panel.y)
    areas = grouped(values, panel).mark_area(opacity=0.2, clip=True)
    lines = grouped(values, panel).mark_line(strokeWidth=2, clip=True, strokeJoin="round")
    layers = [
        areas.encode(y=y_channel(panel.y, "low"), y2="high:Q"),
        lines.encode(y=y_channel(panel.y)),
    ]
    return framed(layers, values, panel)


def points(
    rows: Rows,
    panel: Panel,
    *,
    x: str,
    y: str,
    group: str,
    low: str | None = None,
    high: str | None = None,
) -> alt.LayerChart:
    """Draw a point for each row, with a vertical interval where ``low`` and ``high`` are given.

    Parameters
    ----------
    rows : sequence of mappings
        One row per point.
    panel : Panel
        Axes, colours, labels, and the guides that the points are read against.
    x, y, low, high, group : str
        Columns of ``rows``.
    """
    names = {"x": x, "y": y, "group": group}
    if low is not None and high is not None:
        names |= {"low": low, "high": high}
    values = select(rows, **names)
    layers = [
        grouped(values, panel).mark_circle(size=40, opacity=0.85).encode(y=y_channel(panel.y))
    ]
    if "low" in names:
        bars = grouped(values, panel).mark_rule(strokeWidth=1.5, clip=True)
        layers.insert(0, bars.encode(y=y_channel(panel.y, "low"), y2="high:Q"))
    return framed(layers, values, panel)


def dots_with_intervals(
    rows: Rows,
    axis: Axis,
    *,
    label: str,
    value: str = "value",
    low: str = "low",
    high: str = "high",
    published: str = "published",
    colours: Mapping[str, str] | None = None,
    title: str = "",
    width: int = 260,
) -> alt.LayerChart:
    """Draw one line of text per row with its value, its interval and the paper's own value.

    Parameters
    ----------
    rows : sequence of mappings
        One row per value, drawn from top to bottom. Interval and published value may be None.
    axis : Axis
        The axis of the values.
    label, value, low, high, published : str
        Columns of ``rows``; the labels are distinct.
    colours : mapping, optional
        Colour of each label; neutral where none is given.
    title : str
        Title over the panel.
    width : int
        Width of the plot in pixels.
    """
    values = select(rows, group=label, x=value, low=low, high=high, published=published)
    order = [row["group"] for row in values]
    tints = [(colours or {}).get(name, NEUTRAL) for name in order]
    base = alt.Chart(data(values)).encode(
        y=alt.Y("group:N", sort=order, title=None, axis=alt.Axis(labelLimit=440, ticks=False)),
        color=alt.Color("group:N", scale=alt.Scale(domain=order, range=tints), legend=None),
    )
    layers = [
        base.mark_rule(strokeWidth=1.5, clip=True).encode(x=x_channel(axis, "low"), x2="high:Q"),
        base.mark_circle(size=46, opacity=1).encode(x=x_channel(axis)),
    ]
    heading = alt.TitleParams(title)
    if any(row["published"] is not None for row in values):
        # Open and larger than the dot, which stays visible inside it where the two agree.
        diamonds = base.mark_point(shape="diamond", size=130, stroke="#222222", strokeWidth=1.2)
        layers.append(diamonds.encode(x=x_channel(axis, "published")))
        # Vega shows no subtitle without a title.
        heading = alt.TitleParams(title or " ", subtitle="diamond: published value")
    return alt.LayerChart(layer=layers).properties(width=width, height=alt.Step(24), title=heading)


def heatmap(
    matrix: Iterable[Iterable[Any]],
    *,
    columns: Sequence[str],
    rows: Sequence[str],
    x_title: str,
    y_title: str,
    value_title: str,
    title: str = "",
    domain: tuple[float, float] | None = None,
    value_format: str | None = None,
    cell: int | None = None,
) -> alt.LayerChart:
    """Draw a matrix, one cell a value, with its tokens along the axes.

    Parameters
    ----------
    matrix : nested sequences, array or tensor
        One line of numbers per row. A missing or non-finite value (a masked position) is left grey.
    columns, rows : sequence of str
        Tokens along the two axes; the same token may come more than once.
    x_title, y_title, value_title, title : str
        Titles of the axes, of the colours, and of the panel.
    domain : pair of float, optional
        Values of the lightest and the darkest colour; from 0 to the largest value if not given, so
        that a constant matrix looks constant.
    value_format : str, optional
        Format of a number written into each cell, such as ``".2f"``.
    cell : int, optional
        Side of a cell in pixels; chosen by the number of cells if not given.
    """
    values = [
        {"row": i, "column": j, "value": number}
        for i, line in enumerate(matrix)
        for j, number in enumerate(map(plain, line))
        if number is not None
    ]
    numbers = [0.0, *(row["value"] for row in values)]
    low, high = domain or (min(numbers), max(numbers) or 1.0)
    side = cell or max(4, min(28, 240 // max(len(columns), len(rows), 1)))
    base = alt.Chart(data(values)).encode(
        x=alt.X("column:O", scale=_positions(columns), axis=_tokens(columns, x_title, side, "top")),
        y=alt.Y("row:O", scale=_positions(rows), axis=_tokens(rows, y_title, side, "left")),
    )
    colour = alt.Color(
        "value:Q",
        scale=alt.Scale(domain=[low, high], range=list(SEQUENTIAL), clamp=True),
        legend=alt.Legend(
            title=value_title,
            values=[low, (low + high) / 2, high],
            format=".3~g",
            gradientLength=min(120, max(60, side * len(rows) - 20)),
        ),
    )
    edges = 0.5 if side >= 9 else 0
    layers = [base.mark_rect(stroke="#D9D9D9", strokeWidth=edges).encode(color=colour)]
    if value_format is not None:
        on_dark = f"datum.value > {low + (high - low) / 2}"
        layers.append(
            base.mark_text(fontSize=min(11, side // 2)).encode(
                text=alt.Text("value:Q", format=value_format),
                color=alt.condition(on_dark, alt.value("white"), alt.value("#222222")),
            )
        )
    return alt.LayerChart(layer=layers).properties(
        width=side * len(columns),
        height=side * len(rows),
        title=alt.TitleParams(title),
        view=alt.ViewBackground(fill="#E0E0E0", stroke="#BBBBBB", strokeWidth=2),
    )


def beside(*panels: alt.LayerChart, title: str = "", columns: int | None = None) -> alt.ConcatChart:
    """Set panels next to each other, each with scales and colours of its own.

    Parameters
    ----------
    *panels
        Charts, from left to right.
    title : str
        Title over all of them.
    columns : int, optional
        Panels in a row; all of them if not given.
    """
    figure = alt.concat(*panels, columns=columns or len(panels), spacing=30)
    figure = figure.resolve_scale(x="independent", y="independent", color="independent")
    heading = alt.TitleParams(title, anchor="start", fontSize=14, offset=14)
    return figure.properties(title=heading) if title else figure


def themed(figure: Drawn) -> Drawn:
    """Give a whole figure the project's fonts, lines and spacing.

    Parameters
    ----------
    figure : altair chart
        A chart of this module, or any other; `save` calls this for a chart without a configuration.
    """
    return figure.configure(
        background="white",
        font=_FONT,
        padding=8,
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(
            labelFontSize=11,
            titleFontSize=12,
            titleFontWeight="normal",
            titlePadding=7,
            labelColor="#222222",
            titleColor="#222222",
            domainColor="#666666",
            tickColor="#666666",
            tickSize=4,
            grid=False,
            labelFlush=False,
        ),
        title=alt.TitleConfig(
            anchor="start",
            fontSize=12.5,
            fontWeight="bold",
            color="#222222",
            offset=9,
            subtitleColor="#444444",
            subtitleFontSize=11,
            subtitlePadding=6,
        ),
        legend=alt.LegendConfig(labelFontSize=11, titleFontSize=11, titleFontWeight="normal"),
    )


def _positions(tokens: Sequence[str]) -> alt.Scale:
    return alt.Scale(domain=list(range(len(tokens))), paddingInner=0, paddingOuter=0)


def _tokens(
    tokens: Sequence[str], title: str, side: int, orient: Literal["top", "left"]
) -> alt.Axis:
    """Show tokens at the positions 0, 1, …, so that a repeated token keeps a place of its own."""
    # A token is a string literal of the expression, never a part of its code.
    names = json.dumps([_NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", token) for token in tokens])
    narrow = orient == "left" or all(len(token) * 6.5 <= side for token in tokens)
    return alt.Axis(
        title=title,
        orient=orient,
        labels=side >= 9,
        labelExpr=f"{names}[datum.value]",
        labelAngle=0 if narrow else -45,
        labelLimit=110,
        labelOverlap=False,
        ticks=False,
        domain=False,
    )
