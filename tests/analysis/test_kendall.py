"""Batched τ-b against scipy, row by row."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from scipy.stats import kendalltau

from attnscope.analysis import kendall
from attnscope.analysis.kendall import kendall_tau_b
from cases import for_each

values = st.one_of(
    st.sampled_from([-math.inf, -2.0, -0.0, 0.0, 1.0, 3.0, math.inf]),
    st.floats(-4, 4, width=32),
)


@st.composite
def two_rows(draw):
    length = draw(st.integers(0, 12))
    row = st.lists(values, min_size=length, max_size=length)
    return draw(row), draw(row)


def tau(u, v, mask=None, dtype=torch.float64):
    mask = [True] * len(u) if mask is None else mask
    row_u, row_v = torch.tensor([[u]], dtype=dtype), torch.tensor([[v]], dtype=dtype)
    return kendall_tau_b(row_u, row_v, torch.tensor([mask], dtype=torch.bool)).item()


def scipy_tau(u, v):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It warns of short and of constant rows.
        return kendalltau(u, v).statistic if len(u) > 1 else math.nan


@given(two_rows(), st.sampled_from([torch.float32, torch.float64]))
def test_tau_is_that_of_scipy(rows, dtype):
    np.testing.assert_allclose(tau(*rows, dtype=dtype), scipy_tau(*rows), atol=1e-12)


@for_each("length", [50, 127, 128, 300])
@for_each("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_batches_with_holes_in_the_mask_are_those_of_scipy(length, dtype):
    generator = torch.Generator().manual_seed(length)
    u, v = torch.randint(length // 3, (2, 6, 2, length), generator=generator).to(dtype)
    v = v + u  # Correlated, so that tau is not near 0.
    mask = torch.rand(6, length, generator=generator) < 0.8
    expected = [
        [scipy_tau(u[b, t, mask[b]].double(), v[b, t, mask[b]].double()) for t in range(2)]
        for b in range(6)
    ]
    np.testing.assert_allclose(kendall_tau_b(u, v, mask), expected, rtol=1e-12)


@given(two_rows(), st.data())
def test_padding_never_changes_a_tau(rows, data):
    padded = [(a, b, True) for a, b in zip(*rows, strict=True)]
    junk = st.sampled_from([-math.inf, 0.0, 9.0, math.inf, math.nan])
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(padded)))
        padded.insert(place, (data.draw(junk), data.draw(junk), False))
    np.testing.assert_equal(tau(*zip(*padded, strict=True)), tau(*rows))


@given(two_rows(), st.randoms(use_true_random=False))
def test_permuting_the_positions_leaves_tau(rows, random):
    order = random.sample(range(len(rows[0])), len(rows[0]))
    shuffled = ([row[place] for place in order] for row in rows)
    np.testing.assert_equal(tau(*shuffled), tau(*rows))


@given(two_rows())
def test_reversing_a_score_negates_tau(rows):
    u, v = rows
    np.testing.assert_allclose(tau([-x for x in u], v), -tau(u, v), rtol=0)


def test_perfect_order_gives_exactly_one_even_for_long_rows():
    row = list(range(1500))
    assert tau(row, row) == 1.0
    assert tau(row, row[::-1]) == -1.0


def test_constant_short_and_broken_rows_are_nan():
    assert math.isnan(tau([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]))
    assert math.isnan(tau([1.0, 2.0], [1.0, 2.0], [True, False]))
    assert math.isnan(tau([1.0, 2.0, math.nan], [1.0, 2.0, 3.0]))
    assert tau([1.0, 2.0, math.nan], [1.0, 2.0, 3.0], [True, True, False]) == 1.0


def test_chunks_and_dtypes_do_not_change_a_bit(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    u, v = torch.randint(9, (2, 7, 5, 20), generator=generator).float()
    mask = torch.rand(7, 20, generator=generator) < 0.8
    whole = kendall_tau_b(u, v, mask)
    assert torch.equal(kendall_tau_b(u.double(), v, mask), whole)
    for chunk in (1, 20 * 4, 20 * 35):
        monkeypatch.setattr(kendall, "_CHUNK", chunk)
        assert torch.equal(kendall_tau_b(u, v, mask), whole)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_gives_the_same_bits():
    generator = torch.Generator().manual_seed(0)
    u, v = torch.randint(9, (2, 7, 5, 20), generator=generator).float()
    mask = torch.rand(7, 20, generator=generator) < 0.8
    on_gpu = kendall_tau_b(u.cuda(), v.cuda(), mask.cuda())
    assert torch.equal(on_gpu.cpu(), kendall_tau_b(u, v, mask))


@for_each("length", [2, 50, 130])
@for_each("levels", [3, 1000])
@for_each("pairs", [2**26, 9 * 50 * 7, 1])  # compared at once
def test_pairs_compared_are_those_counted_by_sorting(length, levels, pairs, monkeypatch):
    monkeypatch.setattr(kendall, "_PAIRS", pairs)
    generator = torch.Generator().manual_seed(length)
    u, v = torch.randint(levels, (2, 9, length), generator=generator).double()
    u[0, 0], v[1, -1] = math.inf, -math.inf
    padding = torch.rand(9, length, generator=generator) < 0.3
    found = kendall._compared_pairs(u, v, padding)
    assert found.equal(kendall._pair_counts(u, v, padding))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@for_each("length", [50, 512, 513])
def test_tau_of_a_gpu_is_that_of_the_cpu(length):
    generator = torch.Generator().manual_seed(length)
    u, v = torch.randint(length // 3, (2, 40, 2, length), generator=generator).double()
    mask = torch.rand(40, length, generator=generator) < 0.8
    found = kendall_tau_b(u.cuda(), v.cuda(), mask.cuda())
    np.testing.assert_allclose(found.cpu(), kendall_tau_b(u, v, mask), rtol=1e-12)
