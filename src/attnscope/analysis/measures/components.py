"""Sizes, angles and geometry of components: states, paths, words, variances (Fig. 2, 3, 5c)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Int
from torch import Tensor

from attnscope.analysis.components import (
    circle,
    nearest_other_step,
    nearest_point,
    principal_axes,
    simplex_cosines,
)
from attnscope.analysis.decomposition import Components, Parts, Side, states_of
from attnscope.analysis.measures.numbers import Number, Numbers, number
from attnscope.analysis.network import SIDES, Network
from attnscope.analysis.state_measures import (
    WordVariance,
    cross_orthogonality,
    delta_share,
    input_delta_size,
    orthogonality,
)
from attnscope.analysis.streaming import Measure, Ratio
from attnscope.data.tokens import SPECIALS
from attnscope.models.trace import Trace

Words = Int[Tensor, " word"]
OfParts = Callable[[Parts], Ratio]
_OF_STATES: dict[str, OfParts] = {
    "delta_share": delta_share,
    "input_delta_size": input_delta_size,
    "orthogonality": orthogonality,
}
# Fewer occurrences of a word say little about their variance.
_OFTEN = 10


def of_states(network: Network, *names: str) -> Numbers:
    """Return measures of the encoder's and of the decoder's states.

    Parameters
    ----------
    names
        ``delta_share``, ‖Δh‖² of ‖h − μ‖²; ``input_delta_size``, ‖χ + Δh‖ over ‖μ‖;
        ``orthogonality``, the mean |cosine| of μ with χ + Δh.
    """
    measures: dict[Number, Measure] = {}
    for name in names:
        for side in SIDES:
            measures[number(name, side=side)] = _of_side(network, side, _OF_STATES[name])
    return network.collected(measures)


def cross_angles(network: Network) -> Numbers:
    """Return the mean |cosine| of the encoder's χ + Δh with the decoder's temporal components."""
    other = network.paths["decoder"]
    measure = _of_side(network, "encoder", lambda parts: cross_orthogonality(parts, other))
    return network.collected({number("orthogonality", side="encoder with decoder"): measure})


def _of_side(network: Network, side: str, measure: OfParts) -> Measure:
    components: Components = getattr(network.states, side)

    def of_trace(trace: Trace) -> Ratio:
        states: Side = getattr(states_of(trace), side)
        return measure(components.split(states))

    return of_trace


def circles(network: Network) -> Numbers:
    """Return how nearly both temporal paths, in their common plane, follow a circle (Fig. 2a)."""
    plane, found = principal_axes(*network.paths.values()), {}
    for side, path in network.paths.items():
        shape = circle(plane.project(path))
        found[number("radius_variation", side=side)] = shape.radius_variation
        found[number("monotone", side=side)] = shape.monotone
    return found


def explained(network: Network, words: Words | None = None) -> Numbers:
    """Return the share of variance in the first two and three principal axes (footnote 4).

    Of the temporal components of both sides together, and of the input components of some words.
    """
    axes = {"temporal": principal_axes(*network.paths.values())}
    if words is not None:
        axes["word"] = principal_axes(network.states.encoder.words(words))
    found: Numbers = {}
    for of, plane in axes.items():
        for count in (2, 3):
            share = float(plane.explained[:count].sum())
            found[number("explained_variance", of=of, axes=count)] = share
    return found


def simplex(network: Network, words: Words) -> Numbers:
    """Return how far the input components of words are from a simplex's vertices (footnote 5)."""
    away = (simplex_cosines(network.states.encoder.words(words)) + 1 / (len(words) - 1)).abs()
    return {number("simplex_error"): float(away.max())}


def whole_path(network: Network) -> Numbers:
    """Return whether the decoder's path goes on where the encoder's ends (Fig. 2e)."""
    encoder, decoder = network.paths.values()
    path = torch.cat([encoder, decoder])
    away = (nearest_other_step(path) - torch.arange(len(path))).abs()
    first = int(nearest_point(decoder[:1], encoder)[0])
    return {
        number("adjacent_steps"): float((away == 1).double().mean()),
        number("steps_from_last"): float(len(encoder) - 1 - first),
    }


def variance_drop(network: Network, least: int = _OFTEN) -> Numbers:
    """Return the share of a word's variance that its temporal component takes away (Fig. 5c).

    The mean over words that are read at least so often, boundaries and unknown words left out.
    """
    variance, left_out = _variances(network, least)
    return {number("variance_drop"): variance.drop(excluded=sorted(left_out))}


def variance_words(network: Network) -> Numbers:
    """Return over how many words the variance is averaged, and the share of words read once.

    A word that is read once has no delta component, whatever the network does.
    """
    counts = network.states.encoder.word_counts
    _, left_out = _variances(network, _OFTEN)
    return {
        number("variance_words"): float(len(set(range(len(counts))) - left_out)),
        number("read_once"): float((counts == 1).sum() / counts.sum()),
    }


def _variances(network: Network, least: int) -> tuple[WordVariance, set[int]]:
    """Return the variances of all words, and the words that do not count."""
    variance = WordVariance(network.states.encoder)
    for trace in network.traces():
        variance.update(states_of(trace).encoder)
    words = network.source.input_words
    outside = {words.id(word) for word in SPECIALS if word in words.words}
    return variance, outside | variance.too_little(least)
