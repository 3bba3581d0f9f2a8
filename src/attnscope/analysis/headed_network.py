"""A network with several heads, of any architecture, that reads its own words.

The heads of two seeds have nothing in common but their number: they are ordered by the share of
μ^D·μ^E, largest first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.alignment_terms import CROSS
from attnscope.analysis.decomposition import Components, Side, Sides, View
from attnscope.analysis.network import COMMON, SIDES, N, Network, fresh, sides
from attnscope.analysis.term_shares import TermShares, compute_term_shares
from attnscope.data.batch import Batch
from attnscope.models.decoding import stepper
from attnscope.models.trace import AttentionModel, Trace
from attnscope.training.trained_unit import TrainedUnit


@torch.no_grad()
def own_words(model: AttentionModel, batch: Batch) -> Batch:
    """Return the batch with the words that the model itself writes as the decoder's inputs.

    Each is the most probable one, boundaries included, up to the batch's width and past an end
    word, as the networks of the paper are fed.
    """
    writer = stepper(model)
    state, words = writer.begin(batch), [batch.decoder_inputs[:, 0]]
    for _ in range(batch.decoder_inputs.shape[1] - 1):
        logits, state = writer.step(words[-1], state)
        words.append(logits.argmax(-1))
    return replace(batch, decoder_inputs=torch.stack(words, 1))


class HeadedNetwork(Network):
    """A network of any architecture, with the components of what its heads attend to."""

    @classmethod
    def of(cls: type[N], unit: TrainedUnit, samples: int) -> N:
        """Return a trained unit's network with its last weights, and fresh sequences."""
        return cls(unit.model, unit.unit.source, fresh(unit, samples), unit.unit.seed)

    @cached_property
    def batches(self) -> list[Batch]:  # computed once, since writing is slow
        """The sequences of each forward pass, with the network's own words."""
        return [own_words(self.model, batch) for batch in super().batches]

    def passes(self) -> Iterator[Trace]:
        """Return a pass over the sequences, a few at a time."""
        for trace in super().passes():
            yield replace(trace, teacher_forced=False)

    @property
    def views(self) -> dict[str, View]:
        """The views that are decomposed."""
        return super().views | {"values": values_of}

    @property
    def values(self) -> Components:
        """Components of what the heads attend to."""
        return self.decompositions["values"].encoder

    @cached_property
    def shares(self) -> dict[str, TermShares]:
        """The terms' shares, raw and row-centred, heads as the model has them."""
        return compute_term_shares(self.traces(), self.cross)

    @cached_property
    def heads(self) -> dict[int, dict[str, int]]:
        """The heads, the one with the largest share of μ^D·μ^E first."""
        order = self.shares["raw"].mean[:, 0].argsort(descending=True).tolist()
        return {head: {"head": rank} for rank, head in enumerate(order, 1)}

    def paths_of(self, head: int) -> dict[str, Float[Tensor, "step key"]]:
        """Return the temporal components of a head's keys and queries, which share a space.

        At steps that enough sequences reach: of a few, the mean is what they happen to say.
        """
        found = {}
        for name, side in zip(SIDES, sides(self.cross), strict=True):
            common = side.time_counts >= COMMON * side.time_counts.max()
            found[name] = side.temporal[common].unflatten(-1, (len(self.heads), -1))[:, head]
        return found


def values_of(trace: Trace) -> Sides:
    """Return the values that are attended to, heads side by side, with the words read there."""
    values = trace.sites[CROSS.site].values.transpose(1, 2).flatten(2)
    return Sides(Side(values, trace.batch.inputs, trace.batch.input_mask), None)
