"""Any two scores compared: agreement over all output words, with its interval over sentences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import Tensor

from attnscope.analysis.agreement import top_share_agreement
from attnscope.analysis.intervals import Interval, sentence_interval
from attnscope.errors import UsageError
from attnscope.scores.score import Score

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
    """
    if u.batch.ids.tolist() != v.batch.ids.tolist() or u.values.shape != v.values.shape:
        raise UsageError(f"{u.name} and {v.name} are not scores of the same examples.")
    agreement = metric(u.values, v.values, u.input_mask & v.input_mask)
    mask = (u.target_mask & v.target_mask).cpu().numpy()
    return sentence_interval(agreement.cpu().numpy(), mask, rng=np.random.default_rng(resampling))
