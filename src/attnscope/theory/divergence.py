"""How far apart two distributions are: total variation and Jensen–Shannon (tutek Eq. 7, 8).

Both run over the last axis and batch over all others; an axis of another size is broadcast. For two
classes the total variation is the difference |Δp| of either probability: ½|Δp|, which published
code of the adversary prints, counts one class alone and is half of it. Divergences are in nats.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

LARGEST_JSD = math.log(2)


def total_variation(
    p: Float[Tensor, "*#rows label"], q: Float[Tensor, "*#rows label"]
) -> Float[Tensor, "*rows"]:
    """Return ½ Σ_i |p_i − q_i|, which lies in [0, 1] (Eq. 7 of [1]_).

    Parameters
    ----------
    p, q
        Probabilities that sum to 1 over the last axis.

    References
    ----------
    .. [1] M. Tutek, J. Šnajder. "Staying True to Your Word: (How) Can Attention Become
       Explanation?" RepL4NLP 2020.
    """
    return ((p - q).abs().sum(-1) / 2).clamp(max=1.0)


def jensen_shannon(
    p: Float[Tensor, "*#rows inp"],
    q: Float[Tensor, "*#rows inp"],
    mask: Bool[Tensor, "*#rows inp"],
) -> Float[Tensor, "*rows"]:
    """Return ½ KL[p‖m] + ½ KL[q‖m] with m = (p + q)/2, in [0, ln 2] nats (Eq. 8 of [1]_).

    Gradients are finite everywhere, also where a softmax has come out as exactly 0.

    Parameters
    ----------
    p, q
        Weights that sum to 1 over the real positions of the last axis.
    mask
        True at real positions; others are ignored.

    References
    ----------
    .. [1] M. Tutek, J. Šnajder. "Staying True to Your Word: (How) Can Attention Become
       Explanation?" RepL4NLP 2020.
    """
    # The slope of x log x at 0 is infinite: below the smallest normal number it is taken as 0.
    least = torch.finfo(p.dtype).tiny
    p, q = (weights.masked_fill(~mask, 0.0).clamp(min=least) for weights in (p, q))
    middle = (p + q) / 2
    # Logarithms of ratios, not differences of logarithms: equal weights give exactly 0.
    parts = p * (p / middle).log() + q * (q / middle).log()
    return (parts.sum(-1) / 2).clamp(0.0, LARGEST_JSD)
