"""The rules of decision: from intervals and counts to holds, fails or undecided.

Every threshold here was fixed before any run. The papers test nothing, so all of these rules are
ours; an undefined interval (NaN, as from a single seed) satisfies none of them and is undecided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy import stats

from attnscope.analysis.intervals import Interval
from attnscope.analysis.learning import learned

SIGNIFICANT = 0.05


class Verdict(StrEnum):
    """The outcome of a claim on measurements."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"


class Outcome(NamedTuple):
    """How a seed fared: whether it had learned at the end, and the first step at which it had."""

    learned: bool
    steps: int | None


class Significance(NamedTuple):
    """A signed test statistic and its two-sided p-value; no evidence at all is (0, 1)."""

    statistic: float
    p: float


def verdict(holds: bool, fails: bool) -> Verdict:
    """Return the verdict of two conditions, the first of which has precedence."""
    if holds:
        return Verdict.HOLDS
    return Verdict.FAILS if fails else Verdict.UNDECIDED


def much_greater(
    difference: Interval, ratio: Interval | None = None, factor: float = 1.5
) -> Verdict:
    """Decide a ≫ b.

    Parameters
    ----------
    difference
        Of a − b: its lower end must be above 0; the claim fails if its upper end is below 0.
    ratio
        Of a / b, for non-negative rates: its value must reach the factor; the claim fails if the
        whole interval lies below it.
    factor
        How many times larger a must be.
    """
    large = ratio is None or ratio.value >= factor
    small = ratio is not None and ratio.high < factor
    return verdict(difference.low > 0 and large, difference.high < 0 or small)


def about_equal(difference: Interval, margin: float) -> Verdict:
    """Decide a ≈ b: the interval of a − b lies inside ±margin, or (fails) wholly outside."""
    return verdict(
        -margin <= difference.low and difference.high <= margin,
        difference.low > margin or difference.high < -margin,
    )


def above(interval: Interval, bound: float = 0.0) -> Verdict:
    """Decide whether an interval lies above a bound, or (fails) below it.

    Examples
    --------
    >>> print(above(Interval(0.7, 0.6, 0.8, 20), 0.5), above(Interval(0.5, 0.4, 0.6, 20), 0.5))
    holds undecided
    """
    return verdict(interval.low > bound, interval.high < bound)


def below(interval: Interval, bound: float = 0.0) -> Verdict:
    """Decide whether an interval lies below a bound, or (fails) above it."""
    return verdict(interval.high < bound, interval.low > bound)


def reaches(interval: Interval, bound: float) -> Verdict:
    """Decide whether an interval reaches a bound as a whole, or (fails) nowhere."""
    return verdict(interval.low >= bound, interval.high < bound)


def stays_within(interval: Interval, bound: float) -> Verdict:
    """Decide whether an interval does not exceed a bound, or (fails) exceeds it as a whole."""
    return verdict(interval.high <= bound, interval.low > bound)


def exactly(interval: Interval, value: float) -> Verdict:
    """Decide whether a number is a value; a mean of 0 or 1 over seeds is that of every seed."""
    return verdict(interval.value == value, not math.isnan(interval.value))


def by_value(rule: Callable[..., Verdict]) -> Callable[..., Verdict]:
    """Return a rule about values, whatever their intervals are: each is both of its ends."""

    def of_values(interval: Interval, *bounds: float) -> Verdict:
        value = interval.value
        return rule(Interval(value, value, value, interval.n), *bounds)

    return of_values


def by_median(rule: Callable[..., Verdict]) -> Callable[..., Verdict]:
    """Return a rule about the median seed; without the number of each seed nothing is decided."""

    def of_median(interval: Interval, *bounds: float) -> Verdict:
        value = float(np.nanmedian(interval.values)) if interval.values else math.nan
        return rule(Interval(value, value, value, interval.n), *bounds)

    return of_median


def learns(accuracy: float) -> Verdict:
    """Decide whether one seed learned, from its accuracy at the end of the budget."""
    return verdict(learned(accuracy), not math.isnan(accuracy))


def at_least(verdicts: Sequence[Verdict], count: int) -> Verdict:
    """Decide whether at least ``count`` of several parts hold; without parts nothing is decided.

    It fails once the undecided parts could no longer make up for the failed ones.
    """
    if not verdicts:
        return Verdict.UNDECIDED
    failed = sum(part is Verdict.FAILS for part in verdicts)
    held = sum(part is Verdict.HOLDS for part in verdicts)
    return verdict(held >= count, len(verdicts) - failed < count)


def all_of(verdicts: Sequence[Verdict]) -> Verdict:
    """Decide whether every part holds."""
    return at_least(verdicts, len(verdicts))


def any_of(verdicts: Sequence[Verdict]) -> Verdict:
    """Decide whether some part holds."""
    return at_least(verdicts, 1)


def share_of(verdicts: Sequence[Verdict], share: float) -> Verdict:
    """Decide whether at least this share of the parts, say 2/3 of the corpora, holds."""
    # As a fraction, because .07 * 100 is more than 7 in floating point.
    return at_least(verdicts, math.ceil(Fraction(share).limit_denominator(10**6) * len(verdicts)))


def fisher_p(k1: int, n1: int, k2: int, n2: int) -> float:
    """Return Fisher's two-sided p-value for k1 of n1 against k2 of n2 successes."""
    return float(stats.fisher_exact([[k1, n1 - k1], [k2, n2 - k2]]).pvalue)


def fisher_less(k1: int, n1: int, k2: int, n2: int) -> Verdict:
    """Decide whether the rate k1/n1 is smaller than k2/n2.

    It holds if Fisher's two-sided p is below .05 and the rates differ in that direction, fails if
    p is below .05 and they differ in the other. (Two-sided with a direction is stricter than a
    one-sided test at .05.)
    """
    significant = fisher_p(k1, n1, k2, n2) < SIGNIFICANT
    smaller = k1 * n2 < k2 * n1
    return verdict(significant and smaller, significant and not smaller)


def log_rank(
    steps_a: Sequence[int | None], steps_b: Sequence[int | None], censored_at: int
) -> Significance:
    """Compare the steps that two groups of seeds took to learn, by the log-rank test [1]_.

    Parameters
    ----------
    steps_a, steps_b
        Steps to the threshold, None for a seed that had not reached it when the budget ended.
    censored_at
        The budget.

    Returns
    -------
    Significance
        The statistic is negative where a is slower than b.

    References
    ----------
    .. [1] N. Mantel. "Evaluation of Survival Data and Two New Rank Order Statistics Arising in Its
       Consideration." Cancer Chemotherapy Reports 50(3), 1966.
    """
    if not steps_a or not steps_b:
        return Significance(0.0, 1.0)
    # The variance is 0 where nobody learned, or all at the same step.
    with np.errstate(divide="ignore", invalid="ignore"):
        result = stats.logrank(_censored(steps_a, censored_at), _censored(steps_b, censored_at))
    return _significance(float(result.statistic))


def cochran_armitage_trend(
    successes: Sequence[int], totals: Sequence[int], scores: Sequence[int | float]
) -> Significance:
    """Test whether a rate changes linearly with a score of the groups [1]_ [2]_.

    Parameters
    ----------
    successes, totals
        How many of how many, in each group.
    scores
        The groups' places on a line, say the number of heads.

    Returns
    -------
    Significance
        The statistic z is negative where the rate falls as the score grows.

    References
    ----------
    .. [1] W. G. Cochran. "Some Methods for Strengthening the Common χ² Tests." Biometrics 10(4),
       1954.
    .. [2] P. Armitage. "Tests for Linear Trends in Proportions and Frequencies." Biometrics 11(3),
       1955.
    """
    k, n, score = (np.asarray(x, dtype=np.float64) for x in (successes, totals, scores))
    # The variance is 0 where all rates are 0 or 1, or all scores are the same.
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = k.sum() / n.sum()
        centred = score - (n * score).sum() / n.sum()
        variance = rate * (1 - rate) * (n * centred**2).sum()
        return _significance(float((centred * (k - n * rate)).sum() / np.sqrt(variance)))


def faster_or_more(
    hard: Sequence[Outcome], control: Sequence[Outcome], budget: int, seeds: int = 20
) -> Verdict:
    """Decide that a control learns faster or more often than a hard task (snell Fig. 3).

    Parameters
    ----------
    hard, control
        One outcome per seed.
    budget
        The number of training steps.
    seeds
        How many seeds each task needs; with fewer nothing is decided.

    Returns
    -------
    Verdict
        Holds if every control seed learned, some hard seed did not, and fewer hard seeds learned
        (Fisher) or they were slower (log-rank) with p < .05. Fails if a control seed did not
        learn, if every hard seed did, or if the hard task is the faster one with p < .05.
    """
    if min(len(hard), len(control)) < seeds:
        return Verdict.UNDECIDED
    learned_hard, learned_control = (sum(run.learned for run in runs) for runs in (hard, control))
    as_claimed = learned_control == len(control) and learned_hard < len(hard)
    fewer = fisher_less(learned_hard, len(hard), learned_control, len(control))
    slower = _slower([run.steps for run in hard], [run.steps for run in control], budget)
    return verdict(
        as_claimed and any_of((fewer, slower)) is Verdict.HOLDS,
        not as_claimed or slower is Verdict.FAILS,
    )


def _slower(
    steps_a: Sequence[int | None], steps_b: Sequence[int | None], censored_at: int
) -> Verdict:
    statistic, p = log_rank(steps_a, steps_b, censored_at)
    significant = p < SIGNIFICANT
    return verdict(significant and statistic < 0, significant and statistic > 0)


def _censored(steps: Sequence[int | None], censored_at: int) -> stats.CensoredData:
    return stats.CensoredData(
        uncensored=[step for step in steps if step is not None],
        right=[censored_at for step in steps if step is None],
    )


def _significance(statistic: float) -> Significance:
    if not math.isfinite(statistic):
        return Significance(0.0, 1.0)
    return Significance(statistic, float(2 * stats.norm.sf(abs(statistic))))
