"""Attention weights α as a score (snell Eq. 1, 7).

A score has a row for each output. Where a site's rows are not outputs (self-attention below a
classifier), the rows that the output reads are averaged; where they are not and the model writes
words, there is no such score, which is an error.
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.errors import MissingCapability, UsageError, suggestion
from attnscope.models.trace import AttentionModel, Site, Trace
from attnscope.scores.score import ScoreRule


class Attention(ScoreRule):
    """α at a site; several heads are averaged, or the largest or one of them is taken."""

    kind: Literal["attention"] = "attention"
    site: str = "cross"
    heads: Literal["mean", "max"] | int = "mean"

    @property
    def name(self) -> str:
        """``attention``."""
        return "attention"

    def mask(self, trace: Trace) -> Bool[Tensor, "batch *row inp"]:
        """Return the positions that may be attended."""
        return mask_of_outputs(trace, site_of(trace, self.site), self.site)

    def values(self, model: AttentionModel, trace: Trace) -> Float[Tensor, "batch out inp"]:
        """Return the weights, heads reduced."""
        weights = of_outputs(trace, site_of(trace, self.site), self.site)
        if self.heads == "mean":
            return weights.mean(1)
        if self.heads == "max":
            return weights.amax(1)
        if not -weights.shape[1] <= self.heads < weights.shape[1]:
            raise UsageError(f"heads={self.heads}: the site has {weights.shape[1]} heads.")
        return weights[:, self.heads]


def site_of(trace: Trace, name: str) -> Site:
    """Return a site, or raise an error that lists the model's sites."""
    if name not in trace.sites:
        raise MissingCapability(f"The model has no site {name!r}; {suggestion(name, trace.sites)}")
    return trace.sites[name]


def of_outputs(
    trace: Trace, site: Site, name: str, values: Tensor | None = None
) -> Float[Tensor, "batch heads out inp"]:
    """Return weights, or other values of the same shape, with a row for each output.

    Rows that are not outputs are averaged over those that the output reads.
    """
    values = site.weights if values is None else values
    _demand_inputs(trace, site, name)
    if site.reads is None:
        return values
    return torch.einsum("bo,bhoi->bhi", site.reads.to(values.dtype), values)[:, :, None]


def mask_of_outputs(trace: Trace, site: Site, name: str) -> Bool[Tensor, "batch *row inp"]:
    """Return where outputs may attend, through the rows that they read."""
    _demand_inputs(trace, site, name)
    if site.reads is None or site.mask.ndim == 2:
        return site.mask
    return (site.mask & (site.reads > 0)[..., None]).any(1)


def _demand_inputs(trace: Trace, site: Site, name: str) -> None:
    """Refuse a site whose columns are not the inputs, or whose rows cannot be outputs."""
    out, inp = site.weights.shape[2:]
    if inp != trace.batch.inputs.shape[1]:
        raise MissingCapability(
            f"Attention at {name!r} is over {inp} positions that are not the "
            f"{trace.batch.inputs.shape[1]} inputs: it is not a score of inputs."
        )
    if site.reads is None and out != trace.batch.targets.shape[1]:
        raise MissingCapability(
            f"Attention at {name!r} has {out} rows and the model writes "
            f"{trace.batch.targets.shape[1]} outputs: take a site of the outputs, such as 'cross'."
        )
