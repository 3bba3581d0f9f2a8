"""Attention rollout: attention followed through all layers [1]_.

Every self-attention over the inputs, averaged over heads, is mixed half and half with the identity
(the residual stream) and multiplied with those below it; a translator's last attention to its
inputs comes last.

.. [1] S. Abnar, W. Zuidema. "Quantifying Attention Flow in Transformers." ACL 2020.
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.errors import MissingCapability
from attnscope.models.trace import AttentionModel, Site, Trace
from attnscope.scores.attention import mask_of_outputs, of_outputs
from attnscope.scores.score import ScoreRule


class Rollout(ScoreRule):
    """The product of all layers' attention with their residual streams."""

    kind: Literal["rollout"] = "rollout"

    @property
    def name(self) -> str:
        """``rollout``."""
        return "rollout"

    def mask(self, trace: Trace) -> Bool[Tensor, "batch *row inp"]:
        """Return the positions that may be attended at the last layer."""
        name = self._last(trace)
        return mask_of_outputs(trace, trace.sites[name], name)

    def values(self, model: AttentionModel, trace: Trace) -> Float[Tensor, "batch out inp"]:
        """Return the rows of the product that the output reads."""
        name = self._last(trace)
        site, flow = trace.sites[name], self._flow(trace)
        if name not in _over_inputs(trace):
            return of_outputs(trace, site, name, (site.weights.mean(1) @ flow)[:, None])[:, 0]
        return of_outputs(trace, site, name, flow[:, None])[:, 0]

    @staticmethod
    def _last(trace: Trace) -> str:
        if "cross" in trace.sites:
            return "cross"
        layers = _over_inputs(trace)
        if not layers:
            raise MissingCapability("Rollout needs self-attention over the inputs, or 'cross'.")
        return list(layers)[-1]

    @staticmethod
    def _flow(trace: Trace) -> Float[Tensor, "batch inp inp"]:
        size = trace.batch.inputs.shape[1]
        identity = torch.eye(size, device=trace.logits.device, dtype=trace.logits.dtype)
        flow = identity.expand(len(trace.batch), size, size)
        for site in _over_inputs(trace).values():
            mixed = site.weights.mean(1).to(flow.dtype) + identity
            flow = (mixed / mixed.sum(-1, keepdim=True)) @ flow
        return flow


def _over_inputs(trace: Trace) -> dict[str, Site]:
    """Return the self-attentions over the inputs, in their order."""
    size = trace.batch.inputs.shape[1]
    found = {}
    for name, site in trace.sites.items():
        square = site.weights.shape[2:] == (size, size)
        if square and not name.startswith("cross") and not _decodes(trace, name):
            found[name] = site
    return found


def _decodes(trace: Trace, name: str) -> bool:
    """Tell whether a site attends over outputs, next to an encoder's over inputs."""
    return name.startswith("decoder") and any(each.startswith("encoder") for each in trace.sites)
