"""Offsets t − s: where softmax(μ^D·μ^E) has its maximum, how wide it is, and what it follows.

Fig. 4b and 5b; and (χ + Δh)·μ^D of words by offset, by which they hide from attention (Fig. 6c, d).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.alignment_terms import CROSS
from attnscope.analysis.components import (
    mass_around,
    offset_moments,
    peak_offset,
    rows_scaled,
)
from attnscope.analysis.rank_correlation import rank_correlation
from attnscope.analysis.state_measures import (
    OFFSETS,
    OffsetProducts,
    gold_offset,
    marker_offset,
)
from attnscope.data.batch import Batch, prefix_mask
from attnscope.data.escan import ExtendedScan
from attnscope.recipes.aitken.measures import Line, Lines, Numbers, over_steps
from attnscope.recipes.aitken.networks import COMMON, Network, sides
from attnscope.recipes.kit.sheet import number

# Offsets of Fig. 5b.
PROFILE = range(-5, 6)

Steps = Float[Tensor, " step"]


def maxima(network: Network) -> Lines:
    """Return the offset of the maximum at each step."""
    return {number("peak_offset"): over_steps(_peaks(network))}


def _peaks(network: Network) -> Steps:
    return peak_offset(network.temporal_attention()).double()


def profile(network: Network) -> Float[Tensor, "step offset"]:
    """Return softmax(μ·μ) by offset, each row scaled to 0 to 1; NaN outside (Fig. 5b)."""
    scaled = rows_scaled(network.temporal_attention())
    places = torch.arange(len(scaled))[:, None] + torch.tensor(list(PROFILE))
    inside = places.clamp(0, scaled.shape[1] - 1)
    return scaled.gather(1, inside).masked_fill(places != inside, torch.nan)


def corpus_lines(task: ExtendedScan, batch: Batch) -> dict[str, Float[Tensor, "batch step"]]:
    """Return the offsets of sequences: as the authors' code has them, and exactly."""
    words = task.input_words
    inside = prefix_mask(batch.input_lengths - 1, batch.inputs.shape[1])
    code = marker_offset(batch.inputs, inside, silent=words.id("and"), late=words.id("left"))
    return {"code": code, "exact": gold_offset(batch)}


def followed(network: Network, lines: Mapping[str, Float[Tensor, "batch step"]]) -> Numbers:
    """Return how closely the maximum follows the mean of each line."""
    found: Numbers = {}
    for name, line in lines.items():
        means = line.nanmean(0)
        expected = means[~means.isnan()]
        peak = _peaks(network)
        length = min(len(expected), len(peak))
        pair = peak[:length], expected[:length]
        order = rank_correlation(*(values.numpy() for values in pair))
        found[number("offset_spearman", line=name)] = float(order)
        found[number("offset_error", line=name)] = float((pair[0] - pair[1]).abs().mean())
    return found


def by_step(network: Network) -> Lines:
    """Return maximum, mean and width of softmax(μ·μ) at each step, and its weight at t = s.

    Steps after the last input position are left out: their offset is necessarily negative.
    """
    attention = network.temporal_attention()
    attention = attention[: attention.shape[1]]
    mean, width = offset_moments(attention)
    found = {
        "peak_offset": peak_offset(attention).double(),
        "mean_offset": mean,
        "offset_width": width,
        "diagonal_mass": mass_around(attention, torch.arange(len(attention))),
    }
    return {number(name): over_steps(line) for name, line in found.items()}


def changes(lines: Lines) -> Numbers:
    """Return the mean over the last third of the steps less that over the first third.

    ``lines`` are those of `by_step`; of the mass at t = s it is the first third less the last.
    """
    return {
        number("offset_change", of="maximum"): _change(lines[number("peak_offset")].y),
        number("offset_change", of="mean"): _change(lines[number("mean_offset")].y),
        number("width_change"): _change(lines[number("offset_width")].y),
        number("diagonal_change"): -_change(lines[number("diagonal_mass")].y),
    }


def _change(line: Steps) -> float:
    third = max(1, len(line) // 3)
    return float(line[-third:].mean() - line[:third].mean())


def ranks(network: Network) -> Numbers:
    """Return how often the largest μ·μ is at t = s, and the second largest at t = s − 1."""
    second = network.temporal_logits(common=COMMON).topk(2).indices
    steps = torch.arange(len(second))
    found: Numbers = {}
    for rank, offset in ((1, 0), (2, -1)):
        there = second[:, rank - 1] - steps == offset
        found[number("temporal_rank", rank=rank, offset=offset)] = float(there.double().mean())
    return found


def word_products(network: Network) -> Lines:
    """Return (χ + Δh)·μ^D of every word by offset."""
    products = OffsetProducts(*sides(network.cross))
    for trace in network.traces():
        products.update(CROSS(trace).encoder, trace.batch.target_mask)
    lines = zip(network.words, products.mean, strict=False)
    return {number("offset_product", word=word): Line("offset", OFFSETS, y) for word, y in lines}


def slope_of_left(products: Lines) -> Numbers:
    """Return how the product of 'left', one of `word_products`, grows with the offset."""
    _, x, y = products[number("offset_product", word="left")]
    return {number("left_slope"): float(np.polyfit(np.array(x, float), y.numpy(), 1)[0])}
