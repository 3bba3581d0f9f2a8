"""An LSTM over padded texts as plain tensor operations, for models under `torch.func.vmap`.

A long text is thousands of small kernels, and a GPU is held up by starting them: stacked models
need no more of them than one. Both directions run at once. The backward one reads each text
reversed within its own length, so that padding always comes last and reaches no real state, and
nothing is masked on the way. The gradient is written out: there is one product per word, and one
per weight matrix for all words.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from attnscope.data.batch import moved
from attnscope.errors import UsageError
from attnscope.models.dropout import Randomness, dropped
from attnscope.models.recurrence import Recurrence, State

_SUFFIXES = ("", "_reverse")  # of PyTorch's names of a direction's parameters


def vmappable(model: nn.Module, cell: LSTMCell) -> nn.Module:
    """Return a model with the very same parameters, whose recurrences can run under vmap."""
    tensors = chain(model.parameters(), model.buffers())
    same = deepcopy(model, {id(tensor): tensor for tensor in tensors})
    for module in same.modules():
        if isinstance(module, Recurrence):
            module.forward = partial(_padded, module, cell)  # type: ignore[method-assign]
    return same


def _padded(
    recurrence: Recurrence,
    cell: LSTMCell,
    inputs: Float[Tensor, "batch time width"],
    lengths: Int[Tensor, " batch"],
    state: State | None = None,
    generator: Randomness | None = None,
) -> tuple[Float[Tensor, "batch time state"], Any]:
    """Return what `Recurrence` returns for texts that start from 0, without the last states."""
    if state is not None:
        raise UsageError("A vectorised recurrence starts from 0: train these units one by one.")
    states = padded_states(recurrence.layer, inputs, lengths, cell)
    for layer in recurrence.upper:
        states = padded_states(layer, dropped(states, recurrence.dropout, generator), lengths, cell)
    return states, None


def padded_states(
    layer: nn.Module,
    inputs: Float[Tensor, "batch time width"],
    lengths: Int[Tensor, " batch"],
    cell: LSTMCell,
) -> Float[Tensor, "batch time state"]:
    """Return the states that an LSTM of one layer has of packed texts, and 0 at padding.

    It may be under `torch.func.vmap`, with gradients taken outside, and in a CUDA graph.
    """
    if not isinstance(layer, nn.LSTM):
        raise UsageError(
            f"Only LSTMs can be vectorised, and an encoder has a {type(layer).__name__}: train its "
            "units one by one."
        )
    suffixes = _SUFFIXES[: 1 + layer.bidirectional]
    words, word_biases, states, state_biases = (
        [getattr(layer, f"{name}_l0{suffix}") for suffix in suffixes]
        for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
    )
    bias = torch.cat(word_biases) + torch.cat(state_biases)
    gates = nn.functional.linear(inputs, torch.cat(words), bias).unflatten(-1, (len(suffixes), -1))
    lengths = moved(lengths, inputs.device)
    found, *_ = _Words.apply(gates[None], torch.stack(states)[None], lengths[None], cell)
    # Not found[0], whose gradient is a copy into zeros.
    return found.squeeze(0).flatten(-2)


class _Order:
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
        The same in states, which start with those before the first word: 0, as padding's are to be.
    """

    def __init__(self, lengths: Int[Tensor, "model batch"], width: int, directions: int) -> None:
        models, batch = lengths.shape

        def counted(size: int, *shape: int) -> Tensor:
            return torch.arange(size, device=lengths.device).view(shape)

        model, direction = counted(models, -1, 1, 1), counted(directions, -1, 1)
        text, word, ends = counted(batch, -1), counted(width, -1, 1, 1, 1), lengths[:, None]
        self.real = word < ends
        place = torch.where((direction == 1) & self.real, ends - 1 - word, word)
        read = ((model * batch + text) * width + place) * directions + direction
        back = ((place * models + model) * directions + direction) * batch + text
        self.read = read.flatten()
        self.padded = _as_padded(back)
        self.states = _as_padded((back + models * directions * batch) * self.real)


def _as_padded(rows: Int[Tensor, "time model direction batch"]) -> Int[Tensor, " row"]:
    return rows.permute(1, 3, 0, 2).flatten()


class _Words(torch.autograd.Function):
    """The states of several models' texts, from the gates' inputs.

    With the states come the tensors that the gradient needs, by word: states, cells and gates.
    """

    @staticmethod
    def forward(
        gates: Float[Tensor, "model batch time direction gates"],
        weight: Float[Tensor, "model direction gates hidden"],
        lengths: Int[Tensor, "model batch"],
        lstm: LSTMCell,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        models, batch, width, directions, size = gates.shape
        lanes, hidden = models * directions, size // 4
        order = _Order(lengths, width, directions)
        given = gates.reshape(-1, size).index_select(0, order.read).view(width, -1, size)
        across = weight.flatten(0, 1).transpose(1, 2)
        states = [gates.new_zeros(lanes * batch, hidden)]
        cells, active = [states[0]], []
        for word in given:
            own = torch.bmm(states[-1].view(lanes, batch, hidden), across)
            state, cell, gate = lstm.step(word, own.view(-1, size), cells[-1])
            states.append(state)
            cells.append(cell)
            active.append(gate)
        every = torch.stack(states)
        padded = every.view(-1, hidden).index_select(0, order.states)
        shape = models, batch, width, directions, hidden
        return padded.view(shape), every, torch.stack(cells), torch.stack(active)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, weight, lengths, ctx.lstm = inputs
        _, *kept = output
        ctx.mark_non_differentiable(*kept)
        # Else they would be given gradients, which are 0 and as large.
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(weight, lengths, *kept)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *_: None) -> Any:
        weight, lengths, states, cells, active = ctx.saved_tensors
        models, batch, width, directions, hidden = gradient.shape
        lanes = models * directions
        order = _Order(lengths, width, directions)
        wanted = gradient.reshape(-1, hidden).index_select(0, order.read)
        wanted = wanted.view(width, models, directions, batch, hidden)
        wanted.masked_fill_(~order.real[..., None], 0.0)
        wanted = wanted.view(width, lanes, batch, hidden)
        across = weight.flatten(0, 1)
        gates, cell = None, torch.zeros_like(cells[0])
        found = []
        for word in reversed(range(width)):
            state = wanted[word]
            if gates is not None:
                state.baddbmm_(gates.view(lanes, batch, -1), across)
            gates, cell = ctx.lstm.back(
                state.view(-1, hidden), cell, cells[word], cells[word + 1], active[word]
            )
            found.append(gates)
        every = torch.stack(found[::-1])
        padded = every.view(-1, 4 * hidden).index_select(0, order.padded)
        of_weight = torch.bmm(
            _by_lane(every, lanes, batch).transpose(1, 2), _by_lane(states[:-1], lanes, batch)
        )
        return padded.view(*gradient.shape[:-1], 4 * hidden), of_weight.view_as(weight), None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> Any:
        """Run the models of `torch.func.vmap` as further models."""
        *tensors, lstm = inputs
        parts = [
            part.expand(info.batch_size, *part.shape) if axis is None else part.movedim(axis, 0)
            for part, axis in zip(tensors, in_dims, strict=False)
        ]
        states, *kept = _Words.apply(*(part.flatten(0, 1) for part in parts), lstm)
        return (states.unflatten(0, parts[0].shape[:2]), *kept), (0, *[None] * len(kept))


def _by_lane(values: Float[Tensor, "time row any"], lanes: int, batch: int) -> Tensor:
    """Return all words of each model and direction as the rows of one matrix."""
    return values.unflatten(1, (lanes, batch)).transpose(0, 1).flatten(1, 2)


@dataclass(frozen=True)
class LSTMCell:
    """An LSTM's cell at one word, of any number of texts; gates are in PyTorch's order i, f, g, o.

    Attributes
    ----------
    step
        From the gates' inputs by the word and by the last state, and the last cell, to state, cell
        and gates.
    back
        From the gradients of state and cell, the cells before and after the word and its gates to
        the gradients of the gates' inputs and of the cell before.
    """

    step: Callable[..., tuple[Tensor, Tensor, Tensor]]
    back: Callable[..., tuple[Tensor, Tensor]]


def _step(given: Tensor, own: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    active = given + own
    take, forget, new, show = active.chunk(4, -1)
    for gate in (take, forget, show):
        gate.sigmoid_()
    new.tanh_()
    after = torch.addcmul(forget * cell, take, new)
    return show * after.tanh(), after, active


def _back(
    state: Tensor, cell: Tensor, before: Tensor, after: Tensor, active: Tensor
) -> tuple[Tensor, Tensor]:
    take, forget, new, show = active.chunk(4, -1)
    shown = after.tanh()
    cell = torch.addcmul(cell, state * show, 1 - shown * shown)
    # The slope of a sigmoid s is s (1 - s), that of tanh 1 - tanh².
    slopes = active * (1 - active)
    slopes.chunk(4, -1)[2].copy_(1 - new * new)
    gates = torch.cat([cell * new, cell * before, cell * take, state * shown], -1)
    return gates.mul_(slopes), cell * forget


def _fused_back(*parts: Tensor) -> tuple[Tensor, Tensor]:
    gates, cell, _ = torch.ops.aten._thnn_fused_lstm_cell_backward_impl(*parts, False)
    return gates, cell


ELEMENTWISE = LSTMCell(_step, _back)
# PyTorch has these on a GPU only: one kernel each.
FUSED = LSTMCell(torch.ops.aten._thnn_fused_lstm_cell, _fused_back)
