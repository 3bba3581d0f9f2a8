"""The values of attention: the tensor that its weights are multiplied with.

Products with the weights on either side, sums by letters (einsum), and a product element by element
over features, as hand-written attention has it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from attnscope.models.lineage import letters, ordered

_ELEMENTWISE = {"mul", "__mul__", "__rmul__", "multiply"}
MATRIX = {"matmul", "__matmul__", "bmm"}


@dataclass(frozen=True)
class Weighed:
    """Weights and the values [..., inp, value] that they weigh."""

    weights: Tensor
    values: Tensor


def values_beside(
    name: str, args: tuple[Any, ...], are_weights: Callable[[Any], bool]
) -> Weighed | None:
    """Return what weights are multiplied with, or None where a call does no such thing."""
    if name == "einsum":
        return _by_letters(args, are_weights)
    if len(args) < 2 or not all(isinstance(part, Tensor) for part in args[:2]):
        return None
    left, right = args[:2]
    if name in MATRIX and left.ndim > 1 and right.ndim > 1:
        if are_weights(left):
            return Weighed(left, right)
        return Weighed(right, left.mT) if are_weights(right) else None
    if name in _ELEMENTWISE:
        pairs = ((left, right), (right, left))
        return next((_features(*pair) for pair in pairs if are_weights(pair[0])), None)
    return None


def _features(weights: Tensor, values: Tensor) -> Weighed | None:
    """Return values whose every feature is weighed: [B, L, 1] times [B, L, D]."""
    fits = weights.ndim == values.ndim and weights.shape[-1] == 1 and values.shape[-1] > 1
    if not fits or weights.ndim < 2 or weights.shape[:-1] != values.shape[:-1]:
        return None
    return Weighed(weights, values)


def _by_letters(args: tuple[Any, ...], are_weights: Callable[[Any], bool]) -> Weighed | None:
    found = letters(args)
    if found is None:
        return None
    first, second, out = found
    for own, other, weights, values in (
        (first, second, args[1], args[2]),
        (second, first, args[2], args[1]),
    ):
        summed = [c for c in own if c in other and c not in out]
        if are_weights(weights) and len(summed) == 1:
            lead = "".join(c for c in own if c in other and c in out)
            features = "".join(c for c in other if c not in own)
            return Weighed(weights, ordered(values, other, lead + summed[0] + features))
    return None
