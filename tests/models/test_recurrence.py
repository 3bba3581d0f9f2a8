"""Recurrences against the same layer run on each sequence alone, and against PyTorch's stacks."""

from __future__ import annotations

from contextlib import contextmanager
from unittest.mock import patch

import pytest
import torch
from hypothesis import given, strategies as st
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from attnscope.models import recurrence as module
from attnscope.models.dropout import dropped
from attnscope.models.recurrence import Recurrence
from cases import for_each

THEIRS = {"lstm": nn.LSTM, "gru": nn.GRU}
# Short ones make one group of like length, long ones several.
short = st.lists(st.integers(1, 6), min_size=1, max_size=5)
lengths = short | st.lists(st.integers(1, 90), min_size=2, max_size=8)


@contextmanager
def reading(way):
    """Read unequal lengths padded, as LSTMs are on a CPU, or packed."""
    if way == "padded":
        yield
    else:
        with patch.object(module, "stays_padded", lambda layer, inputs: False):
            yield


def first_row(state, row):
    """Return one example's part of a state: layers and directions first, then the batch."""
    parts = state if isinstance(state, tuple) else (state,)
    return [part[:, row : row + 1] for part in parts]


@for_each("cell", ["lstm", "gru"])
@for_each("directions", [1, 2])
@for_each("way", ["padded", "packed"])
@given(lengths=lengths, more=st.integers(0, 3), seed=st.integers(0, 2**32))
def test_each_sequence_is_read_as_if_it_were_alone(cell, directions, way, lengths, more, seed):
    torch.manual_seed(seed)
    layer = Recurrence(cell, 3, 4, directions).double()
    inputs = torch.randn(len(lengths), max(lengths) + more, 3, dtype=torch.float64)
    with reading(way):
        states, last = layer(inputs, torch.tensor(lengths))
    assert states.shape == (*inputs.shape[:2], layer.width)
    for row, length in enumerate(lengths):
        alone, end = layer.layer(inputs[row : row + 1, :length])
        torch.testing.assert_close(states[row, :length], alone[0])
        assert not states[row, length:].any()
        for one, other in zip(first_row(last, row), first_row(end, 0), strict=True):
            torch.testing.assert_close(one, other)


@for_each("cell", ["lstm", "gru"])
@for_each("way", ["padded", "packed"])
def test_each_sequence_goes_on_from_its_own_state(cell, way):
    with reading(way):
        check_states_go_on(cell)


def check_states_go_on(cell):
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


@for_each("cell", ["lstm", "gru"])
@for_each("directions", [1, 2])
@for_each("layers", [2, 3])
@for_each("counts", [[4, 4, 4], [2, 5, 1]])
@for_each("way", ["padded", "packed"])
def test_stacked_layers_are_those_of_pytorch(cell, directions, layers, counts, way):
    with reading(way):
        check_stacks(cell, directions, layers, counts)


def check_stacks(cell, directions, layers, counts):
    torch.manual_seed(0)
    stack = Recurrence(cell, 3, 4, directions, layers, dropout=0.5).double()
    theirs = THEIRS[cell](3, 4, layers, batch_first=True, bidirectional=directions == 2).double()
    ours = [p for layer in (stack.layer, *stack.upper) for p in layer.parameters()]
    for one, other in zip(theirs.parameters(), ours, strict=True):
        one.data.copy_(other)
    inputs, more = torch.randn(2, 3, max(counts), 3, dtype=torch.float64)
    lengths = torch.tensor(counts)
    states, last = stack(inputs, lengths)
    packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
    expected, end = theirs(packed)
    torch.testing.assert_close(states, pad_packed_sequence(expected, batch_first=True)[0])
    torch.testing.assert_close(last, end)
    # Each layer goes on from its own part of the state.
    torch.testing.assert_close(
        stack(more, lengths * 0 + max(counts), last)[0], theirs(more, end)[0]
    )


@for_each("cell", ["lstm", "gru"])
@for_each("way", ["padded", "packed"])
def test_gradients_pass_through_unequal_lengths_as_through_pytorchs_packing(cell, way):
    with reading(way):
        check_gradients(cell)


def check_gradients(cell):
    torch.manual_seed(0)
    layer = Recurrence(cell, 3, 4, 2).double()
    inputs = torch.randn(3, 5, 3, dtype=torch.float64, requires_grad=True)
    lengths, weights = torch.tensor([2, 4, 1]), torch.randn(3, 5, 8, dtype=torch.float64)
    leaves = [inputs, *layer.parameters()]
    ours = torch.autograd.grad((layer(inputs, lengths)[0] * weights).sum(), leaves)
    packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
    states, _ = pad_packed_sequence(layer.layer(packed)[0], batch_first=True, total_length=5)
    theirs = torch.autograd.grad((states * weights).sum(), leaves)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)
    assert not ours[0][2, 1:].any()


@for_each("cell", ["lstm", "gru"])
@for_each("way", ["padded", "packed"])
def test_gradients_of_gradients_pass_through_unequal_lengths(cell, way):
    torch.manual_seed(0)
    layer, lengths = Recurrence(cell, 2, 2).double(), torch.tensor([3, 1])
    inputs = torch.randn(2, 3, 2, dtype=torch.float64, requires_grad=True)
    with reading(way):
        assert torch.autograd.gradgradcheck(lambda values: layer(values, lengths)[0], [inputs])


@given(lengths=st.lists(st.integers(1, 4000), min_size=1, max_size=40))
def test_groups_of_like_length_have_little_padding(lengths):
    groups = module._Groups(torch.tensor(lengths), max(lengths))
    parts = groups.lengths.split(groups.sizes)
    assert all(len(part) for part in parts)
    assert all(int((part[0] - part).sum()) <= module._ROOM for part in parts)


def test_padded_and_packed_are_the_same_in_single_precision():
    torch.manual_seed(0)
    layer, lengths = Recurrence("lstm", 30, 20, 2), torch.randint(1, 60, (40,))
    inputs, weights = torch.randn(40, 60, 30), torch.randn(40, 60, 40)
    found = {}
    for way in ("padded", "packed"):
        with reading(way):
            states, last = layer(inputs, lengths)
        loss = (states * weights).sum()
        gradients = torch.autograd.grad(loss, [*layer.parameters()])
        found[way] = [states, *last, *gradients]
    for one, other in zip(found["padded"], found["packed"], strict=True):
        assert (one - other).abs().max() < 2e-6 * max(1, other.abs().max())


def between_layers(recurrence, inputs, lengths, generator):
    """Return what the first layer gives and what the second one is given."""
    seen = {}
    first = recurrence.layer.register_forward_hook(
        lambda module, args, output: seen.update(given=output[0])
    )
    second = recurrence.upper[0].register_forward_pre_hook(
        lambda module, args: seen.update(taken=args[0])
    )
    recurrence(inputs, lengths, None, generator)
    first.remove()
    second.remove()
    return [
        values.data if isinstance(values, PackedSequence) else values
        for values in (seen["given"], seen["taken"])
    ]


def test_dropout_of_padded_sequences_is_that_of_packed_ones():
    torch.manual_seed(0)
    stack, inputs = Recurrence(**STACK, dropout=0.5).double(), torch.randn(40, 40, 3).double()
    lengths = UNEQUAL[torch.randperm(40)]
    packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
    taken = dropped(stack.layer(packed)[0], 0.5, torch.Generator().manual_seed(1))
    expected, _ = pad_packed_sequence(stack.upper[0](taken)[0], batch_first=True)
    states, _ = stack(inputs, lengths, None, torch.Generator().manual_seed(1))
    torch.testing.assert_close(states, expected)


STACK = {"cell": "lstm", "inputs": 3, "hidden": 16, "directions": 2, "layers": 2}
UNEQUAL = torch.arange(1, 41)


@for_each("rate", [0.1, 0.5, 0.8])
@for_each("lengths", [UNEQUAL, UNEQUAL * 0 + 40], ids=["unequal", "equal"])
def test_dropout_hides_its_share_between_layers_and_scales_the_rest(rate, lengths):
    stack, inputs = Recurrence(**STACK, dropout=rate), torch.randn(40, 40, 3)
    with reading("packed"):
        given, taken = between_layers(stack, inputs, lengths, torch.Generator().manual_seed(1))
    hidden = taken == 0
    torch.testing.assert_close(taken[~hidden], given[~hidden] / (1 - rate))
    spread = (rate * (1 - rate) / hidden.numel()) ** 0.5
    assert abs(hidden.double().mean() - rate) < 4 * spread


def test_dropout_falls_on_single_numbers_independently():
    stack, inputs = Recurrence(**STACK, dropout=0.5), torch.randn(40, 40, 3)
    _, taken = between_layers(stack, inputs, UNEQUAL * 0 + 40, torch.Generator().manual_seed(1))
    hidden = (taken == 0).double().flatten()
    for lag in (1, 2, 3, 4, 32, 64):
        assert abs(torch.corrcoef(torch.stack([hidden[lag:], hidden[:-lag]]))[0, 1]) < 0.02


def test_neither_the_first_layers_inputs_nor_the_last_ones_outputs_are_dropped():
    stack, inputs = Recurrence(**STACK, dropout=0.5), torch.randn(40, 40, 3)
    lengths = UNEQUAL * 0 + 40
    given, taken = between_layers(stack, inputs, lengths, torch.Generator().manual_seed(1))
    assert given.equal(stack.layer(inputs)[0])
    states, _ = stack(inputs, lengths, None, torch.Generator().manual_seed(1))
    assert states.equal(stack.upper[0](taken)[0])


def test_without_a_generator_nothing_is_dropped():
    stack, inputs = Recurrence(**STACK, dropout=0.5), torch.randn(40, 40, 3)
    with reading("packed"):
        given, taken = between_layers(stack, inputs, UNEQUAL, None)
    assert given.equal(taken)


def test_dropout_depends_on_the_generator_alone():
    stack, inputs = Recurrence(**STACK, dropout=0.5), torch.randn(40, 40, 3)
    one, same, other = (
        stack(inputs, UNEQUAL, None, torch.Generator().manual_seed(seed))[0] for seed in (1, 1, 2)
    )
    assert one.equal(same)
    assert not one.equal(other)


def test_one_layer_drops_nothing():
    layer, inputs = Recurrence("lstm", 3, 4, dropout=0.5), torch.randn(2, 5, 3)
    lengths = torch.tensor([5, 2])
    assert layer(inputs, lengths)[0].equal(layer(inputs, lengths, None, torch.Generator())[0])


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_decoder_starts_from_the_mean_of_the_two_directions_of_each_layer(cell):
    torch.manual_seed(0)
    stack, inputs = Recurrence(cell, 3, 4, 2, 2).double(), torch.randn(2, 5, 3).double()
    _, last = stack(inputs, torch.tensor([5, 3]))
    mean = stack.mean_over_directions(last)
    pairs = zip(mean, last, strict=True) if cell == "lstm" else [(mean, last)]
    for part, ends in pairs:
        assert part.shape == (2, 2, 4)
        for layer in range(2):
            expected = (ends[2 * layer] + ends[2 * layer + 1]) / 2
            torch.testing.assert_close(part[layer], expected)


def test_in_one_direction_a_decoder_starts_from_the_state_itself():
    stack = Recurrence("lstm", 3, 4, 1, 2)
    _, last = stack(torch.randn(2, 5, 3), torch.tensor([5, 3]))
    assert stack.mean_over_directions(last) is last


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_dropout_is_the_same_on_every_device():
    stack, inputs = Recurrence(**STACK, dropout=0.5), torch.randn(40, 40, 3)
    _, here = between_layers(stack, inputs, UNEQUAL, torch.Generator().manual_seed(1))
    stream = torch.Generator().manual_seed(1)
    _, there = between_layers(stack.cuda(), inputs.cuda(), UNEQUAL, stream)
    assert (here == 0).equal(there.cpu() == 0)
