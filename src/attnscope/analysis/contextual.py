"""Contextualised agreement ξ: how well a model performs once it agrees as well (snell Eq. 11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np


class Contextualised(NamedTuple):
    """ξ(u, v): τ₀, and the performance of each comparison run at that step.

    ``step`` is None, and ``performance`` that of the reference alone (ξ*), where the attention of
    other seeds never agrees better than u and v do.
    """

    step: int | None
    performance: Sequence[float]


def contextualised(
    level: float,
    agreement: Mapping[int, Sequence[float]],
    performance: Mapping[int, Sequence[float]],
    best: float,
) -> Contextualised:
    """Return ξ(u, v) (snell Eq. 11).

    Parameters
    ----------
    level
        𝒜(u, v).
    agreement
        𝒜(α, α̂(τ)) of each comparison run, at each evaluated step τ; their mean is compared.
    performance
        The performance of each comparison run at these steps.
    best
        ξ*, the reference's own performance.
    """
    averaged = {step: float(np.mean(values)) for step, values in agreement.items()}
    step = first_exceeding(averaged, level)
    return Contextualised(step, (best,) if step is None else performance[step])


def first_exceeding(curve: Mapping[int, float], level: float) -> int | None:
    """Return τ₀, the first step whose agreement is strictly above a level; None if none is.

    Parameters
    ----------
    curve
        𝒜(α, α̂(τ)) at each evaluated step τ.
    level
        𝒜(u, v); the performance at τ₀ is ξ(u, v).
    """
    return next((step for step in sorted(curve) if curve[step] > level), None)
