"""How far two scores point at the same input position: top-share agreement (snell Eq. 10).

The random baseline is its exact expectation instead of one shuffle, and the share is taken as the
decimal fraction it is written as, so that no rounding error can move a threshold by one position.
Two readings of a single score come with it: its entropy, and whether it peaks at the gold word.
"""

from __future__ import annotations

from fractions import Fraction

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.data.batch import by_row
from attnscope.errors import UsageError


def top_share_agreement(
    u: Float[Tensor, "batch out inp"],
    v: Float[Tensor, "batch out inp"],
    input_mask: Bool[Tensor, "batch *row inp"],
    share: float = 0.05,
) -> Float[Tensor, "batch out"]:
    """Return whether the highest position of ``u`` is among the top share of positions of ``v``.

    This is 𝒜(u, v), Eq. 10 of [1]_; it is not symmetric. Ties in ``v`` count in favour, and among
    several maxima of ``u`` the first decides.

    Parameters
    ----------
    u, v
        Two scores of the same examples.
    input_mask
        True at real input positions; any pattern, the same for all output positions or one each.
    share
        The top share, of the number L of real positions, rounded up to whole positions.

    Returns
    -------
    Tensor
        1 where they agree, 0 where not, NaN where an example has no real position or a score is
        NaN at one.

    References
    ----------
    .. [1] C. Snell, R. Zhong, D. Klein, J. Steinhardt. "Approximating How Single Head Attention
       Learns." 2021.
    """
    chosen = v.gather(-1, _top_position(u, input_mask)[..., None])
    higher = (by_row(input_mask) & (v > chosen)).sum(-1)
    agree = higher < _share_count(_real_count(input_mask), share)
    return agree.double().masked_fill(_undefined(input_mask, u, v), torch.nan)


def expected_random_agreement(
    input_mask: Bool[Tensor, "batch *row inp"], share: float = 0.05
) -> Float[Tensor, "batch *row"]:
    """Return the expected agreement with a randomly shuffled score, ⌈share · L⌉ / L.

    This is the expectation of the baseline 𝒜̂ of [1]_ for scores without ties; average it over the
    same output positions as the agreement that it is compared with.

    Parameters
    ----------
    input_mask
        True at real input positions.
    share
        As in `top_share_agreement`.

    Returns
    -------
    Tensor
        One expectation per row of the mask, NaN for a row without a real position.

    References
    ----------
    .. [1] C. Snell, R. Zhong, D. Klein, J. Steinhardt. "Approximating How Single Head Attention
       Learns." 2021.
    """
    real = input_mask.sum(-1)
    return _share_count(real, share).double() / real


def chance_agreement(
    u: Float[Tensor, "batch out inp"],
    v: Float[Tensor, "batch out inp"],
    input_mask: Bool[Tensor, "batch *row inp"],
    share: float = 0.05,
) -> Float[Tensor, "batch out"]:
    """Return the expected agreement with ``v`` of a position drawn at random, ties counted.

    Where many positions of ``v`` share its highest value (pieces of one word, a score that is the
    same everywhere), any position agrees easily: this is 1 for a constant ``v``, and
    ⌈share · L⌉ / L for one without ties.

    Parameters
    ----------
    u, v, input_mask, share
        As in `top_share_agreement`, which it is subtracted from.
    """
    real = by_row(input_mask).expand_as(v)
    count = _share_count(real.sum(-1), share).clamp(min=1)
    ranked = v.masked_fill(~real, -torch.inf).sort(dim=-1, descending=True).values
    least = ranked.gather(-1, count[..., None] - 1)
    chance = (real & (v >= least)).sum(-1).double() / real.sum(-1)
    return chance.masked_fill(_undefined(input_mask, u, v), torch.nan)


def attention_entropy(
    weights: Float[Tensor, "batch out inp"], input_mask: Bool[Tensor, "batch *row inp"]
) -> Float[Tensor, "batch out"]:
    """Return the entropy of attention weights in units of log L: 1 is uniform, 0 is one-hot.

    Parameters
    ----------
    weights
        Weights that sum to 1 over the real input positions.
    input_mask
        True at real input positions.

    Returns
    -------
    Tensor
        NaN where an example has fewer than two real positions, as nothing can be spread there.
    """
    real = _real_count(input_mask)
    entropy = torch.special.entr(weights.masked_fill(~by_row(input_mask), 0.0)).sum(-1)
    return (entropy / real.to(weights.dtype).log()).masked_fill(real < 2, torch.nan)


def argmax_at(
    u: Float[Tensor, "batch out inp"],
    gold: Int[Tensor, "batch out"],
    input_mask: Bool[Tensor, "batch *row inp"],
    within: int = 0,
) -> Float[Tensor, "batch out"]:
    """Return whether the highest position of a score is the gold position, or next to it.

    Parameters
    ----------
    u
        A score; among several maxima the first decides.
    gold
        The right input position for each output position, -1 where there is none.
    input_mask
        True at real input positions.
    within
        How many positions next to the gold one still count.

    Returns
    -------
    Tensor
        1 or 0, NaN where there is no gold position or the score is undefined.
    """
    right = ((_top_position(u, input_mask) - gold).abs() <= within).double()
    return right.masked_fill((gold < 0) | _undefined(input_mask, u), torch.nan)


def _top_position(
    scores: Float[Tensor, "batch out inp"], input_mask: Bool[Tensor, "batch *row inp"]
) -> Int[Tensor, "batch out"]:
    real = by_row(input_mask)
    highest = scores.masked_fill(~real, -torch.inf).amax(-1, keepdim=True)
    # Equality under the mask, and not argmax alone: padding would win where all real scores are
    # -inf.
    return (real & (scores == highest)).to(torch.uint8).argmax(-1)


def _real_count(input_mask: Bool[Tensor, "batch *row inp"]) -> Int[Tensor, "batch _"]:
    return by_row(input_mask).sum(-1)


def _share_count(real: Int[Tensor, "*row"], share: float) -> Int[Tensor, "*row"]:
    if not 0 < share <= 1:
        raise UsageError(f"share={share}: it must lie in (0, 1].")
    # Integers, because in floating point ceil(0.07 * 100) is 8.
    part = Fraction(share).limit_denominator(10**6)
    return -(-real * part.numerator // part.denominator)


def _undefined(
    input_mask: Bool[Tensor, "batch *row inp"], *scores: Float[Tensor, "batch out inp"]
) -> Bool[Tensor, "batch out"]:
    real = by_row(input_mask)
    broken = torch.stack([(real & score.isnan()).any(-1) for score in scores]).any(0)
    return broken | ~real.any(-1)
