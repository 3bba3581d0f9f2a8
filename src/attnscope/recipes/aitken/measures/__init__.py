"""The measures of aitken's figures, one idea a module.

Each takes a `attnscope.recipes.aitken.networks.Network` and returns numbers, or lines along an
axis, by name and axes, so that those of other seeds are found under the same key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from attnscope.recipes.kit.sheet import Number


class Line(NamedTuple):
    """Numbers of one network along an axis."""

    axis: str
    x: Sequence[int]
    y: Float[Tensor, " point"]


Numbers = dict[Number, float]
Lines = dict[Number, Line]


def over_steps(values: Float[Tensor, " step"]) -> Line:
    """Return numbers of decoder steps, counted from 1."""
    return Line("step", range(1, len(values) + 1), values)
