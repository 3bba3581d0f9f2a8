"""Intervals against closed forms and enumerated bootstraps; what is resampled, and what is not."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from scipy import stats

from attnscope.analysis import intervals
from attnscope.analysis.intervals import (
    Interval,
    crossed_interval,
    grid_interval,
    independent_difference_interval,
    interval_difference,
    mean_interval,
    paired_difference_interval,
    pairs_interval,
    prediction_interval,
    rate_interval,
    replicated_interval,
    sentence_interval,
    sentence_ratio_interval,
)
from cases import for_each

pytestmark = pytest.mark.filterwarnings("error")


def rng():
    return np.random.default_rng(0)


def sample(*shape):
    return np.random.default_rng(7).normal(size=shape)


def test_the_value_is_the_mean_over_real_defined_positions():
    values = [[1.0, 2.0, 9.0], [math.nan, 4.0, 9.0], [math.nan, 9.0, 9.0]]
    mask = [[True, True, False], [True, True, False], [True, False, False]]
    found = sentence_interval(values, mask, rng=rng())
    assert found.value == (1 + 2 + 4) / 3
    assert found.n == 2


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 6), st.integers(1, 4), st.integers(1, 3))
def test_padding_never_changes_an_interval(sentences, positions, extra):
    values = sample(sentences, positions)
    mask = np.ones_like(values, dtype=bool)
    plain = sentence_interval(values, mask, rng=rng(), resamples=50)
    wide = np.pad(values, ((0, 0), (0, extra)), constant_values=99.0)
    widened = np.pad(mask, ((0, 0), (0, extra)))
    found = sentence_interval(wide, widened, rng=rng(), resamples=50)
    np.testing.assert_allclose(
        [found.value, found.low, found.high], [plain.value, plain.low, plain.high], rtol=1e-12
    )


def test_repeating_the_positions_of_a_sentence_narrows_nothing():
    once = (sample(60, 1) > 0).astype(float)
    often = once.repeat(16, axis=1)
    mask = np.ones_like(often, dtype=bool)
    assert sentence_interval(often, mask, rng=rng()) == sentence_interval(
        once, mask[:, :1], rng=rng()
    )


def test_a_bootstrap_of_four_sentences_is_the_enumerated_one():
    # The number of ones in a resample is binomial(4, 1/4): 0 in 32 % of resamples, at most 2 in
    # 95 %, at most 3 in 99.6 %.
    found = sentence_interval([[0.0], [0.0], [0.0], [1.0]], [[True]] * 4, rng=rng())
    assert found == Interval(0.25, 0.0, 0.75, 4)


def test_long_sentences_weigh_more():
    values, mask = [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]], [[True] * 3, [True, False, False]]
    assert sentence_interval(values, mask, rng=rng()).value == 0.75


def test_the_mean_has_students_interval():
    # Student's own data: additional hours of sleep by two drugs; R prints 0.70 to 2.46 for t.test.
    sleep = np.array([1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4])
    found = mean_interval(sleep)
    assert (round(found.low, 2), round(found.high, 2)) == (0.70, 2.46)
    assert (found.value, found.n) == (pytest.approx(1.58), 10)


def test_one_more_run_is_expected_in_the_prediction_interval():
    sleep = np.array([1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4])
    mean, more = mean_interval(sleep), prediction_interval(sleep)
    assert more.value == mean.value
    assert more.high - more.low == pytest.approx(math.sqrt(11) * (mean.high - mean.low))


COVERED = {"seeds": (1, 0, 0.1), "both": (1, 3, 1), "sentences": (0, 1, 1), "neither": (0, 0, 1)}


@pytest.mark.parametrize("noise", COVERED)
@pytest.mark.parametrize("seeds", [3, 5, 10, 20])
def test_an_interval_over_seeds_and_sentences_covers_the_truth_in_95_percent(seeds, noise):
    stream, (a, b, c) = rng(), COVERED[noise]
    trials, covered = 1500, 0
    for _ in range(trials):
        values = a * stream.normal(size=(seeds, 1)) + b * stream.normal(size=(1, 40))
        found = crossed_interval(values + c * stream.normal(size=(seeds, 40)), rng=stream)
        covered += found.low <= 0 <= found.high
    assert 0.93 <= covered / trials <= 0.97


# Noise of references, uniform runs, sentences, their three interactions, and the rest.
OF_RUNS = {
    "references": (1, 0, 0, 0, 0, 0, 1),
    "runs": (1, 1, 0, 0, 0, 0, 0.1),
    "interactions": (0, 0, 0, 1, 1, 1, 1),
    "all": (0.5, 1, 3, 0.5, 2, 2, 1),
}


@pytest.mark.parametrize("noise", OF_RUNS)
def test_an_interval_over_two_kinds_of_runs_covers_the_truth_in_95_percent(noise):
    stream = rng()
    shapes = [(6, 1, 1), (1, 5, 1), (1, 1, 40), (6, 5, 1), (6, 1, 40), (1, 5, 40), (6, 5, 40)]
    trials, covered = 800, 0
    for _ in range(trials):
        parts = zip(OF_RUNS[noise], shapes, strict=True)
        values = sum(size * stream.normal(size=shape) for size, shape in parts)
        found = grid_interval(values, rng=stream)
        covered += found.low <= 0 <= found.high
    assert 0.93 <= covered / trials <= 0.98


def test_the_variance_over_two_kinds_of_runs_is_that_of_the_mean_squares():
    """Mean squares by a regression on indicators, factor by factor (Searle's table)."""
    shape = (4, 3, 7)
    values = rng().normal(size=shape).cumsum(0).cumsum(1)
    cells = np.indices(shape).reshape(3, -1)
    fitted: dict[tuple[int, ...], tuple[float, int]] = {}

    def explained(subset: tuple[int, ...]) -> tuple[float, int]:
        groups = np.unique(cells[list(subset)], axis=1, return_inverse=True)[1].ravel()
        design = np.eye(groups.max() + 1)[groups]
        flat = values.ravel() - values.mean()
        fit = design @ np.linalg.lstsq(design, flat, rcond=None)[0]
        inside = [part for part in fitted if set(part) < set(subset)]
        square = float(fit @ fit) - sum(fitted[part][0] for part in inside)
        freedom = math.prod(shape[axis] - 1 for axis in subset)
        fitted[subset] = square, freedom
        return square / freedom / values.size, freedom

    a, b, s, ab, as_, bs, abs_ = (
        explained(subset) for subset in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))
    )
    left = as_[0] + bs[0] - abs_[0]
    parts = [(a[0], 3), (max(b[0] - ab[0], 0), 2), (max(s[0] - left, 0), 6)]
    total = sum(part for part, _ in parts)
    freedom = total**2 / sum(part**2 / degrees for part, degrees in parts)
    together = stats.t.ppf(0.975, freedom) * math.sqrt(total)
    apart = math.sqrt(sum(stats.t.ppf(0.975, degrees) ** 2 * part for part, degrees in parts))
    found = grid_interval(values, rng=rng())
    assert found.value == pytest.approx(values.mean())
    assert found.high - found.value == pytest.approx((together + apart) / 2)
    assert found.values == pytest.approx(
        [values[0, 0].mean(), values[1, 1].mean(), values[2, 2].mean(), values[3, 0].mean()]
    )


def test_a_ratio_over_two_kinds_of_runs_is_that_of_the_means():
    values, below = rng().uniform(1, 2, (3, 2, 9, 4)), rng().uniform(1, 2, (9, 1))
    values[0, 1, 3:5] = math.nan
    defined = ~np.isnan(values)
    found = grid_interval(values, below, rng=rng())
    expected = np.nansum(values) / np.where(defined, below, 0).sum()
    assert found.value == pytest.approx(expected)
    plain = grid_interval(values, rng=rng())
    doubled = grid_interval(values, 2.0, rng=rng())
    assert (doubled.low, doubled.high) == pytest.approx((plain.low / 2, plain.high / 2))


@pytest.mark.parametrize("seeds", [3, 5, 10, 20])
def test_an_interval_over_seeds_alone_covers_the_truth_in_95_percent(seeds):
    samples = rng().normal(size=(3000, seeds))
    covered = [found.low <= 0 <= found.high for found in map(mean_interval, samples)]
    assert 0.93 <= np.mean(covered) <= 0.97


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_an_interval_over_pairs_of_seeds_covers_the_truth_in_95_percent(seeds):
    stream, pairs = rng(), np.array(list(combinations(range(seeds), 2)))
    trials, covered = 1500, 0
    for _ in range(trials):
        effect = stream.normal(size=(seeds, 1)) + stream.normal(size=(seeds, 40))
        values = effect[pairs].mean(1) + stream.normal(size=40)
        found = pairs_interval(values, seeds, rng=stream)
        covered += found.low <= 0 <= found.high
    assert 0.93 <= covered / trials <= 0.97


def test_a_metric_of_several_seeds_has_the_crossed_interval():
    # Of a mean over examples, resampling gives what the analysis of variance gives.
    values = sample(5, 1) + sample(60) + np.random.default_rng(3).normal(size=(5, 60))
    stream = rng()
    drawn = np.stack([values[:, stream.integers(60, size=60)].mean(1) for _ in range(4000)])
    found = replicated_interval(values.mean(1), drawn, 60)
    exact = crossed_interval(values, rng=rng())
    width = exact.high - exact.low
    assert found.low == pytest.approx(exact.low, abs=0.03 * width)
    assert found.high == pytest.approx(exact.high, abs=0.03 * width)


def test_tensors_pass_as_arrays():
    values = sample(30, 2)
    mask = values > -1
    assert sentence_interval(
        torch.tensor(values), torch.tensor(mask), rng=rng()
    ) == sentence_interval(values, mask, rng=rng())


def test_the_same_generator_gives_the_same_interval_however_little_memory(monkeypatch):
    values, mask = sample(40, 1), np.ones((40, 1), bool)
    whole = sentence_interval(values, mask, rng=rng())
    monkeypatch.setattr(intervals, "_BUDGET", 500)
    assert sentence_interval(values, mask, rng=rng()) == whole
    assert sentence_interval(values, mask, rng=np.random.default_rng(1)) != whole


@given(st.floats(-5, 5), st.integers(2, 40))
def test_equal_numbers_have_an_interval_without_width(value, n):
    found = mean_interval([value] * n)
    assert found.low == found.high == found.value == pytest.approx(value)


def test_a_single_number_has_no_interval_and_no_number_no_value():
    for found in (mean_interval([0.3, math.nan]), crossed_interval([[0.3]], rng=rng())):
        assert (found.value, found.n) == (0.3, 1)
        np.testing.assert_equal([found.low, found.high], [math.nan] * 2)
    for found in (mean_interval([]), rate_interval(0, 0)):
        np.testing.assert_equal([found.value, found.low, found.n], [math.nan, math.nan, 0])
    none = independent_difference_interval([1.0, 2.0], [math.nan])
    np.testing.assert_equal([none.value, none.n], [math.nan, 0])


def test_a_ratio_is_that_of_the_two_means_and_scales():
    above, mask = np.abs(sample(50, 3)), sample(50, 3) > -1
    found = sentence_ratio_interval(3 * above, above, mask, rng=rng())
    np.testing.assert_allclose([found.value, found.low, found.high], 3.0)
    baseline = np.linspace(0.1, 0.2, 50)[:, None]
    found = sentence_ratio_interval(above, baseline, mask, rng=rng())
    expected = above[mask].mean() / np.broadcast_to(baseline, mask.shape)[mask].mean()
    assert found.value == pytest.approx(expected)
    assert found.low < found.value < found.high


def test_a_ratio_to_nothing_has_no_interval():
    found = sentence_ratio_interval([[1.0], [0.0]], [[0.0], [0.0]], [[True], [True]], rng=rng())
    assert found.value == math.inf
    assert math.isnan(found.low)


def test_a_crossed_interval_of_equal_sentences_is_that_of_the_seeds():
    seeds = sample(8)
    found = crossed_interval(np.tile(seeds[:, None], (1, 30)), rng=rng())
    alone = mean_interval(seeds)
    assert (found.value, found.low, found.high) == pytest.approx(
        (alone.value, alone.low, alone.high)
    )
    assert found.n == 30


def test_a_crossed_interval_of_equal_seeds_is_that_of_the_sentences():
    sentences = sample(30)
    found = crossed_interval(np.tile(sentences, (8, 1)), rng=rng())
    alone = mean_interval(sentences)
    assert (found.low, found.high) == pytest.approx((alone.low, alone.high))


def test_crossed_resampling_of_one_seed_is_that_of_its_sentences():
    values, mask = sample(25, 4), sample(25, 4) > -1
    crossed = crossed_interval(np.where(mask, values, math.nan)[None], rng=rng())
    assert crossed == sentence_interval(values, mask, rng=rng())


def test_crossed_values_count_positions_and_drop_empty_sentences():
    values = [[[1.0, 1.0, 1.0], [0.0, math.nan, math.nan], [math.nan] * 3]] * 2
    found = crossed_interval(values, rng=rng())
    assert (found.value, found.n) == (0.75, 2)


def test_pairing_removes_what_both_samples_share():
    shared = 10 * sample(12)
    paired = paired_difference_interval(shared + 1, shared)
    apart = independent_difference_interval(shared + 1, shared)
    assert (paired.low, paired.high) == (pytest.approx(1.0), pytest.approx(1.0))
    assert apart.value == pytest.approx(1.0)
    assert apart.low < 0 < apart.high


def test_an_independent_difference_has_welchs_interval():
    a, b = sample(6), 2 * sample(9) + 1
    found = independent_difference_interval(a, b)
    ends = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))
    assert (found.value, found.n) == (pytest.approx(a.mean() - b.mean()), 6)


@for_each("n", [1, 5, 20])
def test_rates_of_none_and_all_have_clopper_and_pearsons_closed_form(n):
    none, every = rate_interval(0, n), rate_interval(n, n)
    assert (none.value, none.low, every.value, every.high) == (0.0, 0.0, 1.0, 1.0)
    assert none.high == pytest.approx(1 - 0.025 ** (1 / n))
    assert every.low == pytest.approx(0.025 ** (1 / n))
    assert none.n == every.n == n


def test_pairs_of_seeds_are_left_out_by_seed_as_a_plain_loop_does():
    members = 4
    pairs = list(combinations(range(members), 2))
    values = np.tile(sample(len(pairs))[:, None], (1, 5))
    found = pairs_interval(values, members, rng=rng())
    left_out = []
    for seed in range(members):
        rest = [row.mean() for pair, row in zip(pairs, values, strict=True) if seed not in pair]
        left_out.append(np.mean(rest))
    error = math.sqrt((members - 1) / members * np.square(left_out - np.mean(left_out)).sum())
    assert found.value == pytest.approx(values.mean())
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, members - 1) * error)
    assert found.n == 5


def test_undefined_positions_of_pairs_are_skipped():
    values = sample(6, 5, 2)
    values[0, 1] = np.nan
    found = pairs_interval(values, 4, rng=rng())
    assert found.value == pytest.approx(np.nanmean(values))


def test_pairs_that_share_seeds_are_less_certain_than_independent_ones():
    rng, members = np.random.default_rng(0), 6
    effect = rng.normal(size=members)
    pairs = list(combinations(range(members), 2))
    values = np.array([[effect[i] + effect[j]] * 200 for i, j in pairs])
    together = pairs_interval(values, members, rng=np.random.default_rng(1))
    apart = crossed_interval(values, rng=np.random.default_rng(1))
    assert together.high - together.low > 1.3 * (apart.high - apart.low)


def test_one_pair_of_seeds_has_an_interval_over_sentences_alone():
    values = np.random.default_rng(0).normal(size=(1, 50))
    found = pairs_interval(values, 2, rng=np.random.default_rng(1))
    assert found == crossed_interval(values, rng=np.random.default_rng(1))


def test_a_shifted_or_scaled_interval_keeps_its_order_and_its_sample():
    interval = Interval(2.0, 1.0, 4.0, 7)
    assert interval.shifted(-3) == Interval(-1.0, -2.0, 1.0, 7)
    assert interval.scaled(10) == Interval(20.0, 10.0, 40.0, 7)
    assert interval.scaled(-1) == Interval(-2.0, -4.0, -1.0, 7)


def test_a_difference_of_two_means_has_the_interval_of_a_sum_of_squares():
    """As that of independent normal means: √(.3² + .4²) to both sides."""
    found = interval_difference(Interval(2.0, 1.7, 2.3, 5), Interval(1.0, 0.6, 1.4, 3))
    assert [found.value, found.low, found.high] == pytest.approx([1.0, 0.5, 1.5])
    assert found.n == 3


def test_a_mean_of_several_new_runs_is_expected_in_a_narrower_interval():
    values = sample(5)
    one, five = prediction_interval(values), prediction_interval(values, runs=5)
    half = stats.t.ppf(0.975, 4) * values.std(ddof=1)
    assert one.high - one.value == pytest.approx(half * math.sqrt(1 / 5 + 1))
    assert five.high - five.value == pytest.approx(half * math.sqrt(1 / 5 + 1 / 5))


@pytest.mark.parametrize("seeds", [3, 10])
def test_a_new_run_lies_in_the_prediction_interval_in_95_percent(seeds):
    samples = rng().normal(size=(3000, seeds + 1))
    found = [prediction_interval(row[1:]) for row in samples]
    covered = [f.low <= row[0] <= f.high for f, row in zip(found, samples, strict=True)]
    assert 0.93 <= np.mean(covered) <= 0.97


def test_intervals_over_seeds_keep_the_number_of_each_seed():
    table = sample(3, 20)
    crossed = crossed_interval(table, rng=rng())
    assert crossed.values == pytest.approx(table.mean(1))
    assert mean_interval([1.0, math.nan, 3.0]).scaled(2).values == pytest.approx(
        (2.0, math.nan, 6.0), nan_ok=True
    )
    assert sentence_interval(table[0], rng=rng()).values == ()
