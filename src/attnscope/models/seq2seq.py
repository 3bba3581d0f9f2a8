"""The copying sequence-to-sequence model: LSTM, bilinear attention, one hidden layer (snell §2.1).

Equations 1, 2 and, for K heads, 20 and 21. As in the authors' code and unlike the text, the
context passes a linear map and the hidden layer's activation is tanh (both shown by the parameter
count). GRU cells, averaged heads and separate embeddings are the code's variants for §5.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from attnscope.data.batch import Batch
from attnscope.data.randomness import seed_of, seeded
from attnscope.data.source import Source
from attnscope.errors import UsageError
from attnscope.models.base import ModelSpec
from attnscope.models.heads import HEADS, Heads
from attnscope.models.intervention import AttentionRule
from attnscope.models.recurrence import Cell, Recurrence
from attnscope.models.trace import Trace, attend


class Seq2SeqSpec(ModelSpec):
    """Settings of the copying model.

    ``base_seed`` and ``head_seeds`` fix the initialisation apart from the unit's seed, which then
    decides the data alone; ``head_seeds`` also sets the number of heads.
    """

    kind: Literal["seq2seq"] = "seq2seq"
    embedding: int = Field(256, ge=1)
    hidden: int = Field(256, ge=1)
    cell: Cell = "lstm"
    heads: int = Field(1, ge=1)
    join: Literal["summed", "averaged"] = "summed"
    embeddings: Literal["shared", "separate"] = "shared"
    base_seed: int | None = None
    head_seeds: tuple[int, ...] = ()

    def build(self, source: Source, seed: int) -> Seq2Seq:
        """Return the model, initialised from the given seeds or else from the unit's."""
        if self.embeddings == "shared" and source.input_words != source.output_words:
            raise UsageError(
                f"{source.dataset} has other output than input words: set embeddings=separate."
            )
        base = seed if self.base_seed is None else self.base_seed
        heads = self.head_seeds or tuple(seed_of(seed, head) for head in range(self.heads))
        with seeded("model", base):
            joined = HEADS[self.join](self.hidden, self.hidden, heads)
            return Seq2Seq(self, len(source.input_words), len(source.output_words), joined)


class Seq2Seq(nn.Module):
    """Encoder, decoder, heads, and the readout N of Eq. 2."""

    def __init__(
        self, spec: Seq2SeqSpec, input_types: int, output_types: int, heads: Heads
    ) -> None:
        super().__init__()
        self.source_embedding = nn.Embedding(input_types, spec.embedding)
        self.target_embedding = (
            self.source_embedding
            if spec.embeddings == "shared"
            else nn.Embedding(output_types, spec.embedding)
        )
        self.encoder = Recurrence(spec.cell, spec.embedding, spec.hidden)
        self.decoder = Recurrence(spec.cell, spec.embedding, spec.hidden)
        self.attention = heads
        self.hidden = nn.Linear(2 * spec.hidden, spec.hidden)
        self.output = nn.Linear(spec.hidden, output_types)

    def trace(
        self,
        batch: Batch,
        attention: Mapping[str, AttentionRule] | None = None,
        generator: torch.Generator | None = None,
    ) -> Trace:
        """Run the model, teacher-forced; its one site is ``cross``."""
        embeddings = self.source_embedding(batch.inputs)
        states, last = self.encoder(embeddings, batch.input_lengths)
        decoded, _ = self.decoder(
            self.target_embedding(batch.decoder_inputs), batch.target_lengths, last
        )
        queries = self.attention.queries(decoded)
        keys = states[:, None].expand(-1, queries.shape[1], -1, -1)
        site = attend(
            batch,
            queries @ keys.transpose(-1, -2),
            self.attention.values(states),
            (attention or {}).get("cross"),
            queries=queries,
            keys=keys,
        )
        logits = self.readout(site.context, decoded)
        return Trace(batch, embeddings, states, decoded, decoded, logits, {"cross": site})

    def readout(
        self, context: Float[Tensor, "*any heads value"], query: Float[Tensor, "*any query"]
    ) -> Float[Tensor, "*any output_type"]:
        """Return N([c, s]): the map of the context beside the decoder's state, tanh, linear."""
        joined = torch.cat([query, self.attention.merge(context)], -1)
        return self.output(torch.tanh(self.hidden(joined)))
