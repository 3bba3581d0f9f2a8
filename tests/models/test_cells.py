"""Cells against PyTorch's own with the same weights, and against their equations in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from attnscope.models.base import parameter_count
from attnscope.models.cells import CELLS, GRU, LSTM, UGRNN, ResetAfterGRU, Tanh
from cases import for_each

INPUTS, HIDDEN, BATCH = 5, 4, 6
every = for_each("name", CELLS)


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(7))


def built(cell_class):
    """A cell whose every parameter is drawn, biases too."""
    torch.manual_seed(1)
    cell = cell_class(INPUTS, HIDDEN).double()
    with torch.no_grad():
        for parameter in cell.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return cell


def arrays(cell):
    return tuple(p.detach().numpy() for p in (cell.input_map, cell.recurrent_map, cell.bias))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def equal(found, expected):
    torch.testing.assert_close(found, torch.as_tensor(expected), rtol=1e-12, atol=1e-12)


def test_the_lstm_is_pytorchs_with_one_more_on_the_forget_bias():
    cell, own = built(LSTM), nn.LSTMCell(INPUTS, HIDDEN).double()
    forget = torch.zeros(4, HIDDEN, dtype=torch.float64)
    forget[1] = 1
    with torch.no_grad():
        own.weight_ih.copy_(cell.input_map)
        own.weight_hh.copy_(cell.recurrent_map)
        own.bias_ih.copy_(cell.bias)
        own.bias_hh.copy_(forget.flatten())
    x, state = draw(BATCH, INPUTS), draw(BATCH, 2 * HIDDEN)
    expected = own(x, (state[:, :HIDDEN].contiguous(), state[:, HIDDEN:].contiguous()))
    equal(cell.step(cell.drive(x), state), torch.cat(expected, 1))


def test_the_gru_with_the_reset_after_is_pytorchs():
    # PyTorch has the gates r, z, n; here z (update) comes first.
    def in_pytorchs_order(rows):
        update, reset, new = rows.chunk(3)
        return torch.cat([reset, update, new])

    cell, own = built(ResetAfterGRU), nn.GRUCell(INPUTS, HIDDEN).double()
    with torch.no_grad():
        own.weight_ih.copy_(in_pytorchs_order(cell.input_map))
        own.weight_hh.copy_(in_pytorchs_order(cell.recurrent_map))
        own.bias_ih.copy_(in_pytorchs_order(cell.bias))
        own.bias_hh.copy_(torch.cat([torch.zeros(2 * HIDDEN), cell.reset_bias]))
    x, state = draw(BATCH, INPUTS), draw(BATCH, HIDDEN)
    equal(cell.step(cell.drive(x), state), own(x, state))


def test_the_gru_resets_before_the_product():
    cell, x, state = built(GRU), draw(BATCH, INPUTS), draw(BATCH, HIDDEN)
    a, w, b = (np.split(array, 3) for array in arrays(cell))
    xs, h = x.numpy(), state.numpy()
    u = sigmoid(xs @ a[0].T + h @ w[0].T + b[0])
    r = sigmoid(xs @ a[1].T + h @ w[1].T + b[1])
    c = np.tanh(xs @ a[2].T + (r * h) @ w[2].T + b[2])
    equal(cell.step(cell.drive(x), state), u * h + (1 - u) * c)


def test_the_ugrnn_has_one_gate():
    cell, x, state = built(UGRNN), draw(BATCH, INPUTS), draw(BATCH, HIDDEN)
    a, w, b = (np.split(array, 2) for array in arrays(cell))
    xs, h = x.numpy(), state.numpy()
    u = sigmoid(xs @ a[0].T + h @ w[0].T + b[0])
    c = np.tanh(xs @ a[1].T + h @ w[1].T + b[1])
    equal(cell.step(cell.drive(x), state), u * h + (1 - u) * c)


def test_tanh_is_pytorchs_plain_recurrent_cell():
    cell, own = built(Tanh), nn.RNNCell(INPUTS, HIDDEN).double()
    with torch.no_grad():
        own.weight_ih.copy_(cell.input_map)
        own.weight_hh.copy_(cell.recurrent_map)
        own.bias_ih.copy_(cell.bias)
        own.bias_hh.zero_()
    x, state = draw(BATCH, INPUTS), draw(BATCH, HIDDEN)
    equal(cell.step(cell.drive(x), state), own(x, state))


@pytest.mark.parametrize("cell_class", [GRU, UGRNN])
def test_with_state_0_a_gated_cell_is_a_gated_feedforward_network(cell_class):
    cell, x = built(cell_class), draw(BATCH, INPUTS)
    a, _, b = (np.split(array, cell.gates) for array in arrays(cell))
    gate = sigmoid(x.numpy() @ a[0].T + b[0])
    expected = (1 - gate) * np.tanh(x.numpy() @ a[-1].T + b[-1])
    equal(cell.step(cell.drive(x), torch.zeros(BATCH, HIDDEN, dtype=torch.float64)), expected)


def test_with_state_0_tanh_is_a_network_without_gates():
    cell, x = built(Tanh), draw(BATCH, INPUTS)
    a, _, b = arrays(cell)
    zero = torch.zeros(BATCH, HIDDEN, dtype=torch.float64)
    equal(cell.step(cell.drive(x), zero), np.tanh(x.numpy() @ a.T + b))


@for_each(
    ("name", "gates", "more"),
    [
        ("lstm", 4, 0),
        ("gru", 3, 0),
        ("gru-reset-after", 3, HIDDEN),
        ("ugrnn", 2, 0),
        ("tanh", 1, 0),
    ],
)
def test_parameters_are_those_of_the_gates(name, gates, more):
    expected = gates * HIDDEN * (INPUTS + HIDDEN + 1) + more
    assert parameter_count(CELLS[name](INPUTS, HIDDEN)) == expected


@every
def test_weights_start_with_the_variance_one_over_hidden_and_biases_at_0(name):
    torch.manual_seed(3)
    cell = CELLS[name](90, 160)
    for weight in (cell.input_map, cell.recurrent_map):
        # 14,400 numbers or more: the standard deviation is known to 0.6 %.
        assert abs(float(weight.detach().std()) * 160**0.5 - 1) < 0.03
        assert abs(float(weight.detach().mean())) < 0.003
    biases = [p for p in cell.parameters() if p.ndim == 1]
    assert biases
    assert not any(bias.any() for bias in biases)


@every
def test_a_step_takes_any_leading_axes(name):
    cell = built(CELLS[name])
    x, state = draw(2, 3, INPUTS), draw(2, 3, cell.width)
    rows = cell.step(cell.drive(x.flatten(0, 1)), state.flatten(0, 1))
    equal(cell.step(cell.drive(x), state).flatten(0, 1), rows)
    assert cell.output(rows).shape == (6, HIDDEN)


@every
def test_several_cells_are_stepped_as_one(name):
    cells = [built(CELLS[name]) for _ in range(3)]
    for number, cell in enumerate(cells):
        with torch.no_grad():
            cell.input_map.mul_(number + 1)
    x, state = draw(3, BATCH, INPUTS), draw(3, BATCH, cells[0].width)

    class Step(nn.Module):
        def __init__(self, cell):
            super().__init__()
            self.cell = cell

        def forward(self, x, state):
            return self.cell.step(self.cell.drive(x), state)

    steps = [Step(cell) for cell in cells]
    parameters, buffers = stack_module_state(steps)
    found = vmap(lambda p, b, x, h: functional_call(steps[0], (p, b), (x, h)))(
        parameters, buffers, x, state
    )
    equal(found, torch.stack([step(*one) for step, *one in zip(steps, x, state, strict=True)]))
