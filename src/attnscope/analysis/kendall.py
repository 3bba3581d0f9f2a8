"""Kendall's rank correlation τ-b between two scores, for all rows of a batch at once.

Snell's Tables 3 and 4 use it as a second measure of agreement; here a row is one output position
and only real input positions count. Values become small integer ranks, and pairs are counted as
integers, offset by offset: batching and padding cannot change a result, and memory grows with the
length of a row, not with its square.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

# Values ranked and compared at once: enough to hide the cost of a call, small enough for a cache.
_CHUNK = 2**19


def kendall_tau_b(
    u: Float[Tensor, "batch out inp"],
    v: Float[Tensor, "batch out inp"],
    input_mask: Bool[Tensor, "batch inp"],
) -> Float[Tensor, "batch out"]:
    """Return τ-b [1]_ of two scores over the real input positions of each row.

    With n_u and n_v the pairs of positions not tied in ``u`` and in ``v``,
    τ-b = (concordant − discordant) / √(n_u · n_v).

    Parameters
    ----------
    u, v
        Two scores of the same examples; infinite values rank like any other.
    input_mask
        True at real input positions; any pattern, not only prefixes.

    Returns
    -------
    Tensor
        Values in [-1, 1]; NaN where a row is constant or NaN at a real position, and where an
        example has fewer than two real positions.

    References
    ----------
    .. [1] M. G. Kendall. "The Treatment of Ties in Ranking Problems." Biometrika 33(3), 1945.
    """
    padding = ~input_mask[:, None]
    broken = ((u.isnan() | v.isnan()) & ~padding).any(-1)
    rows = max(1, _CHUNK // max(1, u.shape[-1]))
    parts = (x.flatten(0, 1).split(rows) for x in (u, v, padding.expand_as(u)))
    counts = torch.cat([_pair_counts(*chunk) for chunk in zip(*parts, strict=True)], dim=1)
    excess, untied_u, untied_v = counts.double().unflatten(1, broken.shape)
    return (excess / (untied_u * untied_v).sqrt()).masked_fill(broken, torch.nan)


def _pair_counts(
    u: Float[Tensor, "row inp"], v: Float[Tensor, "row inp"], padding: Bool[Tensor, "row inp"]
) -> Int[Tensor, "3 row"]:
    """Return concordant minus discordant pairs, pairs untied in u, and pairs untied in v."""
    length = padding.shape[-1]
    # Padding ranks above every real position in both scores and ties with itself.
    ranks = torch.stack([_ranks(x).masked_fill_(padding, length).T for x in (u, v)])
    step = torch.empty_like(ranks)
    excess, untied = torch.zeros_like(ranks[0]), torch.zeros_like(ranks)
    for offset in range(1, length):
        later, earlier = ranks[:, offset:], ranks[:, :-offset]
        sign = torch.sub(later, earlier, out=step[:, offset:]).sign_()
        excess[offset:].addcmul_(sign[0], sign[1])
        untied[:, offset:] += sign.abs_()
    counts = torch.cat((excess[None], untied)).sum(1, dtype=torch.int64)
    padded = padding.sum(-1)
    # Each pair of a real and a padded position was counted, as concordant.
    return counts - padded * (length - padded)


def _ranks(values: Float[Tensor, "row inp"]) -> Int[Tensor, "row inp"]:
    """Return dense ranks from 0, in the smallest type that holds a row's length."""
    length = values.shape[-1]
    order = _argsort(values)
    ordered = values.gather(-1, order)
    small = next(t for t in (torch.int8, torch.int16, torch.int32) if torch.iinfo(t).max >= length)
    ranks = torch.zeros(values.shape, dtype=small, device=values.device)
    ranks[:, 1:] = (ordered[:, 1:] != ordered[:, :-1]).cumsum(-1, dtype=small)
    return torch.empty_like(ranks).scatter_(-1, order, ranks)


def _argsort(values: Float[Tensor, "row inp"]) -> Int[Tensor, "row inp"]:
    if values.device.type != "cpu":
        return values.argsort(-1)
    # On the CPU, NumPy sorts short rows several times faster than torch; it knows no bfloat16.
    known = values.detach().to(torch.promote_types(values.dtype, torch.float32))
    return torch.from_numpy(np.argsort(known.numpy(), axis=-1))
