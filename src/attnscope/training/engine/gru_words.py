"""The states of aitken's GRUs over sequences of few words, with written-out gradients.

The cell is `attnscope.models.cells.GRU`, whose reset comes before the product. A state and the
one-hot word that comes next are one row of one product. Autograd would add up the gradients of the
weights, and put together those of the gates, at every word.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

Drives = Float[Tensor, "model type gates"]
Weight = Float[Tensor, "model gates hidden"]


class GRUWords(torch.autograd.Function):
    """States after every word, held at padding, from the drive of each type of word.

    With them come the tensors that the gradient needs, by word: rows of states and next words, the
    same of reset states, gates and new values.
    """

    @staticmethod
    def forward(
        drives: Drives,
        weight: Weight,
        start: Float[Tensor, "model batch hidden"],
        words: Int[Tensor, "model batch time"],
        mask: Bool[Tensor, "model batch time"],
    ) -> tuple[Tensor, ...]:
        """Read all words."""
        (models, batch, hidden), types, time = start.shape, drives.shape[1], words.shape[2]
        gate_map, new_map = _maps(drives, weight)
        padding = ~mask.movedim(2, 0)[..., None]
        rows = start.new_zeros(time + 1, models, batch, hidden + types)
        rows[:-1, ..., hidden:] = words.movedim(2, 0)[..., None] == torch.arange(
            types, device=words.device
        )
        resets = rows[:-1].clone()
        rows[0, ..., :hidden] = start
        gates = start.new_empty(time, models, batch, 2 * hidden)
        candidates = start.new_empty(time, models, batch, hidden)
        for place in range(time):
            state = rows[place, ..., :hidden]
            gate = torch.bmm(rows[place], gate_map, out=gates[place]).sigmoid_()
            update, reset = gate.chunk(2, -1)
            # An update gate of exactly 1 holds the state, and lets its whole gradient pass.
            update.masked_fill_(padding[place], 1.0)
            torch.mul(reset, state, out=resets[place, ..., :hidden])
            new = torch.bmm(resets[place], new_map, out=candidates[place]).tanh_()
            torch.lerp(new, state, update, out=rows[place + 1, ..., :hidden])
        states = rows[1:, ..., :hidden].permute(1, 2, 0, 3).contiguous()
        return states, rows, resets, gates, candidates

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Keep what the gradient needs."""
        drives, weight, *_ = inputs
        _, *kept = output
        ctx.mark_non_differentiable(*kept)
        # Else these would be given gradients, which are 0 and as large.
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(drives, weight, *kept)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, *_: None) -> Any:
        """Return the gradients of drives, weights and starts."""
        drives, weight, rows, resets, gates, candidates = ctx.saved_tensors
        hidden = weight.shape[2]
        gate_rows, new_rows = weight.split([2 * hidden, hidden], 1)
        of_gate_map, of_new_map = (torch.zeros_like(part) for part in _maps(drives, weight))
        of_state, of_gates = torch.zeros_like(candidates[0]), torch.empty_like(gates[0])
        of_update, of_reset = of_gates.chunk(2, -1)
        wanted = gradient.permute(2, 0, 1, 3)
        for place in reversed(range(len(gates))):
            state, kept = (part[place, ..., :hidden] for part in (rows, resets))
            (update, reset), new = gates[place].chunk(2, -1), candidates[place]
            of_state += wanted[place]
            # The slope of a sigmoid s is s (1 - s), that of tanh 1 - tanh².
            through = torch.addcmul(of_state, of_state, update, value=-1)
            of_new = torch.addcmul(through, through * new, new, value=-1)
            of_kept = torch.bmm(of_new, new_rows)
            torch.mul(through * update, state - new, out=of_update)
            torch.mul(of_kept * kept, 1 - reset, out=of_reset)
            of_state.mul_(update).addcmul_(of_kept, reset).baddbmm_(of_gates, gate_rows)
            of_gate_map.baddbmm_(rows[place].transpose(1, 2), of_gates)
            of_new_map.baddbmm_(resets[place].transpose(1, 2), of_new)
        of_weight, of_drives = torch.cat([of_gate_map, of_new_map], 2).split(
            [hidden, drives.shape[1]], 1
        )
        return of_drives, of_weight.transpose(1, 2), of_state, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> Any:
        """Run the models of `torch.func.vmap` as further models."""
        parts = [
            part.expand(info.batch_size, *part.shape) if axis is None else part.movedim(axis, 0)
            for part, axis in zip(inputs, in_dims, strict=True)
        ]
        states, *kept = GRUWords.apply(*(part.flatten(0, 1) for part in parts))
        return (states.unflatten(0, (info.batch_size, -1)), *kept), (0, *[None] * len(kept))


def _maps(drives: Drives, weight: Weight) -> tuple[Tensor, ...]:
    """Return the maps of a row to both gates and to the new value."""
    hidden = weight.shape[2]
    both = torch.cat([weight.transpose(1, 2), drives], 1)
    return tuple(part.contiguous() for part in both.split([2 * hidden, hidden], 2))
