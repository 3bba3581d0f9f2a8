"""F1, precision, recall and accuracy against scikit-learn, and their intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from sklearn.metrics import f1_score, precision_recall_fscore_support

from attnscope.analysis.classification import (
    METRICS,
    classification_metrics,
    metric_intervals,
    usual_average,
)
from attnscope.analysis.intervals import crossed_interval
from attnscope.errors import UsageError


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def scikit_learn(labels, said, average):
    precision, recall, f1, _ = precision_recall_fscore_support(
        labels, said, average=average, zero_division=0
    )
    accuracy = np.mean(labels == said)
    return {"f1": f1, "precision": precision, "recall": recall, "accuracy": accuracy}


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 6), st.integers(2, 25), st.integers(0, 2**32 - 1))
def test_scikit_learn_agrees_with_every_metric_and_intervals_contain_it(classes, size, seed):
    average = usual_average(range(classes))
    for labels, said in np.random.default_rng(seed).integers(classes, size=(20, 2, size)):
        expected = scikit_learn(labels, said, "binary" if classes == 2 else "macro")
        found = metric_intervals(labels, said[None, None], rng=rng(), average=average, resamples=20)
        for name, interval in found.items():
            assert interval.value == pytest.approx(expected[name])
            assert 0 <= interval.low <= interval.value <= interval.high <= 1


def test_many_draws_are_judged_at_once_as_each_by_itself():
    labels, said = rng().integers(2, size=30), rng().integers(2, size=(4, 3, 30))
    together = classification_metrics(labels, said)
    assert together["f1"].shape == (4, 3)
    for index in np.ndindex(4, 3):
        assert together["f1"][index] == pytest.approx(f1_score(labels, said[index]))


def test_never_predicting_the_positive_class_is_an_f1_of_zero():
    assert classification_metrics([1, 0, 1], [0, 0, 0])["f1"] == 0


def test_the_interval_of_accuracy_is_that_of_a_binomial():
    # To draw n of n examples with replacement is to draw the number of right ones from a binomial.
    labels = np.ones(400, int)
    said = (np.arange(400) < 300).astype(int)[None, None]
    found = metric_intervals(labels, said, rng=rng())["accuracy"]
    low, high = stats.binom.ppf([0.025, 0.975], 400, 0.75) / 400
    assert (found.value, found.n) == (0.75, 400)
    assert [found.low, found.high] == pytest.approx([low, high], abs=0.005)


def test_the_interval_of_f1_is_that_of_a_plain_bootstrap():
    stream = rng()
    labels = stream.integers(2, size=120)
    said = np.where(stream.random(120) < 0.8, labels, 1 - labels)
    found = metric_intervals(labels, said[None, None], rng=rng())["f1"]
    draws = [stream.integers(120, size=120) for _ in range(1000)]
    plain = [f1_score(labels[d], said[d]) for d in draws]
    assert found.value == pytest.approx(f1_score(labels, said))
    half = stats.t.ppf(0.975, 119) * np.std(plain)
    assert found.high - found.value == pytest.approx(half, rel=0.08)


def test_the_value_is_the_mean_of_each_seeds_and_draws_metric():
    labels, said = rng().integers(2, size=30), rng().integers(2, size=(4, 3, 30))
    found = metric_intervals(labels, said, rng=rng(), resamples=10)
    each = classification_metrics(labels, said)
    for name in METRICS:
        assert found[name].value == pytest.approx(each[name].mean())


@pytest.mark.parametrize("shape", [(4, 1), (1, 4)], ids=["seeds", "draws"])
def test_the_spread_between_seeds_or_draws_is_in_the_interval(shape):
    labels = np.array([0, 1] * 50)
    rates = np.array([0.6, 0.7, 0.7, 0.8])
    said = np.where(np.arange(100) < 100 * rates[:, None], labels, 1 - labels)
    found = metric_intervals(labels, said.reshape(*shape, 100), rng=rng())["accuracy"]
    # Accuracy is a mean over examples, which has an interval without resampling.
    exact = crossed_interval((said == labels).astype(float), rng=rng())
    assert found.value == exact.value == pytest.approx(0.7)
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=0.005)


def test_a_perfect_predictor_of_many_classes_is_perfect_in_every_resample():
    labels = rng().permutation(np.arange(50).repeat(4))
    found = metric_intervals(labels, labels[None, None], rng=rng(), average="macro")["f1"]
    assert (found.value, found.low, found.high) == (1, 1, 1)


def test_a_change_is_paired_over_examples_and_seeds():
    stream = rng()
    labels, said = stream.integers(2, size=50), stream.integers(2, size=(3, 1, 50))
    same = metric_intervals(labels, said, rng=rng(), baseline=said)
    assert all((i.value, i.low, i.high) == (0, 0, 0) for i in same.values())
    # Wrong on a fifth of what was right throughout: never less than 0, never all of it.
    right = np.repeat(labels[None, None], 3, 0)
    worse = np.where(np.arange(50) < 10, 1 - labels, labels)[None, None].repeat(3, 0)
    found = metric_intervals(labels, worse, rng=rng(), baseline=right)["accuracy"]
    assert found.value == pytest.approx(-0.2)
    assert -0.4 < found.low < -0.2 < found.high < 0


def test_the_same_generator_gives_the_same_interval():
    labels, said = rng().integers(2, size=30), rng().integers(2, size=(2, 3, 30))
    first, second = (metric_intervals(labels, said, rng=rng(), resamples=50) for _ in range(2))
    assert first == second


def test_what_does_not_fit_is_one_sentence():
    with pytest.raises(UsageError, match=r"shape \(3, 4\) were given; needed is \[seeds, draws"):
        metric_intervals([0, 1, 1, 0], np.zeros((3, 4), int), rng=rng())
    three, two = np.zeros((3, 1, 2), int), np.zeros((2, 1, 2), int)
    with pytest.raises(UsageError, match="3 seeds are compared with 2"):
        metric_intervals([0, 1], three, rng=rng(), baseline=two)
    with pytest.raises(UsageError, match="no examples"):
        classification_metrics([], np.zeros((1, 0), int))
