"""One word of an LSTM or a GRU, forward and backward, for any number of texts.

Gates are in PyTorch's order: i, f, g, o of an LSTM and r, z, n of a GRU. ``given`` are the gates'
inputs by the word, ``own`` those by the last state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class RecurrentCells:
    """How cells are computed: by single operations, or by one kernel each on a GPU.

    Attributes
    ----------
    lstm
        From given, own and the last cell to state, cell and active gates.
    lstm_back
        From the gradients of state and cell, the cells before and after the word and its gates to
        the gradients of the gates' inputs and of the cell before.
    gru
        From given, own and the last state to the state, and what its gradient needs.
    gru_back
        From the gradient of the state and what was kept to the gradients of given, own and the
        state before (without the part through own).
    """

    lstm: Callable[..., tuple[Tensor, Tensor, Tensor]]
    lstm_back: Callable[..., tuple[Tensor, Tensor]]
    gru: Callable[..., tuple[Tensor, Tensor]]
    gru_back: Callable[..., tuple[Tensor, Tensor, Tensor]]


def _lstm(given: Tensor, own: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    active = given + own
    take, forget, new, show = active.chunk(4, -1)
    for gate in (take, forget, show):
        gate.sigmoid_()
    new.tanh_()
    after = torch.addcmul(forget * cell, take, new)
    return show * after.tanh(), after, active


def _lstm_back(
    state: Tensor, cell: Tensor, before: Tensor, after: Tensor, active: Tensor
) -> tuple[Tensor, Tensor]:
    take, forget, new, show = active.chunk(4, -1)
    shown = after.tanh()
    cell = torch.addcmul(cell, state * show, 1 - shown * shown)
    # The slope of a sigmoid s is s (1 - s), that of tanh 1 - tanh².
    slopes = active * (1 - active)
    slopes.chunk(4, -1)[2].copy_(1 - new * new)
    gates = torch.cat([cell * new, cell * before, cell * take, state * shown], -1)
    return gates.mul_(slopes), cell * forget


def _gru(given: Tensor, own: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    hidden = state.shape[-1]
    gates = (given[..., : 2 * hidden] + own[..., : 2 * hidden]).sigmoid()
    reset, update = gates.chunk(2, -1)
    through = own[..., 2 * hidden :]
    new = torch.addcmul(given[..., 2 * hidden :], reset, through).tanh()
    after = torch.addcmul(new, update, state - new)
    return after, torch.cat([reset, update, new, state, through], -1)


def _gru_back(gradient: Tensor, kept: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    reset, update, new, before, through = kept.chunk(5, -1)
    of_new = gradient * (1 - update) * (1 - new * new)
    of_update = gradient * (before - new) * update * (1 - update)
    of_reset = of_new * through * reset * (1 - reset)
    given = torch.cat([of_reset, of_update, of_new], -1)
    own = torch.cat([of_reset, of_update, of_new * reset], -1)
    return given, own, gradient * update


def _fused_lstm_back(*parts: Tensor) -> tuple[Tensor, Tensor]:
    gates, cell, _ = torch.ops.aten._thnn_fused_lstm_cell_backward_impl(*parts, False)
    return gates, cell


def _fused_gru_back(gradient: Tensor, kept: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    given, own, before, *_ = torch.ops.aten._thnn_fused_gru_cell_backward(gradient, kept, False)
    return given, own, before


ELEMENTWISE = RecurrentCells(_lstm, _lstm_back, _gru, _gru_back)
# PyTorch has these on a GPU only: one kernel each.
FUSED = RecurrentCells(
    torch.ops.aten._thnn_fused_lstm_cell,
    _fused_lstm_back,
    torch.ops.aten._thnn_fused_gru_cell,
    _fused_gru_back,
)
