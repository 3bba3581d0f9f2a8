"""Sheets: intervals by how a number was sampled, and the paper's own numbers next to them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from attnscope.analysis.intervals import Interval
from attnscope.analysis.measures.numbers import number
from attnscope.claims.published import published
from attnscope.recipes.kit.sheet import Sheet, point


def test_a_row_carries_what_the_sheet_knows():
    row = Sheet("sst", "test", range(3), axes={"model": "base"}).mean("x", [1, 2, 6], {"at": 2})
    assert (row.dataset, row.split, row.seeds) == ("sst", "test", (0, 1, 2))
    assert row.axes == {"model": "base", "at": 2}
    assert (row.value, row.n) == (3.0, 3)
    assert row.published is None


def test_a_row_may_have_another_split_and_other_seeds():
    row = Sheet("sst", "test", range(3)).point("x", 1.5, n=4, split="val", seeds=(1,))
    assert (row.value, row.low, row.high, row.n) == (1.5, None, None, 4)
    assert (row.split, row.seeds) == ("val", (1,))


# tutek, table 1: F1 of the base model with additive attention on SST is 84.2, in percent.
TABLE1 = {"paper": "tutek", "table": "table1", "printed": "SST"}
BASE = {"attention": "additive", "model": "base"}


def test_the_published_number_is_found_by_name_and_axes():
    printed = 84.2
    sheet = Sheet("tutek-sst", "test", (0,), percent=True, **TABLE1)
    assert sheet.point("f1_trained", 0.8, BASE, share=True).published == printed
    assert sheet.point("f1_trained", 0.8, BASE, share=True).value == pytest.approx(80)
    assert sheet.point("nothing printed", 0.8, BASE).published is None
    # A row on a sheet of fractions is compared with a fraction.
    fractions = Sheet("tutek-sst", "test", (0,), **TABLE1)
    assert fractions.point("f1_trained", 0.8, BASE).published == pytest.approx(printed / 100)


def test_printed_fractions_are_percentages_on_a_sheet_in_percent():
    # snell, table 11: A(beta_uf, beta_px) is printed as a fraction.
    row = next(row for row in published("snell") if row.table == "table11")
    assert row.unit == "fraction"
    assert row.value < 1
    sheet = Sheet("x", "val", (), "snell", "table11", row.dataset, percent=True)
    assert sheet.point(row.metric, 50.0).published == pytest.approx(100 * row.value)


def test_numbers_that_are_not_shares_stay_as_they_are_on_a_sheet_in_percent():
    sheet = Sheet("x", percent=True)
    assert sheet.point("length", 12.0).value == 12.0


def test_lambda_is_looked_up_as_the_paper_writes_it():
    # sunlu, table 2: DP on SST at λ = .001 has 55.3.
    sheet = Sheet("sunlu-sst", "test", (0,), "sunlu", "table2", "SST", percent=True)
    variant = {"model": "DP", "lambda": 0.001}
    row = sheet.point("accuracy", 55.0, variant | {"penalty": 0.0}, variant=variant)
    assert row.published == 55.3
    assert row.axes["penalty"] == 0.0
    at_ten_thousand = {"model": "DP", "lambda": 10_000.0}
    assert sheet.point("accuracy", 55.0, at_ten_thousand).published is not None


def test_a_split_has_its_own_printed_number():
    # sunlu, table 1: SST has 3,310 negative training texts and 428 in the development part.
    sheet = Sheet("sunlu-sst", "train", (), "sunlu", "table1", "SST")
    train = sheet.point("train_size", 0, {"class": "negative"})
    assert train.published == 3310
    assert sheet.point("avg_length", 0).published == 18  # printed without a split


def test_a_rate_has_the_exact_binomial_interval():
    row = Sheet("x").rate("learned", 3, 10)
    ends = stats.binomtest(3, 10).proportion_ci(0.95, method="exact")
    assert (row.value, row.low, row.high, row.n) == (0.3, ends.low, ends.high, 10)


def test_crossed_is_the_mean_over_defined_cells():
    row = Sheet("x").crossed("y", np.array([[1.0, 2.0, np.nan], [3.0, np.nan, np.nan]]))
    assert row.value == pytest.approx(2.0)


def test_over_seeds_gives_one_row_a_key_and_leaves_out_what_no_seed_has():
    a, b = number("share", term="A"), number("share", term="B")
    found = [{a: 1.0, b: float("nan")}, {a: 3.0, b: float("nan")}]
    rows = Sheet("x", seeds=(0, 1)).over_seeds(found)
    assert [(row.name, row.axes, row.value) for row in rows] == [("share", {"term": "A"}, 2.0)]
    assert Sheet("x").over_seeds([]) == []


def test_point_has_no_ends():
    interval = point(2.0, 7)
    assert isinstance(interval, Interval)
    assert np.isnan([interval.low, interval.high]).all()
    assert interval.n == 7


def test_pictures_carry_what_the_sheet_knows():
    sheet = Sheet("sst", "test", (3,), axes={"model": "base"})
    curve = sheet.curve("c", "step", {0: point(1.0), 5: Interval(2.0, 1.0, 3.0, 4)}, {"term": "A"})
    assert (curve.dataset, curve.split, curve.seeds) == ("sst", "test", (3,))
    assert curve.axes == {"model": "base", "term": "A"}
    assert (curve.axis, curve.x, curve.y, curve.n) == ("step", (0, 5), (1.0, 2.0), (1, 4))
    matrix = sheet.matrix("m", [[1.0, 2.0]], n=7)
    assert (matrix.rows, matrix.columns, matrix.n, matrix.split) == ((1,), (1, 2), 7, "test")
