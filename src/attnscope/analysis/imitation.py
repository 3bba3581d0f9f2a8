"""An imitator against its base: distance of predictions and of attention (tutek Eq. 7, 8, Fig. 1).

The imitator is trained with `attnscope.training.imitation.Imitation`; each λ gives one point of the
curve: the mean over held-out instances of both distances. `curve_gap` compares two such curves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.analysis.replaced_attention import POSITIONS, positions_at_once
from attnscope.data.batch import Batch
from attnscope.models.trace import AttentionModel
from attnscope.training.imitation import imitated

_PLACES = 101  # of the common range at which two curves are compared


@dataclass(frozen=True)
class Imitated:
    """How an imitator compares with its base on each example, on the CPU.

    Attributes
    ----------
    divergence
        JSD between their attention weights, in nats.
    distance
        TVD between their outputs.
    """

    divergence: Float[Tensor, " example"]
    distance: Float[Tensor, " example"]


@torch.no_grad()
def compare_with_base(
    imitator: AttentionModel, base: AttentionModel, batch: Batch, *, site: str = "cross"
) -> Imitated:
    """Compare two models on the same examples.

    Parameters
    ----------
    imitator, base
        Two models of the same output types, on the device of the batch.
    site
        The site whose attention is compared.
    """
    found = torch.zeros(2, len(batch))
    for rows, part in batch.by_length(positions_at_once(POSITIONS)):
        both = torch.stack(imitated(imitator.trace(part), base.trace(part), site))
        found[:, rows] = both.sum(-1).cpu().float() / part.target_lengths
    return Imitated(divergence=found[1], distance=found[0])


def curve_gap(one: Sequence[tuple[float, float]], other: Sequence[tuple[float, float]]) -> float:
    """Return the mean of y₁(x) − y₂(x) over the x that both curves reach, NaN if there are none.

    Parameters
    ----------
    one, other
        Points (x, y) in any order; between them a curve is straight.
    """
    first, second = (np.array(sorted(points)) for points in (one, other))
    low = max(first[0, 0], second[0, 0])
    high = min(first[-1, 0], second[-1, 0])
    if not low < high:
        return float("nan")
    places = np.linspace(low, high, _PLACES)
    gap = np.interp(places, *first.T) - np.interp(places, *second.T)
    return float(gap.mean())
