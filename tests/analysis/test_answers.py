"""Answers of several classifiers: labels, accuracy and the evenness of attention."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from attnscope.analysis.answers import read_answers
from attnscope.data.batch import Example, collate


def test_answers_are_those_of_single_texts_in_their_order(classifier, reviews):
    models = [classifier(seed) for seed in (1, 2)]
    found = read_answers(iter(models), reviews, positions=20)
    assert found.labels.tolist() == reviews.targets[:, 0].tolist()
    for place, model in enumerate(models):
        for row, length in enumerate(reviews.input_lengths.tolist()):
            trace = model.trace(reviews.rows(slice(row, row + 1)).trimmed())
            assert found.predicted[place, 0, row] == int(trace.logits[0, 0].argmax())
            weights = trace.sites["cross"].weights[0, 0, 0].numpy()
            even = stats.entropy(weights) / np.log(length) if length > 1 else np.nan
            assert found.entropy[place, row] == pytest.approx(even, nan_ok=True)


def test_accuracy_is_the_mean_over_models_and_a_difference_is_paired(given):
    # Two types: the first model is right on both, the second on type 0 alone.
    batch = collate([Example(n, [n % 2], [0], [n % 2]) for n in range(10)])
    right = given([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0], torch.eye(2).tolist())
    half = given([[1.0, 0.0], [1.0, 0.0]], [0.0, 0.0], torch.eye(2).tolist())
    one, other = read_answers([right], batch), read_answers([half], batch)
    both = read_answers([right, half], batch)
    assert both.accuracy(rng=np.random.default_rng(0)).value == 0.75
    assert one.accuracy(rng=np.random.default_rng(0), less=other).value == 0.5
    assert both.metric("recall", "positive").tolist() == [1.0, 0.0]
    assert both.metric("recall", "macro").tolist() == [1.0, 0.5]
