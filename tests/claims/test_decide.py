"""The rules of decision, case by case, and the tests behind them against independent ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from attnscope.analysis.intervals import Interval
from attnscope.claims.decide import (
    Outcome,
    Significance,
    Verdict,
    about_equal,
    above,
    all_of,
    any_of,
    at_least,
    below,
    by_value,
    cochran_armitage_trend,
    exactly,
    faster_or_more,
    fisher_less,
    fisher_p,
    learns,
    log_rank,
    much_greater,
    reaches,
    share_of,
    stays_within,
)
from cases import for_each

HOLDS, FAILS, UNDECIDED = Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED

pytestmark = pytest.mark.filterwarnings("error")


def interval(low, high, value=None):
    return Interval((low + high) / 2 if value is None else value, low, high, 20)


UNKNOWN = interval(math.nan, math.nan, 0.0)


@for_each(
    ("difference", "ratio", "expected"),
    [
        (interval(0.1, 0.3), None, HOLDS),
        (interval(0.1, 0.3), interval(1.2, 2.0, 1.5), HOLDS),
        (interval(0.1, 0.3), interval(1.2, 2.0, 1.49), UNDECIDED),
        (interval(0.1, 0.3), interval(1.1, 1.4), FAILS),
        (interval(0.0, 0.3), None, UNDECIDED),
        (interval(-0.1, 0.3), interval(1.6, 2.0), UNDECIDED),
        (interval(-0.3, -0.1), None, FAILS),
        (interval(-0.3, -0.1), interval(0.5, 2.0), FAILS),
        (UNKNOWN, None, UNDECIDED),
        (UNKNOWN, interval(math.nan, math.nan, 9.0), UNDECIDED),
    ],
)
def test_much_greater_needs_the_difference_and_the_ratio(difference, ratio, expected):
    assert much_greater(difference, ratio) is expected


@for_each(
    ("rule", "found", "expected"),
    [
        (reaches, interval(0.9, 1.0), HOLDS),  # the bound itself is enough
        (reaches, interval(0.8, 1.0), UNDECIDED),
        (reaches, interval(0.7, 0.8), FAILS),
        (reaches, UNKNOWN, UNDECIDED),
        (stays_within, interval(0.8, 0.9), HOLDS),
        (stays_within, interval(0.8, 1.0), UNDECIDED),
        (stays_within, interval(0.91, 1.0), FAILS),
        (exactly, interval(0.8, 1.0, 0.9), HOLDS),  # its interval does not matter
        (exactly, interval(0.9, 0.9, 0.8), FAILS),
        (exactly, interval(math.nan, math.nan, math.nan), UNDECIDED),
        (by_value(reaches), interval(0.1, 1.0, 0.9), HOLDS),
        (by_value(reaches), interval(0.1, 1.0, 0.8), FAILS),
        (by_value(below), interval(0.1, 1.0, 0.8), HOLDS),
        (by_value(below), interval(math.nan, math.nan, math.nan), UNDECIDED),
    ],
)
def test_a_rule_with_a_bound_of_nine_tenths(rule, found, expected):
    assert rule(found, 0.9) is expected


@for_each(
    ("difference", "expected"),
    [
        (interval(-0.5, 0.5), HOLDS),
        (interval(-0.2, 0.1), HOLDS),
        (interval(-0.6, 0.1), UNDECIDED),
        (interval(0.2, 0.8), UNDECIDED),
        (interval(-0.9, 0.9), UNDECIDED),
        (interval(0.6, 0.9), FAILS),
        (interval(-0.9, -0.6), FAILS),
        (UNKNOWN, UNDECIDED),
    ],
)
def test_about_equal_needs_the_whole_interval_inside_the_margin(difference, expected):
    assert about_equal(difference, margin=0.5) is expected


def test_an_interval_is_above_or_below_a_bound_or_holds_it():
    assert above(interval(0.6, 0.7), 0.5) is below(interval(0.3, 0.4), 0.5) is HOLDS
    assert above(interval(0.3, 0.4), 0.5) is below(interval(0.6, 0.7), 0.5) is FAILS
    for undecided in (interval(0.4, 0.7), interval(0.3, 0.6), UNKNOWN):
        assert above(undecided, 0.5) is below(undecided, 0.5) is UNDECIDED


def test_a_seed_learns_at_95_percent():
    assert [learns(x) for x in (0.95, 0.949, math.nan)] == [HOLDS, FAILS, UNDECIDED]


def test_verdicts_read_as_plain_words():
    assert [str(verdict) for verdict in Verdict] == ["holds", "fails", "undecided"]


@given(st.lists(st.sampled_from(list(Verdict)), min_size=1, max_size=7), st.integers(1, 7))
def test_a_combination_is_decided_once_no_outcome_of_the_undecided_can_change_it(parts, count):
    held = parts.count(HOLDS)
    possible = {held + extra >= count for extra in range(parts.count(UNDECIDED) + 1)}
    expected = {frozenset([True]): HOLDS, frozenset([False]): FAILS}
    assert at_least(parts, count) is expected.get(frozenset(possible), UNDECIDED)


def test_all_any_and_shares():
    mixed = [HOLDS, HOLDS, FAILS]
    assert [all_of(mixed), any_of(mixed), share_of(mixed, 2 / 3)] == [FAILS, HOLDS, HOLDS]
    assert share_of(mixed, 0.75) is FAILS
    assert all_of([HOLDS, UNDECIDED]) is UNDECIDED
    assert any_of([FAILS, UNDECIDED]) is UNDECIDED
    assert all_of([]) is any_of([]) is share_of([], 0.5) is UNDECIDED


@for_each(("held", "of", "share"), [(7, 100, 0.07), (29, 100, 0.29), (2, 3, 2 / 3), (16, 20, 0.8)])
def test_a_share_is_met_exactly_despite_floating_point(held, of, share):
    assert share_of([HOLDS] * held + [FAILS] * (of - held), share) is HOLDS
    assert share_of([HOLDS] * (held - 1) + [FAILS] * (of - held + 1), share) is FAILS


@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_fisher_is_the_enumerated_hypergeometric_sum(n1, n2, data):
    k1, k2 = data.draw(st.integers(0, n1)), data.draw(st.integers(0, n2))
    table = stats.hypergeom(n1 + n2, k1 + k2, n1)
    pmf = table.pmf(np.arange(k1 + k2 + 1))
    assert fisher_p(k1, n1, k2, n2) == pytest.approx(pmf[pmf <= pmf[k1] * (1 + 1e-9)].sum())


def test_fisher_has_a_direction():
    assert fisher_less(12, 20, 20, 20) is HOLDS
    assert fisher_less(20, 20, 12, 20) is FAILS
    assert fisher_less(18, 20, 20, 20) is UNDECIDED
    assert fisher_less(0, 0, 20, 20) is UNDECIDED


def log_rank_by_tables(steps_a, steps_b, censored_at):
    """Add up one hypergeometric 2 × 2 table per step at which somebody learned."""
    at_risk = [[censored_at + 1 if s is None else s for s in steps] for steps in (steps_a, steps_b)]
    excess = variance = 0.0
    for step in {s for s in (*steps_a, *steps_b) if s is not None}:
        risk_a, risk_b = (sum(s >= step for s in steps) for steps in at_risk)
        learned_a, learned_b = (sum(s == step for s in steps) for steps in at_risk)
        table = stats.hypergeom(risk_a + risk_b, learned_a + learned_b, risk_a)
        excess += learned_a - table.mean()
        variance += table.var()
    return excess / math.sqrt(variance)


def test_log_rank_is_the_sum_of_its_tables_with_censored_seeds_at_risk_to_the_end():
    hard = [150, 170, None, 190, 200, None, 120, None, 180, 200]
    control = [90, 100, 110, 100, 130, 120, 200, 80, 100, 110]
    found = log_rank(hard, control, censored_at=200)
    z = log_rank_by_tables(hard, control, 200)
    assert z < -2
    assert found.statistic == pytest.approx(z)
    assert found.p == pytest.approx(stats.chi2.sf(z**2, 1))


@for_each("sizes", [(3, 7), (20, 20), (1, 1), (0, 4)])
def test_log_rank_without_evidence_says_so(sizes):
    for step in (None, 50):
        a, b = ([step] * size for size in sizes)
        assert log_rank(a, b, censored_at=200) == Significance(0.0, 1.0)


def test_trend_of_two_groups_is_the_chi_squared_test_of_their_table():
    found = cochran_armitage_trend([15, 8], [20, 25], [1, 2])
    chi2 = stats.chi2_contingency([[15, 8], [5, 17]], correction=False)
    assert found.statistic < 0
    assert found.statistic**2 == pytest.approx(chi2.statistic)
    assert found.p == pytest.approx(chi2.pvalue)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=2, max_size=5))
def test_trend_is_the_correlation_of_outcome_and_score(groups):
    successes = [min(k, n) for k, n in groups]
    totals, scores = [n for _, n in groups], [2**g for g in range(len(groups))]
    outcome = np.concatenate([np.arange(n) < k for k, n in zip(successes, totals, strict=True)])
    found = cochran_armitage_trend(successes, totals, scores)
    if outcome.all() or not outcome.any():
        assert found == Significance(0.0, 1.0)
        return
    r = np.corrcoef(outcome, np.repeat(scores, totals))[0, 1]
    assert found.statistic == pytest.approx(math.sqrt(outcome.size) * r, abs=1e-9)


def test_trend_without_evidence_says_so():
    assert cochran_armitage_trend([3, 4], [5, 5], [1, 1]) == Significance(0.0, 1.0)
    assert cochran_armitage_trend([0, 0], [0, 0], [1, 2]) == Significance(0.0, 1.0)


def seeds(*steps):
    return [Outcome(step is not None, step) for step in steps]


CONTROL = seeds(*[100] * 10, *[110] * 10)


@for_each(
    ("hard", "control", "expected"),
    [
        # 12 of 20 against 20 of 20, as the authors' code gives: Fisher.
        (seeds(*[100] * 12, *[None] * 8), CONTROL, HOLDS),
        # One failure, but all others slower: log-rank.
        (seeds(*[180] * 19, None), CONTROL, HOLDS),
        (seeds(*[100] * 10, *[110] * 9, None), CONTROL, UNDECIDED),
        (seeds(*[180] * 20), CONTROL, FAILS),
        (seeds(*[100] * 12, *[None] * 8), [*CONTROL[:-1], Outcome(False, None)], FAILS),
        (seeds(*[50] * 19, None), CONTROL, FAILS),
        (seeds(*[100] * 5, *[None] * 5), CONTROL, UNDECIDED),
    ],
)
def test_a_hard_task_fails_sometimes_while_its_control_always_learns(hard, control, expected):
    assert faster_or_more(hard, control, budget=200) is expected


def test_a_seed_that_lost_what_it_had_reached_did_not_learn():
    lost = [Outcome(False, 100)] * 8 + [Outcome(True, 100)] * 12
    assert faster_or_more(lost, CONTROL, budget=200) is HOLDS
