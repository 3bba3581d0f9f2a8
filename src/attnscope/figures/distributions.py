"""Groups of values next to each other: each value as a point, or each group as a box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt

from attnscope.figures.charts import points
from attnscope.figures.palette import ink
from attnscope.figures.panel import Axis, Guide, Panel, data, x_channel

_BOX = 34  # pixels across


def strips(
    groups: Mapping[str, Sequence[float]],
    axis: Axis,
    colours: Mapping[str, str],
    *,
    title: str = "",
) -> alt.LayerChart:
    """Draw each value as a point, groups side by side with their names below, and a line at 0.

    Parameters
    ----------
    groups
        The values of each group, drawn from left to right in their order.
    axis
        The axis of the values.
    colours
        The colour of each group; a later one lies on top.
    """
    count = max(map(len, groups.values()), default=1)
    dots = []
    for column, (group, values) in enumerate(groups.items()):
        for place, value in enumerate(values):
            dots.append({"x": column + 0.1 + 0.8 * place / count, "y": value, "group": group})
    end = float(max(len(groups), 1))
    panel = Panel(
        Axis("", domain=(0.0, end), ticks=[]),
        axis,
        colours,
        title=title,
        labels="none",
        guides=[Guide([(0.0, 0.0), (end, 0.0)])],
        width=max(230, 110 * len(groups)) if len(groups) > 3 else 230,
    )
    chart = points(dots, panel, x="x", y="y", group="group")
    names = [
        alt.Chart(data([{"x": place + 0.5}]))
        .mark_text(text=name, color=ink(colours[name]), fontSize=11, baseline="top")
        .encode(x=x_channel(panel.x), y=alt.value(panel.height + 8))
        for place, name in enumerate(groups)
    ]
    return alt.LayerChart(layer=[*chart.layer, *names]).properties(
        width=panel.width, height=panel.height, title=chart.title
    )


def boxes(
    groups: Mapping[str, Mapping[str, float]],
    outliers: Mapping[str, Sequence[float]],
    colours: Mapping[str, str],
    *,
    y_title: str,
    title: str = "",
) -> alt.LayerChart:
    """Draw a box with whiskers for each group, and outliers as circles.

    Parameters
    ----------
    groups
        For each group ``low_whisker``, ``first_quartile``, ``median``, ``third_quartile`` and
        ``high_whisker``, as `attnscope.analysis.separation.Box` has them.
    outliers
        Values beyond the whiskers, by group.
    colours
        The colour of each group.
    """
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    colour = alt.Color("group:N", scale=scale, legend=None)
    x = alt.X("group:N", sort=list(groups), title=None, axis=alt.Axis(labelAngle=0))
    rows = [{"group": group, **numbers} for group, numbers in groups.items()]
    base = alt.Chart(data(rows)).encode(x=x, color=colour)

    def y(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title=y_title)

    quartiles = {"y": y("first_quartile"), "y2": "third_quartile:Q"}
    outlined = base.mark_bar(size=_BOX, fillOpacity=0.25, strokeWidth=1.5)
    layers = [
        base.mark_rule().encode(y=y("low_whisker"), y2="high_whisker:Q"),
        # White first, so that the whiskers end at the box.
        base.mark_bar(size=_BOX).encode(color=alt.value("white"), **quartiles),
        outlined.encode(stroke=colour, **quartiles),
        base.mark_tick(size=_BOX, thickness=2).encode(y=y("median")),
    ]
    circles = [{"group": group, "value": v} for group, each in outliers.items() for v in each]
    if circles:
        marks = alt.Chart(data(circles)).mark_point(size=22, strokeWidth=1)
        layers.append(marks.encode(x=x, y=y("value"), color=colour))
    return alt.LayerChart(layer=layers).properties(
        width=90 * len(groups), height=240, title=alt.TitleParams(title)
    )
