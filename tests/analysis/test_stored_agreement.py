"""Stored scores compared: by output word, once for each pair, at the step that agrees most."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from attnscope.analysis.stored_agreement import (
    StoredAgreement,
    StoredScore,
    each_highest,
    highest,
    mean_agreement,
)
from attnscope.data.batch import Batch, Example, collate
from attnscope.scores.attention import Attention
from attnscope.scores.score import Score

# Two sentences of three and two words, the second with one output.
BATCH = collate([Example(0, [1, 2, 3], [0, 1], [1, 2]), Example(1, [1, 2], [0], [1])])
UP, DOWN = [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]


class Unit:
    """Keeps one row of scores for each step, the same at every output word."""

    unit = SimpleNamespace(training=SimpleNamespace(scores=(Attention(),), final_scores=()))

    def __init__(self, rows: dict[int, list[float]]) -> None:
        self.rows = rows
        self.reads: list[tuple[str, int, str]] = []

    def stored(self, name: str, step: int, split: str) -> Score:
        self.reads.append((name, step, split))
        values = torch.tensor(self.rows[step]).expand(2, 2, 3)
        return Score(name, values, BATCH.input_mask, BATCH)


def scores(rows: dict[int, list[float]]) -> tuple[Unit, list[StoredScore]]:
    unit: Any = Unit(rows)
    return unit, [StoredScore(unit, "attention", step) for step in rows]


@pytest.mark.parametrize(
    ("metric", "expected"), [("top5pct", (1.0, 0.0)), ("kendall_tau", (1.0, -1.0))]
)
def test_agreement_is_by_output_word_and_padding_has_none(
    metric: str, expected: tuple[float, float]
) -> None:
    _, (up, same, down) = scores({0: UP, 1: UP, 2: DOWN})
    table = StoredAgreement(BATCH, "val")
    for other, value in zip((same, down), expected, strict=True):
        found = table.agreement(up, other, metric)
        assert found.tolist()[0] == [value, value]
        assert found[1, 0] == value
        assert math.isnan(found[1, 1])
        assert table.interval(found).value == mean_agreement(found) == value


def test_every_score_is_read_once_however_often_it_is_compared() -> None:
    unit, (first, second) = scores({0: UP, 1: DOWN})
    table = StoredAgreement(BATCH, "train")
    for _ in range(3):
        table.agreement(first, second)
        table.agreement(second, first, "kendall_tau")
    assert sorted(unit.reads) == [("attention", 0, "train"), ("attention", 1, "train")]


def test_chance_is_that_of_the_lengths() -> None:
    # One position of three, and one of two, are in the top 5 %.
    assert StoredAgreement(BATCH, "val").random == pytest.approx(np.array([[1 / 3], [1 / 2]]))


def test_the_first_of_the_highest_steps_is_taken() -> None:
    curve = {0: np.array([0.0, 0.5]), 10: np.array([1.0, math.nan]), 20: np.array([1.0, 1.0])}
    step, values = highest(curve)
    assert step == 10
    assert mean_agreement(values) == 1


def test_each_pair_of_runs_is_taken_where_it_agrees_most() -> None:
    _, (up, same, down) = scores({0: UP, 1: UP, 2: DOWN})
    table = StoredAgreement(BATCH, "val")
    curve = {0: table.paired([(up, down), (up, same)]), 10: table.paired([(up, same), (up, down)])}
    assert curve[0].shape == (2, 1, 2, 2)
    step, values = each_highest(curve)
    assert step == 10
    assert mean_agreement(values) == table.grid_interval(values).value == 1
    assert mean_agreement(highest(curve)[1]) == 0.5


def test_examples_are_those_that_were_given() -> None:
    table = StoredAgreement(BATCH, "val")
    assert isinstance(table.batch, Batch)
    assert table.mask.tolist() == [[True, True], [True, False]]
