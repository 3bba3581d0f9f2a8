"""Copies of models that can run under `torch.func.vmap`: recurrences and linear maps replaced.

PyTorch's LSTMs and GRUs have no rule for vmap; the copy runs `attnscope.training.engine
.padded_recurrence` on the very same parameters. Dropout between layers is drawn for packed texts,
as a model by itself draws it, and put into its padded places here. aitken's GRUs have such a rule;
the copy runs `attnscope.training.engine.gru_words`, which is faster.
"""

from __future__ import annotations

from copy import copy, deepcopy
from functools import partial
from itertools import chain
from typing import TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attnscope.data.batch import moved
from attnscope.models.architectures import FeedForwardReader, RecurrentReader, Start, States
from attnscope.models.cells import GRU, product
from attnscope.models.dropout import Randomness, dropped_words
from attnscope.models.encoder_decoder import EncoderDecoder
from attnscope.models.one_hot import OneHotInputs
from attnscope.models.recurrence import SUFFIXES, Recurrence, State
from attnscope.training.engine.gru_words import GRUWords
from attnscope.training.engine.padded_recurrence import GRUTexts, LSTMTexts
from attnscope.training.engine.recurrent_cells import RecurrentCells

M = TypeVar("M", bound=nn.Module)


def vmappable(model: M, cells: RecurrentCells) -> M:
    """Return a model with the very same parameters whose recurrences can run under vmap."""
    tensors = chain(model.parameters(), model.buffers())
    same = deepcopy(model, {id(tensor): tensor for tensor in tensors})
    _unshare_modules(same)
    recurrences = [module for module in same.modules() if isinstance(module, Recurrence)]
    for recurrence in recurrences:
        recurrence.forward = partial(_read, recurrence, cells)  # type: ignore[method-assign]
    if recurrences:
        for module in same.modules():
            if type(module) is nn.Embedding:
                module.forward = partial(_embed, module)  # type: ignore[method-assign]
            if type(module) is nn.Linear:
                module.forward = partial(_linear, module)  # type: ignore[method-assign]
    if isinstance(same, EncoderDecoder):
        same.read = partial(_read_words, same)  # type: ignore[method-assign]
    return same


def _unshare_modules(model: nn.Module) -> None:
    """Give every name a module of its own, with the same parameters.

    `torch.func.functional_call` puts the parameters of a module with two names back in the wrong
    order, and leaves those of vmap in it.
    """
    seen: set[int] = set()
    for parent in list(model.modules()):
        for name, child in parent._modules.items():
            if child is None:
                continue
            if id(child) in seen:
                child = parent._modules[name] = copy(child)
                child._parameters = dict(child._parameters)
            seen.add(id(child))


def _embed(layer: nn.Embedding, words: Int[Tensor, "*any"]) -> Float[Tensor, "*any embedding"]:
    """Look up words, and note on the result what was looked up: see `_gates`."""
    found = nn.functional.embedding(words, layer.weight, layer.padding_idx)
    if layer.padding_idx is None:
        found.looked_up = layer.weight, words  # type: ignore[attr-defined]
    return found


def _gates(
    inputs: Float[Tensor, "batch time width"],
    weight: Float[Tensor, "gates width"],
    bias: Float[Tensor, " gates"],
) -> Float[Tensor, "batch time gates"]:
    """Return W x + b; where there are fewer types than words, of each type once."""
    looked_up: tuple[Tensor, Tensor] | None = getattr(inputs, "looked_up", None)
    if looked_up is None or len(looked_up[0]) >= looked_up[1].numel():
        return product(inputs, weight, bias)
    table, words = looked_up
    return nn.functional.embedding(words, product(table, weight, bias))


def _linear(
    layer: nn.Linear, values: Float[Tensor, "*any inputs"]
) -> Float[Tensor, "*any outputs"]:
    return product(values, layer.weight, layer.bias)


def _read(
    recurrence: Recurrence,
    cells: RecurrentCells,
    inputs: Float[Tensor, "batch time width"],
    lengths: Int[Tensor, " batch"],
    state: State | None = None,
    randomness: Randomness | None = None,
) -> tuple[Float[Tensor, "batch time state"], State]:
    """Return what `Recurrence` returns."""
    values, ends = inputs, []
    placed = moved(lengths, inputs.device)
    for number, layer in enumerate((recurrence.layer, *recurrence.upper)):
        if number:
            values = dropped_words(values, recurrence.dropout, lengths, placed, randomness)
        first = number * recurrence.directions
        own = None if state is None else _rows(state, first, recurrence.directions)
        values, end = read_layer(layer, values, placed, own, cells)
        ends.append(end)
    return values, _joined(ends)


def _read_words(
    model: EncoderDecoder,
    reader: RecurrentReader | FeedForwardReader,
    words: OneHotInputs,
    ids: Int[Tensor, "batch time"],
    first: int,
    start: Start,
    mask: Bool[Tensor, "batch time"],
) -> tuple[States, Start]:
    """Return what `EncoderDecoder.read` returns."""
    cell, places = reader.cell, model.positions(first, 1)
    several, few = ids.shape[1] > 1, words.types < len(ids)
    if not (reader.recurrent and type(cell) is GRU and several and few) or places.ndim:
        return EncoderDecoder.read(model, reader, words, ids, first, start, mask)
    drives = words.drive(cell, words.every(ids[:, :1]), places).squeeze(1)
    given = (drives, cell.recurrent_map, start, ids, mask)
    states, *_ = GRUWords.apply(*(part[None] for part in given))
    read = states.squeeze(0)
    return read, read[:, -1]


def _rows(state: State, first: int, count: int) -> State:
    if isinstance(state, tuple):
        return state[0][first : first + count], state[1][first : first + count]
    return state[first : first + count]


def _joined(ends: list[State]) -> State:
    if isinstance(ends[0], tuple):
        return torch.cat([end[0] for end in ends]), torch.cat([end[1] for end in ends])
    return torch.cat([end for end in ends if isinstance(end, Tensor)])


def read_layer(
    layer: nn.LSTM | nn.GRU | nn.Module,
    inputs: Float[Tensor, "batch time width"],
    lengths: Int[Tensor, " batch"],
    start: State | None,
    cells: RecurrentCells,
) -> tuple[Float[Tensor, "batch time state"], State]:
    """Return the states of one layer over packed texts, 0 at padding, and the last ones.

    It may be under `torch.func.vmap`, with gradients taken outside, and in a CUDA graph.
    """
    assert isinstance(layer, nn.LSTM | nn.GRU)
    suffixes = SUFFIXES[: 1 + layer.bidirectional]
    words, word_biases, states, state_biases = (
        [getattr(layer, f"{name}_l0{suffix}") for suffix in suffixes]
        for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
    )
    weight, ends = torch.stack(states)[None], lengths[None]
    if start is None:
        zeros = inputs.new_zeros(len(suffixes), len(inputs), layer.hidden_size)
        start = (zeros, zeros) if isinstance(layer, nn.LSTM) else zeros
    if isinstance(start, tuple):
        bias = torch.cat(word_biases) + torch.cat(state_biases)
        gates = _gates(inputs, torch.cat(words), bias).unflatten(-1, (len(suffixes), -1))
        found, cell, *_ = LSTMTexts.apply(
            gates[None], weight, start[0][None], start[1][None], ends, cells
        )
        padded = found.squeeze(0)
        return padded.flatten(-2), (_last(padded, lengths), cell.squeeze(0))
    gates = _gates(inputs, torch.cat(words), torch.cat(word_biases))
    gates = gates.unflatten(-1, (len(suffixes), -1))
    offsets = torch.stack(state_biases)[None]
    found, *_ = GRUTexts.apply(gates[None], weight, offsets, start[None], ends, cells)
    # Not found[0], whose gradient is a copy into zeros.
    padded = found.squeeze(0)
    return padded.flatten(-2), _last(padded, lengths)


def _last(
    states: Float[Tensor, "batch time direction hidden"], lengths: Int[Tensor, " batch"]
) -> Float[Tensor, "direction batch hidden"]:
    """Return each text's last state: at its end, and of the backward direction at its start."""
    places = torch.arange(states.shape[1], device=states.device)
    # A sum and not a gather, whose gradient has no deterministic kernel on a GPU.
    at_end = (places == lengths[:, None] - 1)[..., None].to(states.dtype)
    ends = [(states[:, :, 0] * at_end).sum(1)]
    if states.shape[2] == 2:
        ends.append(states[:, 0, 1])
    return torch.stack(ends)
