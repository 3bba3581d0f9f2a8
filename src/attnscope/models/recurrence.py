"""Recurrent encoders and decoders over sequences of unequal length.

Padding reaches neither the states nor the backward direction: sequences are packed. LSTMs on a CPU,
which take two to six times as long when packed, read them padded, in groups of like length, and
hold their cells at padding. Where all lengths are equal neither is needed. Layers are stacked by
hand, so that the dropout between them comes from an explicit generator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from attnscope.data.batch import moved
from attnscope.models.dropout import Randomness, dropped, dropped_words

Cell = Literal["lstm", "gru"]
State = Tensor | tuple[Tensor, Tensor]
_CELLS: dict[str, type[nn.LSTM] | type[nn.GRU]] = {"lstm": nn.LSTM, "gru": nn.GRU}


class Recurrence(nn.Module):
    """Layers of LSTM or GRU, in one direction or both.

    A state is laid out as PyTorch's: by layer, and within a layer by direction.

    Parameters
    ----------
    inputs, hidden
        Widths; ``hidden`` is per direction, as in all four papers.
    dropout
        Share of a layer's outputs that the next layer does not see in training.
    """

    def __init__(
        self,
        cell: Cell,
        inputs: int,
        hidden: int,
        directions: int = 1,
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.width = hidden * directions
        self.directions, self.dropout = directions, dropout
        both = directions == 2
        self.layer = _CELLS[cell](inputs, hidden, batch_first=True, bidirectional=both)
        self.upper = nn.ModuleList(
            _CELLS[cell](self.width, hidden, batch_first=True, bidirectional=both)
            for _ in range(layers - 1)
        )

    def forward(
        self,
        inputs: Float[Tensor, "batch time width"],
        lengths: Int[Tensor, " batch"],
        state: State | None = None,
        generator: Randomness | None = None,
    ) -> tuple[Float[Tensor, "batch time state"], State]:
        """Return the top layer's states (0 at padding) and every layer's last real state.

        Dropout is drawn from the generator; without one nothing is dropped.
        """
        width = inputs.shape[1]

        def drop(values: Any) -> Any:
            return dropped(values, self.dropout, generator)

        def drop_words(values: Tensor) -> Tensor:
            return dropped_words(values, self.dropout, lengths, lengths, generator)

        if bool((lengths == width).all()):
            return self._through(inputs, state, _call, drop)
        if stays_padded(self.layer, inputs) and (state is None or self.directions == 1):
            return self._through(inputs, state, _Groups(lengths, width).read, drop_words)
        packing = _Packing.of(lengths, width, inputs.device)
        start = None if state is None else _each(packing.sort, state)
        states, last = self._through(packing.pack(inputs), start, _call, drop)
        return packing.pad(states), _each(packing.unsort, last)

    def _through(
        self,
        values: Any,
        state: State | None,
        read: Callable[[Any, Any, State | None], tuple[Any, State]],
        drop: Callable[[Any], Any],
    ) -> tuple[Any, State]:
        ends = []
        for number, layer in enumerate((self.layer, *self.upper)):
            own = slice(number * self.directions, (number + 1) * self.directions)
            start = None if state is None else _each(lambda part, own=own: part[own], state)
            values, end = read(layer, drop(values) if number else values, start)
            ends.append(end)
        return values, ends[0] if not self.upper else _each(lambda *p: torch.cat(p), *ends)

    def mean_over_directions(self, state: State) -> State:
        """Return a state as a decoder of one direction starts from it: per layer, the mean."""
        if self.directions == 1:
            return state
        return _each(lambda part: part.unflatten(0, (-1, self.directions)).mean(1), state)


def _each(function: Callable[..., Tensor], *states: State) -> State:
    """Apply a function to the parts of states: an LSTM's two, a GRU's one."""
    if isinstance(states[0], tuple):
        hidden, cell = (function(*parts) for parts in zip(*states, strict=True))
        return hidden, cell
    return function(*states)


def reordered(state: State, rows: Int[Tensor, " row"]) -> State:
    """Return a state with its examples in another order, repeated or left out."""
    return _each(lambda part: part.index_select(1, rows), state)


def stays_padded(layer: nn.LSTM | nn.GRU, inputs: Tensor) -> bool:
    """Return whether a layer reads sequences of unequal length without packing them."""
    return isinstance(layer, nn.LSTM) and inputs.device.type == "cpu"


def _call(layer: Any, values: Any, start: State | None) -> tuple[Any, State]:
    return layer(values, start)


_ROOM = 100  # positions of padding that a group may have; another group costs about as much
_HOLD = 1e4  # as the input of a sigmoid it gives exactly 1, and its negative exactly 0
SUFFIXES = ("", "_reverse")  # of PyTorch's names of a direction's parameters


class _Groups:
    """Padded sequences in groups of like length, each read by an LSTM at its own width.

    A further input is 1 at padding. Its weights close the input gate and open the forget gate, so
    that a cell keeps what it has at the end; and a backward direction, which meets the padding
    first, leaves it with the zeros that it began with. The gates are exactly 0 and 1 there, and so
    are the gradients that pass.
    """

    def __init__(self, lengths: Int[Tensor, " batch"], width: int) -> None:
        self.batch, self.width = len(lengths), width
        self.lengths, self.order = torch.sort(lengths, descending=True, stable=True)
        self.inverse, self.sizes = self.order.argsort(), _alike(self.lengths.tolist())
        groups = zip(self.order.split(self.sizes), self.lengths.split(self.sizes), strict=True)
        self.longest, rows, padding = [], [], []
        for texts, own in groups:
            positions = torch.arange(int(own[0]))
            self.longest.append(len(positions))
            rows.append((texts[:, None] * width + positions).flatten())
            padding.append((positions >= own[:, None]).flatten())
        # For each position of the groups its row of the flattened padded batch, and the way back,
        # which leads wider padding behind the last position.
        self.rows, self.padding = torch.cat(rows), torch.cat(padding)[:, None]
        self.back = torch.full((len(lengths) * width,), len(self.rows))
        self.back[self.rows] = torch.arange(len(self.rows))
        first = torch.arange(len(lengths)) * width
        self.first, self.last = self.back[first], self.back[first + lengths - 1]

    def read(
        self, layer: nn.LSTM, values: Float[Tensor, "batch time width"], start: State | None
    ) -> tuple[Float[Tensor, "batch time state"], State]:
        """Return a layer's states, 0 at padding, and each sequence's last ones."""
        marked = torch.cat(
            [
                _Packed.apply(values.flatten(0, 1), self.rows, self.back),
                self.padding.to(values.dtype),
            ],
            -1,
        )
        if start is None:
            zeros = values.new_zeros(1 + layer.bidirectional, self.batch, layer.hidden_size)
            start = zeros, zeros
        hidden, cell = (part[:, self.order].split(self.sizes, 1) for part in start)
        areas = [size * longest for size, longest in zip(self.sizes, self.longest, strict=True)]
        weights, kept = _held(layer), torch.is_grad_enabled()
        found, ends = [], []
        for own, longest, *begin in zip(
            marked.split(areas), self.longest, hidden, cell, strict=True
        ):
            states, _, end = torch.lstm(
                own.unflatten(0, (-1, longest)),
                [part.contiguous() for part in begin],
                weights,
                has_biases=True,
                num_layers=1,
                dropout=0.0,
                train=kept,
                bidirectional=layer.bidirectional,
                batch_first=True,
            )
            found.append(states.flatten(0, 1))
            ends.append(end)
        grouped = torch.cat(found).masked_fill(self.padding, 0.0)
        padded = _Padded.apply(grouped, self.rows, self.back).unflatten(0, (-1, self.width))
        return padded, (self._last(grouped, layer), torch.cat(ends, 1)[:, self.inverse])

    def _last(
        self, grouped: Float[Tensor, "row state"], layer: nn.LSTM
    ) -> Float[Tensor, "direction batch hidden"]:
        ends = [grouped.index_select(0, self.last)[:, : layer.hidden_size]]
        if layer.bidirectional:
            ends.append(grouped.index_select(0, self.first)[:, layer.hidden_size :])
        return torch.stack(ends)


def _alike(lengths: list[int]) -> list[int]:
    """Return the sizes of groups of little padding; the longest come first."""
    sizes, longest, padding = [0], lengths[0], 0
    for length in lengths:
        padding += longest - length
        if padding > _ROOM:
            sizes.append(0)
            longest, padding = length, 0
        sizes[-1] += 1
    return sizes


def _held(layer: nn.LSTM) -> list[Tensor]:
    """Return a layer's parameters, by direction, with the weights of the input that holds."""
    dtype = next(layer.parameters()).dtype
    gates = torch.tensor([-_HOLD, _HOLD, 0.0, 0.0], dtype=dtype)
    column = gates.repeat_interleave(layer.hidden_size)[:, None]
    held = []
    for suffix in SUFFIXES[: 1 + layer.bidirectional]:
        words, *others = (
            getattr(layer, f"{name}_l0{suffix}")
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        held += [torch.cat([words, column], 1), *others]
    return held


@dataclass(frozen=True)
class _Packing:
    """Where every real position of a padded batch stands in PyTorch's packed order.

    PyTorch's own packing copies one time step after the other, forward and backward, and its
    sorting of states has no fast repeatable gradient; on a GPU that takes as long as the
    recurrence. Here each is one selection of rows, and so is its gradient.

    Attributes
    ----------
    rows
        For each packed position, its row of the flattened padded batch.
    back
        For each row of the flattened padded batch, its packed position; padding has the last one
        plus 1.
    order, inverse
        Examples from the longest to the shortest, and their places in that order.
    sizes
        Number of examples that are that long, by time step; on the CPU, where PyTorch wants it.
    """

    rows: Int[Tensor, " packed"]
    back: Int[Tensor, " row"]
    order: Int[Tensor, " batch"]
    inverse: Int[Tensor, " batch"]
    sizes: Int[Tensor, " longest"]
    width: int

    @classmethod
    def of(cls, lengths: Int[Tensor, " batch"], width: int, device: torch.device) -> _Packing:
        descending, order = torch.sort(lengths, descending=True)
        real = torch.arange(int(descending[0]))[:, None] < descending
        rows = (torch.arange(len(real))[:, None] + order * width)[real]
        back = torch.full((len(lengths) * width,), len(rows))
        back[rows] = torch.arange(len(rows))
        parts = [rows, back, order, order.argsort()]
        # In one piece: a GPU takes one transfer sooner than four.
        whole = moved(torch.cat(parts), device)
        rows, back, order, inverse = whole.split([len(part) for part in parts])
        return cls(rows, back, order, inverse, sizes=real.sum(1), width=width)

    def pack(self, padded: Float[Tensor, "batch time width"]) -> PackedSequence:
        # Without an order, PyTorch takes the examples as sorted and leaves the states alone.
        return PackedSequence(_Packed.apply(padded.flatten(0, 1), self.rows, self.back), self.sizes)

    def pad(self, packed: PackedSequence) -> Float[Tensor, "batch time width"]:
        values = _Padded.apply(packed.data, self.rows, self.back)
        return values.unflatten(0, (-1, self.width))

    def sort(self, state: Float[Tensor, "layer batch state"]) -> Tensor:
        return _Permuted.apply(state, self.order, self.inverse)

    def unsort(self, state: Float[Tensor, "layer batch state"]) -> Tensor:
        return _Permuted.apply(state, self.inverse, self.order)


class _Permuted(torch.autograd.Function):
    """A state's examples in another order; its gradient takes the way back.

    Autograd's own gradient of a selection adds up what was selected twice. Here and below nothing
    is.
    """

    @staticmethod
    def forward(ctx: Any, state: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(order, inverse)
        return state.index_select(1, order)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        order, inverse = ctx.saved_tensors
        return _Permuted.apply(gradient, inverse, order), None, None


class _Packed(torch.autograd.Function):
    """The real rows of a padded batch; its gradient is `_Padded` of the gradient."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, rows: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(rows, back)
        return values.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return _Padded.apply(gradient, *ctx.saved_tensors), None, None


class _Padded(torch.autograd.Function):
    """Packed rows back in their places, 0 at padding; its gradient is `_Packed` of the gradient."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, rows: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(rows, back)
        return nn.functional.pad(values, (0, 0, 0, 1)).index_select(0, back)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return _Packed.apply(gradient, *ctx.saved_tensors), None, None
