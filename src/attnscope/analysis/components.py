"""The geometry of temporal and input components, and attention computed from them alone.

Paths of temporal components in their principal plane (aitken Fig. 2a), the simplex of input
components (footnote 5), readouts as a dictionary (Fig. 4c, 5d), and the offset of the attention
that temporal components give (Fig. 5b). Nothing here needs states: components are enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.analysis.decomposition import Components
from attnscope.errors import UsageError

# Dot products of readouts and input components held at once.
_CELLS = 2**22


@dataclass(frozen=True)
class PrincipalAxes:
    """Principal component analysis of some points.

    ``axes`` are orthonormal rows, the largest variance first, each with its largest entry positive;
    ``explained`` is the share of the variance along each.
    """

    mean: Float[Tensor, " state"]
    axes: Float[Tensor, "axis state"]
    explained: Float[Tensor, " axis"]

    def project(
        self, points: Float[Tensor, "*any state"], count: int = 2
    ) -> Float[Tensor, "*any count"]:
        """Return the coordinates of points along the first axes."""
        return (points.double() - self.mean) @ self.axes[:count].mT


def principal_axes(*tables: Float[Tensor, "_ state"]) -> PrincipalAxes:
    """Analyse the rows of one or more tables together; rows with NaN (no component) are left out.

    The paper analyses temporal components (encoder's and decoder's together) and input components
    apart: ``principal_axes(encoder.temporal, decoder.temporal)``.
    """
    points = torch.cat(tables).double()
    points = points[~points.isnan().any(-1)]
    if len(points) < 2:
        raise UsageError(f"{len(points)} components have no principal axes: give at least two.")
    mean = points.mean(0)
    _, singular, axes = torch.linalg.svd(points - mean, full_matrices=False)
    sign = axes.gather(1, axes.abs().argmax(1, keepdim=True)).sign()
    return PrincipalAxes(mean, axes * sign, singular.square() / singular.square().sum())


@dataclass(frozen=True)
class Circle:
    """How far a path in a plane runs round a circle.

    ``radius_variation`` is the radii's standard deviation over their mean; ``monotone`` the share
    of steps that turn the way of most.
    """

    radius_variation: float
    monotone: float


def circle(path: Float[Tensor, "time 2"]) -> Circle:
    """Measure a path against a circle round the mean of its points.

    The mean, because a circle that is fitted would be a perfect one for a straight line too.
    """
    points = path.double() - path.double().mean(0)
    radius = points.norm(dim=-1)
    angle = torch.atan2(points[:, 1], points[:, 0])
    turn = torch.remainder(angle.diff() + math.pi, 2 * math.pi) - math.pi
    forward, backward = (turn > 0).double().mean(), (turn < 0).double().mean()
    return Circle(
        float(radius.std(correction=0) / radius.mean()), float(torch.maximum(forward, backward))
    )


def most_aligned_step(
    decoder: Float[Tensor, "out state"], encoder: Float[Tensor, "inp state"]
) -> Int[Tensor, " out"]:
    """Return argmax_t cos(μ^D_s, μ^E_t) for every decoder step s."""
    return (_unit(decoder) @ _unit(encoder).mT).argmax(-1)


def nearest_point(
    points: Float[Tensor, "point state"], others: Float[Tensor, "other state"]
) -> Int[Tensor, " point"]:
    """Return the nearest of the other points; those with NaN are none."""
    return _distances(points, others).nan_to_num(torch.inf).argmin(-1)


def nearest_other_step(path: Float[Tensor, "time state"]) -> Int[Tensor, " time"]:
    """Return the time step whose temporal component is nearest to that of each step."""
    return _distances(path, path).fill_diagonal_(torch.inf).argmin(-1)


def simplex_cosines(words: Float[Tensor, "type state"]) -> Float[Tensor, " pair"]:
    """Return the cosines of all pairs of input components, centred over the given words.

    At the vertices of an (N − 1)-simplex all are −1/(N − 1).
    """
    centred = _unit(words.double() - words.double().mean(0))
    cosines = centred @ centred.mT
    return cosines[torch.triu(torch.ones_like(cosines), diagonal=1).bool()]


def readout_dictionary(
    readout: Float[Tensor, "output state"],
    components: Components,
    among: Int[Tensor, " candidate"] | None = None,
) -> Int[Tensor, " output"]:
    """Return for every output word the input word whose component its readout aligns most with.

    Parameters
    ----------
    readout
        The readout's weights for the context, a row per output word: for a readout of the
        decoder's state and the context only the context's half; where values are maps of
        states, the product of both matrices.
    components
        Of the encoder's states.
    among
        The input words that may be found; by default all that were seen.
    """
    seen = components.seen.nonzero()[:, 0]
    candidates = seen if among is None else among.to(seen.device)
    words = components.words(candidates).mT
    if not len(candidates) or words.isnan().any():
        raise UsageError("An input word that was never read has no component: leave it out.")
    rows = max(1, _CELLS // len(candidates))
    best = [(part @ words).argmax(-1) for part in readout.detach().to(words).split(rows)]
    return candidates[torch.cat(best)]


def rows_scaled(attention: Float[Tensor, "*any inp"]) -> Float[Tensor, "*any inp"]:
    """Scale every row from its minimum and maximum to 0 and 1, as Fig. 5b does."""
    low, high = (bound(attention, dim=-1, keepdim=True) for bound in (torch.amin, torch.amax))
    return (attention - low) / (high - low)


def peak_offset(attention: Float[Tensor, "*any out inp"]) -> Int[Tensor, "*any out"]:
    """Return t − s of the maximum of each row."""
    return attention.argmax(-1) - torch.arange(attention.shape[-2], device=attention.device)


def by_offset(
    values: Float[Tensor, "*any out inp"], offsets: range
) -> Float[Tensor, "*any out offset"]:
    """Return the values at t = s + offset for every step s; NaN outside (Fig. 5b, 6b)."""
    out, inp = values.shape[-2:]
    places = torch.arange(out)[:, None] + torch.tensor(list(offsets))
    inside = places.clamp(0, inp - 1)
    index = inside.expand(*values.shape[:-1], -1).to(values.device)
    return values.gather(-1, index).masked_fill((places != inside).to(values.device), torch.nan)


def offset_moments(
    attention: Float[Tensor, "*any out inp"],
) -> tuple[Float[Tensor, "*any out"], Float[Tensor, "*any out"]]:
    """Return mean and standard deviation of t − s under each row, which sums to 1."""
    places = torch.arange(attention.shape[-1], dtype=torch.float64, device=attention.device)
    steps = torch.arange(attention.shape[-2], dtype=torch.float64, device=attention.device)
    weights = attention.double()
    mean = weights @ places
    variance = (weights * (places - mean[..., None]).square()).sum(-1)
    return mean - steps, variance.sqrt()


def mass_around(
    attention: Float[Tensor, "*any out inp"], centre: Int[Tensor, " out"], width: int = 0
) -> Float[Tensor, "*any out"]:
    """Return the attention within ``width`` positions of the one given for each row.

    ``centre`` is s on the diagonal and T − 1 − s on the other one, counting from 0.
    """
    places = torch.arange(attention.shape[-1], device=attention.device)
    near = (places - centre.to(places.device)[:, None]).abs() <= width
    return (attention * near).sum(-1)


def _unit(vectors: Float[Tensor, "*any state"]) -> Float[Tensor, "*any state"]:
    return torch.nn.functional.normalize(vectors.double(), dim=-1, eps=0.0)


def _distances(
    points: Float[Tensor, "point state"], others: Float[Tensor, "other state"]
) -> Float[Tensor, "point other"]:
    # Not by products, in which near points lose half of their digits.
    mode = "donot_use_mm_for_euclid_dist"
    return torch.cdist(points.double(), others.double(), compute_mode=mode)
