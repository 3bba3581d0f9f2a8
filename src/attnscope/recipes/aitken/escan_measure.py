"""What is measured of one network: sizes of components, subphrases, and what a figure shows of it.

Every function takes a `Network`, whose components are taken once, and gives plain numbers by key.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.analysis.agreement import argmax_at
from attnscope.analysis.components import principal_axes
from attnscope.analysis.decomposition import states_of
from attnscope.analysis.state_measures import delta_share
from attnscope.analysis.streaming import Ratio, collect, mean_of
from attnscope.data.batch import Batch
from attnscope.data.escan import ExtendedScan
from attnscope.models.trace import Trace
from attnscope.recipes.aitken.groups import Numbers, key
from attnscope.recipes.aitken.networks import Network, paths
from attnscope.recipes.aitken.units import context_readout

# What of a matrix is drawn as nothing, and not kept.
_VISIBLE = 0.005
# States of each word that a figure shows.
_SHOWN = 12


def delta_shares(network: Network) -> Numbers:
    """Return the share of Δh in ‖h − μ‖², of the encoder's and of the decoder's states."""

    def encoder(trace: Trace) -> Ratio:
        return delta_share(network.states.encoder.split(states_of(trace).encoder))

    def decoder(trace: Trace) -> Ratio:
        side = states_of(trace).decoder
        assert side is not None
        return delta_share(network.decoder.split(side))

    found = collect(network.traces(), {"encoder": encoder, "decoder": decoder})
    return {key("delta_share", side=side): ratio.value for side, ratio in found.items()}


def subphrases(network: Network) -> Numbers:
    """Return how often the most attended position ends the output's subphrase (Fig. 3a).

    Chance is the attention of another sequence, which is about as diagonal; ``uniform`` is that of
    a position drawn at random. Of two-word subphrases the end is the modifier and not the verb.
    """
    task = network.source
    assert isinstance(task, ExtendedScan)
    found = collect(
        network.traces(),
        {
            "end": lambda trace: mean_of(_at(trace, _ends(task, trace.batch))),
            "end, another sequence's": lambda trace: mean_of(_at(trace, _others(task, trace))),
            "end, two words": lambda trace: mean_of(_at(trace, _long_ends(task, trace.batch))),
            "end, uniform": lambda trace: _uniform(task, trace),
            "the same as the output before": lambda trace: _same(task, trace),
        },
    )
    share = {what: ratio.value for what, ratio in found.items()}
    chance = share["end, another sequence's"]
    return {key("subphrase", attended=what): value for what, value in share.items()} | {
        key("subphrase_difference"): share["end"] - chance,
        key("subphrase_ratio"): share["end"] / chance if chance else float("nan"),
    }


def _at(trace: Trace, place: Int[Tensor, "batch out"]) -> Float[Tensor, "batch out"]:
    site = trace.sites["cross"]
    return argmax_at(site.weights[:, 0], place, site.mask)


def _ends(task: ExtendedScan, batch: Batch) -> Int[Tensor, "batch out"]:
    """Return the ends of subphrases; the end word has none."""
    end = task.output_words.id("<eos>")
    return task.subphrase_ends(batch).masked_fill(batch.targets == end, -1)


def _others(task: ExtendedScan, trace: Trace) -> Int[Tensor, "batch out"]:
    own = _ends(task, trace.batch)
    return own.roll(1, 0).masked_fill(own < 0, -1)


def _long_ends(task: ExtendedScan, batch: Batch) -> Int[Tensor, "batch out"]:
    ends = _ends(task, batch)
    verbs = torch.tensor([task.input_words.id(verb) for verb in ("run", "walk", "jump")])
    last = batch.inputs.gather(1, ends.clamp(min=0))
    return ends.masked_fill(torch.isin(last, verbs.to(last.device)), -1)


def _uniform(task: ExtendedScan, trace: Trace) -> Ratio:
    ends = _ends(task, trace.batch)
    chance = 1 / trace.batch.input_lengths.to(ends.device).double()[:, None]
    return mean_of(chance.expand_as(ends).masked_fill(ends < 0, torch.nan))


def _same(task: ExtendedScan, trace: Trace) -> Ratio:
    """Return how often two outputs of one subphrase, one after the other, attend to one place."""
    ends, site = _ends(task, trace.batch), trace.sites["cross"]
    highest = site.weights[:, 0].argmax(-1)
    pair = (ends[:, 1:] == ends[:, :-1]) & (ends[:, 1:] >= 0)
    same = (highest[:, 1:] == highest[:, :-1]).double()
    return mean_of(same.masked_fill(~pair, torch.nan))


def example_attention(network: Network) -> Numbers:
    """Return the attention on the first sequence with most kinds of words, and its words."""
    trace = next(network.traces())
    batch, source = trace.batch, network.source
    kinds = torch.zeros(len(batch), len(source.input_words)).scatter(1, batch.inputs, 1.0).sum(1)
    row = int(kinds.argmax())
    inp, out = int(batch.input_lengths[row]), int(batch.target_lengths[row])
    inputs = source.input_words.decode(batch.inputs[row, :inp].tolist())
    outputs = source.output_words.decode(batch.targets[row, :out].tolist())
    words = {
        key("example", side=side, place=place, word=word): float(place)
        for side, said in (("input", inputs), ("output", outputs))
        for place, word in enumerate(said)
    }
    return words | matrix("attention", trace.sites["cross"].weights[row, 0, :out, :inp])


def temporal_matrix(network: Network) -> Numbers:
    """Return the attention of temporal components alone."""
    return matrix("temporal_attention", network.temporal_logits.softmax(-1))


def matrix(name: str, values: Float[Tensor, "out inp"]) -> Numbers:
    """Return the cells of a matrix that can be seen."""
    return {
        key(name, out=out, inp=inp): round(value, 4)
        for out, line in enumerate(values.tolist())
        for inp, value in enumerate(line)
        if value >= _VISIBLE
    }


def temporal_paths(network: Network) -> Numbers:
    """Return temporal components in the plane of their first two principal axes (Fig. 3b)."""
    sides = paths(network.states)
    axes = principal_axes(*sides.values())
    return {
        key("temporal_path", side=side, step=step + 1, pc=pc + 1): value
        for side, path in sides.items()
        for step, point in enumerate(axes.project(path).tolist())
        for pc, value in enumerate(point)
    } | {
        key("explained", of="temporal", pcs=count): float(axes.explained[:count].sum())
        for count in (2, 3)
    }


def input_plane(network: Network) -> Numbers:
    """Return input components, readouts and some input-delta components in a plane (Fig. 3c).

    Readouts are directions: they are drawn as long as the longest input component.
    """
    components = network.states.encoder
    ids = torch.arange(len(network.words))
    points = components.words(ids)
    axes = principal_axes(points)
    readout = context_readout(network.model).to(points)
    outputs = network.source.output_words.words[:-1]  # without SOS, never written
    scale = points.nan_to_num(0.0).norm(dim=-1).max() / readout.norm(dim=-1).max()
    plane = axes.project(scale * readout[: len(outputs)]).tolist()
    origin = axes.project(torch.zeros_like(points[0])).tolist()
    shown: dict[tuple[str, str, int], list[float]] = {("origin", "", 0): origin}
    trace = next(network.traces())
    side = states_of(trace).encoder
    parts = components.split(side)
    for index, word in enumerate(network.words):
        here = (side.ids == index) & parts.mask
        states = axes.project(parts.input_delta[here][:_SHOWN]).tolist()
        shown |= {("state", word, number): point for number, point in enumerate(states)}
        if components.word_counts[index : index + 1].any():
            shown["component", word, 0] = axes.project(points[index]).tolist()
    for word, point in zip(outputs, plane, strict=True):
        shown["readout", word, 0] = point
    return {
        key("input_plane", point=point, word=word, number=number, pc=pc + 1): round(value, 5)
        for (point, word, number), place in shown.items()
        for pc, value in enumerate(place)
    }
