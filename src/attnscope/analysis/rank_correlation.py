"""Spearman's rank correlation of many columns at once, and over groups of networks.

A constant follows nothing: its coefficient is 0, where scipy's is undefined.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from scipy import stats

from attnscope.analysis.intervals import LEVEL, RESAMPLES, Interval

Array = NDArray[np.float64]


def rank_correlation(
    a: Float[Array, "item *any"], b: Float[Array, "item *any"]
) -> Float[Array, "*any"]:
    """Return Spearman's coefficients over the first axis, 0 for a constant."""
    if len(a) < 2:
        return np.zeros(a.shape[1:])
    ranks = [stats.rankdata(values, axis=0) - (len(a) + 1) / 2 for values in (a, b)]
    size = np.sqrt(np.square(ranks).sum(1).prod(0))
    return np.divide((ranks[0] * ranks[1]).sum(0), size, out=np.zeros(a.shape[1:]), where=size > 0)


def grouped_spearman(
    pairs: Sequence[tuple[Sequence[float], Sequence[float]]], rng: np.random.Generator
) -> Interval:
    """Return Spearman's coefficient of two numbers over groups of networks, from their means.

    Networks of each group are resampled together for both numbers; groups are not resampled.

    Parameters
    ----------
    pairs
        For each group its networks' first and second numbers.
    rng
        Where the resamples come from.
    """
    tables = [np.array(pair, np.float64) for pair in pairs]
    value = float(rank_correlation(*np.array([table.mean(1) for table in tables]).T))
    if any(table.shape[1] < 2 for table in tables):
        return Interval(value, np.nan, np.nan, len(tables))
    drawn = np.stack(
        [
            table[:, rng.integers(table.shape[1], size=(RESAMPLES, table.shape[1]))].mean(-1)
            for table in tables
        ]
    )  # group, number, resample
    found = rank_correlation(drawn[:, 0], drawn[:, 1])
    low, high = np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(value, float(low), float(high), len(tables))
