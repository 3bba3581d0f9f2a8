"""The bag-of-words proxy: uniform attention over word embeddings, one linear map (snell Eq. 5, 58).

Seen as a model it has one site whose logits are all 0; its probe is Eq. 6. The text and the
authors' code differ in the initialisation and in a bias; `ProxySpec` has both. The lexicon has no
bias in either, as in the code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from attnscope.data.batch import Batch
from attnscope.data.randomness import seeded
from attnscope.data.source import Source
from attnscope.models.base import ModelSpec
from attnscope.models.dropout import Randomness
from attnscope.models.intervention import AttentionRule
from attnscope.models.trace import Trace, attend

# Probabilities turned out of logits at once.
_CHUNK = 2**22


class ProxySpec(ModelSpec):
    """Settings of the proxy.

    ``initialisation`` is ``theory`` (§4.1: everything from N(0, I/d), no bias) or ``code`` (the
    authors' training script: embeddings from N(0, 1), PyTorch's default map with a bias, and for
    two labels one logit).
    """

    kind: Literal["proxy"] = "proxy"
    embedding: int = Field(256, ge=1)
    initialisation: Literal["theory", "code"] = "theory"

    def build(self, source: Source, seed: int) -> Proxy:
        """Return the model, initialised from the unit's seed."""
        with seeded("model", seed):
            parts = _theory if self.initialisation == "theory" else _code
            return Proxy(*parts(len(source.input_words), self.embedding, len(source.output_words)))


class OutputMap(nn.Linear):
    """W e + b, one logit per output type."""

    def forward(self, states: Float[Tensor, "*any embedding"]) -> Float[Tensor, "*any output_type"]:
        """Return W e + b."""
        return self.spread(super().forward(states))

    def without_bias(
        self, states: Float[Tensor, "*any embedding"]
    ) -> Float[Tensor, "*any output_type"]:
        """Return W e."""
        return self.spread(functional.linear(states, self.weight))

    def spread(self, logits: Float[Tensor, "*any row"]) -> Float[Tensor, "*any output_type"]:
        """Return the logits of all types."""
        return logits


class BinaryMap(OutputMap):
    """One logit z for two labels, standing as the pair (0, z) as in the classifier."""

    def spread(self, logits: Float[Tensor, "*any row"]) -> Float[Tensor, "*any output_type"]:
        """Return (0, z)."""
        return functional.pad(logits, (1, 0))


def _theory(input_types: int, width: int, output_types: int) -> tuple[nn.Embedding, OutputMap]:
    parts = nn.Embedding(input_types, width), OutputMap(width, output_types, bias=False)
    for part in parts:
        nn.init.normal_(part.weight, std=width**-0.5)
    return parts


def _code(input_types: int, width: int, output_types: int) -> tuple[nn.Embedding, OutputMap]:
    embedding = nn.Embedding(input_types, width)
    output = BinaryMap(width, 1) if output_types == 2 else OutputMap(width, output_types)
    return embedding, output


class Proxy(nn.Module):
    """p_t = softmax(mean_l W e_{x_l}), the same at every output position."""

    def __init__(self, embedding: nn.Embedding, output: OutputMap) -> None:
        super().__init__()
        self.embedding = embedding
        self.output = output

    def trace(
        self,
        batch: Batch,
        attention: Mapping[str, AttentionRule] | None = None,
        generator: Randomness | None = None,
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
        """Return W c, with the bias if there is one."""
        return self.output(context.squeeze(-2))

    @torch.no_grad()
    def lexicon(self) -> Float[Tensor, "input_type output_type"]:
        """Return θ_{i,o} = softmax(W e_i)_o (Eq. 13), apart from the graph."""
        table = self.output.without_bias(self.embedding.weight)
        # In place and in parts: nothing else of the table's size is ever held.
        for rows in table.split(max(1, _CHUNK // table.shape[1])):
            rows.copy_(rows.softmax(-1))
        return table

    @torch.no_grad()
    def log_odds(self) -> Float[Tensor, "input_type output_type"]:
        """Return log(θ / (1 − θ)): in the order of θ, also where θ itself rounds to 1."""
        table = self.output.without_bias(self.embedding.weight)
        for rows in table.split(max(1, _CHUNK // table.shape[1])):
            top = rows.argmax(-1, keepdim=True)
            highest = rows.gather(-1, top)
            rest = rows.scatter(-1, top, -torch.inf).logsumexp(-1, keepdim=True)
            logs = rows - torch.logaddexp(highest, rest)
            odds = logs - torch.log1p(-logs.exp())
            # Only the highest θ can be near 1, where 1 − θ has no digits left.
            rows.copy_(odds.scatter(-1, top, highest - rest))
        return table
