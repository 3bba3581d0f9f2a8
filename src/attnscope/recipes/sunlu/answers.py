"""What trained units answer on what was held out, and how even their attention is there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from attnscope.analysis.agreement import attention_entropy
from attnscope.analysis.intervals import Interval
from attnscope.data.corpus import Corpus
from attnscope.recipes.sunlu.corpora import held_out_batch
from attnscope.training.trained_unit import TrainedUnit


class Answers:
    """A cell on the held-out part: what each seed says, and how even its attention is."""

    def __init__(self, units: Sequence[TrainedUnit], source: Corpus, device: str) -> None:
        found = [_looked_at(unit, source, device) for unit in units]
        self.predicted = np.stack([predicted for predicted, _ in found])[:, None]
        self.entropy = np.stack([entropy for _, entropy in found])
        self.dev = float(np.mean([unit.log_row(unit.best_step)["accuracy"] for unit in units]))
        self.seeds = tuple(unit.unit.seed for unit in units)


@torch.no_grad()
def _looked_at(
    unit: TrainedUnit, source: Corpus, device: str
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return a unit's labels and α's entropy over log L; NaN where there is one word."""
    model, batch = unit.best_model.to(device), held_out_batch(source)
    labels = np.zeros(len(batch), np.int64)
    entropy = np.full(len(batch), np.nan)
    for places, part in batch.by_length(lambda inp, out: max(1, _POSITIONS // inp)):
        trace = model.trace(part.to(device))  # type: ignore[operator]
        labels[places] = trace.logits[:, 0].argmax(-1).cpu().numpy()
        site = trace.sites["cross"]
        spread = attention_entropy(site.weights[:, 0].double(), site.mask)
        entropy[places] = spread[:, 0].cpu().numpy()
    return labels, entropy


# Input positions that are run at once.
_POSITIONS = 2**16


def percent(interval: Interval) -> Interval:
    """Return an interval of shares in percent."""
    value, low, high = (100 * end for end in (interval.value, interval.low, interval.high))
    return Interval(value, low, high, interval.n)


def rng() -> np.random.Generator:
    """Return the bootstrap's randomness."""
    return np.random.default_rng(0)
