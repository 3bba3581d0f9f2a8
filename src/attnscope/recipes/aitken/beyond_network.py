"""A trained network of another architecture, read as the paper's are, with its components.

Everything goes through what any model offers, a trace and a readout, so that nothing here knows an
architecture. Networks are analysed on their own words, as the paper's. The heads of two seeds have
nothing in common but their number: they are put in order by the share of μ^D·μ^E, largest first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.analysis.alignment_terms import CROSS
from attnscope.analysis.decomposition import (
    Components,
    Side,
    Sides,
    View,
)
from attnscope.analysis.term_shares import TermShares, term_shares
from attnscope.data.batch import Batch
from attnscope.models.decoding import stepper
from attnscope.models.trace import AttentionModel, Trace, needed
from attnscope.recipes.aitken.networks import N, Network, in_batches, sides
from attnscope.recipes.aitken.units import fresh
from attnscope.training.trained_unit import TrainedUnit

_COMMON = 0.1  # of all sequences: those that reach a step whose mean is shown


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
    def batches(self) -> list[Batch]:
        """The sequences of each forward pass, with the network's own words."""
        return [own_words(self.model, batch) for batch in in_batches(self.sequences)]

    def traces(self) -> Iterator[Trace]:
        """Return a pass over the sequences, a few at a time."""
        for trace in super().traces():
            yield replace(trace, teacher_forced=False)

    @property
    def views(self) -> dict[str, View]:
        """What is taken apart."""
        return super().views | {"values": values_of}

    @property
    def values(self) -> Components:
        """Components of what the heads attend to."""
        return self.decompositions["values"].encoder

    @cached_property
    def shares(self) -> dict[str, TermShares]:
        """The terms' shares, raw and row-centred, heads as the model has them."""
        return term_shares(self.traces(), self.cross)

    @cached_property
    def order(self) -> list[int]:
        """The heads, that with the largest share of μ^D·μ^E first."""
        return cast("list[int]", self.shares["raw"].mean[:, 0].argsort(descending=True).tolist())

    @property
    def heads(self) -> int:
        """How many heads there are."""
        return len(self.shares["raw"].mean)

    def paths(self, head: int) -> dict[str, Float[Tensor, "step key"]]:
        """Return the temporal components of a head's keys and queries, which share a space.

        At steps that enough sequences reach: of a few, the mean is what they happen to say.
        """
        return {
            name: side.temporal[_common(side)].unflatten(-1, (self.heads, -1))[:, head]
            for name, side in zip(("encoder", "decoder"), sides(self.cross), strict=True)
        }


def _common(side: Components) -> Bool[Tensor, " time"]:
    return side.time_counts >= _COMMON * side.time_counts.max()


def values_of(trace: Trace) -> Sides:
    """Return the values that are attended to, heads side by side, with the words read there."""
    values = trace.sites[CROSS.site].values.transpose(1, 2).flatten(2)
    return Sides(Side(values, trace.batch.inputs, trace.batch.input_mask), None)


@torch.no_grad()
def word_effects(
    network: HeadedNetwork,
    words: Int[Tensor, " word"],
    head: int | None = None,
    sequences: int = 20,
) -> Float[Tensor, "word output"]:
    """Return by how much a word's input component, added to the context, raises each output.

    The mean over all output positions of a few sequences. For a readout that is linear in the
    context this is the product of readouts and input components, which the paper looks at; any
    other readout has a dictionary too.

    Parameters
    ----------
    words
        Input words.
    head
        To which context it is added; None is all of them, to each what it sees of the word.
    sequences
        How many.
    """
    trace = next(network.traces())
    real = trace.batch.target_mask[:sequences]
    context = trace.sites[CROSS.site].context[:sequences][real]  # cell, head, value
    query = needed(trace.query, "query")[:sequences][real]
    added = network.values.words(words).unflatten(-1, context.shape[1:])  # word, head, value
    if head is not None:
        alone = torch.arange(context.shape[1]) == head
        added = added * alone.to(added)[:, None]
    moved = context + added.to(context)[:, None]
    outputs = network.model.readout(moved, query.expand(len(words), -1, -1))
    return (outputs - network.model.readout(context, query)).double().mean(1)
