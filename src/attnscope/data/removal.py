"""Examples with some of their input words taken out.

Words are deleted, so that a text is what it would be without them; where outputs are the next words
of the same text (a language model), a deletion would move them, and a filler stands in instead.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnscope.data.batch import Batch
from attnscope.data.tokenised import TokenisedBatch


def without(batch: Batch, drop: Bool[Tensor, "batch inp"], fill: int = 0) -> Batch:
    """Return the examples without some of their input positions.

    Parameters
    ----------
    drop
        True at positions to take out; an example that would be left with none keeps them all.
    fill
        The id at freed positions: what stands in for a word where the inputs are those of a
        language model, and else the model's padding.
    """
    real = batch.input_mask
    left = real & ~drop
    left = torch.where(left.any(1, keepdim=True), left, real)
    if writes_its_input(batch):
        inputs = batch.inputs.where(left | ~real, fill)
        return replace(batch, inputs=inputs, decoder_inputs=inputs)
    # Kept positions first, in their order.
    order = (~left).to(torch.uint8).argsort(dim=1, stable=True)
    moved = {"inputs": _moved(batch.inputs, order, left, torch.tensor(fill))}
    if isinstance(batch, TokenisedBatch):
        moved["input_words"] = _moved(batch.input_words, order, left, torch.tensor(-1))
    lengths = left.sum(1).to(batch.input_lengths)
    return replace(batch, **moved, input_lengths=lengths)


def word_positions(batch: Batch) -> Bool[Tensor, "batch inp"]:
    """Return True at the pieces of words: boundaries and other special pieces are left out."""
    if not isinstance(batch, TokenisedBatch):
        return batch.input_mask
    return batch.input_mask & (batch.input_words >= 0)


def word_groups(batch: Batch) -> Int[Tensor, "batch inp"]:
    """Return the word that each piece belongs to, counted from 0 without gaps; -1 for none."""
    if isinstance(batch, TokenisedBatch):
        groups = batch.input_words
    else:
        groups = torch.arange(batch.inputs.shape[1], device=batch.inputs.device).expand_as(
            batch.inputs
        )
    groups = groups.masked_fill(~word_positions(batch), -1)
    # A word without a piece (a rare character, say) leaves a gap.
    rising = torch.nn.functional.pad(groups, (1, 0), value=-1).cummax(1).values
    fresh = (groups > rising[:, :-1]) & (groups >= 0)
    return (fresh.cumsum(1) - 1).masked_fill(groups < 0, -1)


def writes_its_input(batch: Batch) -> bool:
    """Tell whether outputs are the next words of the inputs."""
    return batch.targets.shape[1] > 1 and batch.inputs.equal(batch.decoder_inputs)


def _moved(values: Tensor, order: Tensor, left: Tensor, fill: Tensor) -> Tensor:
    kept = left.gather(1, order)
    return values.gather(1, order).where(kept, fill.to(values))
