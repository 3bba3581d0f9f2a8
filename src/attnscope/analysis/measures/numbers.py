"""Numbers of one seed by name and axes, and lines of them along an axis such as decoder steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor


class Number(NamedTuple):
    """The name and axes of a number, under which the other seeds have it too."""

    name: str
    axes: tuple[tuple[str, str | int | float], ...] = ()


def number(name: str, **axes: str | int | float) -> Number:
    """Return the key of a number."""
    return Number(name, tuple(axes.items()))


class Line(NamedTuple):
    """Numbers of one seed along an axis."""

    axis: str
    x: Sequence[int]
    y: Tensor

    @classmethod
    def of_steps(cls, values: Tensor) -> Line:
        """Return numbers of decoder steps, counted from 1."""
        return cls("step", range(1, len(values) + 1), values)


Numbers = dict[Number, float]
Lines = dict[Number, Line]
"""Numbers, and lines, of one seed."""
