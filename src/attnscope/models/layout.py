"""The shapes in which networks hold attention logits, and the one in which they are measured.

``[batch, heads, out, inp]`` is read off ``[B, H, T, L]``, ``[B, groups, H, T, L]``,
``[B·H, T, L]``, ``[B, T, L]``, ``[T, B, L]``, ``[B·T, L]``, ``[B, L]`` and, with the softmax over
axis 1, ``[B, L, 1]``. Which of them it is shows in a first pass alone, whose lengths are unequal:
later ones are told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

# An added mask is −∞, the type's least number, −1e30, −1e9 or −1e4; position biases are far above.
MASKED = -5e3
# What lies between the batch and the input positions, and whether rows are before the batch.
Form = Literal["heads", "rows", "time first"]


@dataclass(frozen=True)
class Layout:
    """How one softmax lays out its input."""

    dim: int
    shape: tuple[int, ...]
    batch: int
    form: Form = "heads"

    @classmethod
    def of(cls, logits: Tensor, dim: int, batch: int, form: Form | None = None) -> Layout | None:
        """Return the layout, by its form where that is known; None where no axis is the batch's."""
        if logits.ndim < 2 or not logits.is_floating_point():
            return None
        shape = tuple(logits.movedim(dim, -1).shape)
        if form is None and len(shape) == 3 and shape[0] % batch and shape[1] == batch:
            form = "time first"
        if form == "time first":
            return cls(dim, shape, batch, form) if shape[1] == batch else None
        fits = shape[0] % batch == 0 if len(shape) < 4 else shape[0] == batch
        return cls(dim, shape, batch, form or "heads") if fits else None

    def heads(self, tensor: Tensor) -> Float[Tensor, "batch heads out inp"]:
        """Return a tensor of the softmax's shape as [batch, heads, out, inp]."""
        moved = tensor.movedim(self.dim, -1)
        if self.form == "time first":
            return moved.transpose(0, 1)[:, None]
        if self.form == "rows":
            return moved.reshape(self.batch, 1, -1, moved.shape[-1])
        out = moved.shape[-2] if moved.ndim > 2 else 1
        return moved.reshape(self.batch, -1, out, moved.shape[-1])

    def back(self, tensor: Float[Tensor, "batch heads out inp"]) -> Tensor:
        """Return [batch, heads, out, inp] in the softmax's own shape."""
        if self.form == "time first":
            moved = tensor[:, 0].transpose(0, 1)
        else:
            moved = tensor.reshape(*self.shape[:-1], tensor.shape[-1])
        return moved.movedim(-1, self.dim)


def allowed_of(logits: Float[Tensor, "batch heads out inp"]) -> Bool[Tensor, "batch out inp"]:
    """Return where some head may attend, from logits that carry their mask."""
    return (logits > MASKED).any(1)


def split_mask(
    mask: Tensor | None, causal: bool, logits: Float[Tensor, "batch heads out inp"]
) -> tuple[Float[Tensor, "batch heads out inp"], Bool[Tensor, "batch heads out inp"]]:
    """Return logits with their bias and without their mask, and the mask, of a fused attention.

    Parameters
    ----------
    mask
        As ``scaled_dot_product_attention`` takes it: True where attention is allowed, or a number
        to add.
    causal
        Whether later positions are masked too.
    """
    allowed = torch.ones_like(logits, dtype=torch.bool)
    if causal:
        allowed = allowed.tril()
    if mask is not None:
        spread = mask.reshape(*[1] * (4 - mask.ndim), *mask.shape) if mask.ndim < 4 else mask
        real = spread if spread.dtype == torch.bool else spread > MASKED
        allowed = allowed & real
        if spread.dtype != torch.bool:
            logits = logits + spread.masked_fill(~real, 0.0)
    return logits, allowed


def one_row(mask: Bool[Tensor, "batch out inp"]) -> Bool[Tensor, "batch *row inp"]:
    """Return a mask without its output axis where all output positions share one row."""
    return mask[:, 0] if bool((mask == mask[:, :1]).all()) else mask
