"""The numbers of figure 2, each taken of one network on fresh sequences, then over its seeds.

Everything about attention is taken on queries and keys as they enter it, so that it means the same
for plain and for learned attention.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from attnscope.analysis.alignment_terms import temporal_agreement
from attnscope.analysis.components import (
    PrincipalAxes,
    circle,
    most_aligned_step,
    nearest_other_step,
    nearest_point,
    principal_axes,
    readout_dictionary,
    simplex_cosines,
)
from attnscope.analysis.decomposition import Parts, states_of
from attnscope.analysis.intervals import mean_interval, rate_interval
from attnscope.analysis.state_measures import (
    cross_orthogonality,
    delta_share,
    input_delta_size,
    orthogonality,
)
from attnscope.analysis.streaming import Measure, Ratio, collect, mean_of
from attnscope.analysis.term_shares import term_shares
from attnscope.claims.published import published_value
from attnscope.models.trace import Trace
from attnscope.recipes.aitken.fig2_network import SequenceNetwork
from attnscope.recipes.aitken.fig5_measure import TERM_NAMES
from attnscope.recipes.aitken.groups import Axes, Wanted
from attnscope.recipes.aitken.networks import reached, sides
from attnscope.recipes.aitken.units import (
    context_readout,
    without_state_readout,
    words_right,
)
from attnscope.runs.result import Measurement, measured

SORTING_TERM = "deltahD.chiE"
# Word accuracy at which one-to-one translation counts as solved (aitken.one-to-one).
ONE_TO_ONE_SOLVED = 0.99


class Number(NamedTuple):
    """A number of one network."""

    name: str
    axes: Axes
    value: float


def numbers(network: SequenceNetwork) -> list[Number]:
    """Return every number of a network, in an order that depends on its architecture alone."""
    found = [*_of_states(network), *_of_paths(network), *_of_words(network)]
    if network.attends:
        return [*found, *of_attention(network), *_of_readout(network), *_of_terms(network)]
    return [*found, *_of_whole_path(network)]


def _of_states(network: SequenceNetwork) -> list[Number]:
    parts = {"encoder": _encoder_parts(network), "decoder": _decoder_parts(network)}
    functions = {
        "delta_share": delta_share,
        "input_delta_size": input_delta_size,
        "orthogonality": orthogonality,
    }
    measures: dict[tuple[str, str], Measure] = {
        (name, side): _composed(function, parts[side])
        for name, function in functions.items()
        for side in parts
    }
    other = network.paths["decoder"]
    measures["orthogonality", "encoder with decoder"] = _composed(
        lambda found: cross_orthogonality(found, other), parts["encoder"]
    )
    names = {f"{name} {side}": measure for (name, side), measure in measures.items()}
    ratios = collect(network.traces(), names | {"": words_right})
    return [
        Number("word_accuracy", {}, ratios[""].value),
        *(Number(name, {"side": s}, ratios[f"{name} {s}"].value) for name, s in measures),
    ]


def _encoder_parts(network: SequenceNetwork) -> Callable[[Trace], Parts]:
    components = network.states.encoder
    return lambda trace: components.split(states_of(trace).encoder)


def _decoder_parts(network: SequenceNetwork) -> Callable[[Trace], Parts]:
    components = network.decoder

    def split(trace: Trace) -> Parts:
        side = states_of(trace).decoder
        assert side is not None
        return components.split(side)

    return split


def _composed(measure: Callable[[Parts], Ratio], split: Callable[[Trace], Parts]) -> Measure:
    return lambda trace: measure(split(trace))


def _of_paths(network: SequenceNetwork) -> list[Number]:
    """Return how far both paths run round a circle, and how many axes they need."""
    plane, found = network.plane, []
    for side, path in network.paths.items():
        shape = circle(plane.project(path))
        found += [
            Number("radius_variation", {"side": side}, shape.radius_variation),
            Number("monotone", {"side": side}, shape.monotone),
        ]
    return found + _explained("temporal", plane)


def _of_words(network: SequenceNetwork) -> list[Number]:
    """Return how far input components are from the vertices of a simplex."""
    words = network.states.encoder.words(network.ids)
    away = (simplex_cosines(words) + 1 / (len(words) - 1)).abs()
    found = Number("simplex_error", {}, float(away.max()))
    return [found, *_explained("word", principal_axes(words))]


def _explained(of: str, axes: PrincipalAxes) -> list[Number]:
    return [
        Number("explained_variance", {"of": of, "axes": count}, float(axes.explained[:count].sum()))
        for count in (2, 3)
    ]


def of_attention(network: SequenceNetwork) -> list[Number]:
    """Return what temporal components alone make of attention, and how both lie to the gold."""
    aligned = most_aligned_step(*map(reached, reversed(sides(network.cross))))

    def in_line(trace: Trace) -> Ratio:
        gold = trace.batch.gold
        right = (aligned[: gold.shape[1]] == gold[:, : len(aligned)]).double()
        # In the longest sequences every step is there once, and the mean is one over steps.
        long = trace.batch.target_lengths == len(aligned)
        unknown = (gold[:, : len(aligned)] < 0) | ~long[:, None]
        return mean_of(right.masked_fill(unknown, torch.nan))

    measures: dict[str, Measure] = {
        "temporal_agreement": lambda trace: mean_of(temporal_agreement(trace, network.cross)),
        "aligned_steps": in_line,
    }
    weights: dict[str, Callable[[Trace], Tensor]] = {
        "temporal": network.temporal_weights,
        "attention": lambda trace: trace.sites["cross"].weights[:, 0],
    }
    masses = [(of, width) for of in weights for width in (0, 1)]
    for of, width in masses:
        measures[f"{of} {width}"] = _gold_mass(weights[of], width)
    ratios = collect(network.traces(), measures)
    return [
        *(Number(name, {}, ratios[name].value) for name in ("temporal_agreement", "aligned_steps")),
        *(
            Number("gold_mass", {"of": of, "within": width}, ratios[f"{of} {width}"].value)
            for of, width in masses
        ),
    ]


def _gold_mass(weights: Callable[[Trace], Tensor], width: int) -> Measure:
    """Return the weight within some positions of where the output word comes from."""

    def measure(trace: Trace) -> Ratio:
        gold, rows = trace.batch.gold, weights(trace)
        places = torch.arange(rows.shape[-1])
        near = (places - gold[..., None]).abs() <= width
        return mean_of((rows * near).sum(-1).masked_fill(gold < 0, torch.nan))

    return measure


def _of_readout(network: SequenceNetwork) -> list[Number]:
    words, model = network.ids, network.model
    found = readout_dictionary(context_readout(model), network.states.encoder)[words]
    rows = [Number("dictionary", {}, float((found == words).double().mean()))]
    if model.output.weight.shape[1] > context_readout(model).shape[1]:
        silenced = without_state_readout(model)
        drop = network.accuracy - replace(network, model=silenced).accuracy
        halves = model.output.weight.detach().chunk(2, 1)
        rows += [
            Number("accuracy_drop", {"without": "state readout"}, drop),
            Number("readout_norms", {}, float(halves[1].norm() / halves[0].norm())),
        ]
    return rows


def _of_terms(network: SequenceNetwork) -> list[Number]:
    """Return the terms' shares, and by how much sorting's (Fig. 2h) exceeds the largest other."""
    shares = term_shares(network.traces(), network.cross)
    rows = []
    for form, found in shares.items():
        by_name = dict(zip(TERM_NAMES, found.mean[0].tolist(), strict=True))
        rows += [
            Number("term_share", {"form": form, "term": name}, value)
            for name, value in by_name.items()
        ]
        gap = by_name.pop(SORTING_TERM) - max(by_name.values())
        rows.append(Number("term_gap", {"form": form, "term": SORTING_TERM}, gap))
    return rows


def _of_whole_path(network: SequenceNetwork) -> list[Number]:
    """Return whether the decoder's path goes on where the encoder's ends (Fig. 2e)."""
    encoder, decoder = network.paths.values()
    path = torch.cat([encoder, decoder])
    away = (nearest_other_step(path) - torch.arange(len(path))).abs()
    first = int(nearest_point(decoder[:1], encoder)[0])
    return [
        Number("adjacent_steps", {}, float((away == 1).double().mean())),
        Number("steps_from_last", {}, float(len(encoder) - 1 - first)),
    ]


def rows_of(
    group: Wanted, found: Sequence[Sequence[Number]], extra: Axes | None = None
) -> list[Measurement]:
    """Return each number's mean over networks with its interval, where some network has it.

    A decoder that always writes the same word, say, has no input components to speak of.
    """
    rows, dataset, axes = [], group.task.dataset, {**group.axes, **(extra or {})}
    seeds = range(group.seeds)
    for same in zip(*found, strict=True):
        values = [number.value for number in same]
        interval = mean_interval(values, rng=np.random.default_rng(0))
        if interval.n == 0:
            continue
        name = same[0].name
        printed = _printed(same[0], dataset)
        rows.append(measured(name, dataset, interval, {**axes, **same[0].axes}, seeds, printed))
        if name == "word_accuracy":
            rate = rate_interval(sum(x >= ONE_TO_ONE_SOLVED for x in values), len(values))
            rows.append(measured("solved", dataset, rate, axes, seeds))
    return rows


def _printed(number: Number, dataset: str) -> float | None:
    """Return the paper's own number: of all its plots of one-to-one, a lower bound (footnote 4)."""
    if number.name != "explained_variance" or not dataset.startswith("one-to-one"):
        return None
    percent = published_value("aitken", "text-s3", "one-to-one", "variance_explained(PCs)")
    return None if percent is None else percent / 100
