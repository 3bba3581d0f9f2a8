"""Attention weights α as a score (snell Eq. 1, 7)."""

from __future__ import annotations

from typing import Literal

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

    def mask(self, trace: Trace) -> Bool[Tensor, "batch inp"]:
        """Return the positions that may be attended."""
        return site_of(trace, self.site).mask

    def values(self, model: AttentionModel, trace: Trace) -> Float[Tensor, "batch out inp"]:
        """Return the weights, heads reduced."""
        weights = site_of(trace, self.site).weights
        if self.heads == "mean":
            return weights.mean(1)
        if self.heads == "max":
            return weights.amax(1)
        if not -weights.shape[1] <= self.heads < weights.shape[1]:
            raise UsageError(f"heads={self.heads}: the site has {weights.shape[1]} heads.")
        return weights[:, self.heads]


def site_of(trace: Trace, name: str) -> Site:
    """Return a site, or say that the model has none of that name."""
    if name not in trace.sites:
        raise MissingCapability(f"The model has no site {name!r}; {suggestion(name, trace.sites)}")
    return trace.sites[name]
