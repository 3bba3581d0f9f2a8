"""Any two scores compared: agreement over all output words, with its interval over sentences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnscope.analysis.agreement import top_share_agreement
from attnscope.analysis.intervals import Interval, sentence_interval
from attnscope.data.batch import by_row
from attnscope.errors import UsageError
from attnscope.scores.score import Score

# Cells compared at once.
_CELLS = 2**20

Metric = Callable[[Tensor, Tensor, Tensor], Tensor]


def compare(
    u: Score, v: Score, metric: Metric = top_share_agreement, *, resampling: int = 0
) -> Interval:
    """Return how well ``v`` agrees with ``u`` on the same examples.

    Parameters
    ----------
    u, v
        Two scores, of the same model or of different ones.
    metric
        `attnscope.analysis.agreement.top_share_agreement` (snell Eq. 10; the order of its arguments
        matters) or `attnscope.analysis.kendall.kendall_tau_b`.
    resampling
        Seed of the bootstrap.

    Returns
    -------
    Interval
        The mean over all real output words and its 95 % interval over sentences.

    Examples
    --------
    >>> import attnscope
    >>> demo = attnscope.load("demo")
    >>> found = attnscope.compare(demo.score("attention"), demo.score("lexical_probe"))
    >>> found.value > 0.8, found.n
    (True, 8)
    """
    agreement = per_word(u, v, metric)
    return sentence_interval(agreement, u.target_mask, rng=np.random.default_rng(resampling))


def per_word(
    u: Score, v: Score, metric: Metric = top_share_agreement
) -> Float[np.ndarray, "batch out"]:
    """Return how well ``v`` agrees with ``u`` at every output word, NaN at padding.

    Examples of like length are compared together: a few long ones do not make all of them long.
    """
    if not u.batch.ids.equal(v.batch.ids) or u.values.shape != v.values.shape:
        raise UsageError(f"{u.name} and {v.name} are not scores of the same examples.")
    mask = common_mask(u, v)
    agreement = torch.full(u.values.shape[:2], torch.nan, dtype=torch.float64)
    for rows, batch in u.batch.by_length(lambda inp, out: _CELLS // (inp * out)):
        out, inp = batch.targets.shape[1], batch.inputs.shape[1]
        first, second = (score.values[rows, :out, :inp] for score in (u, v))
        agreement[rows, :out] = metric(first, second, _part(mask[rows], out, inp)).cpu()
    return agreement.masked_fill(~u.target_mask.cpu(), torch.nan).numpy()


def common_mask(u: Score, v: Score) -> Bool[Tensor, "batch *row inp"]:
    """Return where both scores speak; with an output axis only if one of them needs it."""
    if u.input_mask.ndim == v.input_mask.ndim:
        return u.input_mask & v.input_mask
    return by_row(u.input_mask) & by_row(v.input_mask)


def _part(
    mask: Bool[Tensor, "batch *row inp"], out: int, inp: int
) -> Bool[Tensor, "batch *row inp2"]:
    return mask[:, :inp] if mask.ndim == 2 else mask[:, :out, :inp]
