"""Positions as vectors that are added to the inputs (aitken §2, AO).

PE[t, 2k] = sin(t / τ^(2k/d)), PE[t, 2k+1] = cos(t / τ^(2k/d)) with t from 0, then rotated by one
fixed random matrix, so that positions do not lie along the axes of one-hot words.

Sinusoids are √(d/2) long, d being the width of the one-hot vectors: 5 to 7 times a word for 50 or
100 words. For 10 000 words a position would drown every word, and its rotation would have 10⁸
entries; `PaddedPositions` keeps them at the size of a small task, in dimensions past the last word.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad

from attnscope.data.randomness import generator


def sinusoids(
    places: Float[Tensor, " time"], width: int, period: float
) -> Float[Tensor, "time width"]:
    """Return the sines (even columns) and cosines (odd columns) of some places."""
    columns = torch.arange(width, dtype=places.dtype, device=places.device)
    even = columns - columns % 2
    angles = places[:, None] * period ** (-even / width)
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos())


def random_rotation(width: int, seed: int) -> Float[Tensor, "width width"]:
    """Draw a rotation uniformly from SO(width), in double precision."""
    draw = torch.randn(
        width, width, generator=generator("rotation", seed, width), dtype=torch.float64
    )
    q, r = torch.linalg.qr(draw)
    # With the diagonal of r made positive, q is uniform on O(width); one row's sign makes det 1.
    q = q * r.diagonal().sign()
    flip = torch.ones(width, dtype=torch.float64)
    flip[0] = torch.linalg.det(q).sign()
    return flip[:, None] * q


class RotatedPositions(nn.Module):
    """Rotated sinusoids of a period τ; the same for encoder and decoder.

    Parameters
    ----------
    seed
        Seed of the rotation, which is not a parameter and is not stored.
    """

    rotation: Tensor

    def __init__(self, width: int, period: float, seed: int) -> None:
        super().__init__()
        self.width, self.period = width, period
        rotation = random_rotation(width, seed).to(torch.get_default_dtype())
        self.register_buffer("rotation", rotation, persistent=False)

    def forward(self, first: int, count: int) -> Float[Tensor, "time width"]:
        """Return the vectors of ``count`` positions from ``first`` on."""
        dtype, device = self.rotation.dtype, self.rotation.device
        places = torch.arange(first, first + count, dtype=dtype, device=device)
        return sinusoids(places, self.width, self.period) @ self.rotation.T


class NoPositions(nn.Module):
    """No positions: a recurrence counts for itself."""

    def forward(self, first: int, count: int) -> Float[Tensor, ""]:
        """Return 0."""
        return torch.zeros(())


class PaddedPositions(nn.Module):
    """Rotated sinusoids of ``room`` dimensions, the last ones of a wider vector."""

    def __init__(self, width: int, room: int, period: float, seed: int) -> None:
        super().__init__()
        self.words = width - room
        self.rotated = RotatedPositions(room, period, seed)

    def forward(self, first: int, count: int) -> Float[Tensor, "time width"]:
        """Return the vectors of ``count`` positions from ``first`` on."""
        return pad(self.rotated(first, count), (self.words, 0))
