"""Value-weighted attention: the size of what each input adds to the stream [1]_.

‖Σ_h α_{h,t,l} v_{h,l} W_h‖, where W_h is the part of the following linear map that reads head h. A
weight on a value that is almost nothing counts for almost nothing. Without such a map, heads are
joined and the norm of α v is taken.

.. [1] G. Kobayashi, T. Kuribayashi, S. Yokoi, K. Inui. "Attention is Not Only a Weight: Analyzing
   Transformers with Vector Norms." EMNLP 2020.
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.models.trace import AttentionModel, Site, Trace
from attnscope.scores.attention import mask_of_outputs, of_outputs, site_of
from attnscope.scores.score import ScoreRule


class ValueNorm(ScoreRule):
    """The norm of each input's part of the context, after the map that follows."""

    kind: Literal["value_norm"] = "value_norm"
    site: str = "cross"

    @property
    def name(self) -> str:
        """``value_norm``."""
        return "value_norm"

    def mask(self, trace: Trace) -> Bool[Tensor, "batch *row inp"]:
        """Return the positions that may be attended."""
        return mask_of_outputs(trace, site_of(trace, self.site), self.site)

    def values(self, model: AttentionModel, trace: Trace) -> Float[Tensor, "batch out inp"]:
        """Return the norms."""
        site = site_of(trace, self.site)
        return of_outputs(trace, site, self.site, part_norms(site)[:, None])[:, 0]


def part_norms(site: Site) -> Float[Tensor, "batch out inp"]:
    """Return ‖Σ_h α_{h,t,l} v_{h,l} W_h‖ of every pair of positions."""
    values, weights = site.values, site.weights.to(site.values.dtype)
    if site.output_map is None:
        sizes = values.square().sum(-1)
        return (weights.square() * sizes[:, :, None]).sum(1).sqrt()
    matrix = site.output_map.to(values).unflatten(1, (values.shape[1], -1))
    mapped = torch.einsum("bhlv,shv->bhls", values, matrix)
    # Products of heads at each input, so that memory does not grow with out · inp · width.
    products = torch.einsum("bhls,bgls->blhg", mapped, mapped)
    return torch.einsum("bhtl,bgtl,blhg->btl", weights, weights, products).clamp(min=0).sqrt()
