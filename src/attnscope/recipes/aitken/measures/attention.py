"""Attention as a whole: what temporal components alone give of it, and what its mean gives.

Everything is measured on queries and keys as they enter attention, so that it means the same for
dot-product and for learned attention.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.analysis.alignment_terms import (
    CROSS,
    TERMS,
    compute_alignment_terms,
    temporal_agreement,
    temporal_alignment,
)
from attnscope.analysis.components import most_aligned_step
from attnscope.analysis.state_measures import attention_cells, attention_overlap
from attnscope.analysis.streaming import Measure, Ratio, cell_means, mean_of
from attnscope.models.trace import Trace
from attnscope.recipes.aitken.measures import Numbers
from attnscope.recipes.aitken.networks import Network, reached, sides, site_of
from attnscope.recipes.kit.sheet import Number, number

Weights = Callable[[Trace], Float[Tensor, "batch out inp"]]


def agreement(network: Network) -> Numbers:
    """Return how often μ^D·μ^E alone has its maximum where the alignment has it."""

    def of_head(head: int) -> Measure:
        return lambda trace: mean_of(temporal_agreement(trace, network.cross)[:, head])

    return network.collected(
        {
            number("temporal_agreement", **axes): of_head(head)
            for head, axes in network.heads.items()
        }
    )


def similarity(network: Network) -> Numbers:
    """Return how much of a sequence's attention the mean attention has."""
    means = cell_means(
        attention_cells(trace.sites[CROSS.site], trace.batch.target_mask)
        for trace in network.traces()
    ).mean

    def of_head(head: int) -> Measure:
        mean = means[head : head + 1]
        return lambda trace: attention_overlap(site_of(trace, head), mean, trace.batch.target_mask)

    return network.collected(
        {
            number("attention_similarity", **axes): of_head(head)
            for head, axes in network.heads.items()
        }
    )


def in_line(network: Network) -> Numbers:
    """Return the share of steps s at which μ^D_s is closest to μ^E_t at the gold position t.

    ``aligned_steps`` is by their cosine, ``dot_aligned_steps`` by their product, the alignment.
    """
    encoder, decoder = map(reached, sides(network.cross))
    return network.collected(
        {
            number("aligned_steps"): _at_gold(most_aligned_step(decoder, encoder)),
            number("dot_aligned_steps"): _at_gold((decoder @ encoder.mT).argmax(-1)),
        }
    )


def _at_gold(aligned: Int[Tensor, " out"]) -> Measure:
    """Return how often the step found for each decoder step is the gold position."""

    def measure(trace: Trace) -> Ratio:
        gold = trace.batch.gold
        right = (aligned[: gold.shape[1]] == gold[:, : len(aligned)]).double()
        # In the longest sequences every step is there once, and the mean is one over steps.
        long = trace.batch.target_lengths == len(aligned)
        unknown = (gold[:, : len(aligned)] < 0) | ~long[:, None]
        return mean_of(right.masked_fill(unknown, torch.nan))

    return measure


def gold_mass(network: Network) -> Numbers:
    """Return how much attention, and how much of softmax(μ·μ), lies at or next to the gold."""
    weights: dict[str, Weights] = {
        "temporal": lambda trace: temporal_weights(network, trace),
        "attention": lambda trace: trace.sites[CROSS.site].weights[:, 0],
    }
    measures: dict[Number, Measure] = {}
    for of, found in weights.items():
        for width in (0, 1):
            measures[number("gold_mass", of=of, within=width)] = _near_gold(found, width)
    return network.collected(measures)


def _near_gold(weights: Weights, width: int) -> Measure:
    """Return the weight within some positions of the one that the output word comes from."""

    def measure(trace: Trace) -> Ratio:
        gold, rows = trace.batch.gold, weights(trace)
        places = torch.arange(rows.shape[-1])
        near = (places - gold[..., None]).abs() <= width
        return mean_of((rows * near).sum(-1).masked_fill(gold < 0, torch.nan))

    return measure


def temporal_weights(network: Network, trace: Trace) -> Float[Tensor, "batch out inp"]:
    """Return softmax(μ^D·μ^E) over the real positions of each sample."""
    out, inp = trace.batch.targets.shape[1], trace.batch.inputs.shape[1]
    logits = network.scale * temporal_alignment(network.cross)[0, :out, :inp]
    real = trace.batch.input_mask[:, None]
    return logits.expand(len(real), -1, -1).masked_fill(~real, -torch.inf).softmax(-1)


def mean_attention(network: Network) -> dict[str, Float[Tensor, "out inp"]]:
    """Return the mean over sequences of attention, and of softmax(μ·μ) (Fig. 2a, c)."""

    def both(trace: Trace) -> Float[Tensor, "batch 2 out inp"]:
        batch = trace.batch
        real = batch.target_mask[:, :, None] & batch.input_mask[:, None]
        full = attention_cells(trace.sites[CROSS.site], batch.target_mask)[:, 0].double()
        return torch.stack([full, temporal_weights(network, trace).where(real, torch.nan)], 1)

    full, temporal = cell_means(both(trace) for trace in network.traces()).mean
    return {"attention": full, "temporal": temporal}


def example_of_terms(
    network: Network, trace: Trace, row: int, terms: dict[str, tuple[str, str]]
) -> dict[str, Float[Tensor, "out inp"]]:
    """Return the attention of one sequence, and the softmax of some of its terms (Fig. 2h).

    Parameters
    ----------
    row
        The sequence's place in the forward pass.
    terms
        Terms as `compute_alignment_terms` names them, by the names that they get here.
    """
    batch = trace.batch.rows(slice(row, row + 1)).trimmed()
    out, inp = batch.targets.shape[1], batch.inputs.shape[1]
    chunks = [chunk.values[:, 0] for chunk in compute_alignment_terms(trace, network.cross)]
    values = torch.cat(chunks)[row, :, :out, :inp]
    found = {"attention": trace.sites[CROSS.site].weights[row, 0, :out, :inp].double()}
    for name, term in terms.items():
        found[name] = (network.scale * values[TERMS.index(term)]).softmax(-1)
    return found
