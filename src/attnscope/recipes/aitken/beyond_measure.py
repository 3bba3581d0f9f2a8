"""What is measured of a network of another architecture: the paper's numbers, head by head."""

from __future__ import annotations

from collections.abc import Callable

import torch

from attnscope.analysis.alignment_terms import CROSS, temporal_agreement
from attnscope.analysis.components import principal_axes
from attnscope.analysis.decomposition import Components, Parts, Side, Sides, states_of
from attnscope.analysis.state_measures import (
    WordVariance,
    attention_cells,
    attention_overlap,
    delta_share,
    orthogonality,
)
from attnscope.analysis.streaming import Measure, Ratio, cell_means, collect, mean_of
from attnscope.data.escan import VERBS, ExtendedScan
from attnscope.data.sequence_tasks import OneToOne
from attnscope.data.source import Source
from attnscope.models.trace import Site, Trace
from attnscope.recipes.aitken.beyond_network import HeadedNetwork, word_effects
from attnscope.recipes.aitken.fig5_measure import TERM_NAMES
from attnscope.recipes.aitken.groups import Numbers, key
from attnscope.recipes.aitken.shared_claims import THREE

ALL_HEADS = "all"


def numbers(network: HeadedNetwork) -> Numbers:
    """Return every number of a network; which ones there are depends on task and heads alone."""
    return (
        _of_states(network)
        | _of_variance(network)
        | _of_attention(network)
        | _of_terms(network)
        | _of_words(network)
    )


def _of_states(network: HeadedNetwork) -> Numbers:
    measures: dict[str, Measure] = {}
    functions: dict[str, Callable[[Parts], Ratio]] = {
        "delta_share": delta_share,
        "orthogonality": orthogonality,
    }
    for side in ("encoder", "decoder"):
        for name, function in functions.items():
            measures[f"{name} {side}"] = _of_side(function, getattr(network.states, side), side)
    ratios = collect(network.traces(), measures)
    found: Numbers = {}
    for label, ratio in ratios.items():
        name, side = label.split(" ")
        found[key(name, side=side)] = ratio.value
    return found


def _of_side(function: Callable[[Parts], Ratio], components: Components, side: str) -> Measure:
    return lambda trace: function(components.split(_side(states_of(trace), side)))


def _side(sides: Sides, name: str) -> Side:
    side: Side = getattr(sides, name)
    return side


def _of_variance(network: HeadedNetwork) -> Numbers:
    """Return the share of a word's variance that its temporal component takes away."""
    variance = WordVariance(network.states.encoder)
    for trace in network.traces():
        variance.update(states_of(trace).encoder)
    end = network.source.input_words.id("<eos>")
    return {key("variance_drop"): variance.drop(excluded=(end,))}


def _of_attention(network: HeadedNetwork) -> Numbers:
    """Return what temporal components alone make of attention, and what the mean attention has."""
    means = cell_means(
        attention_cells(trace.sites[CROSS.site], trace.batch.target_mask)
        for trace in network.traces()
    ).mean

    def agreement(head: int) -> Measure:
        return lambda trace: mean_of(temporal_agreement(trace, network.cross)[:, head])

    def similarity(head: int) -> Measure:
        mean = means[head : head + 1]
        return lambda trace: attention_overlap(
            _one_head(trace, head), mean, trace.batch.target_mask
        )

    functions = {"temporal_agreement": agreement, "attention_similarity": similarity}
    measures = {
        f"{name} {rank}": function(head)
        for name, function in functions.items()
        for rank, head in enumerate(network.order, 1)
    }
    ratios = collect(network.traces(), measures)
    return {
        key(name, head=rank): ratios[f"{name} {rank}"].value
        for name in functions
        for rank in range(1, network.heads + 1)
    }


def _one_head(trace: Trace, head: int) -> Site:
    site, one = trace.sites[CROSS.site], slice(head, head + 1)
    return Site(site.mask, site.logits[:, one], site.weights[:, one], site.values[:, one])


def _of_terms(network: HeadedNetwork) -> Numbers:
    """Return the nine terms' shares, the first three together, and how far the first is ahead."""
    found: Numbers = {}
    for form, share in network.shares.items():
        for rank, head in enumerate(network.order, 1):
            values = share.mean[head].tolist()
            for name, value in zip(TERM_NAMES, values, strict=True):
                found[key("term_share", form=form, term=name, head=rank)] = value
            found[key("term_share", form=form, term=THREE, head=rank)] = sum(values[:3])
            found[key("largest_gap", form=form, head=rank)] = values[0] - max(values[1:])
            found[key("largest_share", form=form, head=rank)] = max(values)
    return found


def dictionary_of(source: Source) -> dict[str, str]:
    """Return the output words that have one translation, and it; none for text."""
    if isinstance(source, ExtendedScan):
        return {action: verb for verb, action in VERBS.items()}
    return {output: word for word, output in source.pairs} if isinstance(source, OneToOne) else {}


def _of_words(network: HeadedNetwork) -> Numbers:
    """Return how many output words are raised most by the input component of their translation."""
    right, source = dictionary_of(network.source), network.source
    if not right:
        return {}
    seen = network.values.seen.nonzero()[:, 0]
    outputs = torch.tensor([source.output_words.id(word) for word in right])
    expected = torch.tensor([source.input_words.id(word) for word in right.values()])
    heads: dict[str | int, int | None] = {ALL_HEADS: None}
    heads |= {rank: head for rank, head in enumerate(network.order, 1)}
    found = {}
    for name, head in heads.items():
        best = seen[word_effects(network, seen, head).argmax(0)]
        found[key("dictionary", head=name)] = float((best[outputs] == expected).double().mean())
    return found


def path_numbers(network: HeadedNetwork) -> Numbers:
    """Return the paths of every head's temporal components in the plane of their first axes."""
    found: Numbers = {}
    for rank, head in enumerate(network.order, 1):
        paths = network.paths(head)
        plane = principal_axes(*paths.values())
        for side, path in paths.items():
            for step, point in enumerate(plane.project(path).tolist(), 1):
                for pc, value in enumerate(point, 1):
                    found[key("temporal_path", side=side, step=step, pc=pc, head=rank)] = value
    return found
