"""95 % intervals: bootstrap over sentences and seeds, Clopper–Pearson for rates.

Target positions of one sentence share its words and its encoder states, so whole sentences are
resampled, never positions; the papers give no intervals at all. Everything is NumPy: whoever reads
intervals (the claims) need not load torch, and CPU tensors pass as arrays.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Array = NDArray[np.float64]

LEVEL = 0.95
# The ends of an interval move by about 2 % of its width from one set of resamples to another.
RESAMPLES = 2000
# Drawn numbers held at once: resampling needs some 50 MB, however many sentences there are.
_BUDGET = 2**21


@dataclass(frozen=True)
class Interval:
    """A value, the ends of its 95 % interval (NaN where there is none), and its sample size.

    Attributes
    ----------
    value
        The measured value.
    low, high
        The ends of the interval.
    n
        The number of sentences, seeds or trials.
    """

    value: float
    low: float
    high: float
    n: int

    def shifted(self, by: float) -> Interval:
        """Return the interval of the value plus a constant."""
        return Interval(self.value + by, self.low + by, self.high + by, self.n)

    def scaled(self, by: float) -> Interval:
        """Return the interval of a multiple of the value; its ends change places below 0."""
        low, high = (self.low, self.high) if by >= 0 else (self.high, self.low)
        return Interval(by * self.value, by * low, by * high, self.n)


def sentence_interval(
    values: ArrayLike,
    target_mask: ArrayLike,
    *,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> Interval:
    """Return the mean over real output positions, with its bootstrap interval over sentences [1]_.

    Parameters
    ----------
    values
        Numbers of shape [batch, out]; NaN is undefined and skipped.
    target_mask
        True at real output positions, [batch, out].
    rng
        Where the resamples come from.
    resamples
        How many.

    Returns
    -------
    Interval
        ``n`` is the number of sentences with a defined value.

    References
    ----------
    .. [1] B. Efron, R. J. Tibshirani. "An Introduction to the Bootstrap." 1993, chapter 13.
    """
    one = np.ones((1, 1))
    return sentence_ratio_interval(values, one, target_mask, rng=rng, resamples=resamples)


def sentence_ratio_interval(
    above: ArrayLike,
    below: ArrayLike,
    target_mask: ArrayLike,
    *,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> Interval:
    """Return the ratio of two means over the same positions, with its interval over sentences.

    Parameters
    ----------
    above, below
        Numbers of shape [batch, out], or of one that broadcasts to it (a baseline per sentence is
        [batch, 1]); a position undefined (NaN) in either is skipped.
    target_mask
        True at real output positions, [batch, out].
    rng, resamples
        As in `sentence_interval`.
    """
    parts = np.asarray(above, np.float64), np.asarray(below, np.float64)
    real = np.asarray(target_mask, bool) & ~np.isnan(parts[0]) & ~np.isnan(parts[1])
    used = real.any(1)
    sums = [np.where(real, part, 0.0).sum(1)[used] for part in parts]
    return _ratio_of_sums(sums[0], sums[1], rng, resamples)


def mean_interval(
    values: ArrayLike, *, rng: np.random.Generator, resamples: int = RESAMPLES
) -> Interval:
    """Return the mean of a one-dimensional sample, such as one number per seed, with its interval.

    Parameters
    ----------
    values
        The sample; NaN is undefined and skipped. A single number has no interval.
    rng, resamples
        As in `sentence_interval`.
    """
    numbers = np.asarray(values, np.float64)
    numbers = numbers[~np.isnan(numbers)]
    return _ratio_of_sums(numbers, np.ones_like(numbers), rng, resamples)


def crossed_interval(
    values: ArrayLike, *, rng: np.random.Generator, resamples: int = RESAMPLES
) -> Interval:
    """Return the mean over seeds and sentences, resampling both, each independently.

    Parameters
    ----------
    values
        Numbers of shape [seeds, sentences] or [seeds, sentences, out]; NaN where a number is
        undefined or a position is padding. With one seed only sentences are resampled.
    rng, resamples
        As in `sentence_interval`.

    Returns
    -------
    Interval
        ``n`` is the number of sentences with a defined value.
    """
    sums, counts = _sums_and_counts(values)
    n = sums.shape[1]
    if min(sums.shape) < 2:
        return replace(_ratio_of_sums(sums.ravel(), counts.ravel(), rng, resamples), n=n)

    def statistic(
        seeds: NDArray[np.intp], sentences: NDArray[np.intp], axis: int = -1
    ) -> Array | np.float64:
        grid = seeds[..., :, None], sentences[..., None, :]
        return _divide(sums[grid].sum((-2, -1)), counts[grid].sum((-2, -1)))

    samples, width = tuple(np.arange(size) for size in sums.shape), 3 * sums.size
    return Interval(*_bootstrap(samples, statistic, rng, resamples, paired=False, width=width), n)


def pairs_interval(
    values: ArrayLike, members: int, *, rng: np.random.Generator, resamples: int = RESAMPLES
) -> Interval:
    """Return the mean over pairs of seeds and over sentences, resampling seeds and sentences.

    Pairs that share a seed are not independent, so seeds are drawn, not pairs: a pair counts as
    often as both of its seeds were drawn.

    Parameters
    ----------
    values
        Numbers of shape [pairs, sentences] or [pairs, sentences, out], pairs in the order of
        `itertools.combinations`; NaN where a number is undefined.
    members
        The number of seeds. With fewer than three only sentences are resampled.
    rng, resamples
        As in `sentence_interval`.

    Returns
    -------
    Interval
        ``n`` is the number of sentences with a defined value.
    """
    if members < 3:
        return crossed_interval(values, rng=rng, resamples=resamples)
    sums, counts = _sums_and_counts(values)
    n = sums.shape[1]
    pairs = np.array(list(combinations(range(members), 2)))
    means: list[Array] = []
    chunk = max(1, _BUDGET // max(n, 1))
    for start in range(0, resamples, chunk):
        size = min(chunk, resamples - start)
        seeds = rng.multinomial(members, np.full(members, 1 / members), size)
        sentences = rng.multinomial(n, np.full(n, 1 / n), size)
        weights = seeds[:, pairs[:, 0]] * seeds[:, pairs[:, 1]]
        above, below = (((weights @ part) * sentences).sum(1) for part in (sums, counts))
        means.append(np.asarray(_divide(above, below)))
    # A draw of one seed alone has no pair and is left out.
    drawn = np.concatenate(means)
    low, high = np.nanquantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(_divide(sums.sum(), counts.sum())), float(low), float(high), n)


def paired_difference_interval(
    a: ArrayLike, b: ArrayLike, *, rng: np.random.Generator, resamples: int = RESAMPLES
) -> Interval:
    """Return the mean of a − b, where a and b are measured on the same seeds or sentences.

    Parameters
    ----------
    a, b
        Two samples of the same length, in the same order.
    rng, resamples
        As in `sentence_interval`.
    """
    return mean_interval(np.subtract(a, b, dtype=np.float64), rng=rng, resamples=resamples)


def interval_difference(a: Interval, b: Interval) -> Interval:
    """Return a − b of two unrelated samples of which only the intervals are known [1]_.

    References
    ----------
    .. [1] G. Y. Zou, A. Donner. "Construction of confidence limits about effect measures: a general
       approach." Statistics in Medicine 27(10), 2008.
    """
    value = a.value - b.value
    down = float(np.hypot(a.value - a.low, b.high - b.value))
    up = float(np.hypot(a.high - a.value, b.value - b.low))
    return Interval(value, value - down, value + up, min(a.n, b.n))


def independent_difference_interval(
    a: ArrayLike, b: ArrayLike, *, rng: np.random.Generator, resamples: int = RESAMPLES
) -> Interval:
    """Return mean(a) − mean(b) of two unrelated samples, each resampled on its own.

    Parameters
    ----------
    a, b
        Two one-dimensional samples of any lengths; NaN is skipped.
    rng, resamples
        As in `sentence_interval`.

    Returns
    -------
    Interval
        ``n`` is the size of the smaller sample.
    """
    first, second = (
        x[~np.isnan(x)] for x in (np.asarray(a, np.float64), np.asarray(b, np.float64))
    )
    size = min(first.size, second.size)
    if size == 0:
        return Interval(np.nan, np.nan, np.nan, 0)

    def statistic(x: Array, y: Array, axis: int = -1) -> Array | np.float64:
        return np.mean(x, axis=axis) - np.mean(y, axis=axis)

    samples, width = (first, second), first.size + second.size
    return Interval(
        *_bootstrap(samples, statistic, rng, resamples, paired=False, width=width), size
    )


def rate_interval(successes: int, trials: int) -> Interval:
    """Return a rate with its exact (Clopper–Pearson) interval [1]_.

    Parameters
    ----------
    successes, trials
        How many of how many, for example seeds that learned.

    References
    ----------
    .. [1] C. J. Clopper, E. S. Pearson. "The Use of Confidence or Fiducial Limits Illustrated in
       the Case of the Binomial." Biometrika 26(4), 1934.
    """
    if trials == 0:
        return Interval(np.nan, np.nan, np.nan, 0)
    ends = stats.binomtest(successes, trials).proportion_ci(LEVEL, method="exact")
    return Interval(successes / trials, float(ends.low), float(ends.high), trials)


def _sums_and_counts(values: ArrayLike) -> tuple[Array, Array]:
    """Return sum and count of the defined values of each seed (or pair) and sentence."""
    numbers = np.asarray(values, np.float64)
    numbers = numbers.reshape(*numbers.shape[:2], -1)
    sums, counts = np.nansum(numbers, 2), (~np.isnan(numbers)).sum(2, dtype=np.float64)
    used = counts.any(0)
    return sums[:, used], counts[:, used]


def _divide(above: ArrayLike, below: ArrayLike) -> Array | np.float64:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.true_divide(above, below)


def _ratio_of_sums(
    above: Array,
    below: Array,
    rng: np.random.Generator,
    resamples: int,
) -> Interval:
    """Resample the pairs (above, below) and take Σ above / Σ below."""

    def statistic(x: Array, y: Array, axis: int = -1) -> Array | np.float64:
        return _divide(x.sum(axis), y.sum(axis))

    samples, width = (above, below), 3 * above.size
    return Interval(
        *_bootstrap(samples, statistic, rng, resamples, paired=True, width=width), above.size
    )


def _bootstrap(
    samples: tuple[NDArray[Any], ...],
    statistic: Callable[..., Array | np.float64],
    rng: np.random.Generator,
    resamples: int,
    *,
    paired: bool,
    width: int,
) -> tuple[float, float, float]:
    """Return value, low and high by percentiles; ``width`` is the memory of one resample."""
    value = float(statistic(*samples))
    if min(sample.size for sample in samples) < 2:
        return value, np.nan, np.nan
    if all(np.ptp(sample) == 0 for sample in samples):
        return value, value, value  # Not left to sums whose rounding depends on their order.
    # A resample can divide 0 by 0; the ends are then NaN.
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        ends = stats.bootstrap(
            samples,
            statistic,
            n_resamples=resamples,
            batch=max(1, _BUDGET // width),
            vectorized=True,
            paired=paired,
            confidence_level=LEVEL,
            method="percentile",
            rng=rng,
        ).confidence_interval
    return value, float(ends.low), float(ends.high)
