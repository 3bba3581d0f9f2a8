"""How far a score sets groups of words apart: AUC with its interval, Mann–Whitney, gap, box plot.

The papers draw the groups' distributions; these are the numbers behind such a figure. The AUC is
the probability that a word of the first group has the higher score, ties counting half. Everything
is NumPy, and CPU tensors pass as arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from attnscope.analysis.intervals import LEVEL, Interval, rate_interval

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Separation:
    """Two groups compared.

    Attributes
    ----------
    auc
        How probably the first group's score is the higher; ``n`` is the smaller group's size.
    p_value
        Of the two-sided Mann–Whitney test.
    gap
        The difference of means over the pooled standard deviation (Cohen's d).
    means
        Of the first and of the second group.
    """

    auc: Interval
    p_value: float
    gap: float
    means: tuple[float, float]


def compute_separation(first: ArrayLike, second: ArrayLike) -> Separation:
    """Compare two groups' scores; NaN is undefined and skipped.

    Parameters
    ----------
    first, second
        One number a word.
    """
    a, b = _defined(first), _defined(second)
    if min(len(a), len(b)) == 0:
        return Separation(auc_interval(a, b), np.nan, np.nan, (_mean(a), _mean(b)))
    test = stats.mannwhitneyu(a, b, alternative="two-sided")
    return Separation(
        auc_interval(a, b), float(test.pvalue), standardised_gap(a, b), (_mean(a), _mean(b))
    )


def auc_interval(first: ArrayLike, second: ArrayLike) -> Interval:
    """Return the AUC of the first group over the second with its 95 % interval [1]_.

    DeLong's variance [2]_ makes the interval on the scale of log-odds, so that it stays within 0
    and 1. Groups that do not overlap have no variance: their interval is that of as many
    successes as the smaller group has words.

    Parameters
    ----------
    first, second
        One number a word; NaN is undefined and skipped.

    References
    ----------
    .. [1] M. S. Pepe. "The Statistical Evaluation of Medical Tests for Classification and
       Prediction." 2003, section 5.2.
    .. [2] E. R. DeLong, D. M. DeLong, D. L. Clarke-Pearson. "Comparing the Areas under Two or More
       Correlated Receiver Operating Characteristic Curves." Biometrics 44(3), 1988.
    """
    a, b = _defined(first), _defined(second)
    n = min(len(a), len(b))
    if n == 0:
        return Interval(np.nan, np.nan, np.nan, 0)
    below, above = _placements(a, b)
    value = float(below.mean())
    if n < 2:
        return Interval(value, np.nan, np.nan, n)
    if value in (0.0, 1.0):
        ends = rate_interval(n if value else 0, n)
        return Interval(value, ends.low, ends.high, n)
    error = np.sqrt(below.var(ddof=1) / len(a) + above.var(ddof=1) / len(b))
    reach = stats.norm.ppf((1 + LEVEL) / 2) * error / (value * (1 - value))
    odds = np.log(value / (1 - value)) + np.array([-reach, reach])
    low, high = 1 / (1 + np.exp(-odds))
    return Interval(value, float(low), float(high), n)


def standardised_gap(first: ArrayLike, second: ArrayLike) -> float:
    """Return the difference of means over the pooled standard deviation; NaN where it is 0."""
    a, b = _defined(first), _defined(second)
    freedom = len(a) + len(b) - 2
    if min(len(a), len(b)) == 0 or freedom < 1:
        return float("nan")
    pooled = np.sqrt((((a - a.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum()) / freedom)
    return float((a.mean() - b.mean()) / pooled) if pooled else float("nan")


class Box(NamedTuple):
    """Tukey's box plot: quartiles, and the outermost values within 1.5 times their distance."""

    low_whisker: float
    first_quartile: float
    median: float
    third_quartile: float
    high_whisker: float


def compute_box(values: ArrayLike) -> tuple[Box, Array]:
    """Return the numbers of a box plot, and the values beyond its whiskers, the largest first.

    Parameters
    ----------
    values
        At least one number; NaN is undefined and skipped.
    """
    numbers = _defined(values)
    first, median, third = np.quantile(numbers, [0.25, 0.5, 0.75]).tolist()
    reach = 1.5 * (third - first)
    outside = (numbers < first - reach) | (numbers > third + reach)
    inside = numbers[~outside]
    found = Box(float(inside.min()), first, median, third, float(inside.max()))
    return found, np.sort(numbers[outside])[::-1]


def _placements(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the share of b below each a, and of a above each b; ties count half."""
    ranks = stats.rankdata(np.concatenate([a, b]))
    below = (ranks[: len(a)] - stats.rankdata(a)) / len(b)
    above = 1 - (ranks[len(a) :] - stats.rankdata(b)) / len(a)
    return below, above


def _defined(values: ArrayLike) -> Array:
    numbers = np.asarray(values, np.float64).ravel()
    return numbers[~np.isnan(numbers)]


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else float("nan")
