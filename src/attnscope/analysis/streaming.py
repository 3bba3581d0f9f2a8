"""Means over any number of examples, taken batch by batch: by step, as ratios, and by cell.

Measures that depend on a decomposition need a second pass over the examples; these keep only what
the result needs. `Ratio` keeps two numbers per example, enough for intervals over examples.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from attnscope.analysis.intervals import RESAMPLES, Interval, sentence_ratio_interval
from attnscope.errors import UsageError
from attnscope.models.trace import Trace


@dataclass(frozen=True)
class Ratio:
    """Σ above / Σ below over positions, kept as its two sums for every example."""

    above: Float[Tensor, " example"]
    below: Float[Tensor, " example"]

    @property
    def value(self) -> float:
        """The ratio over all examples; NaN where nothing is defined."""
        return float(self.above.sum() / self.below.sum())

    def interval(self, rng: np.random.Generator, resamples: int = RESAMPLES) -> Interval:
        """Return the ratio with its 95 % interval over examples."""
        used = self.below > 0
        above, below = (part[used, None].cpu() for part in (self.above, self.below))
        return sentence_ratio_interval(above, below, below > 0, rng=rng, resamples=resamples)


def ratio_of(
    above: Float[Tensor, "batch *any"],
    below: Float[Tensor, "batch *any"],
    mask: Bool[Tensor, "batch *any"],
) -> Ratio:
    """Return the ratio of two quantities summed over the positions inside the mask."""
    sums = (part.double().masked_fill(~mask, 0.0).flatten(1).sum(1) for part in (above, below))
    return Ratio(*sums)


def mean_of(values: Float[Tensor, "batch *any"]) -> Ratio:
    """Return the mean over all positions; NaN is undefined and skipped."""
    return ratio_of(values, torch.ones_like(values), ~values.isnan())


Measure = Callable[[Trace], Ratio]
Key = TypeVar("Key", bound=Hashable)


def collect(traces: Iterable[Trace], measures: Mapping[Key, Measure]) -> dict[Key, Ratio]:
    """Take several measures of the same forward passes, in one pass."""
    found: dict[Key, list[Ratio]] = {name: [] for name in measures}
    for trace in traces:
        for name, measure in measures.items():
            ratio = measure(trace)
            found[name].append(Ratio(ratio.above.cpu(), ratio.below.cpu()))
    if not all(found.values()):
        raise UsageError("There is nothing to measure: give at least one forward pass.")
    return {name: _joined(ratios) for name, ratios in found.items()}


def _joined(ratios: Sequence[Ratio]) -> Ratio:
    return Ratio(torch.cat([r.above for r in ratios]), torch.cat([r.below for r in ratios]))


class CellMeans:
    """The mean over examples of tables whose last axes may grow from batch to batch.

    Give it values [batch, …] of always the same number of axes; NaN is undefined and skipped.
    """

    def __init__(self) -> None:
        self._total: Tensor | None = None
        self._count: Tensor | None = None

    def update(self, values: Float[Tensor, "batch *cell"]) -> None:
        """Add a batch."""
        total, count = values.double().nansum(0), (~values.isnan()).sum(0)
        if self._total is not None and self._count is not None:
            total, count = _added(self._total, total), _added(self._count, count)
        self._total, self._count = total, count

    @property
    def mean(self) -> Float[Tensor, "*cell"]:
        """The means; NaN where no example has a value."""
        return self._given(self._total) / self.counts

    @property
    def counts(self) -> Int[Tensor, "*cell"]:
        """How many examples each mean is taken over."""
        return self._given(self._count)

    @staticmethod
    def _given(table: Tensor | None) -> Tensor:
        if table is None:
            raise UsageError("There is nothing to average: give at least one batch.")
        return table


def cell_means(batches: Iterable[Float[Tensor, "_ ..."]]) -> CellMeans:
    """Return the means over all examples of all batches."""
    means = CellMeans()
    for values in batches:
        means.update(values)
    return means


def _added(a: Tensor, b: Tensor) -> Tensor:
    """Return the sum of two tables, each padded with 0 to the larger of both shapes."""
    shape = [max(sizes) for sizes in zip(a.shape, b.shape, strict=True)]

    def widened(table: Tensor) -> Tensor:
        room = [(0, size - old) for size, old in zip(shape, table.shape, strict=True)]
        return pad(table, [end for ends in reversed(room) for end in ends])

    return widened(a) + widened(b)
