"""Optimal attention α^opt (snell A.1): the weights under which each target word is likeliest.

With p_t = softmax(Σ_l α_l γ_l + γ_s) (snell Eq. 26, 27, 32, 33) the loss −log p_t[y_t] is convex in
α (Eq. 34–36), so that its minimum over the simplex can be certified. Every cell (a target position
of a sentence) is a problem of its own, and all are solved at once by a primal-dual interior-point
method: unlike first-order methods it needs ten to fifty steps wherever the optimum lies and however
large γ is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.errors import UsageError

_NUMBERS = 2**26  # held at once, not counting the arguments
_TO_BOUNDARY = 0.99  # the part of the way to the boundary that one step may go
_SHARPEST = 0.01  # the least part of the gap that one step may aim at
_SLACK_RANGE = 1e5  # how far a slack may be from the central path's, either way
_DECREASE = 1e-4  # share of the decrease predicted by the slope that a step must reach (Armijo)
_HALVINGS = 30


class OptimalAttention(NamedTuple):
    """Optimal weights, their loss, and a bound on its distance from the optimum.

    Attributes
    ----------
    weights
        α^opt, 0 at padding.
    loss
        −log p_t[y_t] in nats, 0 at padding.
    gap
        The Frank–Wolfe gap ⟨∇f, α⟩ − min_l ∇_l f (Jaggi 2013): no weights have a loss below
        ``loss − gap``.
    iterations
        Steps that the slowest cell took.
    unconverged
        The number of cells whose gap exceeds the tolerance.
    """

    weights: Float[Tensor, "batch out inp"]
    loss: Float[Tensor, "batch out"]
    gap: Float[Tensor, "batch out"]
    iterations: int
    unconverged: int


def optimal_attention(
    word_logits: Float[Tensor, "batch inp vocab"],
    state_logits: Float[Tensor, "batch out vocab"],
    targets: Int[Tensor, "batch out"],
    input_mask: Bool[Tensor, "batch inp"],
    target_mask: Bool[Tensor, "batch out"],
    *,
    tolerance: float = 1e-4,
    limit: int = 100,
) -> OptimalAttention:
    """Minimise −log softmax(Σ_l α_l γ_l + γ_s)[y_t] over attention weights α (A.1 of [1]_).

    The search starts from uniform weights. A cell where these are already optimal within the
    tolerance keeps them: its word does not depend on attention. Weights that the certificate can
    spare are exactly 0.

    Parameters
    ----------
    word_logits
        γ_l, the contribution of each input position to the logits (Eq. 27).
    state_logits
        γ_s, the contribution of the decoder's state at each output position (Eq. 27).
    targets
        The words y_t.
    input_mask, target_mask
        True at real positions. A sentence without any input has no weights and a gap of 0.
    tolerance
        The largest gap, in nats, at which a cell is done. In float32 the gradient's rounding
        leaves gaps of about 1e-5 for logits of size 10, and above the default for those of size
        100.
    limit
        The largest number of steps.

    References
    ----------
    .. [1] C. Snell, R. Zhong, D. Klein, J. Steinhardt. "Approximating How Single Head Attention
       Learns." 2021.
    .. [2] M. Jaggi. "Revisiting Frank-Wolfe: Projection-Free Sparse Convex Optimization." 2013.
    .. [3] J. Nocedal, S. J. Wright. "Numerical Optimization." 2006, chapter 19.
    """
    if tolerance <= 0:
        raise UsageError(f"tolerance={tolerance}: it must be positive.")
    out, inp, vocab = state_logits.shape[1], *word_logits.shape[1:]
    size = max(1, _NUMBERS // max(1, vocab * (8 * out + 2 * inp + out * inp)))
    parts = (word_logits, state_logits, targets, input_mask, target_mask)
    chunks = zip(*(part.split(size) for part in parts), strict=True)
    solved = [_solve(_problem(*chunk), tolerance, limit) for chunk in chunks]
    points = zip(*(point for point, _ in solved), strict=True)
    weights, _, loss, gap = (torch.cat(part) for part in points)
    return OptimalAttention(
        weights.to(word_logits.dtype).masked_fill(~target_mask[:, :, None], 0),
        loss.masked_fill(~target_mask, 0),
        gap,
        max(steps for _, steps in solved),
        int((gap > tolerance).sum()),
    )


class _Problem(NamedTuple):
    """Some sentences; ``cells`` are the output positions to solve."""

    words: Float[Tensor, "batch inp vocab"]
    state: Float[Tensor, "batch out vocab"]
    targets: Int[Tensor, "batch out"]
    real: Bool[Tensor, "batch inp"]
    cells: Bool[Tensor, "batch out"]

    def rows(self, index: Tensor) -> _Problem:
        return _Problem(*(part[index] for part in self))

    def logits(self, weights: Float[Tensor, "batch out inp"]) -> Float[Tensor, "batch out vocab"]:
        return torch.baddbmm(self.state, weights.to(self.state.dtype), self.words)

    def loss(self, logits: Float[Tensor, "batch out vocab"]) -> Float[Tensor, "batch out"]:
        right = logits.gather(2, self.targets[:, :, None])[:, :, 0]
        return (logits.logsumexp(-1) - right).double()

    def mean(self, p: Float[Tensor, "batch out vocab"]) -> Float[Tensor, "batch out inp"]:
        return torch.bmm(p, self.words.mT)

    def gradient(self, p: Float[Tensor, "batch out vocab"]) -> Float[Tensor, "batch out inp"]:
        """∇_l f = E_p[γ_l] − γ_l[y]."""
        index = self.targets[:, None, :].expand(-1, self.words.shape[1], -1)
        return (self.mean(p) - self.words.gather(2, index).mT).double()

    def hessian(self, p: Float[Tensor, "batch out vocab"]) -> Float[Tensor, "batch out inp inp"]:
        """∇²f = Cov_p[γ]."""
        rows = max(1, _NUMBERS // max(1, self.words.numel()))
        blocks = []
        for some, mean in zip(p.split(rows, 1), self.mean(p).split(rows, 1), strict=True):
            # As a matrix times its own transpose: rounding cannot make it indefinite by much.
            centred = self.words[:, None] - mean[..., None]
            centred *= some.sqrt()[:, :, None]
            blocks.append(centred @ centred.mT)
        return torch.cat(blocks, 1).double()

    def above(self, gradient: Float[Tensor, "batch out inp"]) -> Float[Tensor, "batch out inp"]:
        """∇f less its lowest real entry."""
        lowest = gradient.masked_fill(~self.real[:, None], torch.inf).amin(-1, keepdim=True)
        return (gradient - lowest).masked_fill(~self.real[:, None], 0)

    def measure(self, weights: Tensor, slack: Tensor) -> _Point:
        logits = self.logits(weights)
        gap = (weights * self.above(self.gradient(logits.softmax(-1)))).sum(-1)
        return _Point(weights, slack, self.loss(logits), gap.masked_fill(~self.cells, 0))


def _problem(
    words: Tensor, state: Tensor, targets: Tensor, real: Tensor, target_mask: Tensor
) -> _Problem:
    """Set padding, whose contents are arbitrary, to 0."""
    return _Problem(
        words.masked_fill(~real[:, :, None], 0),
        state.masked_fill(~target_mask[:, :, None], 0),
        targets.masked_fill(~target_mask, 0),
        real,
        target_mask & real.any(1, keepdim=True),
    )


class _Point(NamedTuple):
    """Weights, their slacks (the dual variables of α ≥ 0), and the loss and gap there."""

    weights: Float[Tensor, "batch out inp"]
    slack: Float[Tensor, "batch out inp"]
    loss: Float[Tensor, "batch out"]
    gap: Float[Tensor, "batch out"]

    def rows(self, index: Tensor) -> _Point:
        return _Point(*(part[index] for part in self))

    def replaced(self, other: _Point, chosen: Bool[Tensor, "batch out"]) -> _Point:
        """Take the other's cells where chosen."""
        at = (chosen[..., None], chosen[..., None], chosen, chosen)
        return _Point(*(new.where(c, old) for new, c, old in zip(other, at, self, strict=True)))


def _solve(problem: _Problem, tolerance: float, limit: int) -> tuple[_Point, int]:
    """Return the best point of every cell, and the number of steps."""
    best = _start(problem, tolerance)
    moving = best.gap > tolerance
    step, rows = 0, moving.any(1).nonzero()[:, 0]
    part, now = problem.rows(rows), best.rows(rows)
    while len(rows) and step < limit:
        step += 1
        now = part.measure(*_newton_step(part, now))
        kept = best.rows(rows)
        kept = kept.replaced(now, now.gap < kept.gap)
        best = _Point(*(a.index_copy(0, rows, b) for a, b in zip(best, kept, strict=True)))
        now = now.replaced(kept, kept.gap <= tolerance)
        left = (kept.gap > tolerance).any(1)
        rows, part, now = rows[left], part.rows(left), now.rows(left)
    return _spare(problem, best, moving, tolerance), step


def _start(problem: _Problem, tolerance: float) -> _Point:
    """Start from uniform weights, and slacks that fit the gradient there, none of them 0."""
    real = problem.real[:, None].double()
    weights = real / real.sum(-1, keepdim=True).clamp(min=1)
    weights = weights.expand(-1, problem.cells.shape[1], -1)
    above = problem.above(problem.gradient(problem.logits(weights).softmax(-1)))
    gap = (weights * above).sum(-1, keepdim=True)
    return problem.measure(weights, above + gap.clamp(min=tolerance))


def _spare(
    problem: _Problem, best: _Point, moving: Bool[Tensor, "batch out"], tolerance: float
) -> _Point:
    """Set weights below their slack to 0 wherever the gap allows it.

    An interior point has no zeros; at the optimum either the weight is 0 or its slack.
    """
    weights = best.weights.masked_fill(best.weights < best.slack, 0)
    total = weights.sum(-1, keepdim=True)
    spared = problem.measure(weights / total.where(total > 0, 1), best.slack)
    return best.replaced(spared, moving & (total[..., 0] > 0) & (spared.gap <= tolerance))


def _newton_step(problem: _Problem, now: _Point) -> tuple[Tensor, Tensor]:
    """Return weights and slacks z after one step towards the central path α z = τ [3]_.

    With D = diag(z/α) the step solves (∇²f + D) Δα + ν = −∇f + τ/α under Σ_l Δα_l = 0. Matrix and
    right-hand sides are scaled by D^(−1/2), which keeps the matrix well conditioned.
    """
    real = problem.real[:, None]
    weights, slack = now.weights.where(real, 1), now.slack.where(real, 1)
    logits = problem.logits(now.weights)
    p = logits.softmax(-1)
    # A constant drops out with Σ_l Δα_l = 0; without this one, its rounding would not.
    gradient = problem.gradient(p)
    gradient = gradient - (now.weights * gradient).sum(-1, keepdim=True)
    scale = (weights / slack).sqrt() * real
    matrix = scale[..., :, None] * problem.hessian(p) * scale[..., None, :]
    extra = 1 + 10 * torch.finfo(p.dtype).eps * matrix.diagonal(dim1=-2, dim2=-1)
    factor, _ = torch.linalg.cholesky_ex(matrix + extra.diag_embed())
    sides = torch.stack([-gradient, 1 / weights, torch.ones_like(weights)], -1) * scale[..., None]
    down, inward, ones = (scale[..., None] * torch.cholesky_solve(sides, factor)).unbind(-1)

    def direction(target: Tensor) -> tuple[Tensor, Tensor]:
        move = down + target * inward
        move = move - move.sum(-1, keepdim=True) / ones.sum(-1, keepdim=True) * ones
        return move, (target / weights - slack - slack / weights * move) * real

    # Mehrotra's rule: aim lower the further a step straight at the boundary would come. The gap
    # holds it back, as slacks may run ahead of a gradient that bends.
    count = real.sum(-1, keepdim=True)
    mean = (weights * slack * real).sum(-1, keepdim=True) / count
    move, turn = direction(torch.zeros_like(mean))
    ahead = (weights + _longest(weights, move) * move) * (slack + _longest(slack, turn) * turn)
    share = ((ahead * real).sum(-1, keepdim=True) / count / mean).clamp(0, 1)
    target = torch.maximum(mean * share**3, _SHARPEST * now.gap[..., None] / count)
    move, turn = direction(target)
    slope = ((gradient - target / weights) * move).sum(-1, keepdim=True)

    change = torch.bmm(move.to(logits.dtype), problem.words)

    def barrier(length: Tensor) -> Float[Tensor, "batch out 1"]:
        loss = problem.loss(logits + length.to(logits.dtype) * change)[..., None]
        return loss - target * (weights + length * move).log().sum(-1, keepdim=True)

    rounding = 10 * torch.finfo(p.dtype).eps * (1 + now.loss[..., None])
    length = _halved(barrier, _longest(weights, move), slope, rounding)
    weights = weights + length * move
    slack = slack + _longest(slack, turn) * turn
    central = target / weights
    slack = slack.clamp(central / _SLACK_RANGE, central * _SLACK_RANGE)
    weights = weights * real
    return weights / weights.sum(-1, keepdim=True), slack


def _longest(value: Tensor, move: Tensor) -> Float[Tensor, "batch out 1"]:
    """Return the longest step, at most 1, that keeps positive values positive."""
    ratio = torch.where(move < 0, -value / move, torch.inf).amin(-1, keepdim=True)
    return (_TO_BOUNDARY * ratio).clamp(max=1)


def _halved(
    function: Callable[[Tensor], Tensor], length: Tensor, slope: Tensor, rounding: Tensor
) -> Float[Tensor, "batch out 1"]:
    """Halve each cell's step until the function falls as its slope promises."""
    start = function(torch.zeros_like(length))
    for _ in range(_HALVINGS):
        fails = function(length) > start + _DECREASE * length * slope + rounding
        if not fails.any():
            break
        length = length.where(~fails, length / 2)
    return length
