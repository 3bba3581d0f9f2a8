"""Points in a plane: anything with a label, a group and two coordinates among the measurements.

Two forms are known: rows that differ in the axis ``pc`` alone (components of states), and rows of
a word with a second number beside the first (its polarity beside its attention score). A large
vocabulary is cut to the points that rest on most occurrences, with a notice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from attnscope.claims.wording import number
from attnscope.report.scene import cut
from attnscope.report.symbols import plane_symbol
from attnscope.runs.result import Measurement, Result

MOST_POINTS = 2000


@dataclass(frozen=True)
class Cloud:
    """Rows that each are a word's point: the value upwards, a number found with it to the right.

    Attributes
    ----------
    name
        Of the measurement.
    beside
        What the other number is called among the things found.
    axes
        Titles of the two axes.
    """

    name: str
    beside: str
    axes: tuple[str, str]


CLOUDS = (Cloud("word", "polarity", ("polarity score s", "attention score a")),)
"""The measurements that are drawn as clouds of word types."""

_AXES = {"lambda": "λ"}
# What tells points of a plane apart; all other axes tell planes apart.
_LABELS = ("word", "token", "label")
_GROUPS = ("point", "side", "group")
_ORDERS = ("step", "number", "place")
# Rows of these are points of a path, joined in the order of time.
_PATH = "step"


@dataclass
class Point:
    """One point; ``order`` is its place on a path."""

    label: str
    group: str
    order: float
    n: int
    place: dict[int, float] = field(default_factory=dict)


def planes(result: Result) -> list[dict[str, Any]]:
    """Return every plane of a result as plain JSON values.

    Of what is fixed in a plane its title tells what is not the same in all planes of its name.
    """
    made = [*_component_planes(result.measurements), *_clouds(result.measurements)]
    for plane in made:
        alike = [other["fixed"] for other in made if other["name"] == plane["name"]]
        shared = set(alike[0]).intersection(*alike) if len(alike) > 1 else set()
        told = [part for part in plane["fixed"] if part not in shared]
        plane["title"] = ", ".join([plane["title"], *told])
    return [{key: value for key, value in plane.items() if key != "fixed"} for plane in made]


def _component_planes(rows: Sequence[Measurement]) -> Iterator[dict[str, Any]]:
    grouped: dict[tuple[Any, ...], list[Measurement]] = {}
    for row in rows:
        if row.axes.get("pc") in (1, 2) and row.value is not None:
            grouped.setdefault(_plane(row), []).append(row)
    for (name, dataset, axes, _), own in grouped.items():
        points: dict[tuple[Any, ...], Point] = {}
        for row in own:
            key = tuple(row.axes.get(axis) for axis in (*_LABELS, *_GROUPS, *_ORDERS))
            assert row.value is not None
            points.setdefault(key, _point(row)).place[int(row.axes["pc"])] = row.value
        path = any(_PATH in row.axes for row in own)
        complete = [point for point in points.values() if len(point.place) == 2]
        if complete:
            yield _as_json(name, dataset, axes, ("PC 1", "PC 2"), complete, path)


def _clouds(rows: Sequence[Measurement]) -> Iterator[dict[str, Any]]:
    for cloud in CLOUDS:
        grouped: dict[tuple[Any, ...], list[Point]] = {}
        for row in rows:
            beside = row.found.get(cloud.beside)
            if row.name != cloud.name or row.value is None or not isinstance(beside, (int, float)):
                continue
            point = _point(row)
            point.label = str(row.found.get("word", point.label))
            point.place = {1: float(beside), 2: row.value}
            grouped.setdefault(_plane(row), []).append(point)
        for (_, dataset, axes, _), points in grouped.items():
            yield _as_json(cloud.name, dataset, axes, cloud.axes, points, False)


def _plane(row: Measurement) -> tuple[Any, ...]:
    inside = ("pc", *_LABELS, *_GROUPS, *_ORDERS)
    axes = tuple((key, value) for key, value in row.axes.items() if key not in inside)
    return row.name, row.dataset, axes, row.seeds


def _point(row: Measurement) -> Point:
    def first(axes: Sequence[str]) -> Any:
        return next((row.axes[axis] for axis in axes if axis in row.axes), "")

    order = first(_ORDERS)
    group = str(first(_GROUPS))
    # A point of a path goes by its time, one without a word by its group.
    label = first(_LABELS) or (str(order) if _PATH in row.axes else group)
    return Point(str(label), group, float(order or 0), row.n)


def _as_json(
    name: str,
    dataset: str,
    fixed: Sequence[tuple[str, Any]],
    axes: tuple[str, str],
    points: list[Point],
    path: bool,
) -> dict[str, Any]:
    kept = points
    if len(points) > MOST_POINTS:
        # Sorting is stable, so that equals keep the order of the result.
        kept = sorted(points, key=lambda point: -point.n)[:MOST_POINTS]
    left = len(points) - len(kept)
    return {
        "name": plane_symbol(name)[0],
        "meaning": plane_symbol(name)[1],
        "title": dataset,
        "fixed": [f"{_AXES.get(key, key)} {number(value)}" for key, value in fixed],
        "axes": list(axes),
        "path": path,
        "notice": f"{left} of {len(points)} points, those on fewest occurrences, are left out."
        if left
        else "",
        "points": [
            [
                cut(point.label),
                cut(point.group),
                point.order,
                float(f"{point.place[1]:.4g}"),
                float(f"{point.place[2]:.4g}"),
                point.n,
            ]
            for point in kept
        ],
    }
