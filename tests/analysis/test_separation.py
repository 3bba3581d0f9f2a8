"""AUC, its interval, and the standardised gap between two groups."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from attnscope.analysis.separation import (
    Box,
    auc_interval,
    compute_box,
    compute_separation,
    standardised_gap,
)

numbers = st.lists(st.integers(-5, 5), min_size=2, max_size=20)


@given(numbers, numbers)
def test_auc_is_scikit_learns_and_the_test_is_scipys(first, second):
    found = compute_separation(first, second)
    truth = [1] * len(first) + [0] * len(second)
    assert found.auc.value == pytest.approx(roc_auc_score(truth, first + second))
    assert found.p_value == pytest.approx(stats.mannwhitneyu(first, second).pvalue, nan_ok=True)
    assert found.auc.n == min(len(first), len(second))
    assert 0 <= found.auc.low <= found.auc.value <= found.auc.high <= 1


@given(numbers, numbers)
def test_groups_change_places_with_the_sign(first, second):
    one, other = compute_separation(first, second), compute_separation(second, first)
    assert one.auc.value == pytest.approx(1 - other.auc.value)
    assert one.auc.low == pytest.approx(1 - other.auc.high)
    assert one.gap == pytest.approx(-other.gap, nan_ok=True)


def test_the_variance_is_delongs_over_all_pairs():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.6, 1, 40).round(1), rng.normal(0, 1, 25).round(1)
    wins = (a[:, None] > b) + 0.5 * (a[:, None] == b)
    value = wins.mean()
    variance = wins.mean(1).var(ddof=1) / 40 + wins.mean(0).var(ddof=1) / 25
    odds, reach = np.log(value / (1 - value)), 1.959964 * variance**0.5 / (value * (1 - value))
    found = auc_interval(a, b)
    expected = 1 / (1 + np.exp(-(odds + np.array([-reach, reach]))))
    assert [found.low, found.high] == pytest.approx(expected.tolist(), rel=1e-6)


def test_the_interval_covers_the_true_value_19_times_of_20():
    rng = np.random.default_rng(1)
    truth = stats.norm.cdf(1 / 2**0.5)  # Of N(1, 1) over N(0, 1).
    intervals = [auc_interval(rng.normal(1, 1, 40), rng.normal(0, 1, 60)) for _ in range(1000)]
    covered = sum(found.low < truth < found.high for found in intervals)
    assert stats.binomtest(covered, 1000, 0.95).pvalue > 0.01


def test_groups_that_do_not_overlap_have_an_interval_below_1():
    found = auc_interval([5, 6, 7, 8], [1, 2, 3])
    assert (found.value, found.high) == (1, 1)
    assert found.low == pytest.approx(0.025 ** (1 / 3))  # Clopper–Pearson for 3 of 3.
    assert auc_interval([1, 2], [5, 6]).high == pytest.approx(1 - 0.025**0.5)


def test_the_gap_is_in_pooled_standard_deviations():
    assert standardised_gap([3, 5], [0, 2, 4]) == pytest.approx(2 / (10 / 3) ** 0.5)
    assert np.isnan(standardised_gap([1, 1], [2, 2]))


def test_undefined_numbers_are_skipped_and_tensors_pass():
    first = torch.tensor([1.0, float("nan"), 3.0, 2.0])
    assert compute_separation(first, [0.0, 2.5]) == compute_separation([1, 3, 2], [0, 2.5])


def test_an_empty_group_and_a_group_of_one_have_no_interval():
    empty = compute_separation([], [1.0, 2.0])
    assert np.isnan([empty.auc.value, empty.p_value, empty.gap, empty.means[0]]).all()
    assert empty.auc.n == 0
    one = auc_interval([3.0], [1.0, 2.0])
    assert one.value == 1
    assert np.isnan(one.low)


def test_a_box_has_tukeys_numbers_and_names_what_lies_beyond():
    # Quartiles of 0, 1, …, 8, 20, 30 by linear interpolation; whiskers reach 1.5 · 5 beyond them.
    values = [20.0, *range(9), 30.0, float("nan")]
    found, beyond = compute_box(values)
    assert found == Box(0.0, 2.5, 5.0, 7.5, 8.0)
    assert beyond.tolist() == [30.0, 20.0]
    alone, none = compute_box([3.0])
    assert set(alone) == {3.0}
    assert len(none) == 0
