"""Attention only for thousands of words: positions in a room of their own beside the words.

Sinusoids have as many entries as the one-hot vectors are wide, √(d/2) long. Beside 50 or 100 words
that is 5 or 7 times a word; beside 10 000 words a position would drown every word, and its rotation
have 10⁸ entries. Here positions are those of a small task, turned within as many input dimensions
as that needs, past the last word: the vocabulary is padded, as in the authors' code.
"""

from __future__ import annotations

from typing import Literal

from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import pad

from attnscope.models.architectures import AO
from attnscope.models.positional import RotatedPositions


class AOWithRoom(AO):
    """AO whose positions lie in the last ``room`` input dimensions, where no word is.

    Set the model's ``input_dimension`` to the number of words and the room together.
    """

    kind: Literal["ao-with-room"] = "ao-with-room"  # type: ignore[assignment]
    period: float = Field(100.0, gt=0, description="τ: eSCAN's")
    room: int = Field(100, ge=1, description="dimensions of the positions: eSCAN's")

    def positions(self, width: int) -> PositionsInRoom:  # type: ignore[override]
        """Return turned sinusoids past the words."""
        return PositionsInRoom(width, self.room, self.period, self.rotation)


class PositionsInRoom(nn.Module):
    """Rotated sinusoids of ``room`` dimensions, the last ones of a wider vector."""

    def __init__(self, width: int, room: int, period: float, seed: int) -> None:
        super().__init__()
        self.words = width - room
        self.turned = RotatedPositions(room, period, seed)

    def forward(self, first: int, count: int) -> Float[Tensor, "time width"]:
        """Return the vectors of ``count`` positions from ``first`` on."""
        return pad(self.turned(first, count), (self.words, 0))
