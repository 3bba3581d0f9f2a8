"""F1, precision, recall and accuracy with their intervals over examples, seeds and permutations.

Two classes are judged by the positive one, label 1 (tutek Table 1), more by the unweighted mean
over the classes that occur, among labels or predictions. Where a metric is not defined, as the
precision of a class that is never predicted, it counts as 0: a model that always predicts
"negative" has F1 = 0. Everything is NumPy, and CPU tensors pass as arrays.
"""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attnscope.analysis.intervals import RESAMPLES, Interval, replicated_interval
from attnscope.errors import UsageError

Array = NDArray[np.float64]
Average = Literal["positive", "macro"]

METRICS = ("f1", "precision", "recall", "accuracy")
# Numbers held at once while resampling.
_BUDGET = 2**24


def usual_average(labels: Sized) -> Average:
    """Return how metrics of some classes are averaged: the positive one of two, else over all."""
    return "positive" if len(labels) == 2 else "macro"


def classification_metrics(
    labels: ArrayLike, predicted: ArrayLike, *, average: Average = "positive"
) -> dict[str, Array]:
    """Return F1, precision, recall and accuracy of predicted labels.

    Parameters
    ----------
    labels
        The right labels 0, 1, … of the examples, of shape [examples].
    predicted
        Predicted labels, of shape [..., examples]: further axes are further models or draws.
    average
        ``positive`` for label 1 alone, ``macro`` for the mean over all classes.

    Returns
    -------
    dict
        Arrays of the shape that is left without the examples, by the names in `METRICS`.
    """
    right, guesses = _labels(labels), np.asarray(predicted)
    counts = _Counts(right, guesses.reshape(-1, right.size), _classes(right, guesses))
    values = counts.metrics(np.ones((1, right.size), np.float32), average)
    return {name: value.reshape(guesses.shape[:-1]) for name, value in values.items()}


def metric_intervals(
    labels: ArrayLike,
    predicted: ArrayLike,
    *,
    rng: np.random.Generator,
    average: Average = "positive",
    baseline: ArrayLike | None = None,
    resamples: int = RESAMPLES,
) -> dict[str, Interval]:
    """Return each metric's mean over seeds and draws, with its 95 % interval.

    The metric is computed for every seed and draw and then averaged, as papers average runs. The
    interval is Student's over seeds, with the variance over examples added (`replicated_interval`).

    Parameters
    ----------
    labels
        The right labels, [examples].
    predicted
        Predicted labels, [seeds, draws, examples]; a draw may be a permutation of attention.
    rng, resamples
        Where the resamples come from, and how many.
    average
        As in `classification_metrics`.
    baseline
        Predicted labels of the same seeds on the same examples: the change against these is
        returned, negative where the metric falls.

    Returns
    -------
    dict
        By the names in `METRICS`; ``n`` is the number of examples.
    """
    right = _labels(labels)
    parts = [_draws(right, predicted)]
    parts += [] if baseline is None else [_draws(right, baseline)]
    if len({part.shape[0] for part in parts}) > 1:
        raise UsageError(f"{parts[0].shape[0]} seeds are compared with {parts[1].shape[0]}.")
    classes = _classes(right, *parts)
    counts = [_Counts(right, part.reshape(-1, right.size), classes) for part in parts]
    shapes = [part.shape[:2] for part in parts]

    def of_seeds(weights: NDArray[np.float32]) -> dict[str, Array]:
        """Return each metric, less the baseline's, for each row of example weights and seed."""
        found: list[dict[str, Array]] = []
        for part, shape in zip(counts, shapes, strict=True):
            each = {n: v.reshape(-1, *shape) for n, v in part.metrics(weights, average).items()}
            # Of one seed, draws are all that varies besides the examples.
            found.append({n: v.mean(2) if shape[0] > 1 else v[:, 0] for n, v in each.items()})
        return {name: found[0][name] - sum(part[name] for part in found[1:]) for name in METRICS}

    values = of_seeds(np.ones((1, right.size), np.float32))
    if right.size < 2:
        return {name: Interval(float(values[name].mean()), np.nan, np.nan, 1) for name in METRICS}
    widest = sum(part.wide for part in counts) + 2 * right.size
    rows = [
        of_seeds(_multiplicities(right.size, size, rng))
        for size in _portions(resamples, max(1, _BUDGET // widest))
    ]
    least = 0.0 if baseline is None else -1.0
    return {
        name: _within(
            replicated_interval(
                values[name][0], np.concatenate([row[name] for row in rows]), right.size
            ),
            least,
        )
        for name in METRICS
    }


def _within(interval: Interval, least: float) -> Interval:
    """Cut an interval where a metric, or a difference of two, cannot lie."""
    return replace(interval, low=max(interval.low, least), high=min(interval.high, 1.0))


class _Counts:
    """Predictions as indicators, from which any weighting of examples gives the metrics."""

    def __init__(
        self, labels: NDArray[np.integer], predicted: NDArray[np.integer], classes: int
    ) -> None:
        each = np.arange(classes)
        # float32 counts exactly up to 2^24 examples, and matrix products are fast in it.
        self.gold = (labels[:, None] == each).astype(np.float32)  # examples, classes
        said = predicted.T[:, :, None] == each
        self.said = said.reshape(labels.size, -1).astype(np.float32)  # examples, draws · classes
        right = said & (labels[:, None, None] == each)
        self.right = right.reshape(labels.size, -1).astype(np.float32)
        self.classes = classes

    @property
    def wide(self) -> int:
        """How many numbers one resample gives."""
        return 3 * self.said.shape[1]

    def metrics(self, weights: NDArray[np.float32], average: Average) -> dict[str, Array]:
        """Return metrics [resamples, draws] for weights [resamples, examples]."""
        hits, said = (
            (weights @ part).reshape(len(weights), -1, self.classes).astype(np.float64)
            for part in (self.right, self.said)
        )
        gold = (weights @ self.gold)[:, None].astype(np.float64)

        def mean(per_class: Array) -> Array:
            if average == "positive":
                return per_class[..., 1]
            occurs = said + gold > 0  # A resample may lack a class; that is not a mistake.
            return per_class.sum(-1, where=occurs) / occurs.sum(-1)

        return {
            "f1": mean(_ratio(2 * hits, said + gold)),
            "precision": mean(_ratio(hits, said)),
            "recall": mean(_ratio(hits, np.broadcast_to(gold, hits.shape))),
            "accuracy": hits.sum(-1) / weights.sum(-1, dtype=np.float64)[:, None],
        }


def _ratio(above: Array, below: Array) -> Array:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def _labels(labels: ArrayLike) -> NDArray[np.integer]:
    array = np.asarray(labels)
    if array.size == 0:
        raise UsageError("There are no examples to evaluate predictions on.")
    return array


def _classes(*labels: NDArray[np.integer]) -> int:
    return max(2, *(int(part.max()) + 1 for part in labels))


def _draws(labels: NDArray[np.integer], predicted: ArrayLike) -> NDArray[np.integer]:
    array = np.asarray(predicted)
    if array.ndim != 3 or array.shape[2] != labels.size:
        raise UsageError(
            f"Predictions of shape {array.shape} were given; needed is [seeds, draws, examples] "
            f"with {labels.size} examples."
        )
    return array


def _multiplicities(count: int, size: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return how often each of ``count`` things is in each of ``size`` resamples."""
    drawn = rng.integers(count, size=(size, count)) + count * np.arange(size)[:, None]
    flat = np.bincount(drawn.ravel(), minlength=size * count)
    return flat.reshape(size, count).astype(np.float32)


def _portions(total: int, most: int) -> list[int]:
    return [min(most, total - start) for start in range(0, total, most)]
