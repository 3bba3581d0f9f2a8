"""Dropout with explicit masks, the same on every device.

One model in training draws them from a generator as it goes. Vmapped models cannot draw: they take,
in the same order, masks drawn before the step (`attnscope.training.engine.dropout_masks`).
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from attnscope.data.batch import moved
from attnscope.errors import UsageError


@runtime_checkable
class Masks(Protocol):
    """From a shape and a rate to a mask that is True where numbers are kept.

    With ``lengths`` the mask is that of packed texts: of its rows only the first Σ lengths count.
    """

    def __call__(
        self, shape: torch.Size, rate: float, lengths: Int[Tensor, " batch"] | None = None
    ) -> Tensor:
        """Return the mask."""
        ...


Randomness = torch.Generator | Masks


def dropped(values: Any, rate: float, randomness: Randomness | None) -> Any:
    """Return values with a share of them 0 and the rest scaled up; without randomness, as is."""
    if randomness is None or rate == 0:
        return values
    if isinstance(values, PackedSequence):
        return values._replace(data=dropped(values.data, rate, randomness))
    mask = _masks(randomness)(values.shape, rate)
    return values * moved(mask, values.device) * (1 / (1 - rate))


def _masks(randomness: Randomness) -> Masks:
    return masks_from(randomness) if isinstance(randomness, torch.Generator) else randomness


_LANES = 4  # 16-bit numbers in one draw of 64 bits; drawing them one by one takes twice the time.


def masks_from(generator: torch.Generator) -> Masks:
    """Return a function that draws masks from a generator, False with the probability ``rate``."""

    def drawn(
        shape: torch.Size, rate: float, lengths: Int[Tensor, " batch"] | None = None
    ) -> Tensor:
        if lengths is not None:
            rows = int(lengths.sum())
            mask = drawn(torch.Size((rows, *shape[1:])), rate)
            return torch.cat([mask, mask.new_zeros(shape[0] - rows, *shape[1:])])
        count = shape.numel()
        draws = torch.empty(-(-count // _LANES), dtype=torch.int64, device=generator.device)
        draws.random_(-(2**63), None, generator=generator)
        lanes = draws.view(torch.int16)[:count].view(shape)
        return lanes >= round(rate * 2**16) - 2**15

    return drawn


_BITS = 62  # of a key


def keys_from(randomness: Randomness, count: int) -> Int[Tensor, " count"]:
    """Return keys for counter-based random numbers (`counter_uniform`).

    Their bits are a mask like any other, so that vmapped models can be given them too.
    """
    bits = _masks(randomness)(torch.Size((count, _BITS)), 0.5)
    return (bits.long() << torch.arange(_BITS, device=bits.device)).sum(-1)


def masks_given(row: Bool[Tensor, " number"]) -> Masks:
    """Return a function that gives out masks drawn before, which follow each other in a row."""
    left = row

    def given(
        shape: torch.Size, rate: float, lengths: Int[Tensor, " batch"] | None = None
    ) -> Tensor:
        nonlocal left
        count = shape.numel()
        mask, left = left[:count].view(shape), left[count:]
        return mask

    return given


def dropped_words(
    values: Float[Tensor, "batch time width"],
    rate: float,
    lengths: Int[Tensor, " batch"],
    placed: Int[Tensor, " batch"],
    randomness: Randomness | None,
) -> Float[Tensor, "batch time width"]:
    """Drop of padded texts what `dropped` drops of packed ones.

    ``placed`` are the lengths on the values' device.
    """
    if randomness is None or rate == 0:
        return values
    batch, time, width = values.shape
    mask = _masks(randomness)(torch.Size((batch * time, width)), rate, lengths)
    kept = moved(mask, values.device).index_select(0, packed_places(placed, time).flatten())
    return values * kept.view_as(values) * (1 / (1 - rate))


def packed_places(lengths: Int[Tensor, " batch"], width: int) -> Int[Tensor, "batch width"]:
    """Return where PyTorch's packing puts the words of padded texts; anything at padding.

    Packed, words are in the order of time, and at each time from the longest text to the shortest.
    Texts of equal length are not packed and stay in the order of text and time.
    """
    text = torch.arange(len(lengths), device=lengths.device)
    time = torch.arange(width, device=lengths.device)
    longer = lengths[None] > lengths[:, None]
    earlier = (lengths[None] == lengths[:, None]) & (text < text[:, None])
    rank = (longer | earlier).sum(1)
    before = torch.minimum(lengths[:, None], time).sum(0)
    packed: Bool[Tensor, ""] = lengths.min() < lengths.max()
    places = torch.where(packed, before + rank[:, None], text[:, None] * lengths.max() + time)
    return places.clamp(max=len(lengths) * width - 1)


def no_masks(
    shape: torch.Size, rate: float, lengths: Int[Tensor, " batch"] | None = None
) -> Tensor:
    """Raise: a term asked for randomness that no dry run recorded."""
    raise UsageError("A vectorised term may only draw at every step, or never.")
