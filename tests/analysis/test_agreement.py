"""Top-share agreement against its definition, its random baseline against enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from scipy import stats

from attnscope.analysis.agreement import (
    argmax_at,
    attention_entropy,
    chance_agreement,
    expected_random_agreement,
    top_share_agreement,
)
from attnscope.errors import UsageError
from cases import for_each

levels = st.sampled_from([-math.inf, -1.5, 0.0, 0.25, 2.0, 7.0])


@st.composite
def two_rows_with_mask(draw):
    length = draw(st.integers(1, 30))
    row = st.lists(levels, min_size=length, max_size=length)
    mask = draw(st.lists(st.booleans(), min_size=length, max_size=length).filter(any))
    return draw(row), draw(row), mask


def batched(row, dtype=torch.float64):
    return torch.tensor([[row]], dtype=dtype)


def agree(u, v, mask, share=0.05):
    value = top_share_agreement(batched(u), batched(v), torch.tensor([mask]), share)
    assert value.shape == (1, 1)
    return value.item()


def by_definition(u, v, mask, share):
    """Rank the real positions of v by sorting, without padding to begin with."""
    u = [x for x, real in zip(u, mask, strict=True) if real]
    v = [x for x, real in zip(v, mask, strict=True) if real]
    descending = sorted(v, reverse=True)
    return float(descending.index(v[u.index(max(u))]) < Fraction(str(share)) * len(v))


@given(two_rows_with_mask(), st.sampled_from([0.05, 0.1, 0.3, 0.5]))
def test_agreement_is_what_equation_10_says(rows, share):
    assert agree(*rows, share) == by_definition(*rows, share)


@given(two_rows_with_mask())
def test_a_score_agrees_with_itself(rows):
    u, _, mask = rows
    assert agree(u, u, mask) == 1.0


@given(two_rows_with_mask(), st.data())
def test_padding_never_changes_an_agreement(rows, data):
    u, v, _ = rows
    padded = [(a, b, True) for a, b in zip(u, v, strict=True)]
    junk = st.sampled_from([-math.inf, 0.0, 9.0, math.inf, math.nan])
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(padded)))
        padded.insert(place, (data.draw(junk), data.draw(junk), False))
    wide_u, wide_v, mask = zip(*padded, strict=True)
    assert agree(wide_u, wide_v, mask) == agree(u, v, [True] * len(u))


def test_rows_of_a_batch_do_not_mix():
    generator = torch.Generator().manual_seed(0)
    u, v = torch.randint(6, (2, 4, 3, 25), generator=generator).double()
    mask = torch.rand(4, 25, generator=generator) < 0.7
    together = top_share_agreement(u, v, mask, share=0.2)
    for b, t in itertools.product(range(4), range(3)):
        expected = by_definition(u[b, t].tolist(), v[b, t].tolist(), mask[b].tolist(), 0.2)
        assert together[b, t] == expected


def test_ties_in_v_favour_agreement_and_ties_in_u_go_to_the_first():
    assert agree([0, 0, 1], [5, 5, 5], [True] * 3) == 1.0
    assert agree([1, 1, 0], [9, 0, 0], [True] * 3) == 1.0
    assert agree([1, 1, 0], [0, 9, 0], [True] * 3) == 0.0
    assert agree([1, 1, 0], [9, 5, 0], [False, True, True]) == 1.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_undefined_is_nan(dtype):
    u = torch.tensor([[[1.0, math.nan]], [[1.0, 2.0]], [[1.0, math.nan]]], dtype=dtype)
    mask = torch.tensor([[True, True], [False, False], [True, False]])
    for value in (top_share_agreement(u, u, mask), argmax_at(u, torch.zeros(3, 1).long(), mask)):
        assert value.isnan().flatten().tolist() == [True, True, False]
    assert expected_random_agreement(mask).isnan().tolist() == [False, True, False]


@for_each("share", [0.05, 0.3, 0.5])
@for_each("length", [1, 2, 5, 6])
def test_random_baseline_is_the_mean_over_all_permutations(length, share):
    v = torch.tensor(list(itertools.permutations(range(length))), dtype=torch.float64)[:, None]
    mask = torch.ones(len(v), length, dtype=torch.bool)
    u = torch.arange(length, 0, -1.0).expand_as(v)
    exact = top_share_agreement(u, v, mask, share).mean()
    torch.testing.assert_close(expected_random_agreement(mask, share).mean(), exact)


def test_the_share_is_rounded_up_without_floating_point_error():
    lengths = torch.arange(1, 3001)
    mask = torch.arange(3000) < lengths[:, None]
    for share in ("0.05", "0.07", "0.3"):  # .07 trips double precision, .3 single.
        positions = [math.ceil(Fraction(share) * length) for length in lengths.tolist()]
        exact = torch.tensor(positions, dtype=torch.float64) / lengths
        assert torch.equal(expected_random_agreement(mask, float(share)), exact)


@for_each("share", [0.0, -0.1, 1.5])
def test_a_share_out_of_range_is_refused(share):
    with pytest.raises(UsageError, match="share"):
        expected_random_agreement(torch.ones(1, 3, dtype=torch.bool), share)


def test_entropy_is_one_when_uniform_and_zero_when_one_hot():
    mask = torch.tensor([[True, True, False, True], [True, True, True, True]])
    uniform = (mask / mask.sum(-1, keepdim=True))[:, None].double()
    one_hot = torch.tensor([0.0, 1.0, 0.0, 0.0], dtype=torch.float64).expand(2, 1, 4)
    torch.testing.assert_close(attention_entropy(uniform, mask), torch.ones(2, 1).double())
    assert torch.equal(attention_entropy(one_hot, mask), torch.zeros(2, 1).double())


def test_entropy_agrees_with_scipy_whatever_stands_in_the_padding():
    logits = torch.randn(5, 3, 9, generator=torch.Generator().manual_seed(1)).double()
    mask = torch.arange(9) < torch.tensor([9, 7, 4, 2, 3])[:, None]
    weights = logits.masked_fill(~mask[:, None], -torch.inf).softmax(-1)
    entropy = attention_entropy(weights.masked_fill(~mask[:, None], torch.nan), mask)
    for b, length in enumerate(mask.sum(-1).tolist()):
        expected = stats.entropy(weights[b, :, :length].numpy(), axis=-1, base=length)
        np.testing.assert_allclose(entropy[b], expected, rtol=1e-12)


def test_entropy_of_a_single_position_is_undefined():
    mask = torch.tensor([[True, False], [False, False]])
    assert attention_entropy(torch.tensor([[[0.9, 0.1]], [[0.5, 0.5]]]), mask).isnan().all()


def test_argmax_at_counts_only_positions_with_a_gold_word():
    u = torch.tensor([[[0.1, 0.7, 0.2], [0.4, 0.4, 0.2], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]])
    gold = torch.tensor([[1, 1, 2, -1]])
    value = argmax_at(u, gold, torch.tensor([[True, True, False]]))
    # The third peaks at padding: its first real position wins, and that is not the gold one.
    assert value[0, :3].tolist() == [1.0, 0.0, 0.0]
    assert value[0, 3].isnan()


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=25),
    st.sampled_from([0.05, 0.1, 0.5]),
    st.integers(0, 3),
)
def test_chance_is_the_mean_agreement_of_all_positions_also_with_ties(values, share, padding):
    size = len(values)
    v = torch.tensor([[[*map(float, values), *[9.0] * padding]]])
    mask = torch.arange(size + padding)[None] < size
    each = [
        top_share_agreement(torch.eye(size + padding)[None, None, place], v, mask, share)
        for place in range(size)
    ]
    found = chance_agreement(torch.zeros_like(v), v, mask, share)
    assert float(found) == pytest.approx(float(torch.stack(each).mean()))


def test_chance_without_ties_is_that_of_a_shuffled_score():
    v = torch.rand(2, 3, 30, generator=torch.Generator().manual_seed(0))
    mask = torch.arange(30) < torch.tensor([[30], [21]])
    expected = expected_random_agreement(mask)[:, None].expand(2, 3)
    torch.testing.assert_close(chance_agreement(v, v, mask), expected)
