"""A trained network that writes its own words, with its components: what every figure looks at.

Everything goes through what any model offers, a trace, so that nothing here knows an architecture.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.alignment_terms import CROSS, temporal_alignment
from attnscope.analysis.decomposition import (
    Components,
    Decomposition,
    View,
    decompose_views,
    states_of,
)
from attnscope.data.batch import Batch
from attnscope.data.source import Source
from attnscope.models.trace import AttentionModel, Trace
from attnscope.recipes.aitken.units import accuracy_of, analysed, fresh
from attnscope.training.trained_unit import TrainedUnit

ROWS = 100  # sequences of a forward pass

N = TypeVar("N", bound="Network")


@dataclass(frozen=True)
class Network:
    """A network that reads its own words, the sequences it is analysed on, and its components.

    With other sequences, or another model, it is another network (`dataclasses.replace`).
    """

    model: Any
    source: Source
    sequences: Batch
    seed: int = 0

    @classmethod
    def of(cls: type[N], unit: TrainedUnit, samples: int) -> N:
        """Return a trained unit's network with its last weights, and fresh sequences."""
        return cls(analysed(unit), unit.unit.source, fresh(unit, samples), unit.unit.seed)

    def of_length(self: N, length: int) -> N:
        """Return the network with the sequences whose output has a length, EOS included."""
        chosen = self.sequences.target_lengths == length
        return replace(self, sequences=self.sequences.rows(chosen))

    @property
    def samples(self) -> int:
        """How many sequences there are."""
        return len(self.sequences)

    @property
    def batches(self) -> list[Batch]:
        """The sequences of each forward pass."""
        return in_batches(self.sequences)

    def traces(self) -> Iterator[Trace]:
        """Return a pass over the sequences, a few at a time."""
        for batch in self.batches:
            # Not a `with` round the yield: whoever reads would be without gradients as well.
            yield without_gradients(self.model, batch)

    @cached_property
    def accuracy(self) -> float:
        """The share of its words that are right, up to and with the end word."""
        return accuracy_of(self.traces())

    @cached_property
    def attends(self) -> bool:
        """Whether there is attention."""
        return CROSS.site in next(self.traces()).sites

    @property
    def views(self) -> dict[str, View]:
        """What is taken apart."""
        found: dict[str, View] = {"states": states_of}
        return found | ({"cross": CROSS} if self.attends else {})

    @cached_property
    def decompositions(self) -> dict[str, Decomposition]:
        """The components of all views, from one pass."""
        return decompose_views(self.traces(), self.views)

    @property
    def states(self) -> Decomposition:
        """Components of states."""
        return self.decompositions["states"]

    @property
    def cross(self) -> Decomposition:
        """Components of queries and keys."""
        return self.decompositions["cross"]

    @property
    def decoder(self) -> Components:
        """Components of decoder states."""
        return sides(self.states)[1]

    @property
    def temporal_logits(self) -> Float[Tensor, "out inp"]:
        """μ^D_s·μ^E_t, where some sequence reaches s and t."""
        encoder, decoder = (int((side.time_counts > 0).sum()) for side in sides(self.cross))
        return temporal_alignment(self.cross)[0, :decoder, :encoder]

    @property
    def words(self) -> tuple[str, ...]:
        """The input words."""
        return self.source.input_words.words


def in_batches(batch: Batch) -> list[Batch]:
    """Return a batch in pieces, each for one forward pass."""
    return [batch.rows(slice(start, start + ROWS)) for start in range(0, len(batch), ROWS)]


@torch.no_grad()
def without_gradients(model: AttentionModel, batch: Batch) -> Trace:
    """Return a model's forward pass."""
    return model.trace(batch)


def sides(components: Decomposition) -> tuple[Components, Components]:
    """Return the components of the encoder and of the decoder."""
    assert components.decoder is not None
    return components.encoder, components.decoder


def reached(components: Components) -> Float[Tensor, "step state"]:
    """Return the temporal components of the steps that some sample has."""
    return components.temporal[components.time_counts > 0]


def paths(components: Decomposition) -> dict[str, Float[Tensor, "step state"]]:
    """Return the temporal components of both sides by their names."""
    return dict(zip(("encoder", "decoder"), map(reached, sides(components)), strict=True))
