"""Attention that temporal components alone give, next to the attention itself (aitken Fig. 2, 5b).

Queries and keys are taken as they enter attention, so that everything means the same for
dot-product and for learned attention.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.analysis.alignment_terms import (
    CROSS,
    TERMS,
    compute_alignment_terms,
    temporal_alignment,
)
from attnscope.analysis.network import Network
from attnscope.analysis.state_measures import attention_cells
from attnscope.analysis.streaming import Measure, Ratio, cell_means, mean_of
from attnscope.models.trace import Trace

Weights = Callable[[Trace], Float[Tensor, "batch out inp"]]


def temporal_weights(network: Network, trace: Trace) -> Float[Tensor, "batch out inp"]:
    """Return softmax(μ^D·μ^E) over the real positions of each sample."""
    out, inp = trace.batch.targets.shape[1], trace.batch.inputs.shape[1]
    logits = network.scale * temporal_alignment(network.cross)[0, :out, :inp]
    real = trace.batch.input_mask[:, None]
    return logits.expand(len(real), -1, -1).masked_fill(~real, -torch.inf).softmax(-1)


def mean_attention(network: Network) -> dict[str, Float[Tensor, "out inp"]]:
    """Return the mean over sequences of attention, and of softmax(μ·μ) (aitken Fig. 2a, c)."""

    def both(trace: Trace) -> Float[Tensor, "batch 2 out inp"]:
        batch = trace.batch
        real = batch.target_mask[:, :, None] & batch.input_mask[:, None]
        full = attention_cells(trace.sites[CROSS.site], batch.target_mask)[:, 0].double()
        return torch.stack([full, temporal_weights(network, trace).where(real, torch.nan)], 1)

    full, temporal = cell_means(both(trace) for trace in network.traces()).mean
    return {"attention": full, "temporal": temporal}


def at_gold(aligned: Int[Tensor, " out"]) -> Measure:
    """Return how often the encoder step found for each decoder step is the gold position."""

    def measure(trace: Trace) -> Ratio:
        gold = trace.batch.gold
        right = (aligned[: gold.shape[1]] == gold[:, : len(aligned)]).double()
        # In the longest sequences every step is there once, and the mean is one over steps.
        long = trace.batch.target_lengths == len(aligned)
        unknown = (gold[:, : len(aligned)] < 0) | ~long[:, None]
        return mean_of(right.masked_fill(unknown, torch.nan))

    return measure


def near_gold(weights: Weights, width: int) -> Measure:
    """Return the weight within some positions of the one that the output word comes from."""

    def measure(trace: Trace) -> Ratio:
        gold, rows = trace.batch.gold, weights(trace)
        places = torch.arange(rows.shape[-1])
        near = (places - gold[..., None]).abs() <= width
        return mean_of((rows * near).sum(-1).masked_fill(gold < 0, torch.nan))

    return measure


def attention_of_terms(
    network: Network, trace: Trace, row: int, terms: Mapping[str, tuple[str, str]]
) -> dict[str, Float[Tensor, "out inp"]]:
    """Return the attention of one sequence, and the softmax of some of its terms (aitken Fig. 2h).

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
