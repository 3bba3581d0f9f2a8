"""Comparing two scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau

from attnscope.analysis import comparison
from attnscope.analysis.agreement import top_share_agreement
from attnscope.analysis.comparison import compare, per_word
from attnscope.analysis.kendall import kendall_tau_b
from attnscope.data.batch import Batch, Example, collate
from attnscope.errors import UsageError
from attnscope.scores.score import Score
from cases import for_each

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


def uneven(seed: int) -> Score:
    """A score of twenty examples of very different lengths."""
    draw = torch.Generator().manual_seed(7)
    sizes = torch.randint(1, 40, (20, 2), generator=draw).tolist()
    listed = [Example(n, [1] * inp, [0] * out, [1] * out) for n, (inp, out) in enumerate(sizes)]
    batch = collate(listed)
    shape = (20, batch.targets.shape[1], batch.inputs.shape[1])
    values = torch.rand(shape, generator=torch.Generator().manual_seed(seed))
    # Two decimals: ties, as scores of real texts have them.
    return Score(f"score {seed}", values.round(decimals=2), batch.input_mask, batch)


@for_each("cells", [1, 100, 2**20])
@for_each("metric", [top_share_agreement, kendall_tau_b])
def test_every_word_has_the_agreement_it_has_alone_however_examples_are_grouped(
    metric: comparison.Metric, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "_CELLS", cells)
    u, v = uneven(0), uneven(1)
    found = per_word(u, v, metric)
    assert found.shape == u.values.shape[:2]
    for row in range(20):
        inp, out = int(u.batch.input_lengths[row]), int(u.batch.target_lengths[row])
        own = (score.values[row : row + 1, :out, :inp] for score in (u, v))
        alone = metric(*own, torch.ones(1, inp, dtype=torch.bool))
        np.testing.assert_array_equal(found[row, :out], alone[0].numpy())
        assert np.isnan(found[row, out:]).all()


def test_only_positions_where_both_scores_mean_something_are_compared() -> None:
    u, v = score(0), score(1)
    narrow = u.input_mask.clone()
    narrow[:, 0] = False
    found = per_word(u, replace(v, input_mask=narrow), kendall_tau_b)
    tau = kendalltau(u.values[0, 0, 1:4], v.values[0, 0, 1:4]).statistic
    assert found[0, 0] == pytest.approx(tau)
