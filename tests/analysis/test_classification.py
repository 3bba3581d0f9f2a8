"""F1, precision, recall and accuracy against scikit-learn, and their intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score

from attnscope.analysis.classification import METRICS, classification_metrics, metric_intervals
from attnscope.errors import UsageError

OTHERS = {"f1": f1_score, "precision": precision_score, "recall": recall_score}


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def labelled(classes: int) -> st.SearchStrategy:
    row = st.lists(
        st.tuples(st.integers(0, classes - 1), st.integers(0, classes - 1)), min_size=1, max_size=25
    )
    return row.map(lambda pairs: np.array(pairs).T)


@given(labelled(2))
def test_the_positive_class_is_judged_as_scikit_learn_does(pairs):
    labels, said = pairs
    found = classification_metrics(labels, said)
    for name, other in OTHERS.items():
        assert found[name] == pytest.approx(other(labels, said, zero_division=0))
    assert found["accuracy"] == pytest.approx(accuracy_score(labels, said))


@given(labelled(4))
def test_more_classes_are_averaged_as_scikit_learn_does(pairs):
    labels, said = pairs
    every = list(range(max(2, labels.max() + 1, said.max() + 1)))
    found = classification_metrics(labels, said, average="macro")
    for name, other in OTHERS.items():
        expected = other(labels, said, labels=every, average="macro", zero_division=0)
        assert found[name] == pytest.approx(expected)
    assert found["accuracy"] == pytest.approx(accuracy_score(labels, said))


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
    assert [found.low, found.high] == pytest.approx(
        list(np.quantile(plain, [0.025, 0.975])), abs=0.01
    )


def test_the_value_is_the_mean_of_each_seeds_and_draws_metric():
    labels, said = rng().integers(2, size=30), rng().integers(2, size=(4, 3, 30))
    found = metric_intervals(labels, said, rng=rng(), resamples=10)
    each = classification_metrics(labels, said)
    for name in METRICS:
        assert found[name].value == pytest.approx(each[name].mean())


def test_seeds_are_resampled_where_there_are_several():
    labels = np.array([0, 1] * 50)
    one_right_one_wrong = np.stack([labels, 1 - labels])[:, None]
    found = metric_intervals(labels, one_right_one_wrong, rng=rng())["accuracy"]
    assert (found.value, found.low, found.high) == (0.5, 0.0, 1.0)


def test_draws_are_resampled_where_there_are_several():
    labels = np.array([0, 1] * 50)
    draws = np.stack([labels, 1 - labels])[None]
    found = metric_intervals(labels, draws, rng=rng())["accuracy"]
    assert (found.value, found.low, found.high) == (0.5, 0.0, 1.0)


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
    with pytest.raises(UsageError, match="no example"):
        classification_metrics([], np.zeros((1, 0), int))
