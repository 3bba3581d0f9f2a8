"""The text classifier: LSTM, one-hidden-layer attention, one logit (snell §2.4, Eq. 7, 8).

The positive class's logit z stands as the pair (0, z), so that softmax is Eq. 8's sigmoid and
classification needs no case of its own anywhere else. All linear layers have biases, as the
published parameter counts demand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from jaxtyping import Float
from pydantic import Field, SerializeAsAny
from torch import Tensor, nn

from attnscope.data.batch import Batch
from attnscope.data.randomness import seeded
from attnscope.data.source import Source
from attnscope.errors import UsageError
from attnscope.models.base import ModelSpec
from attnscope.models.embedding import Embeddings, RandomEmbeddings
from attnscope.models.intervention import AttentionRule
from attnscope.models.recurrence import Cell, Recurrence
from attnscope.models.trace import Trace, attend


class ClassifierSpec(ModelSpec):
    """Settings of the classifier; sizes are the paper's.

    ``vectors`` says how the word embeddings start, ``embedding`` how wide they are.
    """

    kind: Literal["classifier"] = "classifier"
    embedding: int = Field(300, ge=1)
    hidden: int = Field(256, ge=1)
    cell: Cell = "lstm"
    directions: Literal[1, 2] = 2
    attention_hidden: int = Field(256, ge=1)
    vectors: SerializeAsAny[Embeddings] = RandomEmbeddings()

    def build(self, source: Source, seed: int) -> Classifier:
        """Return the model, initialised from the unit's seed."""
        if len(source.output_words) != 2:
            raise UsageError(f"{source.dataset} has not two labels: this classifier is binary.")
        with seeded("model", seed):
            return Classifier(self, self.vectors.table(source.input_words, self.embedding))


class Classifier(nn.Module):
    """Encoder, attention over its states, and one logit from the context."""

    def __init__(self, spec: ClassifierSpec, embedding: nn.Embedding) -> None:
        super().__init__()
        self.embedding = embedding
        self.encoder = Recurrence(spec.cell, spec.embedding, spec.hidden, spec.directions)
        self.attention = nn.Sequential(
            nn.Linear(self.encoder.width, spec.attention_hidden),
            nn.ReLU(),
            nn.Linear(spec.attention_hidden, 1),
        )
        self.output = nn.Linear(self.encoder.width, 1)

    def trace(
        self,
        batch: Batch,
        attention: Mapping[str, AttentionRule] | None = None,
        generator: torch.Generator | None = None,
    ) -> Trace:
        """Run the model; its one site is ``cross``, with one output position."""
        embeddings = self.embedding(batch.inputs)
        states, _ = self.encoder(embeddings, batch.input_lengths)
        scores = self.attention(states)[:, None].transpose(-1, -2)  # batch, 1, 1, inp
        site = attend(batch, scores, states[:, None], (attention or {}).get("cross"))
        query = states.new_zeros(len(batch), 1, 0)
        logits = self.readout(site.context, query)
        return Trace(batch, embeddings, states, None, query, logits, {"cross": site})

    def readout(
        self, context: Float[Tensor, "*any heads value"], query: Float[Tensor, "*any query"]
    ) -> Float[Tensor, "*any output_type"]:
        """Return (0, W·c + b) for the one head's context."""
        return nn.functional.pad(self.output(context.squeeze(-2)), (1, 0))
