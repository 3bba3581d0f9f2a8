"""Measurements as charts: each function takes rows of a result, not prepared columns.

``label``, ``group`` and ``colour`` are functions of a measurement, so that a figure says how its
rows are named and coloured, and nothing else::

    rows = result.select("f1_trained", "sst")
    dots(rows, Axis("F1 (%)"), label=lambda row: row.axes["model"], colour=colour_of)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import altair as alt

from attnscope.analysis.learning import LEARNED_AT
from attnscope.figures import charts
from attnscope.figures.charts import Axis, Guide, Panel
from attnscope.figures.palette import NEUTRAL
from attnscope.figures.panel import grouped, y_channel
from attnscope.recipes.kit.lab import Logged
from attnscope.runs.result import Matrix, Measurement, Plane, Result

Says = Callable[[Measurement], str]


def dots(
    rows: Iterable[Measurement],
    axis: Axis,
    *,
    label: Says,
    colour: Says | None = None,
    title: str = "",
    width: int = 260,
    published: bool = True,
) -> alt.LayerChart:
    """Draw one line of text per measurement: value, interval and published number.

    Parameters
    ----------
    label
        The text of a row; two rows of one label lie on top of each other.
    colour
        The colour of a row; grey if not given.
    published
        Whether published numbers are drawn.
    """
    lines, colours = [], {}
    for row in rows:
        line = ends(row) | {"label": label(row)}
        lines.append(line if published else line | {"published": None})
        colours[line["label"]] = colour(row) if colour else NEUTRAL
    return charts.dots_with_intervals(
        lines, axis, label="label", colours=colours, title=title, width=width
    )


def band(rows: Iterable[Measurement], panel: Panel, *, x: str, group: Says | str) -> alt.LayerChart:
    """Draw measurements over an axis, a line with its interval for each group.

    Parameters
    ----------
    x
        The axis of the measurements that they are drawn over, such as ``step``.
    group
        The name of a row's curve, a key of ``panel.colours``; or the axis that holds it.
    """
    lines = [ends(row) | {"x": row.axes[x], "group": _said(group, row)} for row in rows]
    return charts.band(lines, panel, x="x", group="group")


def curves(
    rows: Iterable[Measurement], panel: Panel, *, x: str, group: Says | str
) -> alt.LayerChart:
    """Draw measurements over an axis as one thin line for each group, without intervals."""
    lines = [ends(row) | {"x": row.axes[x], "group": _said(group, row)} for row in rows]
    return charts.curves(lines, panel, x="x", y="value", group="group", detail="group")


def accuracy_curves(
    groups: Mapping[str, Sequence[Logged]], colours: Mapping[str, str], steps: int, **panel: Any
) -> alt.LayerChart:
    """Draw the accuracy in units' logs, a thin line each, and the level that counts as learned.

    Parameters
    ----------
    groups, colours
        Units and colour by label.
    steps
        The end of the axis.
    **panel
        Fields of `attnscope.figures.charts.Panel`.
    """
    rows = []
    for label, units in groups.items():
        for run, unit in enumerate(units):
            points = [{"step": row["step"], "accuracy": row["accuracy"]} for row in unit.rows]
            rows += [point | {"group": label, "run": run} for point in points]
    frame = Panel(
        Axis("training steps", domain=(0, steps)),
        Axis("accuracy on held-out sequences", domain=(0, 1)),
        dict(colours),
        guides=[Guide([(0, LEARNED_AT), (steps, LEARNED_AT)])],
        **panel,
    )
    return charts.curves(rows, frame, x="step", y="accuracy", group="group", detail="run")


def matrix(
    picture: Matrix, *, title: str = "", value_title: str | None = None, **options: Any
) -> alt.LayerChart:
    """Draw a matrix with its labels; ``options`` as in `attnscope.figures.charts.heatmap`.

    The colours' title is the name of the matrix unless another one is given.
    """
    return charts.heatmap(
        picture.values,
        columns=[str(label) for label in picture.columns],
        rows=[str(label) for label in picture.rows],
        x_title=options.pop("x_title", picture.column_axis),
        y_title=options.pop("y_title", picture.row_axis),
        value_title=picture.name.replace("_", " ") if value_title is None else value_title,
        title=title,
        **options,
    )


def plane(picture: Plane, panel: Panel) -> alt.LayerChart:
    """Draw the points of a plane, or the paths that they form, coloured by their groups."""
    rows = [{"x": point.x, "y": point.y, "group": point.group} for point in picture.points]
    dots = charts.points(rows, panel, x="x", y="y", group="group")
    if not picture.joined:
        return dots
    # A path goes through its points in their order, which is not that of x.
    order = [row | {"order": place} for place, row in enumerate(rows)]
    paths = grouped(order, panel).mark_line(strokeWidth=1, opacity=0.6)
    return paths.encode(y=y_channel(panel.y), order="order:Q") + dots


def dot_tables(
    result: Result,
    prefix: str,
    columns: Mapping[str, Axis | str],
    *,
    label: Says,
    colour: Says,
    order: Callable[[Measurement], Any] | None = None,
    title: Callable[[str, Sequence[Measurement]], str] = lambda dataset, rows: dataset,
    alike: Sequence[str] = (),
    across: int | None = None,
    width: int = 190,
) -> dict[str, alt.ConcatChart]:
    """Draw a table as dots: a figure for each data set, called ``prefix-dataset``.

    Parameters
    ----------
    columns
        Names of measurements with the axes of their panels, or their titles; the first one gives
        the data sets.
    label, colour
        As in `dots`.
    order
        The key that rows are sorted by; as they were measured if not given.
    title
        The figure's title, from the data set and all its rows.
    alike
        Names whose panels have the same axis, with 0 on it.
    across
        Panels in a row; all of them if not given.
    """

    def table(dataset: str) -> alt.ConcatChart:
        found = {name: result.select(name, dataset) for name in columns}
        every = [row for rows in found.values() for row in rows]
        shared = span([row for row in every if row.name in alike], room=0.04, zero=True)
        panels = []
        for name, axis in columns.items():
            rows = sorted(found[name], key=order) if order else found[name]
            own = Axis(axis) if isinstance(axis, str) else axis
            own = replace(own, domain=shared) if name in alike else own
            panels.append(dots(rows, own, label=label, colour=colour, width=width))
        return charts.beside(*panels, title=title(dataset, every), columns=across)

    return per_dataset(result, next(iter(columns)), table, prefix)


def per_dataset(
    result: Result, name: str, draw: Callable[[str], Any], prefix: str
) -> dict[str, Any]:
    """Return a chart for each data set on which a name was measured, called ``prefix-dataset``."""
    return {f"{prefix}-{dataset}": draw(dataset) for dataset in datasets(result.select(name))}


def datasets(rows: Iterable[Measurement]) -> list[str]:
    """Return the data sets of some measurements, in order."""
    return list(dict.fromkeys(row.dataset for row in rows))


def axis_values(rows: Iterable[Measurement], axis: str) -> list[Any]:
    """Return the values of an axis, in order of appearance."""
    return list(dict.fromkeys(row.axes[axis] for row in rows if axis in row.axes))


def span(
    rows: Sequence[Measurement], *, room: float = 0.05, zero: bool = False, published: bool = True
) -> tuple[float, float]:
    """Return the range of values, intervals and published numbers, with some room around it."""
    found = [0.0] if zero else []
    for row in rows:
        numbers = (row.value, row.low, row.high, row.published if published else None)
        found += [number for number in numbers if number is not None]
    low, high = min(found, default=0.0), max(found, default=1.0)
    beyond = room * ((high - low) or 1.0)
    return low - beyond, high + beyond


def ends(row: Measurement) -> dict[str, Any]:
    """Return a measurement's value, interval and published number, as charts read them."""
    return {key: getattr(row, key) for key in ("value", "low", "high", "published")}


def _said(group: Says | str, row: Measurement) -> str:
    return str(row.axes[group]) if isinstance(group, str) else group(row)
