"""LSTMs and GRUs over padded texts as plain tensor operations, for models under `torch.func.vmap`.

A long text is thousands of small kernels, and a GPU is held up by starting them: stacked models
need no more of them than one. Both directions run at once. The backward one reads each text
reversed within its own length, so that padding always comes last and reaches no real state, and
nothing is masked on the way. Gradients are written out: there is one product per word, and one per
weight matrix for all words.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from attnscope.training.engine.recurrent_cells import RecurrentCells

Gates = Float[Tensor, "model batch time direction gates"]
Weight = Float[Tensor, "model direction gates hidden"]
Start = Float[Tensor, "model direction batch hidden"]
Lengths = Int[Tensor, "model batch"]


class ReadingOrder:
    """Where the words of padded texts stand when they are read one after another, and back.

    Padded they are in the order of model, text, word and direction; read, in that of word, model,
    direction and text.

    Attributes
    ----------
    real
        Whether a text has so many words, in the order of reading, for any direction.
    read
        For each word in the order of reading, its padded place.
    padded
        For each padded place, that in the order of reading.
    states
        The same in the states after each word with zeros appended, which padding is given.
    """

    def __init__(self, lengths: Lengths, width: int, directions: int) -> None:
        models, batch = lengths.shape

        def counted(size: int, *shape: int) -> Tensor:
            return torch.arange(size, device=lengths.device).view(shape)

        model, direction = counted(models, -1, 1, 1), counted(directions, -1, 1)
        text, word, ends = counted(batch, -1), counted(width, -1, 1, 1, 1), lengths[:, None]
        self.real = word < ends
        self.last = word == ends - 1
        place = torch.where((direction == 1) & self.real, ends - 1 - word, word)
        read = ((model * batch + text) * width + place) * directions + direction
        back = ((place * models + model) * directions + direction) * batch + text
        rows = width * models * directions * batch
        self.read = read.flatten()
        self.padded = _as_padded(back)
        self.states = _as_padded(torch.where(self.real, back, rows))


def _as_padded(rows: Int[Tensor, "time model direction batch"]) -> Int[Tensor, " row"]:
    return rows.permute(1, 3, 0, 2).flatten()


class _Texts:
    """Shapes of a step, and the ways between padded places and the order of reading."""

    def __init__(self, lengths: Lengths, width: int, directions: int) -> None:
        self.models, self.batch = lengths.shape
        self.width, self.directions = width, directions
        self.lanes = self.models * directions
        self.order = ReadingOrder(lengths, width, directions)

    def read(self, padded: Float[Tensor, "model batch time direction any"]) -> Tensor:
        """Return values word by word: time, rows of all lanes, width."""
        flat = padded.reshape(-1, padded.shape[-1]).index_select(0, self.order.read)
        return flat.view(self.width, -1, padded.shape[-1])

    def wanted(self, gradient: Float[Tensor, "model batch time direction hidden"]) -> Tensor:
        """Return the states' gradients word by word, 0 at padding."""
        hidden = gradient.shape[-1]
        read = self.read(gradient).view(self.width, self.models, self.directions, self.batch, -1)
        read.masked_fill_(~self.order.real[..., None], 0.0)
        return read.view(self.width, self.lanes, self.batch, hidden)

    def padded(self, read: Float[Tensor, "time row any"]) -> Tensor:
        """Return gradients in their padded places."""
        flat = read.flatten(0, 1).index_select(0, self.order.padded)
        return flat.view(self.models, self.batch, self.width, self.directions, -1)

    def padded_states(self, states: Float[Tensor, "time row hidden"]) -> Tensor:
        """Return states in their padded places, 0 at padding."""
        flat = states.flatten(0, 1)
        flat = torch.cat([flat, flat.new_zeros(1, flat.shape[1])])
        found = flat.index_select(0, self.order.states)
        return found.view(self.models, self.batch, self.width, self.directions, -1)

    def by_lane(self, rows: Float[Tensor, "*any row width"]) -> Tensor:
        """Return rows with an axis over lanes."""
        return rows.unflatten(-2, (self.lanes, self.batch))

    def whole(self, values: Float[Tensor, "time row any"]) -> Float[Tensor, "lane row2 any"]:
        """Return all words of each lane as the rows of one matrix."""
        return self.by_lane(values).transpose(0, 1).flatten(1, 2)


class LSTMTexts(torch.autograd.Function):
    """States and last cells of several models' texts, from the gates' inputs.

    With them come the tensors that the gradient needs, by word: states, cells and gates.
    """

    @staticmethod
    def forward(
        gates: Gates, weight: Weight, state: Start, cell: Start, lengths: Lengths, ops: Any
    ) -> tuple[Tensor, ...]:
        """Read all words."""
        texts = _Texts(lengths, gates.shape[2], gates.shape[3])
        across = weight.flatten(0, 1).transpose(1, 2)
        states = [state.flatten(0, 2)]
        cells, active = [cell.flatten(0, 2)], []
        for word in texts.read(gates):
            own = torch.bmm(texts.by_lane(states[-1]), across).flatten(0, 1)
            after, inside, gate = ops.lstm(word, own, cells[-1])
            states.append(after)
            cells.append(inside)
            active.append(gate)
        every, inner = torch.stack(states), torch.stack(cells)
        rows = torch.arange(every.shape[1], device=every.device)
        ends = lengths[:, None].expand(-1, texts.directions, -1).flatten()
        last = inner.flatten(0, 1).index_select(0, ends * len(rows) + rows)
        found = texts.padded_states(every[1:])
        return found, last.view_as(cell), every, inner, torch.stack(active)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep what the gradient needs."""
        _, weight, _, _, lengths, ctx.ops = inputs
        _, _, *kept = output
        ctx.mark_non_differentiable(*kept)
        # Else the others would be given gradients, which are 0 and as large.
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(weight, lengths, *kept)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, last: Tensor | None, *_: None) -> Any:
        """Return the gradients of gates, weights and starts."""
        weight, lengths, states, cells, active = ctx.saved_tensors
        width, directions = len(active), weight.shape[1]
        texts = _Texts(lengths, width, directions)
        across = weight.flatten(0, 1)
        wanted = texts.wanted(_or_zeros(gradient, states, texts))
        cell = torch.zeros_like(cells[0])
        ends = texts.order.last.expand(-1, -1, directions, -1).reshape(width, -1, 1)
        gates: Tensor | None = None
        found = []
        for word in reversed(range(width)):
            state = wanted[word]
            if gates is not None:
                state.baddbmm_(texts.by_lane(gates), across)
            if last is not None:
                # After a text's last word, its cell has no other gradient.
                cell = torch.where(ends[word], last.flatten(0, 2), cell)
            gates, cell = ctx.ops.lstm_back(
                state.flatten(0, 1), cell, cells[word], cells[word + 1], active[word]
            )
            found.append(gates)
        every = torch.stack(found[::-1])
        of_weight = torch.bmm(texts.whole(every).transpose(1, 2), texts.whole(states[:-1]))
        shape = texts.models, directions, texts.batch, -1
        before = torch.bmm(texts.by_lane(every[0]), across).view(shape)
        return texts.padded(every), of_weight.view_as(weight), before, cell.view(shape), None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> Any:
        """Run the models of `torch.func.vmap` as further models."""
        (states, last, *kept), size = _flattened(LSTMTexts, info, in_dims, inputs)
        found = states.unflatten(0, (size, -1)), last.unflatten(0, (size, -1))
        return (*found, *kept), (0, 0, *[None] * len(kept))


class GRUTexts(torch.autograd.Function):
    """States of several models' texts, from the gates' inputs; with them what the gradient needs.

    The state's part of the gates has a bias of its own, because the reset gate scales it.
    """

    @staticmethod
    def forward(
        gates: Gates,
        weight: Weight,
        bias: Float[Tensor, "model direction gates"],
        state: Start,
        lengths: Lengths,
        ops: RecurrentCells,
    ) -> tuple[Tensor, ...]:
        """Read all words."""
        texts = _Texts(lengths, gates.shape[2], gates.shape[3])
        across, offset = weight.flatten(0, 1).transpose(1, 2), bias.flatten(0, 1)[:, None]
        states, kept = [state.flatten(0, 2)], []
        for word in texts.read(gates):
            own = torch.baddbmm(offset, texts.by_lane(states[-1]), across).flatten(0, 1)
            after, inside = ops.gru(word, own, states[-1])
            states.append(after)
            kept.append(inside)
        every = torch.stack(states)
        return texts.padded_states(every[1:]), every, torch.stack(kept)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep what the gradient needs."""
        _, weight, _, _, lengths, ctx.ops = inputs
        _, *kept = output
        ctx.mark_non_differentiable(*kept)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(weight, lengths, *kept)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *_: None) -> Any:
        """Return the gradients of gates, weights and starts."""
        weight, lengths, states, kept = ctx.saved_tensors
        width, directions = len(kept), weight.shape[1]
        texts = _Texts(lengths, width, directions)
        across = weight.flatten(0, 1)
        wanted = texts.wanted(_or_zeros(gradient, states, texts)).flatten(1, 2)
        before: Tensor | None = None
        by_word, by_state = [], []
        for word in reversed(range(width)):
            state = wanted[word] if before is None else wanted[word] + before
            given, own, held = ctx.ops.gru_back(state, kept[word])
            before = torch.baddbmm(texts.by_lane(held), texts.by_lane(own), across).flatten(0, 1)
            by_word.append(given)
            by_state.append(own)
        every = texts.whole(torch.stack(by_state[::-1]))
        of_weight = torch.bmm(every.transpose(1, 2), texts.whole(states[:-1])).view_as(weight)
        of_bias = every.sum(1).view(weight.shape[:-1])
        of_gates = texts.padded(torch.stack(by_word[::-1]))
        assert before is not None
        of_start = before.view(texts.models, directions, texts.batch, -1)
        return of_gates, of_weight, of_bias, of_start, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> Any:
        """Run the models of `torch.func.vmap` as further models."""
        (states, *kept), size = _flattened(GRUTexts, info, in_dims, inputs)
        return (states.unflatten(0, (size, -1)), *kept), (0, *[None] * len(kept))


def _or_zeros(gradient: Tensor | None, states: Tensor, texts: _Texts) -> Tensor:
    if gradient is not None:
        return gradient
    shape = texts.models, texts.batch, texts.width, texts.directions, states.shape[-1]
    return states.new_zeros(shape)


def _flattened(function: Any, info: Any, in_dims: tuple[Any, ...], inputs: tuple[Any, ...]) -> Any:
    """Apply a function to inputs whose axis of vmap is made one with that over models."""
    *tensors, ops = inputs
    parts = [
        part.expand(info.batch_size, *part.shape) if axis is None else part.movedim(axis, 0)
        for part, axis in zip(tensors, in_dims, strict=False)
    ]
    return function.apply(*(part.flatten(0, 1) for part in parts), ops), info.batch_size
