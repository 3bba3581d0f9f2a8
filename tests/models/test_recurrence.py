"""Recurrences over padded sequences against the same layer run on each sequence alone."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnscope.models.recurrence import Recurrence

lengths = st.lists(st.integers(1, 6), min_size=1, max_size=5)


def first_row(state, row):
    """Return one example's part of a state: layers and directions first, then the batch."""
    parts = state if isinstance(state, tuple) else (state,)
    return [part[:, row : row + 1] for part in parts]


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("directions", [1, 2])
@given(lengths=lengths, more=st.integers(0, 3), seed=st.integers(0, 2**32))
def test_each_sequence_is_read_as_if_it_were_alone(cell, directions, lengths, more, seed):
    torch.manual_seed(seed)
    layer = Recurrence(cell, 3, 4, directions).double()
    inputs = torch.randn(len(lengths), max(lengths) + more, 3, dtype=torch.float64)
    states, last = layer(inputs, torch.tensor(lengths))
    assert states.shape == (*inputs.shape[:2], layer.width)
    for row, length in enumerate(lengths):
        alone, end = layer.layer(inputs[row : row + 1, :length])
        torch.testing.assert_close(states[row, :length], alone[0])
        assert not states[row, length:].any()
        for one, other in zip(first_row(last, row), first_row(end, 0), strict=True):
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_each_sequence_goes_on_from_its_own_state(cell):
    torch.manual_seed(0)
    layer = Recurrence(cell, 3, 4).double()
    inputs, more = torch.randn(2, 3, 5, 3, dtype=torch.float64)
    counts, later = torch.tensor([2, 5, 1]), torch.tensor([3, 1, 4])
    _, state = layer(inputs, counts)
    states, _ = layer(more, later, state)
    for row in range(3):
        through = torch.cat([inputs[row, : counts[row]], more[row, : later[row]]])
        whole, _ = layer.layer(through[None])
        torch.testing.assert_close(states[row, : later[row]], whole[0, counts[row] :])
