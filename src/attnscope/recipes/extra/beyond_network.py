"""A trained network of another architecture, read as the paper's are, with its components.

Everything goes through what any model offers, a trace and a readout, so that nothing here depends
on an architecture. Networks are analysed on their own words, as the paper's. The heads of two seeds
have nothing in common but their number: they are ordered by the share of μ^D·μ^E, largest first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.analysis.alignment_terms import CROSS
from attnscope.analysis.decomposition import Components, Side, Sides, View
from attnscope.analysis.term_shares import TermShares
from attnscope.data.batch import Batch
from attnscope.data.escan import ExtendedScan
from attnscope.data.sequence_tasks import OneToOne
from attnscope.models.decoding import stepper
from attnscope.models.trace import AttentionModel, Trace, needed
from attnscope.recipes.aitken.measures import Numbers
from attnscope.recipes.aitken.measures.dictionary import pairs_of, raised_most, share_right
from attnscope.recipes.aitken.measures.terms import shares_of
from attnscope.recipes.aitken.networks import COMMON, SIDES, N, Network, fresh, sides
from attnscope.recipes.kit.sheet import number
from attnscope.training.trained_unit import TrainedUnit

ALL_HEADS = "all"


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
        return dict(shares_of(self))

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


def dictionary_numbers(network: HeadedNetwork) -> Numbers:
    """Return how many output words are raised most by the input component of their translation.

    Through all heads together, and through each of them alone; nothing for text.
    """
    if not isinstance(network.source, ExtendedScan | OneToOne):
        return {}
    pairs, seen = pairs_of(network.source), network.values.seen.nonzero()[:, 0]
    heads: dict[int | None, dict[str, str | int]] = {None: {"head": ALL_HEADS}}
    heads |= {head: dict(axes) for head, axes in network.heads.items()}
    found: Numbers = {}
    for head, axes in heads.items():
        best = raised_most(word_effects(network, seen, head).mT, seen)
        found[number("dictionary", **axes)] = share_right(best, pairs)
    return found


@torch.no_grad()
def word_effects(
    network: HeadedNetwork,
    words: Int[Tensor, " word"],
    head: int | None = None,
    sequences: int = 20,
) -> Float[Tensor, "word output"]:
    """Return by how much a word's input component, added to the context, raises each output.

    The mean over all output positions of a few sequences. For a readout that is linear in the
    context this is the product of readouts and input components, which the paper uses; any other
    readout has a dictionary too.

    Parameters
    ----------
    words
        Input words.
    head
        The head to whose context it is added; None is all of them, each with its own values.
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
