"""The numbers of figure 5, each taken of one network: terms, offsets, variances, readouts.

The share of μ^D·μ^E stands beside how much of a sequence's attention the mean attention has, which
the paper's second contribution relates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from attnscope.analysis.alignment_terms import TERMS
from attnscope.analysis.components import peak_offset, readout_dictionary, rows_scaled
from attnscope.analysis.decomposition import states_of
from attnscope.analysis.intervals import LEVEL, RESAMPLES, Interval
from attnscope.analysis.state_measures import (
    WordVariance,
    attention_cells,
    attention_overlap,
    gold_offset,
    marker_offset,
)
from attnscope.analysis.streaming import cell_means, collect
from attnscope.analysis.term_shares import term_shares
from attnscope.data.batch import Batch, prefix_mask
from attnscope.data.escan import VERBS, ExtendedScan
from attnscope.recipes.aitken.groups import Numbers, key
from attnscope.recipes.aitken.networks import Network, sides
from attnscope.recipes.aitken.shared_claims import MU_MU, THREE
from attnscope.recipes.aitken.units import context_readout

_SYMBOLS = {"temporal": "mu", "word": "chi", "delta": "deltah"}
TERM_NAMES = tuple(f"{_SYMBOLS[decoder]}D.{_SYMBOLS[encoder]}E" for decoder, encoder in TERMS)
# The three shades of Fig. 5a.
SHADES = {MU_MU: (0,), "muD.chiE+muD.deltahE": (1, 2), "the other six": tuple(range(3, 9))}
OFFSETS = range(-5, 6)
# A time step that fewer sequences reach has no mean state to speak of.
_COMMON = 0.1
SILENT = ("and", "twice")

Line = Float[Tensor, " step"]


def term_numbers(network: Network) -> Numbers:
    """Return the nine terms' shares, raw and row-centred, and the three shades at every step."""
    found: Numbers = {}
    shares = term_shares(network.traces(), network.cross)
    for form, share in shares.items():
        values = share.mean[0].tolist()
        for name, value in zip(TERM_NAMES, values, strict=True):
            found[key("term_share", form=form, term=name)] = value
        found[key("term_share", form=form, term=THREE)] = sum(values[:3])
        found[key("largest_gap", form=form)] = values[0] - max(values[1:])
    per_step = shares["raw"].per_step[0]
    common = shares["raw"].counts >= _COMMON * network.samples
    for shade, terms in SHADES.items():
        line = per_step[list(terms)].sum(0)[common]
        for step, value in enumerate(line.tolist(), 1):
            found[key("term_share_at", shade=shade, step=step)] = value
    return found


def similarity(network: Network) -> Numbers:
    """Return how much of a sequence's attention the mean attention has."""
    mean = cell_means(
        attention_cells(trace.sites["cross"], trace.batch.target_mask) for trace in network.traces()
    ).mean
    overlap = collect(
        network.traces(),
        {"": lambda trace: attention_overlap(trace.sites["cross"], mean, trace.batch.target_mask)},
    )
    return {key("attention_similarity"): overlap[""].value}


def variance_drop(network: Network) -> Numbers:
    """Return the share of a word's variance that its temporal component takes away."""
    variance = WordVariance(network.states.encoder)
    for trace in network.traces():
        variance.update(states_of(trace).encoder)
    end = network.source.input_words.id("<eos>")
    return {key("variance_drop"): variance.drop(excluded=(end,))}


def corpus_lines(task: ExtendedScan, batch: Batch) -> dict[str, Float[Tensor, "batch step"]]:
    """Return the offsets of sequences: as the authors' code has them, and exactly."""
    words = task.input_words
    inside = prefix_mask(batch.input_lengths - 1, batch.inputs.shape[1])
    code = marker_offset(batch.inputs, inside, silent=words.id("and"), late=words.id("left"))
    return {"code": code, "exact": gold_offset(batch)}


def offset_numbers(network: Network, lines: Mapping[str, Line]) -> Numbers:
    """Return where μ^D·μ^E has its maximum, its shape round s = t, and how it follows the lines."""
    attention = common_logits(network).softmax(-1)
    peaks = peak_offset(attention).double()
    found = {key("peak_offset", step=step): peak for step, peak in enumerate(peaks.tolist(), 1)}
    found |= profile(attention)
    for name, line in lines.items():
        length = min(len(line), len(peaks))
        found[key("offset_spearman", line=name)] = float(
            rank_correlation(peaks[:length].numpy(), line[:length].numpy())
        )
        error = (peaks[:length] - line[:length]).abs().mean()
        found[key("offset_error", line=name)] = float(error)
    return found


def profile(attention: Float[Tensor, "out inp"]) -> Numbers:
    """Return attention by its offset from s = t, each row scaled to 0 to 1 (Fig. 5b)."""
    return {
        key("temporal_profile", step=step + 1, offset=offset): row[step + offset]
        for step, row in enumerate(rows_scaled(attention).tolist())
        for offset in OFFSETS
        if 0 <= step + offset < len(row)
    }


def common_logits(network: Network) -> Float[Tensor, "out inp"]:
    """Return μ^D·μ^E at the steps that enough sequences reach."""
    inp, out = (
        int((side.time_counts >= _COMMON * network.samples).sum()) for side in sides(network.cross)
    )
    return network.temporal_logits[:out, :inp]


def rank_correlation(
    a: Float[NDArray[np.float64], "item *any"], b: Float[NDArray[np.float64], "item *any"]
) -> Float[NDArray[np.float64], "*any"]:
    """Return Spearman's coefficients over the first axis; a constant follows nothing and has 0."""
    if len(a) < 2:
        return np.zeros(a.shape[1:])
    ranks = [stats.rankdata(values, axis=0) - (len(a) + 1) / 2 for values in (a, b)]
    size = np.sqrt(np.square(ranks).sum(1).prod(0))
    return np.divide((ranks[0] * ranks[1]).sum(0), size, out=np.zeros(a.shape[1:]), where=size > 0)


def dictionary_numbers(network: Network) -> Numbers:
    """Return which input word each readout aligns most with, and all products (Fig. 5d)."""
    source = network.source
    components = network.states.encoder
    readout = context_readout(network.model)
    nearest = [source.input_words.words[i] for i in readout_dictionary(readout, components)]
    best = dict(zip(source.output_words.words[:-1], nearest, strict=False))
    right = [best[action] == verb for verb, action in VERBS.items()]
    products = readout.double() @ components.words(torch.arange(len(network.words))).mT
    return {
        key("dictionary"): sum(right) / len(right),
        key("dictionary_left"): float(best["LTURN"] == "left"),
        key("silent_readouts"): float(sum(word in SILENT for word in best.values())),
    } | {
        key("readout_product", output=output, input=word): value
        for output, line in zip(best, products.tolist(), strict=False)
        for word, value in zip(network.words, line, strict=True)
    }


def grouped_spearman(
    pairs: Sequence[tuple[Sequence[float], Sequence[float]]], rng: np.random.Generator
) -> Interval:
    """Return Spearman's coefficient of two numbers over groups of networks, from their means.

    Networks of each group are resampled together for both numbers, groups are not.

    Parameters
    ----------
    pairs
        For each group its networks' first and second numbers.
    rng
        Where the resamples come from.
    """
    tables = [np.array(pair, np.float64) for pair in pairs]
    value = float(rank_correlation(*np.array([table.mean(1) for table in tables]).T))
    if any(table.shape[1] < 2 for table in tables):
        return Interval(value, np.nan, np.nan, len(tables))
    drawn = np.stack(
        [
            table[:, rng.integers(table.shape[1], size=(RESAMPLES, table.shape[1]))].mean(-1)
            for table in tables
        ]
    )  # group, number, resample
    found = rank_correlation(drawn[:, 0], drawn[:, 1])
    low, high = np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(value, float(low), float(high), len(tables))
