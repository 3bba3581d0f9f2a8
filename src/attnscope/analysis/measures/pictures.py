"""Pictures of a network: matrices, and its components in a plane (aitken Fig. 2–4, 6a).

Coordinates are principal components, rounded for the file. Points of a plane are grouped by what
they are (``component``, ``readout``, ``state``), and labelled by their word.
`attnscope.figures.component_planes` draws them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.analysis.components import PrincipalAxes, principal_axes
from attnscope.analysis.decomposition import states_of
from attnscope.analysis.dictionary import context_readout
from attnscope.analysis.network import Network
from attnscope.runs.pictures import Matrix, Plane, Point

Axes = Mapping[str, Any]
_DIGITS = 4


def matrix(
    name: str,
    network: Network,
    axes: Axes,
    values: Float[Tensor, "out inp"],
    outputs: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
) -> Matrix:
    """Return a matrix of one network's attention; positions without words are numbered."""
    known = _about(network, axes)
    return Matrix.of(
        name, values=values.tolist(), rows=outputs, columns=inputs, digits=_DIGITS, **known
    )


def path(network: Network, axes: Axes, paths: Mapping[str, Float[Tensor, "step state"]]) -> Plane:
    """Return temporal paths in the plane of their first two principal axes (Fig. 2a, 3b, 4b)."""
    plane, points = principal_axes(*paths.values()), []
    for side, steps in paths.items():
        for step, (x, y) in enumerate(plane.project(steps).tolist(), 1):
            points.append(Point(str(step), side, round(x, _DIGITS), round(y, _DIGITS)))
    return _plane("temporal_path", network, axes, points, joined=True)


Cloud = tuple[str, str, Float[Tensor, "_ state"]]
"""What some states are, the word they belong to, and the states."""


def states(name: str, network: Network, axes: Axes, clouds: Iterable[Cloud]) -> Plane:
    """Return states in the plane of the input components (Fig. 6a)."""
    plane = principal_axes(network.states.encoder.words(torch.arange(len(network.words))))
    points = [point for cloud in clouds for point in _projected(plane, cloud)]
    return _plane(name, network, axes, points)


def input_plane(
    network: Network,
    axes: Axes,
    words: Int[Tensor, " word"],
    outputs: Sequence[str],
    clouds: Iterable[Cloud],
    *,
    names: Sequence[str] | None = None,
    from_mean: bool = False,
) -> Plane:
    """Return input components, readouts and states in the components' plane (Fig. 2b, 3c).

    Readouts are directions: the longest is drawn as long as the longest input component.

    Parameters
    ----------
    words
        The input words that span the plane.
    outputs
        Labels of the readouts, which are those of the first output words.
    names
        Labels of the words, by default the words themselves.
    from_mean
        Whether readouts start at the mean of the words, and are without their own mean, which a
        softmax ignores; else they start where all components are zero.
    """
    components, names = network.states.encoder, names or network.words
    vectors = components.words(words)
    plane = principal_axes(vectors)
    readouts = context_readout(network.model)[: len(outputs)].to(vectors)
    if from_mean:
        start, readouts = plane.mean, readouts - readouts.mean(0)
        lengths = plane.project(vectors), readouts @ plane.axes[:2].mT
    else:
        start, lengths = torch.zeros_like(plane.mean), (vectors, readouts)
    longest = [part.nan_to_num(0.0).norm(dim=-1).max() for part in lengths]
    ends = start + readouts * longest[0] / longest[1]
    shown: list[Cloud] = [("origin", "origin", start[None])]
    for word, vector in zip(words.tolist(), vectors, strict=True):
        if not vector.isnan().any():
            shown.append(("component", names[word], vector[None]))
    shown += [("readout", word, end[None]) for word, end in zip(outputs, ends, strict=True)]
    points = [point for cloud in (*shown, *clouds) for point in _projected(plane, cloud)]
    return _plane("input_plane", network, axes, points)


def clouds_of(
    network: Network,
    side: str,
    kind: str,
    names: Sequence[str],
    count: int,
    *,
    evenly: bool = False,
) -> list[Cloud]:
    """Return some χ + Δh of each word that is read in the first forward pass.

    Parameters
    ----------
    count
        How many of a word: the first ones, or (``evenly``) some of early and late steps alike.
    """
    read = getattr(states_of(next(network.traces())), side)
    parts = getattr(network.states, side).split(read)
    found: list[Cloud] = []
    for word in read.ids[parts.mask].unique().tolist():
        own = parts.input_delta[parts.mask & (read.ids == word)]
        chosen = torch.arange(min(count, len(own)))
        if evenly:
            chosen = torch.linspace(0, len(own) - 1, len(chosen)).long()
        found.append((kind, names[word], own[chosen]))
    return found


def _projected(plane: PrincipalAxes, cloud: Cloud) -> list[Point]:
    group, label, vectors = cloud
    places = plane.project(vectors).tolist()
    return [Point(label, group, round(x, _DIGITS), round(y, _DIGITS)) for x, y in places]


def _plane(
    name: str, network: Network, axes: Axes, points: Sequence[Point], *, joined: bool = False
) -> Plane:
    known = _about(network, axes)
    return Plane(name=name, x="PC 1", y="PC 2", points=tuple(points), joined=joined, **known)


def _about(network: Network, axes: Axes) -> dict[str, Any]:
    """Return the fields that all pictures of a network share."""
    dataset, seeds = network.source.dataset, (network.seed,)
    return {"dataset": dataset, "axes": dict(axes), "seeds": seeds, "n": network.samples}
