"""Recurrent cells from plain tensor operations: LSTM, GRU in two forms, UGRNN, tanh (aitken §2).

PyTorch's own cells have no rule for `torch.func.vmap`; these do, so that several seeds train as one
group. As in the authors' code and unlike PyTorch, a GRU's reset comes before the matrix product,
an LSTM's forget gate has a constant +1, and every weight starts from N(0, 1/hidden), those of
the inputs too. With the recurrence cut (state 0) a gated cell is (1 - σ(A_u x + b_u)) ⊙
tanh(A_c x + b_c), and `Tanh` is the non-gated feed-forward network of the paper's footnote 2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear

Drive = Float[Tensor, "*#any gates"]
State = Float[Tensor, "*#any state"]


def product(
    values: Float[Tensor, "*any inputs"],
    weight: Float[Tensor, "outputs inputs"],
    bias: Float[Tensor, " outputs"] | None = None,
) -> Float[Tensor, "*any outputs"]:
    """Return W x + b for any leading axes."""
    # In one piece: over several axes `torch.func.vmap` would copy the weight for each example.
    rows = linear(values.reshape(-1, values.shape[-1]), weight, bias)
    return rows.view(*values.shape[:-1], -1)


class RecurrentCell(nn.Module, ABC):
    """One step of a recurrence: state' = F(A x + b, state), for any leading axes that broadcast.

    A x + b, the *drive*, does not depend on the state: a whole sequence's is one product.

    Parameters
    ----------
    inputs, hidden
        Widths of x and of h.
    """

    gates: ClassVar[int]
    parts: ClassVar[int] = 1

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        rows = self.gates * hidden
        self.input_map = nn.Parameter(torch.randn(rows, inputs) * hidden**-0.5)
        self.recurrent_map = nn.Parameter(torch.randn(rows, hidden) * hidden**-0.5)
        self.bias = nn.Parameter(torch.zeros(rows))

    @property
    def width(self) -> int:
        """Size of a state; h comes first in it."""
        return self.parts * self.hidden

    def drive(self, inputs: Float[Tensor, "*any input"]) -> Drive:
        """Return A x + b for every gate."""
        return product(inputs, self.input_map, self.bias)

    def output(self, state: State) -> Float[Tensor, "*any hidden"]:
        """Return h, the part of a state that others see."""
        return state[..., : self.hidden]

    @abstractmethod
    def step(self, drive: Drive, state: State) -> State:
        """Return the next state."""


class LSTM(RecurrentCell):
    """c' = σ(f + 1) ⊙ c + σ(i) ⊙ tanh(g), h' = σ(o) ⊙ tanh(c'); gates in PyTorch's order."""

    gates, parts = 4, 2

    def step(self, drive: Drive, state: State) -> State:
        """Return h' and c' side by side."""
        hidden, memory = state.chunk(2, -1)
        enter, forget, new, leave = (drive + product(hidden, self.recurrent_map)).chunk(4, -1)
        memory = (forget + 1).sigmoid() * memory + enter.sigmoid() * new.tanh()
        return torch.cat([leave.sigmoid() * memory.tanh(), memory], -1)


class GRU(RecurrentCell):
    """h' = u ⊙ h + (1 - u) ⊙ tanh(A x + W (r ⊙ h) + b): the reset r comes before the product."""

    gates = 3

    def step(self, drive: Drive, state: State) -> State:
        """Return h'."""
        # Split and not sliced: the gradients of two parts are put together in one kernel.
        sizes = [2 * self.hidden, self.hidden]
        gate_map, new_map = self.recurrent_map.split(sizes)
        gate_drive, new_drive = drive.split(sizes, -1)
        update, reset = (gate_drive + product(state, gate_map)).sigmoid().chunk(2, -1)
        new = new_drive + product(reset * state, new_map)
        return update * state + (1 - update) * new.tanh()


class ResetAfterGRU(RecurrentCell):
    """PyTorch's GRU: tanh(A x + b + r ⊙ (W h + b')), the reset after the product."""

    gates = 3

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__(inputs, hidden)
        self.reset_bias = nn.Parameter(torch.zeros(hidden))

    def step(self, drive: Drive, state: State) -> State:
        """Return h'."""
        gate_rows = 2 * self.hidden
        carried = product(state, self.recurrent_map)
        update, reset = (drive + carried)[..., :gate_rows].sigmoid().chunk(2, -1)
        new = drive[..., gate_rows:] + reset * (carried[..., gate_rows:] + self.reset_bias)
        return update * state + (1 - update) * new.tanh()


class UGRNN(RecurrentCell):
    """h' = u ⊙ h + (1 - u) ⊙ tanh(A x + W h + b): one gate u (Collins et al. 2016)."""

    gates = 2

    def step(self, drive: Drive, state: State) -> State:
        """Return h'."""
        update, new = (drive + product(state, self.recurrent_map)).chunk(2, -1)
        update = update.sigmoid()
        return update * state + (1 - update) * new.tanh()


class Tanh(RecurrentCell):
    """h' = tanh(A x + W h + b), without gates."""

    gates = 1

    def step(self, drive: Drive, state: State) -> State:
        """Return h'."""
        return (drive + product(state, self.recurrent_map)).tanh()


CellName = Literal["lstm", "gru", "gru-reset-after", "ugrnn", "tanh"]
CELLS: dict[str, type[RecurrentCell]] = {
    "lstm": LSTM,
    "gru": GRU,
    "gru-reset-after": ResetAfterGRU,
    "ugrnn": UGRNN,
    "tanh": Tanh,
}
