"""A small Transformer encoder-decoder whose every attention is a site.

Layers are pre-norm (x + F(LN(x)), and one more norm at the end of each stack), which trains without
a warm-up of the learning rate. Attention is written in plain operations, since a fused one shows
nothing. Sites are ``encoder.1.self`` …, ``decoder.1.self`` …, ``cross.1`` … and, in the last layer
of the decoder, ``cross``, whose readout is the rest of the network: what residual connections carry
past it stands in the query.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, cast

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from attnscope.data.batch import Batch
from attnscope.data.randomness import seeded
from attnscope.data.source import Source
from attnscope.errors import UsageError
from attnscope.models.base import ModelSpec
from attnscope.models.dropout import Randomness, dropped
from attnscope.models.intervention import AttentionRule
from attnscope.models.positions import sinusoids
from attnscope.models.trace import Site, Trace, attend

Stream = Float[Tensor, "batch time width"]
Read = Float[Tensor, "batch inp width"]
Drop = Callable[[Tensor], Tensor]


class TransformerSpec(ModelSpec):
    """Settings of the model; ``width`` is that of the residual stream, heads share it equally."""

    kind: Literal["transformer"] = "transformer"
    width: int = Field(64, ge=1)
    heads: int = Field(4, ge=1)
    layers: int = Field(2, ge=1, description="of the encoder, and of the decoder")
    feed_forward: int = Field(256, ge=1, description="width of the hidden layers")
    period: float = Field(10_000.0, gt=0, description="of the slowest sine of a position")
    dropout: float = Field(
        0.0, ge=0, lt=1, description="of embeddings and of what is added to the stream, in training"
    )

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> TransformerSpec:
        if self.width % self.heads:
            raise ValueError(
                f"width={self.width} cannot be shared by heads={self.heads}; make it a multiple"
            )
        return self

    def build(self, source: Source, seed: int) -> Transformer:
        """Return the model, initialised from the unit's seed."""
        if source.boundaries is None:
            raise UsageError(f"{source.dataset} has labels: a Transformer here writes sequences.")
        with seeded("model", seed):
            return Transformer(self, len(source.input_words), len(source.output_words))


class Transformer(nn.Module):
    """Embeddings with sinusoidal positions, encoder, decoder, and a linear output."""

    def __init__(self, spec: TransformerSpec, input_types: int, output_types: int) -> None:
        super().__init__()
        self.period, self.dropout = spec.period, spec.dropout
        self.source_embedding = _embedding(input_types, spec.width)
        self.target_embedding = _embedding(output_types, spec.width)
        self.encoder = nn.ModuleList(_EncoderLayer(spec) for _ in range(spec.layers))
        self.encoder_norm = nn.LayerNorm(spec.width)
        self.decoder = nn.ModuleList(_DecoderLayer(spec) for _ in range(spec.layers))
        self.decoder_norm = nn.LayerNorm(spec.width)
        self.output = nn.Linear(spec.width, output_types)

    def trace(
        self,
        batch: Batch,
        attention: Mapping[str, AttentionRule] | None = None,
        generator: Randomness | None = None,
    ) -> Trace:
        """Run the model, teacher-forced.

        Encoder states are the encoder's normed output, which all of ``cross``'s keys and values are
        affine maps of; decoder states are likewise what its queries are affine maps of, the normed
        stream that enters it. The query is this stream before the norm. A learned attention of the
        decoder to itself never looks ahead, since its logits there are −∞; an intervention may, and
        then the output depends on words that are yet to be written.
        """
        run = _Run(batch, attention or {}, _dropping(self.dropout, generator))
        embeddings = self.source_embedding(batch.inputs)
        stream = self._placed(embeddings, run)
        for number, layer in enumerate(self.encoder, 1):
            stream = layer(stream, f"encoder.{number}.self", run)
        states = self.encoder_norm(stream)
        stream = self._placed(self.target_embedding(batch.decoder_inputs), run)
        *lower, last = self._decoder_layers
        for number, layer in enumerate(lower, 1):
            entering = layer.before_cross(stream, f"decoder.{number}.self", run)
            site = layer.cross.site(entering, states, f"cross.{number}", run)
            stream = layer.after_cross(site.context, entering, run.drop)
        query = last.before_cross(stream, f"decoder.{len(self.decoder)}.self", run)
        site = last.cross.site(query, states, "cross", run)
        logits = self._finished(site.context, query, run.drop)
        decoded = last.cross.norm(query)
        return Trace(batch, embeddings, states, decoded, query, logits, run.sites)

    def readout(
        self, context: Float[Tensor, "*any heads value"], query: Float[Tensor, "*any query"]
    ) -> Float[Tensor, "*any output_type"]:
        """Return the output for a context at ``cross``: the rest of the last layer, and a map.

        ``query`` is the residual stream that enters ``cross``.
        """
        return self._finished(context, query, _nothing_dropped)

    def _finished(self, context: Tensor, query: Tensor, drop: Drop) -> Tensor:
        stream = self._decoder_layers[-1].after_cross(context, query, drop)
        return self.output(self.decoder_norm(stream))

    @property
    def _decoder_layers(self) -> list[_DecoderLayer]:
        return cast("list[_DecoderLayer]", list(self.decoder))

    def _placed(self, embeddings: Stream, run: _Run) -> Stream:
        """Return words with their positions, both of about unit size in each entry."""
        width = embeddings.shape[-1]
        places = torch.arange(embeddings.shape[1], device=embeddings.device).to(embeddings)
        return run.drop(embeddings * math.sqrt(width) + sinusoids(places, width, self.period))


@dataclass
class _Run:
    """The inputs that all attention of one forward pass shares, and the sites found so far."""

    batch: Batch
    rules: Mapping[str, AttentionRule]
    drop: Drop
    sites: dict[str, Site] = field(default_factory=dict)


class _Attention(nn.Module):
    """Heads over a normed stream; logits are q·k, the 1/√d being part of the queries."""

    def __init__(self, spec: TransformerSpec) -> None:
        super().__init__()
        self.heads = spec.heads
        self.norm = nn.LayerNorm(spec.width)
        self.query = nn.Linear(spec.width, spec.width)
        self.key = nn.Linear(spec.width, spec.width)
        self.value = nn.Linear(spec.width, spec.width)
        self.merge = nn.Linear(spec.width, spec.width)

    def site(self, stream: Stream, states: Read, name: str, run: _Run) -> Site:
        """Attend from the stream to states of the encoder."""
        return self._attend(self.norm(stream), states, run.batch.input_mask, name, run)

    def self_site(
        self,
        stream: Stream,
        mask: Bool[Tensor, "batch time"],
        name: str,
        run: _Run,
        future: Bool[Tensor, "time time"] | None = None,
    ) -> Site:
        """Attend from the stream to itself, not to where ``future`` is True."""
        normed = self.norm(stream)
        return self._attend(normed, normed, mask, name, run, future)

    def added(self, context: Float[Tensor, "*any heads value"]) -> Float[Tensor, "*any width"]:
        """Return what the heads' contexts add to the stream."""
        return self.merge(context.flatten(-2))

    def _attend(
        self,
        asking: Float[Tensor, "batch out width"],
        asked: Read,
        mask: Bool[Tensor, "batch inp"],
        name: str,
        run: _Run,
        future: Bool[Tensor, "out inp"] | None = None,
    ) -> Site:
        queries, keys, values = (
            part(states).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part, states in ((self.query, asking), (self.key, asked), (self.value, asked))
        )
        queries = queries / math.sqrt(queries.shape[-1])
        logits = queries @ keys.mT
        if future is not None:
            logits = logits.masked_fill(future, -torch.inf)
        run.sites[name] = attend(
            run.batch, logits, values, run.rules.get(name), mask=mask, queries=queries, keys=keys
        )
        return run.sites[name]


class _FeedForward(nn.Module):
    """One hidden layer over a normed stream."""

    def __init__(self, spec: TransformerSpec) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(spec.width)
        self.hidden = nn.Linear(spec.width, spec.feed_forward)
        self.output = nn.Linear(spec.feed_forward, spec.width)

    def forward(self, stream: Float[Tensor, "*any width"]) -> Float[Tensor, "*any width"]:
        """Return what is added to the stream."""
        return self.output(torch.relu(self.hidden(self.norm(stream))))


class _EncoderLayer(nn.Module):
    """Self-attention and a feed-forward layer."""

    def __init__(self, spec: TransformerSpec) -> None:
        super().__init__()
        self.attention = _Attention(spec)
        self.feed_forward = _FeedForward(spec)

    def forward(self, stream: Stream, name: str, run: _Run) -> Stream:
        """Return the stream after the layer."""
        site = self.attention.self_site(stream, run.batch.input_mask, name, run)
        stream = stream + run.drop(self.attention.added(site.context))
        return stream + run.drop(self.feed_forward(stream))


class _DecoderLayer(nn.Module):
    """Causal self-attention, attention to the encoder, and a feed-forward layer."""

    def __init__(self, spec: TransformerSpec) -> None:
        super().__init__()
        self.attention = _Attention(spec)
        self.cross = _Attention(spec)
        self.feed_forward = _FeedForward(spec)

    def before_cross(self, stream: Stream, name: str, run: _Run) -> Stream:
        """Return the stream that enters the attention to the encoder."""
        future = _future(run.batch.decoder_inputs)
        site = self.attention.self_site(stream, run.batch.target_mask, name, run, future)
        return stream + run.drop(self.attention.added(site.context))

    def after_cross(
        self, context: Float[Tensor, "*any heads value"], stream: Tensor, drop: Drop
    ) -> Tensor:
        """Return the stream after the layer, from what was attended to."""
        stream = stream + drop(self.cross.added(context))
        return stream + drop(self.feed_forward(stream))


def _embedding(types: int, width: int) -> nn.Embedding:
    embedding = nn.Embedding(types, width)
    nn.init.normal_(embedding.weight, std=width**-0.5)
    return embedding


def _future(words: Int[Tensor, "batch out"]) -> Bool[Tensor, "out out"]:
    """Return True where the second position comes after the first."""
    size = words.shape[1]
    return torch.ones(size, size, dtype=torch.bool, device=words.device).triu(1)


def _nothing_dropped(values: Tensor) -> Tensor:
    return values


def _dropping(rate: float, generator: Randomness | None) -> Drop:
    """Return a function that drops entries, drawn from the generator on its own device."""
    if generator is None or rate == 0:
        return _nothing_dropped
    if not isinstance(generator, torch.Generator):
        return partial(dropped, rate=rate, randomness=generator)

    def drop(values: Tensor) -> Tensor:
        draws = torch.rand(values.shape, generator=generator, device=generator.device)
        return values * (draws >= rate).to(values.device) / (1 - rate)

    return drop
