"""Planes of a result for the page: points with a label and a group, in two coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnscope.claims.symbols import measure_words
from attnscope.claims.wording import number
from attnscope.report.scenes import cut
from attnscope.runs.measures import Measures
from attnscope.runs.result import Plane, Result

MOST_POINTS = 2000
_AXES = {"lambda": "λ"}


def planes(result: Result, measures: Measures) -> list[dict[str, Any]]:
    """Return every plane of a result as plain JSON values.

    Its title names the axes in which planes of its name differ.
    """
    own = [picture for picture in result.pictures if isinstance(picture, Plane)]
    made = []
    for plane in own:
        alike = [other.axes.items() for other in own if other.name == plane.name]
        shared = set(alike[0]).intersection(*alike) if len(alike) > 1 else set()
        differing = [axis for axis in plane.axes.items() if axis not in shared]
        label, meaning = measure_words(plane.name, measures)
        fixed = [f"{_AXES.get(key, key)} {number(value)}" for key, value in differing]
        points, left = _evenly(plane)
        made.append(
            {
                "name": label,
                "meaning": meaning,
                "title": ", ".join([plane.dataset, *fixed]),
                "axes": [plane.x, plane.y],
                "path": plane.joined,
                "notice": f"{left} of {len(plane.points)} points are left out." if left else "",
                "points": points,
            }
        )
    return made


def _evenly(plane: Plane) -> tuple[list[list[Any]], int]:
    """Return the points, evenly chosen if there are too many, and the number left out."""
    count = len(plane.points)
    chosen = np.linspace(0, count - 1, min(count, MOST_POINTS)).round().astype(int)
    points = [plane.points[index] for index in chosen]
    rows = [
        [cut(label or group), cut(group), *(float(f"{place:.4g}") for place in (x, y))]
        for label, group, x, y in points
    ]
    return rows, count - len(rows)
