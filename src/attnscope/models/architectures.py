"""The parts of VED, AED and AO: recurrence or none, attention or none, a readout (aitken §2).

The forms are those of the authors' code: readouts without biases, a trainable first state,
positions in AO alone. Each part is plain tensor operations without control flow on data.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from pydantic import Field, SerializeAsAny
from torch import Tensor, nn

from attnscope.models.cells import RecurrentCell, product
from attnscope.models.positions import NoPositions, PaddedPositions, RotatedPositions
from attnscope.runs.spec import Spec

States = Float[Tensor, "batch time state"]
Mapped = Float[Tensor, "batch time mapped"]
Start = Float[Tensor, "batch state"]


class CrossAttention(Spec):
    """Root of the ways in which decoder states attend to encoder states."""

    @abstractmethod
    def build(self, hidden: int) -> StateQKV | LearnedQKV:
        """Return the attention over states of a width."""


class DotAttention(CrossAttention):
    """a_st = h^D_s · h^E_t; the states are queries, keys and values themselves."""

    kind: Literal["dot"] = "dot"

    def build(self, hidden: int) -> StateQKV:
        """Return the attention, which has no parameters."""
        return StateQKV(hidden)


class LearnedAttention(CrossAttention):
    """a_st = (Q h^D_s) · (K h^E_t) / √d_v with values V h^E_t of width d_v, the hidden size.

    The authors' code divides by the size of the values, not of the keys.
    """

    kind: Literal["learned"] = "learned"
    key: int = Field(32, ge=1, description="size of queries and keys")

    def build(self, hidden: int) -> LearnedQKV:
        """Return the attention with its three maps."""
        return LearnedQKV(hidden, self.key)


class StateQKV(nn.Module):
    """States as queries, keys and values; ``value`` is the width of the values."""

    def __init__(self, value: int) -> None:
        super().__init__()
        self.value = value

    def queries(self, states: States) -> Mapped:
        """Return the decoder's states."""
        return states

    def keys(self, states: States) -> Mapped:
        """Return the encoder's states."""
        return states

    def values(self, states: States) -> Mapped:
        """Return the encoder's states."""
        return states


class LearnedQKV(nn.Module):
    """Linear maps to queries, keys and values, Glorot-normal and without biases."""

    def __init__(self, hidden: int, key: int) -> None:
        super().__init__()
        self.value = hidden
        self.query_map = _glorot(key, hidden)
        self.key_map = _glorot(key, hidden)
        self.value_map = _glorot(hidden, hidden)

    def queries(self, states: States) -> Mapped:
        """Return Q h / √d_v: the queries are divided, so that logits are q · k."""
        return product(states, self.query_map) * self.value**-0.5

    def keys(self, states: States) -> Mapped:
        """Return K h."""
        return product(states, self.key_map)

    def values(self, states: States) -> Mapped:
        """Return V h."""
        return product(states, self.value_map)


def _glorot(rows: int, columns: int) -> nn.Parameter:
    return nn.Parameter(nn.init.xavier_normal_(torch.empty(rows, columns)))


class RecurrentReader(nn.Module):
    """A cell that carries its state from position to position, and holds it at padding."""

    recurrent: ClassVar[bool] = True

    def __init__(self, cell: RecurrentCell) -> None:
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


class FeedForwardReader(nn.Module):
    """A cell that starts from the same state at every position."""

    recurrent: ClassVar[bool] = False

    def __init__(self, cell: RecurrentCell) -> None:
        super().__init__()
        self.cell = cell

    def forward(
        self,
        drive: Float[Tensor, "batch time gates"],
        start: Start,
        mask: Bool[Tensor, "batch time"],
    ) -> tuple[States, Start]:
        """Return the states of all positions and, as the last one, the start."""
        return self.cell.step(drive, start[:, None]), start


class Readout(nn.Module):
    """W h^D, W [h^D ; c] or W c, without a bias.

    Parameters
    ----------
    reads
        The parts that W maps: ``state``, ``context``, or both in this order.
    """

    def __init__(self, reads: tuple[str, ...], hidden: int, types: int) -> None:
        super().__init__()
        self.reads = reads
        self.weight = _glorot(types, len(reads) * hidden)

    def query(self, states: States) -> Mapped:
        """Return the decoder's states if the output depends on them, else vectors of width 0."""
        return states if "state" in self.reads else states[..., :0]

    def forward(
        self, context: Float[Tensor, "*any value"], query: Float[Tensor, "*any query"]
    ) -> Float[Tensor, "*any output_type"]:
        """Return the logits."""
        parts = {"state": query, "context": context}
        read = [parts[name] for name in self.reads]
        return product(torch.cat(read, -1) if len(read) > 1 else read[0], self.weight)


class Architecture(Spec):
    """Root of the architectures: which parts a network has.

    Attributes
    ----------
    recurrent
        Whether cells carry their state, starting from a trainable one; otherwise they start from 0
        at every position.
    reads
        What the readout maps: ``state``, ``context`` or both.
    """

    recurrent: ClassVar[bool]
    reads: ClassVar[tuple[str, ...]]

    def positions(self, width: int) -> NoPositions | RotatedPositions | PaddedPositions:
        """Return what is added to one-hot vectors of a width."""
        return NoPositions()

    def cross(self, hidden: int) -> StateQKV | LearnedQKV | None:
        """Return the attention, or None."""
        return None


class VED(Architecture):
    """The vanilla encoder-decoder: recurrence alone. It has states and no site."""

    recurrent, reads = True, ("state",)
    kind: Literal["ved"] = "ved"


class AED(Architecture):
    """Recurrence and attention."""

    recurrent, reads = True, ("state", "context")
    kind: Literal["aed"] = "aed"
    attention: SerializeAsAny[CrossAttention] = DotAttention()

    def cross(self, hidden: int) -> StateQKV | LearnedQKV:
        """Return the attention."""
        return self.attention.build(hidden)


class AO(Architecture):
    """Attention only: no recurrence in either cell, positions added to their inputs.

    The cells keep their recurrent weights, which have no effect and no gradient at state 0.
    """

    recurrent, reads = False, ("context",)
    kind: Literal["ao"] = "ao"
    attention: SerializeAsAny[CrossAttention] = DotAttention()
    period: float = Field(20.0, gt=0, description="τ: 20 for one-to-one, 100 for eSCAN")
    rotation: int = Field(0, description="seed of the positions' rotation")

    def positions(self, width: int) -> RotatedPositions | PaddedPositions:
        """Return rotated sinusoids."""
        return RotatedPositions(width, self.period, self.rotation)

    def cross(self, hidden: int) -> StateQKV | LearnedQKV:
        """Return the attention."""
        return self.attention.build(hidden)


class AOWithRoom(AO):
    """AO for thousands of words: positions lie in the last ``room`` input dimensions.

    Set the model's ``input_dimension`` to the number of words and the room together.
    """

    kind: Literal["ao-with-room"] = "ao-with-room"  # type: ignore[assignment]
    period: float = Field(100.0, gt=0, description="τ: eSCAN's")
    room: int = Field(100, ge=1, description="dimensions of the positions: eSCAN's")

    def positions(self, width: int) -> PaddedPositions:
        """Return rotated sinusoids past the words."""
        return PaddedPositions(width, self.room, self.period, self.rotation)
