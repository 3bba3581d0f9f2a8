"""Recurrent encoders and decoders over sequences of unequal length.

Sequences are packed, so that padding reaches neither the states nor the backward direction; where
all lengths are equal packing is skipped, which changes nothing but the time it takes.
"""

from __future__ import annotations

from typing import Literal

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

Cell = Literal["lstm", "gru"]
State = Tensor | tuple[Tensor, Tensor]
_CELLS: dict[str, type[nn.LSTM] | type[nn.GRU]] = {"lstm": nn.LSTM, "gru": nn.GRU}


class Recurrence(nn.Module):
    """One layer of LSTM or GRU, in one direction or both.

    Parameters
    ----------
    inputs, hidden
        Widths; ``hidden`` is per direction, as in all four papers.
    """

    def __init__(self, cell: Cell, inputs: int, hidden: int, directions: int = 1) -> None:
        super().__init__()
        self.layer = _CELLS[cell](inputs, hidden, batch_first=True, bidirectional=directions == 2)
        self.width = hidden * directions

    def forward(
        self,
        inputs: Float[Tensor, "batch time width"],
        lengths: Int[Tensor, " batch"],
        state: State | None = None,
    ) -> tuple[Float[Tensor, "batch time state"], State]:
        """Return the states at every position (0 at padding) and the last real state."""
        width = inputs.shape[1]
        if bool((lengths == width).all()):
            return self.layer(inputs, state)
        packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
        states, last = self.layer(packed, state)
        padded, _ = pad_packed_sequence(states, batch_first=True, total_length=width)
        return padded, last
