"""The text classifier: words, an encoder, attention over its states, an affine output.

snell's (§2.4, Eq. 7, 8, 12), sunlu's (Eq. 1–4, 6: DP, DP-A, DP-L, AD) and tutek's (Eq. 1: base,
concat, residual) are settings of this one. With two labels the positive class's logit z becomes
the pair (0, z), so that softmax is the sigmoid and classification needs no case of its own anywhere
else; with more, each label has a logit. As the output is affine and attention sums to 1, the logits
are the attention-weighted mean of those of single states (tutek Eq. 9).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from jaxtyping import Float
from pydantic import Field, SerializeAsAny
from torch import Tensor, nn

from attnscope.data.batch import Batch
from attnscope.data.randomness import seeded
from attnscope.data.source import Source
from attnscope.errors import UsageError
from attnscope.models.attentions import Additive, AttentionSpec
from attnscope.models.base import ModelSpec
from attnscope.models.dropout import Randomness, dropped
from attnscope.models.embedding import Embeddings, RandomEmbeddings
from attnscope.models.encoders import Choice, EncoderSpec, Recurrent
from attnscope.models.intervention import AttentionRule
from attnscope.models.trace import Trace
from attnscope.runs.spec import Settings


class Output(Settings):
    """The output layer; PyTorch draws its weights within ±1/√width unless ``spread`` says else.

    sunlu has no bias, and in the synthetic experiments a spread of 1.
    """

    bias: Choice = "on"
    spread: float | None = Field(None, gt=0, description="weights start uniform within ± this")

    def build(self, width: int, rows: int) -> nn.Linear:
        """Return the layer."""
        layer = nn.Linear(width, rows, self.bias == "on")
        if self.spread is not None:
            nn.init.uniform_(layer.weight, -self.spread, self.spread)
        return layer


class ClassifierSpec(ModelSpec):
    """Settings of the classifier; the defaults are snell's.

    ``vectors`` says how the word embeddings start, ``embedding`` how wide they are. ``dropout``
    acts on the embeddings and on the context, in training (sunlu).
    """

    varying: ClassVar[tuple[str, ...]] = ("attention.scale",)  # λ, a buffer of every attention
    kind: Literal["classifier"] = "classifier"
    embedding: int = Field(300, ge=1)
    vectors: SerializeAsAny[Embeddings] = RandomEmbeddings()
    encoder: SerializeAsAny[EncoderSpec] = Recurrent()
    attention: SerializeAsAny[AttentionSpec] = Additive()
    output: Output = Output()
    dropout: float = Field(0.0, ge=0, lt=1, description="of embeddings and context, in training")

    @property
    def vectorised(self) -> bool:
        """Whether its encoder may run under vmap."""
        return self.encoder.vectorised

    @property
    def recurrent(self) -> bool:
        """Whether its encoder has a `Recurrence`."""
        return self.encoder.recurrent

    def build(self, source: Source, seed: int) -> Classifier:
        """Return the model, initialised from the unit's seed."""
        if source.boundaries is not None:
            raise UsageError(f"{source.dataset} has no labels; use a translation model.")
        with seeded("model", seed):
            table = self.vectors.table(source.input_words, self.embedding)
            return Classifier(self, table, len(source.output_words))


@dataclass(frozen=True)
class Directions:
    """V and W: along what attention rises, and along what each output row does.

    Both as directions of the embeddings where the states are a linear map of them (sunlu's V', W').
    """

    attention: Float[Tensor, " direction"]
    output: Float[Tensor, "row direction"]


class Classifier(nn.Module):
    """Encoder, attention over its states, and the logits from the context.

    Parameters
    ----------
    embedding
        The table of words.
    labels
        How many there are.
    """

    def __init__(self, spec: ClassifierSpec, embedding: nn.Embedding, labels: int) -> None:
        super().__init__()
        rows = 1 if labels == 2 else labels
        self.fixed, self.dropout = labels - rows, spec.dropout
        self.embedding = embedding
        self.encoder = spec.encoder.build(embedding.embedding_dim)
        self.attention = spec.attention.build(self.encoder.width)
        self.output = spec.output.build(self.encoder.width, rows)

    def trace(
        self,
        batch: Batch,
        attention: Mapping[str, AttentionRule] | None = None,
        generator: Randomness | None = None,
    ) -> Trace:
        """Run the model; its one site is ``cross``, with one output position."""
        embeddings, states = self.encode(batch, generator)
        site = self.attention(batch, states, (attention or {}).get("cross"))
        query = states.new_zeros(len(batch), 1, 0)
        logits = self.readout(dropped(site.context, self.dropout, generator), query)
        return Trace(batch, embeddings, states, None, query, logits, {"cross": site})

    def encode(
        self, batch: Batch, generator: Randomness | None = None
    ) -> tuple[Float[Tensor, "batch inp embedding"], Float[Tensor, "batch inp state"]]:
        """Return the words' embeddings, before dropout, and the encoder's states."""
        embeddings = self.embedding(batch.inputs)
        words = dropped(embeddings, self.dropout, generator)
        return embeddings, self.encoder.read(words, batch.input_lengths, generator)

    def readout(
        self, context: Float[Tensor, "*any heads value"], query: Float[Tensor, "*any query"]
    ) -> Float[Tensor, "*any output_type"]:
        """Return W c + b for the one head's context, with two labels as (0, z)."""
        return nn.functional.pad(self.output(context.squeeze(-2)), (self.fixed, 0))

    def directions(self) -> Directions:
        """Return V and W; attention that is not a product with a vector V is an error."""
        both = self.attention.direction, self.output.weight
        return Directions(*map(self.encoder.pulled_back, both))
