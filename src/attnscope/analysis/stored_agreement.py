"""Agreement of stored scores: any two that units keep of the same examples, at any steps.

Nothing is trained or read off a model again. Scores come from the units' folders, and each pair is
compared once, however many tables ask for it::

    runs = StoredAgreement(reference.examples_of("val"), "val")
    alpha = StoredScore(reference, "attention", reference.best_step)
    curve = {
        step: runs.agreement(alpha, StoredScore(other, "attention", step))
        for step in other.evaluated_steps
    }
    step, values = highest(curve)
    print(step, runs.interval(values))
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attnscope.analysis.agreement import expected_random_agreement, top_share_agreement
from attnscope.analysis.comparison import Metric, per_word
from attnscope.analysis.intervals import Interval, sentence_interval
from attnscope.analysis.kendall import kendall_tau_b
from attnscope.data.batch import Batch
from attnscope.scores.score import Score
from attnscope.training.trained_unit import TrainedUnit

METRICS: dict[str, Metric] = {"top5pct": top_share_agreement, "kendall_tau": kendall_tau_b}

Values = np.ndarray
"""Agreement at every output word, NaN at padding: ``Float[ndarray, "batch out"]``."""


class StoredScore(NamedTuple):
    """A score that a unit keeps: its name, and the step at which it was read."""

    unit: TrainedUnit
    name: str
    step: int | str  # ``last`` or ``best`` for a score that was read after training


class StoredAgreement:
    """The stored scores of one split, compared by output word.

    Parameters
    ----------
    batch
        The examples, as in ``unit.examples_of(split)``; all units keep the same ones.
    split
        ``val`` or ``train``.
    """

    def __init__(self, batch: Batch, split: str) -> None:
        self.batch, self.split = batch, split
        self.mask = self.batch.target_mask.numpy()
        self.read = lru_cache(maxsize=32)(self._read)
        self._compared = cache(self._compare)

    def _read(self, score: StoredScore) -> Score:
        return score.unit.stored(score.name, score.step, self.split)

    def _compare(self, u: StoredScore, v: StoredScore, metric: str) -> Values:
        return per_word(self.read(u), self.read(v), METRICS[metric])

    def agreement(self, u: StoredScore, v: StoredScore, metric: str = "top5pct") -> Values:
        """Return how well ``v`` agrees with ``u``, by a metric of `METRICS`."""
        return self._compared(u, v, metric)

    @cached_property
    def random(self) -> Float[np.ndarray, "batch 1"]:
        """The expected agreement with a shuffled score, the same at all words of a sentence."""
        return expected_random_agreement(self.batch.input_mask).numpy()[:, None]

    def interval(self, values: Values) -> Interval:
        """Return the mean over all output words, with its interval over sentences."""
        return sentence_interval(values, self.mask, rng=np.random.default_rng(0))


def mean_agreement(values: Values) -> float:
    """Return the mean over output words, those without a value left out."""
    return float(np.nanmean(values))


def highest(curve: Mapping[int, Values]) -> tuple[int, Values]:
    """Return the step with the highest mean, the first of several, and its values."""
    return max(curve.items(), key=lambda item: mean_agreement(item[1]))
