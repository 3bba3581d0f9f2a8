"""Attention: what temporal components alone give of it, where, and what its mean gives.

Offsets are t − s of the maximum of softmax(μ^D·μ^E) (Fig. 4b, 5b); words hide from attention by
(χ + Δh)·μ^D, by offset (Fig. 6c, d).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.alignment_terms import CROSS, temporal_agreement
from attnscope.analysis.components import (
    by_offset,
    mass_around,
    most_aligned_step,
    offset_moments,
    peak_offset,
    rows_scaled,
)
from attnscope.analysis.measures.numbers import Line, Lines, Number, Numbers, number
from attnscope.analysis.network import COMMON, Network, reached, sides, site_of
from attnscope.analysis.rank_correlation import rank_correlation
from attnscope.analysis.state_measures import (
    OFFSETS,
    OffsetProducts,
    attention_cells,
    attention_overlap,
)
from attnscope.analysis.streaming import Measure, Ratio, cell_means, mean_of
from attnscope.analysis.temporal_attention import Weights, at_gold, near_gold, temporal_weights
from attnscope.models.trace import Trace

Steps = Float[Tensor, " step"]


def agreement(network: Network) -> Numbers:
    """Return how often μ^D·μ^E alone has its maximum where the alignment has it, or next to it."""

    def within(positions: int) -> Callable[[int], Measure]:
        def of_head(head: int) -> Measure:
            return lambda trace: mean_of(
                temporal_agreement(trace, network.cross, within=positions)[:, head]
            )

        return of_head

    return _of_heads(network, "temporal_agreement", within(0)) | _of_heads(
        network, "temporal_agreement_within_one", within(1)
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

    return _of_heads(network, "attention_similarity", of_head)


def _of_heads(network: Network, name: str, of_head: Callable[[int], Measure]) -> Numbers:
    heads = network.heads.items()
    return network.collected({number(name, **axes): of_head(head) for head, axes in heads})


def in_line(network: Network) -> Numbers:
    """Return the share of steps s at which μ^D_s is closest to μ^E_t at the gold position t.

    ``aligned_steps`` is by their cosine, ``dot_aligned_steps`` by their product, the alignment.
    """
    encoder, decoder = map(reached, sides(network.cross))
    return network.collected(
        {
            number("aligned_steps"): at_gold(most_aligned_step(decoder, encoder)),
            number("dot_aligned_steps"): at_gold((decoder @ encoder.mT).argmax(-1)),
        }
    )


def gold_mass(network: Network) -> Numbers:
    """Return how much attention, and how much of softmax(μ·μ), lies at or next to the gold."""
    weights: dict[str, Weights] = {
        "temporal": lambda trace: temporal_weights(network, trace),
        "attention": lambda trace: trace.sites[CROSS.site].weights[:, 0],
    }
    measures: dict[Number, Measure] = {}
    for of, found in weights.items():
        for width in (0, 1):
            measures[number("gold_mass", of=of, within=width)] = near_gold(found, width)
    return network.collected(measures)


def first_output(network: Network) -> Numbers:
    """Return how much of the first output's attention lies on the first input, and on the last."""

    def at(last: bool) -> Measure:
        def share(trace: Trace) -> Ratio:
            weights = trace.sites[CROSS.site].weights[:, 0, 0]
            places = (trace.batch.input_lengths.to(weights.device) - 1) * last
            return mean_of(weights.gather(1, places[:, None]))

        return share

    places = {"first": False, "last": True}
    return network.collected(
        {number("first_attention", at=name): at(i) for name, i in places.items()}
    )


def maxima(network: Network) -> Lines:
    """Return the offset of the maximum at each step."""
    return {number("peak_offset"): Line.of_steps(_peaks(network))}


def _peaks(network: Network) -> Steps:
    return peak_offset(network.temporal_attention()).double()


def profile(network: Network, offsets: range) -> Float[Tensor, "step offset"]:
    """Return softmax(μ·μ) by offset, each row scaled to 0 to 1; NaN outside (Fig. 5b)."""
    return by_offset(rows_scaled(network.temporal_attention()), offsets)


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
    return {number(name): Line.of_steps(values) for name, values in found.items()}


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
