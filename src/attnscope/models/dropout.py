"""Dropout with explicit masks, the same on every device.

One model in training draws them from a generator as it goes. Vmapped models cannot draw: they take,
in the same order, masks drawn before the step (`attnscope.training.engine.dropout_masks`).
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Int
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


def packed_mask(
    randomness: Randomness, rows: int, width: int, rate: float, lengths: Int[Tensor, " batch"]
) -> Bool[Tensor, "row width"]:
    """Return a mask of packed texts, with rows that do not count after the real ones."""
    return _masks(randomness)(torch.Size((rows, width)), rate, lengths)


def no_masks(
    shape: torch.Size, rate: float, lengths: Int[Tensor, " batch"] | None = None
) -> Tensor:
    """Raise: a term asked for randomness that no dry run recorded."""
    raise UsageError("A vectorised term may only draw at every step, or never.")
