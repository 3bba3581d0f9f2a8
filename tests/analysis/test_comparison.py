"""Comparing two scores."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from scipy.stats import kendalltau

from attnscope.analysis.comparison import compare
from attnscope.analysis.kendall import kendall_tau_b
from attnscope.data.batch import Batch, Example, collate
from attnscope.errors import UsageError
from attnscope.scores.score import Score

BATCH = collate([Example(0, [1, 2, 3, 4], [0, 0], [1, 2]), Example(1, [1, 2, 3], [0], [1])])


def score(seed: int, batch: Batch = BATCH) -> Score:
    values = torch.rand(2, 2, 4, generator=torch.Generator().manual_seed(seed))
    return Score(f"score {seed}", values, batch.input_mask, batch)


def test_a_score_agrees_wholly_with_itself() -> None:
    for metric in (compare(score(0), score(0)), compare(score(0), score(0), kendall_tau_b)):
        assert (metric.value, metric.low, metric.high, metric.n) == (1.0, 1.0, 1.0, 2)


def test_the_mean_is_over_real_output_words_and_real_input_positions() -> None:
    u, v = score(0), score(1)
    rows = [(0, 0, 4), (0, 1, 4), (1, 0, 3)]  # example, output position, true input length
    taus = [kendalltau(u.values[b, t, :n], v.values[b, t, :n]).statistic for b, t, n in rows]
    assert compare(u, v, kendall_tau_b).value == pytest.approx(sum(taus) / 3)


def test_the_same_seed_gives_the_same_interval() -> None:
    assert compare(score(0), score(1), kendall_tau_b) == compare(score(0), score(1), kendall_tau_b)


def test_scores_of_other_examples_are_refused_in_one_sentence() -> None:
    other = replace(BATCH, ids=BATCH.ids + 1)
    with pytest.raises(UsageError, match="not scores of the same examples"):
        compare(score(0), score(1, other))
