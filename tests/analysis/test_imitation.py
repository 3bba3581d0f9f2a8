"""What an imitator achieves on each example."""

from __future__ import annotations

import math

import pytest
import torch

from attnscope.analysis.imitation import compare_with_base, curve_gap
from attnscope.theory.divergence import jensen_shannon, total_variation


def test_each_example_is_compared_by_itself_and_in_its_order(classifier, reviews):
    imitator, base = classifier(1), classifier(2)
    found = compare_with_base(imitator, base, reviews)
    for row, length in enumerate(reviews.input_lengths.tolist()):
        one, other = (
            m.trace(reviews.rows(slice(row, row + 1)).trimmed()) for m in (imitator, base)
        )
        outputs = [trace.logits[0, 0].softmax(-1) for trace in (one, other)]
        weights = [trace.sites["cross"].weights[0, 0, 0] for trace in (one, other)]
        assert len(weights[0]) == length
        everywhere = torch.ones(length, dtype=torch.bool)
        torch.testing.assert_close(found.distance[row], total_variation(*outputs).float())
        torch.testing.assert_close(
            found.divergence[row], jensen_shannon(*weights, everywhere).float()
        )


def test_a_model_compared_with_itself_is_nowhere_apart(classifier, reviews):
    found = compare_with_base(classifier(), classifier(), reviews)
    assert not found.distance.any()
    assert not found.divergence.any()


def test_two_curves_are_compared_where_both_are():
    flat = [(0.0, 0.5), (1.0, 0.5)]
    rising = [(0.6, 0.6), (0.2, 0.2), (0.4, 0.4)]  # in any order
    assert curve_gap(flat, rising) == pytest.approx(0.5 - 0.4)
    assert curve_gap(rising, flat) == pytest.approx(0.4 - 0.5)
    assert math.isnan(curve_gap(flat, [(2.0, 0.1), (3.0, 0.1)]))
