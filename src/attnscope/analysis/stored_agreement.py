"""Agreement of stored scores: any two that units keep of the same examples, at any steps.

Nothing is trained. Scores come from the units' folders, one that a unit did not store from its
weights, and each pair is compared once, however many tables ask for it::

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

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from typing import Any, NamedTuple, cast

import numpy as np
from jaxtyping import Float

from attnscope.analysis.agreement import expected_random_agreement, top_share_agreement
from attnscope.analysis.comparison import Metric, per_word
from attnscope.analysis.intervals import Interval, grid_interval, sentence_interval
from attnscope.analysis.kendall import kendall_tau_b
from attnscope.data.batch import Batch
from attnscope.scores.score import Score, ScoreRule
from attnscope.training.evaluation import kept_scores, padded_score
from attnscope.training.loaded import loaded_model
from attnscope.training.trained_unit import TrainedUnit

METRICS: dict[str, Metric] = {"top5pct": top_share_agreement, "kendall_tau": kendall_tau_b}

Values = np.ndarray
"""Agreement at every output word, NaN at padding: ``Float[ndarray, "batch out"]``."""
Grid = np.ndarray
"""Agreement of runs of two kinds, each with each: ``Float[ndarray, "first second batch out"]``."""


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
    device
        Where scores are compared, and read off weights.
    """

    def __init__(self, batch: Batch, split: str, device: str = "cpu") -> None:
        self.batch, self.split, self.device = batch, split, device
        self._placed = batch.to(device)
        self.mask = self.batch.target_mask.numpy()
        self.read = lru_cache(maxsize=32)(self._read)
        self._compared = cache(self._compare)

    def _read(self, score: StoredScore) -> Score:
        training = score.unit.unit.training
        rules = training.final_scores if isinstance(score.step, str) else training.scores
        if score.name in {rule.name for rule in rules}:
            return self.placed(score.unit.stored(score.name, score.step, self.split))
        return self.placed(self._off_weights(score))

    def _off_weights(self, score: StoredScore) -> Score:
        unit, which = score.unit, score.step
        if not isinstance(which, str):
            which = "last" if which == unit.evaluated_steps[-1] else "best"
        model = loaded_model(unit, self.device, cast(Any, which))
        rules = [ScoreRule.model_validate({"kind": score.name})]
        arrays = kept_scores(model, self._placed, unit.unit.source, unit.unit.training, rules)
        return padded_score(score.name, arrays, self.batch)

    def placed(self, score: Score) -> Score:
        """Return a score on the device where scores are compared."""
        values, mask = (part.to(self.device) for part in (score.values, score.input_mask))
        return replace(score, values=values, input_mask=mask, batch=self._placed)

    def _compare(self, u: StoredScore, v: StoredScore, metric: str) -> Values:
        return per_word(self.read(u), self.read(v), METRICS[metric])

    def agreement(self, u: StoredScore, v: StoredScore, metric: str = "top5pct") -> Values:
        """Return how well ``v`` agrees with ``u``, by a metric of `METRICS`."""
        return self._compared(u, v, metric)

    def paired(
        self, pairs: Iterable[tuple[StoredScore, StoredScore]], metric: str = "top5pct"
    ) -> Grid:
        """Return the agreement of some pairs, one below the other: a grid with one column."""
        return np.stack([self.agreement(*both, metric) for both in pairs])[:, None]

    @cached_property
    def random(self) -> Float[np.ndarray, "batch 1"]:
        """The expected agreement with a shuffled score, the same at all words of a sentence."""
        return expected_random_agreement(self.batch.input_mask).numpy()[:, None]

    def interval(self, values: Values) -> Interval:
        """Return the mean over all output words, with its interval over sentences."""
        return sentence_interval(values, self.mask, rng=np.random.default_rng(0))

    def grid_interval(self, values: Grid) -> Interval:
        """Return the mean over runs and output words, with its interval over runs and sentences."""
        return grid_interval(values, rng=np.random.default_rng(0))


def mean_agreement(values: Values) -> float:
    """Return the mean over output words, those without a value left out."""
    return float(np.nanmean(values))


def highest(curve: Mapping[int, Values]) -> tuple[int, Values]:
    """Return the step with the highest mean, the first of several, and its values."""
    return max(curve.items(), key=lambda item: mean_agreement(item[1]))


def each_highest(curve: Mapping[int, Grid]) -> tuple[int, Grid]:
    """Return every pair of runs where its mean is highest, and the step of the first pair."""
    steps, every = list(curve), np.stack(list(curve.values()))
    chosen = np.nanmean(every, (3, 4)).argmax(0)
    first, second = np.indices(chosen.shape)
    return steps[int(chosen[0, 0])], every[chosen, first, second]
