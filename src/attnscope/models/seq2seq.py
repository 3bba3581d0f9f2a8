"""The sequence-to-sequence model: LSTM, bilinear attention, one hidden layer (snell §2.1).

Equations 1, 2 and, for K heads, 20 and 21. As in the authors' code and unlike the text, the
context passes a linear map (shown by the parameter counts). By default it is the copying model,
whose hidden layer's activation is tanh; `TRANSLATOR` has the sizes of the paper's translator. GRU
cells, averaged heads and separate embeddings are the code's variants for §5.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from attnscope.data.batch import Batch
from attnscope.data.randomness import seed_of, seeded
from attnscope.data.source import Source
from attnscope.errors import UsageError
from attnscope.models.base import ModelSpec
from attnscope.models.dropout import Randomness
from attnscope.models.heads import HEADS, Heads
from attnscope.models.intervention import LEARNED, AttentionRule
from attnscope.models.readout import READOUTS
from attnscope.models.recurrence import Cell, Recurrence, State, reordered
from attnscope.models.trace import Trace, attend


class Seq2SeqSpec(ModelSpec):
    """Settings of the model.

    ``base_seed`` and ``head_seeds`` fix the initialisation apart from the unit's seed, which then
    decides the data alone; ``head_seeds`` also sets the number of heads.
    """

    vectorised: ClassVar[bool] = True
    recurrent: ClassVar[bool] = True
    varying: ClassVar[tuple[str, ...]] = ("base_seed", "head_seeds")
    kind: Literal["seq2seq"] = "seq2seq"
    embedding: int = Field(256, ge=1)
    hidden: int = Field(256, ge=1, description="width of a state, per direction")
    cell: Cell = "lstm"
    layers: int = Field(1, ge=1, description="of the encoder, and of the decoder")
    directions: Literal[1, 2] = Field(1, description="of the encoder")
    dropout: float = Field(0.0, ge=0, lt=1, description="between layers, in training")
    heads: int = Field(1, ge=1)
    join: Literal["summed", "averaged"] = "summed"
    readout: Literal["tanh", "relu", "linear"] = "tanh"
    embeddings: Literal["shared", "separate"] = "shared"
    base_seed: int | None = None
    head_seeds: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _dropout_has_a_place(self) -> Seq2SeqSpec:
        if self.dropout and self.layers == 1:
            raise ValueError("dropout acts between layers and there is one; set layers=2 or more")
        return self

    def build(self, source: Source, seed: int) -> Seq2Seq:
        """Return the model, initialised from the given seeds or else from the unit's."""
        if self.embeddings == "shared" and source.input_words != source.output_words:
            raise UsageError(
                f"Input and output vocabularies of {source.dataset} differ; set "
                "embeddings=separate."
            )
        base = seed if self.base_seed is None else self.base_seed
        heads = self.head_seeds or tuple(seed_of(seed, head) for head in range(self.heads))
        with seeded("model", base):
            joined = HEADS[self.join](self.hidden, self.directions * self.hidden, heads)
            return Seq2Seq(self, len(source.input_words), len(source.output_words), joined)


# Snell §2.1 and A.8 with details of the authors' code: 6,132,544 parameters without embeddings.
TRANSLATOR = Seq2SeqSpec(layers=2, directions=2, dropout=0.5, readout="relu")


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
        self.encoder = Recurrence(
            spec.cell, spec.embedding, spec.hidden, spec.directions, spec.layers, spec.dropout
        )
        self.decoder = Recurrence(
            spec.cell, spec.embedding, spec.hidden, 1, spec.layers, spec.dropout
        )
        self.attention = heads
        self.hidden = READOUTS[spec.readout](spec.hidden)
        self.output = nn.Linear(spec.hidden, output_types)

    def trace(
        self,
        batch: Batch,
        attention: Mapping[str, AttentionRule] | None = None,
        generator: Randomness | None = None,
    ) -> Trace:
        """Run the model, teacher-forced; its one site is ``cross``."""
        embeddings = self.source_embedding(batch.inputs)
        states, last = self.encoder(embeddings, batch.input_lengths, None, generator)
        decoded, _ = self.decoder(
            self.target_embedding(batch.decoder_inputs),
            batch.target_lengths,
            self.encoder.mean_over_directions(last),
            generator,
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
        """Return N([c, s]): the map of the context with the decoder's state, then linear."""
        return self.output(self.hidden(query, self.attention.merge(context)))

    def stepper(self, attention: Mapping[str, AttentionRule]) -> Stepwise:
        """Return what writes an output word by word; see `attnscope.models.decoding`."""
        return Stepwise(self, attention.get("cross"))


@dataclass(frozen=True)
class Writing:
    """Where outputs in the writing stand: what is attended to, and the decoder's state.

    ``logits`` are those of the words written so far, kept only for an intervention: its weights
    may depend on the output position.
    """

    ids: Int[Tensor, " row"]
    mask: Bool[Tensor, "row inp"]
    keys: Float[Tensor, "row inp state"]
    values: Float[Tensor, "row heads inp value"]
    state: State
    logits: Float[Tensor, "row heads out inp"] | None = None


class Stepwise:
    """The model one output word at a time, without reading the words before it again."""

    def __init__(self, model: Seq2Seq, rule: AttentionRule | None) -> None:
        self.model, self.rule = model, rule

    def begin(self, batch: Batch) -> Writing:
        """Read the inputs."""
        encoder = self.model.encoder
        keys, last = encoder(self.model.source_embedding(batch.inputs), batch.input_lengths)
        values = self.model.attention.values(keys)
        state = encoder.mean_over_directions(last)
        return Writing(batch.ids, batch.input_mask, keys, values, state)

    def step(
        self, words: Int[Tensor, " row"], writing: Writing
    ) -> tuple[Float[Tensor, "row output_type"], Writing]:
        """Read one more word of every output and return the logits of the next one."""
        model = self.model
        embedded = model.target_embedding(words[:, None])
        decoded, state = model.decoder(
            embedded, torch.ones(len(words), dtype=torch.long), writing.state
        )
        logits = model.attention.queries(decoded) @ writing.keys[:, None].transpose(-1, -2)
        writing = replace(writing, state=state)
        if self.rule is None:
            weights = LEARNED(logits, writing.mask, writing.ids)
        else:
            if writing.logits is not None:
                logits = torch.cat([writing.logits, logits], 2)
            weights = self.rule(logits, writing.mask, writing.ids)[:, :, -1:]
            writing = replace(writing, logits=logits)
        context = (weights @ writing.values).transpose(1, 2)
        return model.readout(context, decoded)[:, 0], writing

    def reorder(self, writing: Writing, rows: Int[Tensor, " row2"]) -> Writing:
        """Return some of the outputs, in another order or repeated."""
        parts = {
            name: getattr(writing, name).index_select(0, rows)
            for name in ("ids", "mask", "keys", "values", "logits")
            if getattr(writing, name) is not None
        }
        return replace(writing, state=reordered(writing.state, rows), **parts)
