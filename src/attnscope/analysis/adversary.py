"""Another attention with the same output: a search for each instance (Jain & Wallace 2019).

For every instance the search looks for weights as far as possible (JSD) from the model's own, with
the output held within ε (TVD). All instances, and several restarts of each, are one optimisation:
Adam works on each number by itself, so that an instance comes out as if it had been searched alone.
Unlike the published code it keeps the best weights of all steps that obey ε, not the last ones; the
model's own weights always do, with a JSD of 0. The attention that a whole model is trained for is
another adversary, `attnscope.training.imitation`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.analysis.replaced_attention import outputs_under, traces_by_length
from attnscope.data.batch import Batch, by_row
from attnscope.data.randomness import counter_uniform
from attnscope.errors import UsageError
from attnscope.models.intervention import LEARNED, Uniform
from attnscope.models.rerun import resuming
from attnscope.models.trace import AttentionModel, Site, Trace
from attnscope.scores.attention import mask_of_outputs, of_outputs, site_of
from attnscope.scores.score import Score
from attnscope.theory.divergence import jensen_shannon, total_variation

# Input positions searched at once, over all restarts.
_POSITIONS = 2**17

Weights = Float[Tensor, "restart batch heads out inp"]
PerInstance = Float[Tensor, "restart batch"]


@dataclass(frozen=True)
class Search:
    """How an adversary is looked for; the values are those of the published code.

    Attributes
    ----------
    epsilon
        How far the output may move, as a total variation.
    restarts, steps, lr
        Searches of each instance, and Adam's steps and rate.
    spread
        Size of the noise on the logits from which a restart begins.
    penalty
        Weight of the output's change beyond ε.
    diversity
        Weight of the JSD between restarts, which keeps them apart: its mean over all K × K ordered
        pairs, in which a restart's 0 from itself counts, as in the published code.
    seed
        Decides the noise, together with the example's id.
    own_start
        Whether the noise is put on the model's own weights instead of on equal ones: where much
        depends on attention, a random start never comes near the output again.
    """

    epsilon: float = 0.01
    restarts: int = 5
    steps: int = 500
    lr: float = 0.01
    spread: float = 3.0
    penalty: float = 500.0
    diversity: float = 1.0
    seed: int = 0
    own_start: bool = False


@dataclass(frozen=True)
class Adversaries:
    """The adversary found for each example, on the CPU.

    Attributes
    ----------
    score
        The adversarial weights, averaged over heads.
    divergence
        Their JSD from the model's own weights, in nats.
    distance
        The TVD between the outputs.
    """

    score: Score
    divergence: Float[Tensor, " example"]
    distance: Float[Tensor, " example"]


def find_adversaries(
    model: AttentionModel,
    batch: Batch,
    search: Search | None = None,
    *,
    site: str = "cross",
    positions: int = _POSITIONS,
) -> Adversaries:
    """Search for the attention farthest from a model's own that leaves its output in place.

    Parameters
    ----------
    model
        Any model; where its output is not a readout of the context at the site, it is run again in
        every step.
    batch
        Examples on the model's device, with a label each or with several output words.
    search
        How to search, by default as Jain and Wallace [1]_ did.
    positions
        How many input positions are searched at once.

    References
    ----------
    .. [1] S. Jain, B. C. Wallace. "Attention is not Explanation." NAACL 2019.
    """
    search = search or Search()
    if search.restarts < 1 or search.steps < 1:
        raise UsageError(
            f"A search has at least one restart and one step, not {search.restarts} and "
            f"{search.steps}."
        )
    out, inp = batch.targets.shape[1], batch.inputs.shape[1]
    weights = torch.zeros(len(batch), out, inp, dtype=torch.float64)
    mask = torch.zeros(len(batch), inp, dtype=torch.bool)
    numbers: dict[str, list[Tensor]] = defaultdict(list)
    order: list[Tensor] = []
    at_once = max(1, positions // search.restarts)
    for rows, trace in traces_by_length(model, batch, site, positions=at_once):
        with resuming(model, trace.batch, site):
            found = _searched(model, trace, site, search)
        order.append(rows)
        at, (height, width) = (
            site_of(trace, site),
            (trace.batch.targets.shape[1], trace.batch.inputs.shape[1]),
        )
        other = of_outputs(trace, at, site, found.weights).mean(1)
        weights[rows, :height, :width] = other.double().cpu()
        mask[rows, :width] = by_row(mask_of_outputs(trace, at, site)).any(1).cpu()
        numbers["divergence"].append(found.divergence.cpu())
        numbers["distance"].append(found.distance.cpu())
    back = torch.cat(order).argsort()
    divergence, distance = (torch.cat(numbers[n])[back] for n in ("divergence", "distance"))
    score = Score("adversarial_attention", weights, mask, batch.to("cpu"))
    return Adversaries(score, divergence, distance)


@dataclass
class _Best:
    """The best weights so far of each instance."""

    weights: Float[Tensor, "batch heads out inp"]
    divergence: Float[Tensor, " batch"]
    distance: Float[Tensor, " batch"]

    def look_at(
        self, weights: Weights, divergence: PerInstance, distance: PerInstance, epsilon: float
    ) -> None:
        """Keep candidates that obey ε and are farther away than all earlier ones."""
        allowed = divergence.masked_fill(distance > epsilon, -1.0)
        value, restart = allowed.max(0)
        better = value > self.divergence
        instance = torch.arange(len(value), device=value.device)
        self.weights = torch.where(
            better[:, None, None, None], weights[restart, instance], self.weights
        )
        self.divergence = torch.where(better, value, self.divergence)
        self.distance = torch.where(better, distance[restart, instance], self.distance)


def _searched(model: AttentionModel, trace: Trace, site: str, search: Search) -> _Best:
    at = site_of(trace, site)
    own, target = at.weights.detach(), trace.logits.detach().softmax(-1)
    nothing = own.new_zeros(len(trace.batch))
    best = _Best(own, nothing, nothing)
    logits = _start(trace, site, search).requires_grad_()
    pairs = _pairs(search.restarts, logits.device)
    optimizer = torch.optim.Adam([logits], lr=search.lr, amsgrad=True)
    ids = trace.batch.ids.repeat(search.restarts)
    real = at.mask.repeat(search.restarts, *[1] * (at.mask.ndim - 1))
    rows, words = _row_shares(trace, at)
    for step in range(search.steps + 1):
        weights = LEARNED(logits.flatten(0, 1), real, ids).view_as(logits)
        divergence = _divergence(weights, own[None], at.mask, rows)
        outputs = outputs_under(model, trace, weights, site).softmax(-1)
        distance = (total_variation(outputs, target[None]) * words).sum(-1)
        best.look_at(weights.detach(), divergence.detach(), distance.detach(), search.epsilon)
        if step == search.steps:
            return best
        beyond = (distance - search.epsilon).relu()
        apart = search.diversity * _apart(weights, pairs, at.mask, rows)
        loss = (search.penalty * beyond - divergence).sum() - apart.sum()
        (logits.grad,) = torch.autograd.grad(loss, logits)
        optimizer.step()
    raise AssertionError("the last step returns")


def _start(trace: Trace, site: str, search: Search) -> Weights:
    """Return log-uniform logits with normal noise that depends on seed, id and place alone."""
    at = site_of(trace, site)
    device, dtype = at.weights.device, at.weights.dtype
    _, heads, out, inp = at.weights.shape
    sizes = (search.restarts, len(trace.batch), heads, out, inp)
    restart, _, head, output, place = (
        torch.arange(size, device=device).view(-1, *[1] * (4 - axis))
        for axis, size in enumerate(sizes)
    )
    ids = trace.batch.ids.view(-1, 1, 1, 1)
    first, second = (
        counter_uniform(search.seed, ids, restart, head, output, place, torch.full_like(place, k))
        for k in (0, 1)
    )
    # Box and Muller's normal numbers; 1 − u is never 0.
    noise = (-2 * (1 - first).log()).sqrt() * (2 * math.pi * second).cos()
    even = Uniform()(at.logits, at.mask, trace.batch.ids)
    start = at.weights.detach() if search.own_start else even
    return start.clamp(min=torch.finfo(dtype).tiny).log() + search.spread * noise.to(dtype)


def _divergence(
    weights: Float[Tensor, "#draw batch heads out inp"],
    other: Float[Tensor, "#draw batch heads out inp"],
    mask: Bool[Tensor, "batch *row inp"],
    rows: Float[Tensor, "batch out"],
) -> Float[Tensor, "draw batch"]:
    apart = jensen_shannon(weights, other, by_row(mask)[:, None]).mean(-2)
    return (apart * rows).sum(-1)


def _row_shares(
    trace: Trace, site: Site
) -> tuple[Float[Tensor, "batch out"], Float[Tensor, "batch word"]]:
    """Return the share of each row and of each output word: rows that nothing reads have none.

    What an unread row attends to could be anything, and would make any search succeed.
    """
    real = trace.batch.target_mask.to(site.weights.dtype)
    words = real / real.sum(1, keepdim=True)
    return (words if site.reads is None else site.reads.to(words)), words


def _pairs(restarts: int, device: torch.device) -> Int[Tensor, "2 pair"]:
    pairs = list(combinations(range(restarts), 2))
    return torch.tensor(pairs, dtype=torch.long, device=device).view(-1, 2).T


def _apart(
    weights: Weights,
    pairs: Int[Tensor, "2 pair"],
    mask: Bool[Tensor, "batch *row inp"],
    rows: Float[Tensor, "batch out"],
) -> Float[Tensor, " batch"]:
    """Return each instance's mean JSD over the K × K ordered pairs of restarts, K of them 0."""
    one, other = weights[pairs[0]], weights[pairs[1]]
    return 2 * _divergence(one, other, mask, rows).sum(0) / len(weights) ** 2
