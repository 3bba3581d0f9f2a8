"""Kendall's rank correlation τ-b between two scores, for all rows of a batch at once.

Snell's Tables 3 and 4 use it as a second measure of agreement; here a row is one output position
and only real input positions count. Discordant pairs are counted as integers, so batching and
padding cannot change a result. On a CPU, values become small integer ranks: in the order of ``u``
(and among its ties, of ``v``) discordant pairs are those whose ranks in ``v`` fall, and memory
grows with the length of a row, not with its square. On a GPU, where sorting and thousands of small
steps are slow, all pairs are compared. Rows of like length are taken together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attnscope.data.batch import by_row

# Values ranked and compared at once: enough to hide the cost of a call, small enough for a cache.
_CHUNK = 2**18
# On a GPU, pairs compared at once.
_PAIRS = 2**26


def kendall_tau_b(
    u: Float[Tensor, "batch out inp"],
    v: Float[Tensor, "batch out inp"],
    input_mask: Bool[Tensor, "batch *row inp"],
) -> Float[Tensor, "batch out"]:
    """Return τ-b [1]_ of two scores over the real input positions of each row.

    With n_u and n_v the pairs of positions not tied in ``u`` and in ``v``,
    τ-b = (concordant − discordant) / √(n_u · n_v).

    Parameters
    ----------
    u, v
        Two scores of the same examples; infinite values rank like any other.
    input_mask
        True at real input positions; any pattern, the same for all output positions or one each.

    Returns
    -------
    Tensor
        Values in [-1, 1]; NaN where a row is constant or NaN at a real position, and where an
        example has fewer than two real positions.

    References
    ----------
    .. [1] M. G. Kendall. "The Treatment of Ties in Ranking Problems." Biometrika 33(3), 1945.
    """
    padding = ~by_row(input_mask)
    broken = ((u.isnan() | v.isnan()) & ~padding).any(-1)
    flat = [x.flatten(0, 1) for x in (u, v, padding.expand_as(u))]
    counts = torch.zeros(3, len(flat[0]), dtype=torch.int64, device=u.device)
    count = _pair_counts if u.is_cpu else _compared_pairs
    for rows, width in _like_lengths(flat[2], compared=not u.is_cpu):
        counts[:, rows] = count(*(x[rows, :width] for x in flat))
    excess, untied_u, untied_v = counts.double().unflatten(1, broken.shape)
    return (excess / (untied_u * untied_v).sqrt()).masked_fill(broken, torch.nan)


def _like_lengths(
    padding: Bool[Tensor, "row inp"], compared: bool
) -> list[tuple[Int[Tensor, " some"], int]]:
    """Return groups of rows by their last real position, each with the group's width."""
    if not padding.numel():
        return []
    length = padding.shape[-1]
    positions = torch.arange(1, length + 1, dtype=torch.int32, device=padding.device)
    ends = positions.masked_fill(padding, 0).amax(-1)
    ends, order = ends.sort(stable=True)
    groups, lengths, stop = [], ends.tolist(), len(ends)
    while stop and lengths[stop - 1] > 1:
        width = lengths[stop - 1]
        size = _PAIRS // width**2 if compared else _CHUNK // width
        start = max(0, stop - max(1, size))
        groups.append((order[start:stop], width))
        stop = start
    return groups


def _compared_pairs(
    u: Float[Tensor, "row inp"], v: Float[Tensor, "row inp"], padding: Bool[Tensor, "row inp"]
) -> Int[Tensor, "3 row"]:
    """Return what `_pair_counts` returns, by comparing every position with every other."""
    rows, width = padding.shape
    total = torch.zeros(3, rows, dtype=torch.int64, device=u.device)
    for positions in torch.arange(width, device=u.device).split(max(1, _PAIRS // (rows * width))):
        real = ~padding[:, positions, None] & ~padding[:, None]
        above_u, above_v = ((x[:, positions, None] > x[:, None]) & real for x in (u, v))
        below_v = (v[:, positions, None] < v[:, None]) & real
        excess = (above_u & above_v).sum((1, 2)) - (above_u & below_v).sum((1, 2))
        total += torch.stack((excess, above_u.sum((1, 2)), above_v.sum((1, 2))))
    return total


def _pair_counts(
    u: Float[Tensor, "row inp"], v: Float[Tensor, "row inp"], padding: Bool[Tensor, "row inp"]
) -> Int[Tensor, "3 row"]:
    """Return concordant minus discordant pairs, pairs untied in u, and pairs untied in v."""
    real = padding.shape[-1] - padding.sum(-1)
    beyond = torch.arange(padding.shape[-1], device=u.device) >= real[:, None]
    # Padding goes last, and then becomes NaN, which ties with nothing (and is slow to sort).
    u, v = (_finite(x).masked_fill(padding, torch.inf) for x in (u, v))
    by_v = _argsort(v)
    v, u = v.gather(-1, by_v).masked_fill_(beyond, torch.nan), u.gather(-1, by_v)
    by_u = _argsort(u)
    ordered = u.gather(-1, by_u).masked_fill_(beyond, torch.nan)
    tied_u, tied_v = _tied_pairs(ordered), _tied_pairs(v)
    tied_both = torch.zeros_like(tied_u)
    some = tied_u > 0
    if some.any():
        by_u[some] = _in_the_order_of_v(by_u[some], ordered[some])
        tied_both[some] = _tied_pairs(ordered[some], v[some].gather(-1, by_u[some]))
    falling = _falling_pairs(_ranks(v).gather(-1, by_u).masked_fill_(beyond, padding.shape[-1]))
    pairs = real * (real - 1) // 2
    excess = pairs - tied_u - tied_v + tied_both - 2 * falling
    return torch.stack((excess, pairs - tied_u, pairs - tied_v))


def _in_the_order_of_v(
    by_u: Int[Tensor, "row inp"], ordered: Float[Tensor, "row inp"]
) -> Int[Tensor, "row inp"]:
    """Return positions in the order of u and, where u is tied, as they stood: in that of v.

    Sorting whole numbers, rank and position in one, takes a fraction of a stable sort's time.
    """
    width = by_u.shape[-1]
    keys = torch.empty_like(by_u, dtype=torch.int32 if width < 2**15 else torch.int64)
    keys.scatter_(-1, by_u, _ranks(ordered).to(keys.dtype) * width)
    keys += torch.arange(width, dtype=keys.dtype, device=keys.device)
    in_order = torch.from_numpy(np.sort(keys.numpy())) if keys.is_cpu else keys.sort().values
    return (in_order % width).long()


def _tied_pairs(*ordered: Float[Tensor, "row inp"]) -> Int[Tensor, " row"]:
    """Return how many pairs of positions are equal in all of some arrays in one order.

    Equal values are adjacent: each ties with as many as there are of them before it.
    """
    same = torch.stack([x[:, 1:] == x[:, :-1] for x in ordered]).all(0)
    library, columns = _by_position(same)
    before = library.zeros_like(columns[0], dtype=library.int32)
    total = library.zeros_like(columns[0], dtype=library.int64)
    for column in columns:
        before += 1
        before *= column
        total += before
    return torch.as_tensor(total)


def _ranks(ordered: Float[Tensor, "row inp"]) -> Int[Tensor, "row inp"]:
    """Return the dense ranks, from 0, of sorted values in the smallest type that holds them."""
    types = (torch.int8, torch.int16, torch.int32)
    small = next(t for t in types if torch.iinfo(t).max >= ordered.shape[-1])
    ranks = torch.zeros(ordered.shape, dtype=small, device=ordered.device)
    ranks[:, 1:] = (ordered[:, 1:] != ordered[:, :-1]).cumsum(-1, dtype=small)
    return ranks


def _falling_pairs(ranks: Int[Tensor, "row inp"]) -> Int[Tensor, " row"]:
    """Return how many pairs of positions have the higher rank first."""
    library, columns = _by_position(ranks)
    falls = library.empty_like(columns, dtype=bool)
    count = library.zeros_like(columns, dtype=library.uint8)
    total = torch.zeros(len(ranks), dtype=torch.int64, device=ranks.device)
    for offset in range(1, len(columns)):
        library.less(columns[offset:], columns[:-offset], out=falls[offset:])
        count[offset:] += falls[offset:].view(library.uint8)
        if offset % 255 == 0 or offset == len(columns) - 1:  # as much as a byte holds
            total += torch.as_tensor(count.sum(0, dtype=library.int64))
            count[:] = 0
    return total


def _by_position(rows: Tensor) -> tuple[Any, Any]:
    """Return rows with positions first, so that each is contiguous, and the library for them.

    On the CPU, NumPy takes a fifth of torch's time.
    """
    columns = rows.T.contiguous()
    return (np, columns.numpy()) if rows.is_cpu else (torch, columns)


def _finite(values: Float[Tensor, "row inp"]) -> Float[Tensor, "row inp"]:
    return values.clamp(max=torch.finfo(values.dtype).max)


def _argsort(values: Float[Tensor, "row inp"]) -> Int[Tensor, "row inp"]:
    if values.device.type != "cpu":
        return values.argsort(dim=-1)
    # On the CPU, NumPy sorts short rows several times faster than torch; it knows no bfloat16.
    known = values.detach().to(torch.promote_types(values.dtype, torch.float32)).numpy()
    return torch.from_numpy(np.argsort(known, axis=-1))
