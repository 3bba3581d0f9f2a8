"""Shares of the nine terms of the alignment (Eq. 3, Fig. 5a): their means, and by decoder step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.alignment_terms import MU_MU, TERM_NAMES
from attnscope.analysis.measures.numbers import Line, Lines, Numbers, number
from attnscope.analysis.network import COMMON, Network
from attnscope.analysis.term_shares import TermShares, compute_term_shares

THREE = "+".join(TERM_NAMES[:3])

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
    """Return the mean share of the three terms with μ^D together."""
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


def lead(network: Network, shares: Shares, term: str) -> Numbers:
    """Return the mean share of a term less that of the largest other one."""
    return {
        number("term_gap", **form, term=term, **head): _lead(values, term)
        for form, head, values in _means(network, shares)
    }


def _lead(values: Mapping[str, float], term: str) -> float:
    return values[term] - max(value for name, value in values.items() if name != term)


def at_steps(share: TermShares, head: int = 0) -> Float[Tensor, "9 step"]:
    """Return the shares at each step that enough sequences reach; late ones are in the mean."""
    return share.per_step[head][:, share.counts >= COMMON * share.counts.max()]


def by_step(shares: Shares) -> Lines:
    """Return the nine raw shares at each step."""
    lines = zip(TERM_NAMES, at_steps(shares["raw"]), strict=True)
    return {number("term_share_at", term=name): Line.of_steps(line) for name, line in lines}


def early_and_late(network: Network, shares: Shares, early: int, late: int) -> Numbers:
    """Return how μ^D·μ^E leads at early steps, and how its share falls; steps count from 1.

    ``early_gap`` is its share less that of the largest other term at one of the steps up to
    ``early``, ``late_difference`` its mean share from the step ``late`` on less that of the early
    ones.
    """
    found: Numbers = {}
    for form, share in shares.items():
        for head, axes in network.heads.items():
            temporal, *others = at_steps(share, head)
            gaps = (temporal - torch.stack(others).amax(0)).tolist()
            for step in range(1, early + 1):
                gap = gaps[step - 1] if step <= len(gaps) else math.nan
                found[number("early_gap", form=form, step=step, **axes)] = gap
            change = temporal[late - 1 :].mean() - temporal[:early].mean()
            found[number("late_difference", form=form, **axes)] = float(change)
    return found
