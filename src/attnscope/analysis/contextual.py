"""Contextualised agreement ξ: how well a model performs once it agrees as well (snell Eq. 11)."""

from __future__ import annotations

from collections.abc import Mapping


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
