"""Optimal attention α^opt as a score: the weights that make the right word likeliest (snell A.1).

For a model whose readout is affine in the context the problem is convex, and its solution comes
with a certificate (`attnscope.theory.optimal_attention`).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnscope.data.batch import Batch
from attnscope.errors import MissingCapability
from attnscope.models.trace import AttentionModel, Trace, needed
from attnscope.scores.attention import site_of
from attnscope.scores.score import Score
from attnscope.theory.optimal_attention import optimal_attention

_NUMBERS = 2**23  # logits of words and states held at once
_ROUNDING = 1e-6  # tolerated deviation from an affine readout, relative to its largest logit


@dataclass(frozen=True)
class Solved:
    """Optimal attention on some examples, with its certificate.

    Attributes
    ----------
    score
        α^opt.
    loss, own_loss
        −log p of the right word under α^opt and under the model's own attention, in nats.
    gap
        No weights have a loss below ``loss − gap``.
    word_probe
        log p of the right word from a position alone, the decoder's state left out: the probe that
        the authors' code has for this model (Eq. 4's keeps the state).
    """

    score: Score
    word_probe: Score
    loss: Float[Tensor, "batch out"]
    own_loss: Float[Tensor, "batch out"]
    gap: Float[Tensor, "batch out"]

    @property
    def uniform(self) -> Float[Tensor, "batch out"]:
        """1 where the weights are uniform though there is a choice: any would do as well."""
        count = self.score.input_mask.sum(1)[:, None]
        even = (self.score.values.amax(-1) * count - 1).abs() < 1e-9
        return (even & (count > 1)).double()


@torch.no_grad()
def solve(
    model: nn.Module, batch: Batch, output_types: int, tolerance: float, device: str = "cpu"
) -> Solved:
    """Solve every output word of some examples in float64, examples of like length together.

    Parameters
    ----------
    model
        Any whose readout is affine in the context.
    output_types
        Size of the output vocabulary: it decides how many examples are solved at once.
    tolerance
        As in `attnscope.theory.optimal_attention.optimal_attention`.
    """
    exact: Any = copy.deepcopy(model).double().to(device).eval()
    weights = torch.zeros(*batch.targets.shape, batch.inputs.shape[1], dtype=torch.float64)
    numbers = {name: torch.zeros(batch.targets.shape).double() for name in ("loss", "own", "gap")}
    probe = torch.zeros_like(weights)
    mask = torch.zeros_like(batch.input_mask)
    for rows, part in batch.by_length(lambda inp, out: _NUMBERS // (output_types * (inp + out))):
        part = part.to(device)
        trace = exact.trace(part)
        allowed = site_of(trace, "cross").mask
        found = optimal_attention(
            *affine_parts(exact, trace),
            part.targets,
            allowed,
            part.target_mask,
            tolerance=tolerance,
        )
        own = -trace.logits.log_softmax(-1).gather(-1, part.targets[..., None])[..., 0]
        out, inp = part.targets.shape[1], part.inputs.shape[1]
        weights[rows, :out, :inp] = found.weights.cpu()
        probe[rows, :out, :inp] = _word_probe(exact, trace).cpu()
        mask[rows, :inp] = allowed.cpu()
        for name, values in (("loss", found.loss), ("own", own), ("gap", found.gap)):
            numbers[name][rows, :out] = values.masked_fill(~part.target_mask, 0).cpu()
    score = Score("optimal_attention", weights, mask, batch)
    words = Score("word_probe", probe, mask, batch)
    return Solved(score, words, numbers["loss"], numbers["own"], numbers["gap"])


def _word_probe(model: AttentionModel, trace: Trace) -> Float[Tensor, "batch out inp"]:
    values = site_of(trace, "cross").values.transpose(1, 2)
    still = values.new_zeros(*values.shape[:2], needed(trace.query, "query").shape[-1])
    known = model.readout(values, still).log_softmax(-1)  # batch, inp, output_type
    targets = trace.batch.targets[:, None].expand(-1, values.shape[1], -1)
    return known.gather(-1, targets).mT


def affine_parts(
    model: AttentionModel, trace: Trace
) -> tuple[Float[Tensor, "batch inp output_type"], Float[Tensor, "batch out output_type"]]:
    """Return γ_l and γ_s: contributions of positions and states to the logits (snell Eq. 27, 33).

    They are read off the readout itself, so that any model with an affine one can be solved; that
    it is affine is checked at the model's own attention.
    """
    site = site_of(trace, "cross")
    values, query = site.values.transpose(1, 2), needed(trace.query, "query")
    still = query.new_zeros(*values.shape[:2], query.shape[-1])
    nothing = values.new_zeros(*query.shape[:2], *values.shape[2:])
    words = model.readout(values, still) - model.readout(torch.zeros_like(values), still)
    state = model.readout(nothing, query)
    weights = site.weights.mean(1)  # every head attends alike, as the lexical probe has it
    context = torch.einsum("boi,bihv->bohv", weights, values)
    right = model.readout(context, query)
    off = (torch.baddbmm(state, weights, words) - right)[trace.batch.target_mask].abs().max()
    if float(off) > _ROUNDING * (1 + float(right.abs().max())):
        raise MissingCapability(
            f"Optimal attention needs a readout that is affine in the context, and this one is off "
            f"by {float(off):.2g}: use a model with readout=linear."
        )
    return words, state
