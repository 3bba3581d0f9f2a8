"""Encoder-decoders with and without attention and recurrence: VED, AED and AO (aitken §2).

The forms are those of the authors' code. Inputs are one-hot vectors; the decoder starts from the
encoder's last state and first reads the average word; the context goes to the readout and not back
into the recurrence. Softmax is over input positions, so that c_s = Σ_t α_st v_t (the text's index
is a slip). Everything is plain tensor operations without control flow on data, so that
`torch.func` runs several models as one.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, SerializeAsAny
from torch import Tensor, nn
from torch.nn.functional import pad

from attnscope.data.batch import Batch
from attnscope.data.randomness import seeded
from attnscope.data.source import Source
from attnscope.errors import UsageError, suggestion
from attnscope.models.architectures import (
    AED,
    Architecture,
    FeedForwardReader,
    Readout,
    RecurrentReader,
    Start,
    States,
)
from attnscope.models.base import ModelSpec
from attnscope.models.cells import CELLS, CellName
from attnscope.models.dropout import Randomness
from attnscope.models.intervention import AttentionRule
from attnscope.models.one_hot import WORDS, OneHotInputs, WordsName
from attnscope.models.trace import Site, Trace, attend

Read = Float[Tensor, "batch inp hidden"]
Decoded = Float[Tensor, "batch out hidden"]


class EncoderDecoderSpec(ModelSpec):
    """Settings of the model; GRU and 128 units are those of the authors' recorded runs.

    ``input_dimension`` is the width of the one-hot vectors on both sides: the vocabularies are
    padded with words that never occur, which makes room for positions (the authors take 50 for
    one-to-one and 100 for eSCAN). None is the larger of the two vocabularies. The output layer has
    the output words alone.

    ``words`` says how a cell's product with one-hot vectors is taken: as a product, or by looking
    up rows, which gives the same numbers sooner where words are many; gradients then do not reach
    the trace's embeddings.
    """

    vectorised: ClassVar[bool] = True
    kind: Literal["encoder-decoder"] = "encoder-decoder"
    architecture: SerializeAsAny[Architecture] = AED()
    cell: CellName = "gru"
    hidden: int = Field(128, ge=1)
    input_dimension: int | None = Field(None, ge=1)
    words: WordsName = "products"
    teacher_forcing: Literal["on", "off"] = Field(
        "on", description="off: the decoder reads its own most probable words"
    )

    def build(self, source: Source, seed: int) -> EncoderDecoder:
        """Return the model, initialised from the unit's seed."""
        if source.boundaries is None:
            raise UsageError(f"{source.dataset} has labels: an encoder-decoder writes sequences.")
        needed = max(len(source.input_words), len(source.output_words))
        if self.input_dimension is not None and self.input_dimension < needed:
            raise UsageError(
                f"input_dimension={self.input_dimension} has no room for the words of "
                f"{source.dataset}: set it to {needed} or more."
            )
        with seeded("model", seed):
            return EncoderDecoder(
                self,
                self.input_dimension or needed,
                len(source.input_words),
                len(source.output_words),
                source.boundaries[0],
            )


class EncoderDecoder(nn.Module):
    """An encoder, a decoder, attention between them or none, and a readout.

    Parameters
    ----------
    width
        Of the one-hot vectors.
    input_types, types
        Numbers of input and of output words.
    first_word
        The output word that starts a sequence; it is read as the average word.
    """

    initial: nn.Parameter | None

    def __init__(
        self, spec: EncoderDecoderSpec, width: int, input_types: int, types: int, first_word: int
    ) -> None:
        super().__init__()
        architecture, cell = spec.architecture, CELLS[spec.cell]
        self.teacher_forcing: str = spec.teacher_forcing
        self.input_words = WORDS[spec.words](width, input_types)
        self.output_words = WORDS[spec.words](width, types, average=first_word)
        reader = RecurrentReader if architecture.recurrent else FeedForwardReader
        self.encoder = reader(cell(width, spec.hidden))
        self.decoder = reader(cell(width, spec.hidden))
        start = torch.zeros(self.encoder.cell.width)
        initial = nn.Parameter(start) if architecture.recurrent else None
        self.register_parameter("initial", initial)
        self.positions = architecture.positions(width)
        self.attention = architecture.cross(spec.hidden)
        self.output = Readout(architecture.reads, spec.hidden, types)

    def with_teacher_forcing(self, setting: str) -> EncoderDecoder:
        """Return the same model, parameters shared, with teacher forcing ``on`` or ``off``.

        A model trained on the right words is analysed on its own: all of the paper's analyses are.
        """
        if setting not in ("on", "off"):
            raise UsageError(
                f"teacher_forcing={setting!r} is not known; {suggestion(setting, ('on', 'off'))}"
            )
        other = copy.copy(self)
        other.teacher_forcing = setting
        return other

    def trace(
        self,
        batch: Batch,
        attention: Mapping[str, AttentionRule] | None = None,
        generator: Randomness | None = None,
    ) -> Trace:
        """Run the model; its one site is ``cross``, and VED has none.

        The trace's batch has the decoder inputs that were read: without teacher forcing, the
        model's own words after the first. Each is the most probable one, boundaries included, up to
        the batch's width and past an end word.
        """
        cell, rule = self.encoder.cell, (attention or {}).get("cross")
        places = self.positions(0, batch.inputs.shape[1])
        embeddings = self.input_words.embeddings(cell, batch.inputs, places)
        start, mask = self._start(batch, embeddings), batch.input_mask
        if embeddings.requires_grad:
            read, last = self.encoder(cell.drive(embeddings), start, mask)
        else:
            read, last = self.read(self.encoder, self.input_words, batch.inputs, 0, start, mask)
        states = cell.output(read)
        decode = _right_words if self.teacher_forcing == "on" else _own_words
        batch, decoded = decode(self, batch, states, last, rule)
        sites = self._sites(batch, states, decoded, rule)
        query = self.output.query(decoded)
        logits = self.readout(_context(sites, decoded), query)
        forced = self.teacher_forcing == "on"
        return Trace(batch, embeddings, states, decoded, query, logits, sites, forced)

    def read(
        self,
        reader: RecurrentReader | FeedForwardReader,
        words: OneHotInputs,
        ids: Int[Tensor, "batch time"],
        first: int,
        start: Start,
        mask: Bool[Tensor, "batch time"],
    ) -> tuple[States, Start]:
        """Return the states of words from a place on, and the last one."""
        places = self.positions(first, ids.shape[1])
        if reader.recurrent or words.types >= len(ids):
            return reader(words.drive(reader.cell, ids, places), start, mask)
        # Without recurrence every state starts from 0 and is its word's at its place: each is
        # computed once.
        every = words.every(ids)
        drive = words.drive(reader.cell, every, places)
        table, _ = reader(drive, start.new_zeros(len(every), start.shape[1]), every >= 0)
        return words.select(table, ids), start

    def readout(
        self, context: Float[Tensor, "*any heads value"], query: Float[Tensor, "*any query"]
    ) -> Float[Tensor, "*any output_type"]:
        """Return W [h^D ; c] (AED), W c (AO) or W h^D (VED, whatever the context)."""
        return self.output(context.squeeze(-2), query)

    def _start(self, batch: Batch, like: Tensor) -> Start:
        if self.initial is None:
            return like.new_zeros(len(batch), self.encoder.cell.width)
        return self.initial.expand(len(batch), -1)

    def _sites(
        self, batch: Batch, states: Read, decoded: Decoded, rule: AttentionRule | None
    ) -> dict[str, Site]:
        if self.attention is None:
            return {}
        queries = self.attention.queries(decoded)[:, None]
        keys = self.attention.keys(states)[:, None]
        values = self.attention.values(states)[:, None]
        logits = queries @ keys.transpose(-1, -2)
        return {"cross": attend(batch, logits, values, rule, queries=queries, keys=keys)}


def _context(sites: Mapping[str, Site], decoded: Decoded) -> Float[Tensor, "batch out heads value"]:
    if "cross" in sites:
        return sites["cross"].context
    return decoded.new_zeros(*decoded.shape[:2], 1, 0)


Fed = tuple[Batch, Decoded]


def _right_words(
    model: EncoderDecoder, batch: Batch, states: Read, last: Start, rule: AttentionRule | None
) -> Fed:
    """Read the batch's own decoder inputs (teacher forcing)."""
    words = batch.decoder_inputs
    real = torch.ones_like(words, dtype=torch.bool)
    read, _ = model.read(model.decoder, model.output_words, words, 0, last, real)
    return batch, model.decoder.cell.output(read)


def _own_words(
    model: EncoderDecoder, batch: Batch, states: Read, last: Start, rule: AttentionRule | None
) -> Fed:
    """Read the batch's first decoder input, then whatever is the most probable word each time."""
    steps, cell = batch.decoder_inputs.shape[1], model.decoder.cell
    word, state = batch.decoder_inputs[:, :1], last
    real = torch.ones_like(word, dtype=torch.bool)
    words: list[Tensor] = []
    decoded: list[Tensor] = []
    for step in range(steps):
        words.append(word)
        read, state = model.read(model.decoder, model.output_words, word, step, state, real)
        decoded.append(cell.output(read))
        with torch.no_grad():
            word = _next_word(model, batch, states, decoded, rule)
    return replace(batch, decoder_inputs=torch.cat(words, 1)), torch.cat(decoded, 1)


def _next_word(
    model: EncoderDecoder,
    batch: Batch,
    states: Read,
    decoded: Sequence[Float[Tensor, "batch 1 hidden"]],
    rule: AttentionRule | None,
) -> Int[Tensor, "batch 1"]:
    now, row = decoded[-1], slice(1)
    if rule is not None:
        # An intervention may depend on the output position, and is shown the whole width.
        missing = batch.decoder_inputs.shape[1] - len(decoded)
        now = pad(torch.cat([*decoded], 1), (0, 0, 0, missing))
        row = slice(len(decoded) - 1, len(decoded))
    context = _context(model._sites(batch, states, now, rule), now)
    return model.readout(context[:, row], model.output.query(now[:, row])).argmax(-1)
