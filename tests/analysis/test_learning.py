"""The threshold of learning: reached at .95, at the first evaluation that is there."""

from __future__ import annotations

import pytest

from attnscope.analysis.learning import learned, learned_at, steps_to


def test_a_run_learns_at_exactly_the_threshold():
    assert learned(0.95)
    assert not learned(0.9499)
    assert learned(0.6, threshold=0.6)


def test_the_first_step_that_reaches_the_threshold_counts_even_if_it_is_lost_again():
    assert steps_to([0.1, 0.95, 0.5, 0.99], [0, 10, 20, 30]) == 10
    assert steps_to([0.1, 0.6], [0, 10], threshold=0.05) == 0


def test_a_run_that_never_gets_there_has_no_step():
    assert steps_to([0.1, 0.94, float("nan")], [0, 10, 20]) is None
    assert steps_to([], []) is None


def test_each_accuracy_needs_its_step():
    with pytest.raises(ValueError, match="zip"):
        steps_to([0.1, 0.2], [0])


def test_a_log_counts_up_to_the_budget():
    log = [{"step": step, "accuracy": a} for step, a in ((0, 0.1), (10, 0.96), (20, 0.5))]
    assert learned_at(log) == learned_at(log, 10) == 10
    assert learned_at(log, 9) is None
