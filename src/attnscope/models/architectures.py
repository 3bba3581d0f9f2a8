"""What VED, AED and AO are made of: recurrence or none, attention or none, a readout (aitken §2).

The forms are those of the authors' code: readouts without biases, a trainable first state,
positions in AO alone. Each part is plain tensor operations without control flow on data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import torch
from jaxtyping import Bool, Float
from pydantic import Field, SerializeAsAny
from torch import Tensor, nn

from attnscope.models.cells import Cell, product
from attnscope.models.positional import NoPositions, RotatedPositions
from attnscope.runs.spec import Spec

States = Float[Tensor, "batch time state"]
Mapped = Float[Tensor, "batch time mapped"]
Start = Float[Tensor, "batch state"]


class CrossAttention(Spec):
    """Root of the ways in which decoder states attend to encoder states."""

    @abstractmethod
    def build(self, hidden: int) -> Dot | Maps:
        """Return the attention over states of a width."""


class DotAttention(CrossAttention):
    """a_st = h^D_s · h^E_t; the states are queries, keys and values themselves."""

    kind: Literal["dot"] = "dot"

    def build(self, hidden: int) -> Dot:
        """Return the attention, which has no parameters."""
        return Dot(hidden)


class LearnedAttention(CrossAttention):
    """a_st = (Q h^D_s) · (K h^E_t) / √d_v with values V h^E_t of width d_v, the hidden size.

    The division by the size of the values, not of the keys, is the authors' code's.
    """

    kind: Literal["learned"] = "learned"
    key: int = Field(32, ge=1, description="size of queries and keys")

    def build(self, hidden: int) -> Maps:
        """Return the attention with its three maps."""
        return Maps(hidden, self.key)


class Dot(nn.Module):
    """Attention without parameters; ``value`` is the width of what is attended to."""

    def __init__(self, value: int) -> None:
        super().__init__()
        self.value = value

    def queries(self, states: States) -> Mapped:
        """Return what the decoder asks with."""
        return states

    def keys(self, states: States) -> Mapped:
        """Return what the encoder answers with."""
        return states

    def values(self, states: States) -> Mapped:
        """Return what a context is a mean of."""
        return states


class Maps(nn.Module):
    """Linear maps to queries, keys and values, Glorot-normal and without biases."""

    def __init__(self, hidden: int, key: int) -> None:
        super().__init__()
        self.value = hidden
        self.query_map = _glorot(key, hidden)
        self.key_map = _glorot(key, hidden)
        self.value_map = _glorot(hidden, hidden)

    def queries(self, states: States) -> Mapped:
        """Return Q h / √d_v: the division is the query's, so that logits are q · k."""
        return product(states, self.query_map) * self.value**-0.5

    def keys(self, states: States) -> Mapped:
        """Return K h."""
        return product(states, self.key_map)

    def values(self, states: States) -> Mapped:
        """Return V h."""
        return product(states, self.value_map)


def _glorot(rows: int, columns: int) -> nn.Parameter:
    return nn.Parameter(nn.init.xavier_normal_(torch.empty(rows, columns)))


class Carried(nn.Module):
    """A cell whose state goes on from position to position, and stands still at padding."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell = cell

    def forward(
        self,
        drive: Float[Tensor, "batch time gates"],
        start: Start,
        mask: Bool[Tensor, "batch time"],
    ) -> tuple[States, Start]:
        """Return the states of all positions and the last one."""
        state, states = start, []
        for now, real in zip(drive.unbind(1), mask[..., None].unbind(1), strict=True):
            state = torch.where(real, self.cell.step(now, state), state)
            states.append(state)
        return torch.stack(states, 1), state


class Cut(nn.Module):
    """A cell that starts anew at every position: a feed-forward network."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell = cell

    def forward(
        self,
        drive: Float[Tensor, "batch time gates"],
        start: Start,
        mask: Bool[Tensor, "batch time"],
    ) -> tuple[States, Start]:
        """Return the states of all positions and, as the last one, the start again."""
        return self.cell.step(drive, start[:, None]), start


class Readout(nn.Module, ABC):
    """W times what a subclass takes of the context and the decoder's state, without a bias."""

    def __init__(self, width: int, types: int) -> None:
        super().__init__()
        self.weight = _glorot(types, width)

    def query(self, states: States) -> Mapped:
        """Return what the output depends on beside the context."""
        return states

    def forward(
        self, context: Float[Tensor, "*any value"], query: Float[Tensor, "*any query"]
    ) -> Float[Tensor, "*any output_type"]:
        """Return the logits."""
        return product(self.taken(context, query), self.weight)

    @abstractmethod
    def taken(self, context: Tensor, query: Tensor) -> Tensor:
        """Return what W maps."""


class OfState(Readout):
    """W h^D."""

    def taken(self, context: Tensor, query: Tensor) -> Tensor:
        """Return the state."""
        return query


class OfBoth(Readout):
    """W [h^D ; c]."""

    def taken(self, context: Tensor, query: Tensor) -> Tensor:
        """Return the state, then the context."""
        return torch.cat([query, context], -1)


class OfContext(Readout):
    """W c."""

    def query(self, states: States) -> Mapped:
        """Return nothing."""
        return states[..., :0]

    def taken(self, context: Tensor, query: Tensor) -> Tensor:
        """Return the context."""
        return context


class Architecture(Spec):
    """Root of the three architectures: what they are made of, given the hidden width."""

    @abstractmethod
    def positions(self, width: int) -> NoPositions | RotatedPositions:
        """Return what is added to one-hot vectors of a width."""

    @abstractmethod
    def reader(self, cell: Cell) -> Carried | Cut:
        """Return how a cell goes through a sequence."""

    @abstractmethod
    def initial(self, width: int) -> nn.Parameter | None:
        """Return the encoder's first state, or None if it is always 0."""

    @abstractmethod
    def cross(self, hidden: int) -> Dot | Maps | None:
        """Return the attention, or None."""

    @abstractmethod
    def readout(self, hidden: int, types: int) -> Readout:
        """Return the output layer."""


class _Recurrent(Architecture):
    def positions(self, width: int) -> NoPositions:
        """Return no positions."""
        return NoPositions()

    def reader(self, cell: Cell) -> Carried:
        """Return a recurrence."""
        return Carried(cell)

    def initial(self, width: int) -> nn.Parameter:
        """Return a trainable state, at first 0."""
        return nn.Parameter(torch.zeros(width))


class VED(_Recurrent):
    """The vanilla encoder-decoder: recurrence alone. It has states and no site."""

    kind: Literal["ved"] = "ved"

    def cross(self, hidden: int) -> None:
        """Return no attention."""
        return None

    def readout(self, hidden: int, types: int) -> OfState:
        """Return W h^D."""
        return OfState(hidden, types)


class AED(_Recurrent):
    """Recurrence and attention."""

    kind: Literal["aed"] = "aed"
    attention: SerializeAsAny[CrossAttention] = DotAttention()

    def cross(self, hidden: int) -> Dot | Maps:
        """Return the attention."""
        return self.attention.build(hidden)

    def readout(self, hidden: int, types: int) -> OfBoth:
        """Return W [h^D ; c]."""
        return OfBoth(2 * hidden, types)


class AO(Architecture):
    """Attention only: recurrence cut in both cells, positions added to their inputs.

    The cells keep their recurrent weights, which have no effect and no gradient at state 0.
    """

    kind: Literal["ao"] = "ao"
    attention: SerializeAsAny[CrossAttention] = DotAttention()
    period: float = Field(20.0, gt=0, description="τ: 20 for one-to-one, 100 for eSCAN")
    rotation: int = Field(0, description="seed that draws the rotation of the positions")

    def positions(self, width: int) -> RotatedPositions:
        """Return turned sinusoids."""
        return RotatedPositions(width, self.period, self.rotation)

    def reader(self, cell: Cell) -> Cut:
        """Return a feed-forward network."""
        return Cut(cell)

    def initial(self, width: int) -> None:
        """Return nothing: the state is 0."""
        return None

    def cross(self, hidden: int) -> Dot | Maps:
        """Return the attention."""
        return self.attention.build(hidden)

    def readout(self, hidden: int, types: int) -> OfContext:
        """Return W c."""
        return OfContext(hidden, types)
