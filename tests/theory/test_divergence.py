"""TVD and JSD against scipy and their bounds."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, strategies as st
from scipy.spatial.distance import jensenshannon

from attnscope.theory.divergence import LARGEST_JSD, jensen_shannon, total_variation

EXTREME = st.lists(st.floats(-300, 300, width=32), min_size=2, max_size=6)


def pair(logits: list[float], others: list[float]) -> tuple[torch.Tensor, torch.Tensor]:
    """Two distributions of one size, with weights down to exactly 0."""
    size = min(len(logits), len(others))
    return torch.tensor([logits[:size], others[:size]]).softmax(-1).unbind()


def everywhere(p: torch.Tensor) -> torch.Tensor:
    return torch.ones_like(p, dtype=torch.bool)


@given(EXTREME, EXTREME)
def test_the_bounds_hold_in_single_precision_however_extreme_the_weights(logits, others):
    p, q = pair(logits, others)
    assert 0 <= total_variation(p, q) <= 1
    assert 0 <= jensen_shannon(p, q, everywhere(p)) <= torch.tensor(math.log(2))
    assert total_variation(p, p) == 0
    assert jensen_shannon(p, p, everywhere(p)) == 0


@given(EXTREME, EXTREME)
def test_jsd_is_the_square_of_scipys_distance(logits, others):
    p, q = (part.double() / part.double().sum() for part in pair(logits, others))
    expected = jensenshannon(p.numpy(), q.numpy()) ** 2
    assert float(jensen_shannon(p, q, everywhere(p))) == pytest.approx(expected, abs=1e-12)


def test_both_are_symmetric():
    p, q = torch.rand(2, 7, 5, generator=torch.Generator().manual_seed(0)).softmax(-1)
    torch.testing.assert_close(total_variation(p, q), total_variation(q, p))
    torch.testing.assert_close(
        jensen_shannon(p, q, everywhere(p)), jensen_shannon(q, p, everywhere(p))
    )


def test_disjoint_distributions_reach_both_bounds():
    p, q = torch.tensor([[0.25, 0.75, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]], dtype=torch.float64)
    assert total_variation(p, q) == 1
    assert float(jensen_shannon(p, q, everywhere(p))) == pytest.approx(LARGEST_JSD, abs=1e-15)


def test_for_two_classes_the_total_variation_is_the_difference_of_one_probability():
    p, q = torch.tensor([[0.3, 0.7], [0.9, 0.1]])
    torch.testing.assert_close(total_variation(p, q), torch.tensor(0.6))


def test_what_stands_at_padding_is_not_looked_at():
    p, q = torch.tensor([[0.25, 0.75, 9.0], [0.5, 0.5, float("nan")]])
    mask = torch.tensor([True, True, False])
    short = jensen_shannon(p[:2], q[:2], everywhere(p[:2]))
    assert jensen_shannon(p, q, mask) == short


def test_rows_are_compared_each_by_itself_and_one_row_with_many():
    p, q = torch.rand(2, 3, 4, 5, generator=torch.Generator().manual_seed(1)).softmax(-1)
    together = jensen_shannon(p, q[:1], everywhere(p[:1]))
    assert together.shape == (3, 4)
    alone = jensen_shannon(p[2, 1], q[0, 1], everywhere(p[2, 1]))
    torch.testing.assert_close(together[2, 1], alone)
    torch.testing.assert_close(total_variation(p, q[:1])[2, 1], total_variation(p[2, 1], q[0, 1]))


@pytest.mark.parametrize("size", [1.0, 500.0])
def test_gradients_are_finite_where_a_softmax_comes_out_as_zero(size):
    logits = (size * torch.tensor([0.0, -1.0, 0.3, 0.5])).requires_grad_()
    mask = torch.tensor([True, True, True, False])
    weights = logits.masked_fill(~mask, -torch.inf).softmax(-1)
    other = torch.tensor([0.0, 0.5, 0.5, 0.0])
    (slope,) = torch.autograd.grad(jensen_shannon(weights, other, mask), logits)
    assert slope.isfinite().all()


def test_the_gradient_is_that_of_the_formula():
    logits = torch.tensor([0.2, -0.4, 1.0], dtype=torch.float64, requires_grad=True)
    other = torch.tensor([0.1, 0.6, 0.3], dtype=torch.float64)

    def divergence(x: torch.Tensor) -> torch.Tensor:
        return jensen_shannon(x.softmax(-1), other, torch.ones(3, dtype=torch.bool))

    assert torch.autograd.gradcheck(divergence, logits)
