"""The networks of figure 2 as its numbers and its pictures read them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.analysis.alignment_terms import logit_scale, temporal_alignment
from attnscope.analysis.components import PrincipalAxes, principal_axes
from attnscope.data.sequence_tasks import SequenceTask
from attnscope.models.trace import Trace
from attnscope.recipes.aitken.groups import Wanted
from attnscope.recipes.aitken.networks import Network, paths
from attnscope.runs.result import Measurement


class SequenceNetwork(Network):
    """A network on a task whose words are in line with their translations."""

    @property
    def task(self) -> SequenceTask:
        """The task."""
        return cast(SequenceTask, self.source)

    @property
    def ids(self) -> Int[Tensor, " word"]:
        """The words of the task without EOS; on both sides they have the same ids."""
        return torch.arange(self.task.end)

    @cached_property
    def scale(self) -> float:
        """What q·k is multiplied with."""
        return logit_scale(next(self.traces()))

    @property
    def paths(self) -> dict[str, Float[Tensor, "step state"]]:
        """The temporal components of encoder and decoder states that some sample reaches."""
        return paths(self.states)

    @cached_property
    def plane(self) -> PrincipalAxes:
        """The principal axes of both paths together."""
        return principal_axes(*self.paths.values())

    def temporal_weights(self, trace: Trace) -> Float[Tensor, "batch out inp"]:
        """Return softmax(μ^D·μ^E) over the real positions of each sample."""
        out, inp = trace.batch.targets.shape[1], trace.batch.inputs.shape[1]
        logits = self.scale * temporal_alignment(self.cross)[0, :out, :inp]
        real = trace.batch.input_mask[:, None]
        return logits.expand(len(real), -1, -1).masked_fill(~real, -torch.inf).softmax(-1)


# What a figure draws of one network, as measurements.
Picture = Callable[[Wanted, SequenceNetwork], list[Measurement]]
