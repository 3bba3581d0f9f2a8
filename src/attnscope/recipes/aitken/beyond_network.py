"""A trained network of another architecture, read as the paper's are, with its components.

Everything goes through what any model offers, a trace and a readout, so that nothing here knows an
architecture. Networks are analysed on their own words, as the paper's. The heads of two seeds have
nothing in common but their number: they are put in order by the share of μ^D·μ^E, largest first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.analysis.alignment_terms import CROSS
from attnscope.analysis.decomposition import (
    Components,
    Decomposition,
    Side,
    Sides,
    View,
    decompose_views,
    states_of,
)
from attnscope.analysis.term_shares import TermShares, term_shares
from attnscope.data.batch import Batch
from attnscope.data.source import Source
from attnscope.models.decoding import stepper
from attnscope.models.trace import AttentionModel, Trace
from attnscope.recipes.aitken.units import accuracy_of, fresh
from attnscope.training.trained import TrainedUnit

_ROWS = 100  # sequences of a forward pass
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


@dataclass(frozen=True)
class Network:
    """A network, the fresh sequences it is analysed on, and its components."""

    model: Any
    source: Source
    sequences: Batch
    seed: int = 0

    @classmethod
    def of(cls, unit: TrainedUnit, samples: int) -> Network:
        """Return a trained unit's network."""
        return cls(unit.model, unit.unit.source, fresh(unit, samples), unit.unit.seed)

    @cached_property
    def _batches(self) -> list[Batch]:
        starts = range(0, len(self.sequences), _ROWS)
        rows = (self.sequences.rows(slice(start, start + _ROWS)) for start in starts)
        return [own_words(self.model, batch) for batch in rows]

    def traces(self) -> Iterator[Trace]:
        """Return a pass over the sequences."""
        for batch in self._batches:
            # Not a `with` round the yield: whoever reads would be without gradients as well.
            yield _without_gradients(self.model, batch)

    @cached_property
    def accuracy(self) -> float:
        """The share of its words that are right, up to and with the end word."""
        return accuracy_of(self.traces())

    @cached_property
    def _views(self) -> dict[str, Decomposition]:
        views: dict[str, View] = {"states": states_of, "cross": CROSS, "values": values_of}
        return decompose_views(self.traces(), views)

    @property
    def states(self) -> Decomposition:
        """Components of states."""
        return self._views["states"]

    @property
    def cross(self) -> Decomposition:
        """Components of queries and keys."""
        return self._views["cross"]

    @property
    def values(self) -> Components:
        """Components of what the heads attend to."""
        return self._views["values"].encoder

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
        assert self.cross.decoder is not None
        sides = {"encoder": self.cross.encoder, "decoder": self.cross.decoder}
        return {
            name: side.temporal[_common(side)].unflatten(-1, (self.heads, -1))[:, head]
            for name, side in sides.items()
        }


def _common(side: Components) -> Bool[Tensor, " time"]:
    return side.time_counts >= _COMMON * side.time_counts.max()


@torch.no_grad()
def _without_gradients(model: AttentionModel, batch: Batch) -> Trace:
    return replace(model.trace(batch), teacher_forced=False)


def values_of(trace: Trace) -> Sides:
    """Return the values that are attended to, heads side by side, with the words read there."""
    values = trace.sites[CROSS.site].values.transpose(1, 2).flatten(2)
    return Sides(Side(values, trace.batch.inputs, trace.batch.input_mask), None)


@torch.no_grad()
def word_effects(
    network: Network, words: Int[Tensor, " word"], head: int | None = None, sequences: int = 20
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
    query = trace.query[:sequences][real]
    added = network.values.words(words).unflatten(-1, context.shape[1:])  # word, head, value
    if head is not None:
        alone = torch.arange(context.shape[1]) == head
        added = added * alone.to(added)[:, None]
    moved = context + added.to(context)[:, None]
    outputs = network.model.readout(moved, query.expand(len(words), -1, -1))
    return (outputs - network.model.readout(context, query)).double().mean(1)
