"""The networks of figure 2 with their components, as its numbers and its pictures read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.analysis.alignment_terms import CROSS, logit_scale, temporal_alignment
from attnscope.analysis.components import PrincipalAxes, principal_axes
from attnscope.analysis.decomposition import (
    Components,
    Decomposition,
    View,
    decompose_views,
    states_of,
)
from attnscope.data.sequence_tasks import SequenceTask
from attnscope.models.cells import CellName
from attnscope.models.trace import Trace
from attnscope.recipes.aitken.units import (
    ArchitectureName,
    AttentionName,
    Traces,
    analysed,
    traces,
)
from attnscope.runs.result import Measurement
from attnscope.training.trained import TrainedUnit

Axes = dict[str, str | int | float]


@dataclass(frozen=True)
class Group:
    """Networks that differ in nothing but their seed."""

    task: SequenceTask
    model: ArchitectureName
    seeds: int
    cell: CellName = "gru"
    attention: AttentionName = "dot"
    pictures: tuple[Picture, ...] = ()

    @property
    def axes(self) -> Axes:
        """What measurements call the network."""
        attention = "none" if self.model == "ved" else self.attention
        return {"model": self.model, "cell": self.cell, "attention": attention}


class Network:
    """A trained network with its components: what can be said of it, and drawn.

    Parameters
    ----------
    samples
        How many fresh sequences are looked at.
    length
        Of them, only those of this length with EOS, if it is given.
    """

    def __init__(self, unit: TrainedUnit, samples: int, length: int | None = None) -> None:
        self.unit = unit
        self.samples = samples
        self.model = analysed(unit)
        self.task = cast(SequenceTask, unit.unit.source)
        self.traces: Traces = traces(unit, samples, length=length)

    @property
    def attends(self) -> bool:
        """Whether there is attention."""
        return self.model.attention is not None

    @cached_property
    def _views(self) -> dict[str, Decomposition]:
        views: dict[str, View] = {"states": states_of}
        if self.attends:
            views["site"] = CROSS
        return decompose_views(self.traces(), views)

    @property
    def states(self) -> Decomposition:
        """Components of the states."""
        return self._views["states"]

    @property
    def site(self) -> Decomposition:
        """Components of queries and keys."""
        return self._views["site"]

    @property
    def words(self) -> Int[Tensor, " word"]:
        """The words of the task without EOS; on both sides they have the same ids."""
        return torch.arange(self.task.end)

    @cached_property
    def scale(self) -> float:
        """What q·k is multiplied with."""
        return logit_scale(next(self.traces()))

    @property
    def paths(self) -> dict[str, Float[Tensor, "step state"]]:
        """The temporal components of encoder and decoder states that some sample reaches."""
        return {name: reached(side) for name, side in sides(self.states).items()}

    @cached_property
    def plane(self) -> PrincipalAxes:
        """The principal axes of both paths together."""
        return principal_axes(*self.paths.values())

    def temporal_weights(self, trace: Trace) -> Float[Tensor, "batch out inp"]:
        """Return softmax(μ^D·μ^E) over the real positions of each sample."""
        out, inp = trace.batch.targets.shape[1], trace.batch.inputs.shape[1]
        logits = self.scale * temporal_alignment(self.site)[0, :out, :inp]
        real = trace.batch.input_mask[:, None]
        return logits.expand(len(real), -1, -1).masked_fill(~real, -torch.inf).softmax(-1)


# What a figure draws of one network, as measurements.
Picture = Callable[[Group, Network], list[Measurement]]


def sides(components: Decomposition) -> dict[str, Components]:
    """Return the components by the name of the side."""
    assert components.decoder is not None
    return {"encoder": components.encoder, "decoder": components.decoder}


def reached(components: Components) -> Float[Tensor, "step state"]:
    """Return the temporal components of the steps that some sample has."""
    return components.temporal[components.time_counts > 0]
