"""Means batch by batch are those of all examples at once."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from attnscope.analysis.intervals import sentence_interval
from attnscope.analysis.streaming import CellMeans, Ratio, cell_means, collect, mean_of, ratio_of
from attnscope.data.tasks import KeywordTask
from attnscope.errors import UsageError
from attnscope.models.trace import Trace


def numbers(count: int = 30) -> torch.Tensor:
    values = torch.randn(count, 4, generator=torch.Generator().manual_seed(0)).double()
    return values.masked_fill(values > 1, torch.nan)


def test_cell_means_of_growing_batches_are_those_of_all_examples() -> None:
    values = numbers()
    short = values[:10, :2]
    means = cell_means([short, values[10:25], values[25:, :3]])
    everything = values.clone()
    everything[:10, 2:] = everything[25:, 3:] = torch.nan
    torch.testing.assert_close(means.mean, everything.nanmean(0))
    assert means.counts.equal((~everything.isnan()).sum(0))


def test_a_table_grows_along_each_of_its_axes() -> None:
    means = cell_means([torch.ones(2, 1, 3), 4 * torch.ones(1, 2, 2)])
    expected = torch.tensor([[2.0, 2, 1], [4, 4, math.nan]]).double()
    torch.testing.assert_close(means.mean, expected, equal_nan=True)


def test_no_batch_has_no_mean() -> None:
    with pytest.raises(UsageError, match="nothing to average"):
        _ = CellMeans().mean
    with pytest.raises(UsageError, match="nothing to measure"):
        collect([], {"mean": lambda trace: mean_of(trace.logits)})


def test_a_ratio_is_of_sums_over_positions_and_not_of_means_over_examples() -> None:
    above, below = torch.tensor([[1.0, 9], [2, 2]]), torch.tensor([[2.0, 9], [4, 4]])
    mask = torch.tensor([[True, False], [True, True]])
    ratio = ratio_of(above, below, mask)
    assert ratio.above.tolist() == [1, 4]
    assert ratio.value == 0.5


def test_a_mean_skips_what_is_undefined() -> None:
    values = numbers()
    assert mean_of(values).value == pytest.approx(float(values.nanmean()))


def test_an_interval_is_the_bootstrap_over_examples() -> None:
    values = torch.arange(20.0).double()
    ratio = Ratio(
        torch.cat([values, torch.zeros(3)]), torch.tensor([1.0] * 20 + [0.0] * 3).double()
    )
    found = ratio.interval(np.random.default_rng(0), 200)
    expected = sentence_interval(values, rng=np.random.default_rng(0), resamples=200)
    assert (found.value, found.n) == (9.5, 20)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_measures_of_several_batches_are_kept_by_example() -> None:
    values = numbers().nan_to_num(0.0)
    traces = [_trace(values[:12]), _trace(values[12:])]
    found = collect(traces, {"mean": lambda trace: mean_of(trace.embeddings[:, 0])})
    torch.testing.assert_close(found["mean"].above, values.sum(1))
    assert found["mean"].value == pytest.approx(float(values.mean()))


def _trace(values: torch.Tensor) -> Trace:
    batch = KeywordTask(length=2, types=3).evaluation_batch(len(values))
    nothing = values.new_zeros(len(values), 1, 0)
    return Trace(batch, values[:, None], values[:, None], None, nothing, nothing)
