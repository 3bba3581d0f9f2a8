"""The bag-of-words proxy: uniform attention over word embeddings, one linear map (snell Eq. 5).

Seen as a model it has one site whose logits are all 0; its probe is Eq. 6. Embeddings and weights
are drawn from N(0, I/d) as in §4.1. The authors' code adds a bias that is left out of the probe;
the text has none, and neither has this model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from attnscope.data.batch import Batch
from attnscope.data.randomness import seeded
from attnscope.data.source import Source
from attnscope.models.base import ModelSpec
from attnscope.models.intervention import AttentionRule
from attnscope.models.trace import Trace, attend


class ProxySpec(ModelSpec):
    """Settings of the proxy."""

    kind: Literal["proxy"] = "proxy"
    embedding: int = Field(256, ge=1)

    def build(self, source: Source, seed: int) -> Proxy:
        """Return the model, initialised from the unit's seed."""
        with seeded("model", seed):
            return Proxy(self.embedding, len(source.input_words), len(source.output_words))


class Proxy(nn.Module):
    """p_t = softmax(mean_l W e_{x_l}), the same at every output position."""

    def __init__(self, embedding: int, input_types: int, output_types: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(input_types, embedding)
        self.output = nn.Linear(embedding, output_types, bias=False)
        for weight in (self.embedding.weight, self.output.weight):
            nn.init.normal_(weight, std=embedding**-0.5)

    def trace(
        self,
        batch: Batch,
        attention: Mapping[str, AttentionRule] | None = None,
        generator: torch.Generator | None = None,
    ) -> Trace:
        """Run the model; without an intervention its attention is uniform."""
        embeddings = self.embedding(batch.inputs)
        flat = embeddings.new_zeros(len(batch), 1, batch.targets.shape[1], batch.inputs.shape[1])
        site = attend(batch, flat, embeddings[:, None], (attention or {}).get("cross"))
        query = embeddings.new_zeros(*batch.targets.shape, 0)
        logits = self.readout(site.context, query)
        return Trace(batch, embeddings, embeddings, None, query, logits, {"cross": site})

    def readout(
        self, context: Float[Tensor, "*any heads value"], query: Float[Tensor, "*any query"]
    ) -> Float[Tensor, "*any output_type"]:
        """Return W c."""
        return self.output(context.squeeze(-2))

    def lexicon(self) -> Float[Tensor, "input_type output_type"]:
        """Return θ_{i,o} = softmax(W e_i)_o (Eq. 13)."""
        return self.output(self.embedding.weight).softmax(-1)
