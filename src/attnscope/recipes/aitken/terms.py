"""Shares of the nine terms of the alignment (Eq. 3, Fig. 5a): their means, and by decoder step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.alignment_terms import MU_MU, TERM_NAMES
from attnscope.analysis.network import COMMON, Network
from attnscope.analysis.term_shares import TermShares, compute_term_shares
from attnscope.recipes.kit.sheet import Line, Lines, Numbers, number

THREE = "+".join(TERM_NAMES[:3])
SORTING_TERM = "deltahD.chiE"  # the largest one in sorting, Fig. 2h
# The three shades of Fig. 5a.
SHADES = {MU_MU: (0,), "muD.chiE+muD.deltahE": (1, 2), "the other six": tuple(range(3, 9))}
# Decoder steps s, from 1 on, that the claims call early and late.
EARLY, LATE = 3, 8

Shares = Mapping[str, TermShares]
"""The shares of raw and of row-centred terms."""


def shares_of(network: Network, among: Network | None = None) -> Shares:
    """Return the terms' shares, those of some sequences by the components of all if asked for."""
    return compute_term_shares((among or network).traces(), network.cross)


def _means(
    network: Network, shares: Shares
) -> Iterator[tuple[dict[str, str], dict[str, int], dict[str, float]]]:
    """Yield form, head and the nine mean shares by name."""
    for form, share in shares.items():
        for head, axes in network.heads.items():
            values = dict(zip(TERM_NAMES, share.mean[head].tolist(), strict=True))
            yield {"form": form}, axes, values


def nine(network: Network, shares: Shares) -> Numbers:
    """Return each term's mean share."""
    found: Numbers = {}
    for form, head, values in _means(network, shares):
        for term, value in values.items():
            found[number("term_share", **form, term=term, **head)] = value
    return found


def three(network: Network, shares: Shares) -> Numbers:
    """Return the mean share of the terms with μ^D together."""
    return {
        number("term_share", **form, term=THREE, **head): sum(list(values.values())[:3])
        for form, head, values in _means(network, shares)
    }


def largest(network: Network, shares: Shares) -> Numbers:
    """Return the largest mean share."""
    return {
        number("largest_share", **form, **head): max(values.values())
        for form, head, values in _means(network, shares)
    }


def temporal_lead(network: Network, shares: Shares) -> Numbers:
    """Return the mean share of μ^D·μ^E less that of the largest other term."""
    return {
        number("largest_gap", **form, **head): _lead(values, MU_MU)
        for form, head, values in _means(network, shares)
    }


def sorting_lead(network: Network, shares: Shares) -> Numbers:
    """Return the mean share of sorting's term less that of the largest other one."""
    return {
        number("term_gap", **form, term=SORTING_TERM, **head): _lead(values, SORTING_TERM)
        for form, head, values in _means(network, shares)
    }


def _lead(values: Mapping[str, float], term: str) -> float:
    return values[term] - max(value for name, value in values.items() if name != term)


def _at_steps(share: TermShares, head: int = 0) -> Float[Tensor, "9 step"]:
    """Return the shares at each step that enough sequences reach; late ones are in the mean."""
    return share.per_step[head][:, share.counts >= COMMON * share.counts.max()]


def by_step(shares: Shares) -> Lines:
    """Return the nine raw shares at each step."""
    lines = zip(TERM_NAMES, _at_steps(shares["raw"]), strict=True)
    return {number("term_share_at", term=name): Line.of_steps(line) for name, line in lines}


def shades_by_step(shares: Shares) -> Lines:
    """Return the raw shares of the three shades at each step."""
    steps, found = _at_steps(shares["raw"]), {}
    for shade, places in SHADES.items():
        found[number("term_share_at", shade=shade)] = Line.of_steps(steps[list(places)].sum(0))
    return found


def early_and_late(network: Network, shares: Shares) -> Numbers:
    """Return how μ^D·μ^E leads early, and how its share falls.

    ``early_gap`` is its share less that of the largest other term at one early step,
    ``late_difference`` its mean share from the late step on less that of the early steps.
    """
    found: Numbers = {}
    for form, share in shares.items():
        for head, axes in network.heads.items():
            temporal, *others = _at_steps(share, head)
            gaps = (temporal - torch.stack(others).amax(0)).tolist()
            for step in range(1, EARLY + 1):
                gap = gaps[step - 1] if step <= len(gaps) else math.nan
                found[number("early_gap", form=form, step=step, **axes)] = gap
            late = temporal[LATE - 1 :].mean() - temporal[:EARLY].mean()
            found[number("late_difference", form=form, **axes)] = float(late)
    return found
