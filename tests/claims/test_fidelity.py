"""The count of printed results: which cells there are, what they are compared with, and how."""

from __future__ import annotations

import math

import pytest

from attnscope.analysis.intervals import Interval
from attnscope.claims.fidelity import (
    NOT_KNOWN,
    ComparedCell,
    Tally,
    compare,
    farthest,
    reason,
    sentence,
)
from attnscope.claims.papers import PAPERS
from attnscope.claims.printed_cells import corpora, is_result, query
from attnscope.claims.published import PublishedRow, published
from attnscope.recipes.registry import entries
from attnscope.runs.result import Measurement, Result


def cell(value: float, measured: tuple[float, float, float] | None, **row: str) -> ComparedCell:
    fields = {"table": "table5", "dataset": "SST", "metric": "A(alpha,beta)", "split": "val"}
    fields |= {"unit": "percent", "note": ""} | row
    found = None if measured is None else Interval(*measured, 9)
    return ComparedCell("snell", PublishedRow(value=value, variant=(), **fields), "own", found)  # type: ignore[arg-type]


def test_every_table_of_results_is_counted_and_no_setting_is():
    counted = {
        (paper, row.table) for paper in PAPERS for row in published(paper) if is_result(paper, row)
    }
    assert {("snell", f"table{number}") for number in range(2, 12)} < counted
    assert {("tutek", "table6"), ("sunlu", "table2"), ("aitken", "text-s4.1")} < counted
    assert ("tutek", "table4") not in counted  # hyperparameters
    assert ("snell", "fig1") not in counted  # a drawing that illustrates


def test_queries_name_recipes_that_there_are_and_corpora_that_are_known():
    recipes = {entry.name for entry in entries()}
    for paper in PAPERS:
        for row in published(paper):
            asked = query(paper, row) if is_result(paper, row) else None
            assert asked is None or asked.recipe in recipes
        assert {kind for _, kind in corpora(paper).values()} <= {"own", "part", "stand-in"}


def test_a_cell_is_within_three_points_or_inside_the_interval():
    nan = math.nan
    assert cell(50.0, (53.0, nan, nan)).within
    assert not cell(50.0, (53.1, nan, nan)).within
    assert cell(50.0, (60.0, 49.0, 71.0)).within
    assert cell(50.0, (60.0, 49.0, 71.0)).inside
    assert not cell(50.0, (51.0, 50.5, 51.5)).inside
    assert cell(0.53, (0.56, nan, nan), unit="fraction").within
    assert not cell(0.53, (0.57, nan, nan), unit="fraction").within
    assert cell(1000.0, (1030.0, nan, nan), unit="count").within
    assert not cell(1000.0, (1031.0, nan, nan), unit="count").within


def test_a_printed_bound_is_met_from_one_side():
    bound = {"note": "lower bound, printed '> 77%'"}
    assert cell(77.0, (90.0, 89.0, 91.0), **bound).inside
    assert not cell(77.0, (70.0, 69.0, 71.0), **bound).within


def test_cells_without_a_measured_number_are_cells_and_not_comparable():
    cells = [cell(50.0, None), cell(50.0, (51.0, 40.0, 60.0)), cell(50.0, (70.0, 69.0, 71.0))]
    assert Tally.of(cells) == Tally(3, 2, 1, 1)
    assert Tally.of(cells).share == "50 %"
    assert farthest(cells, 5) == [cells[2]]
    assert "Of 3 printed results 2 have a measured number, and 1 of these (50 %)" in sentence(cells)


def test_a_printed_mean_of_runs_is_compared_with_the_prediction_interval():
    axes = {"attention": "additive", "model": "base"}
    row = Measurement(
        name="f1_trained",
        dataset="tutek-sst",
        split="test",
        axes=axes,
        value=81.0,
        low=80.9,
        high=81.1,
        n=1821,
        seeds=(0, 1, 2),
        values=(80.0, 81.0, 82.0),
    )
    result = Result(
        recipe="tutek/table1",
        scale="full",
        config={},
        environment={},
        seconds=0.0,
        measurements=(row,),
    )
    found = [c for c in compare([result]) if c.measured is not None]
    # The same model is table 6's with one layer.
    assert [c.row.table for c in found] == ["table1", "table6"]
    half = 4.302653 * math.sqrt(1 / 3 + 1 / 5)  # t with 2 degrees of freedom; five printed runs
    assert found[0].measured is not None
    assert found[0].measured.high == pytest.approx(81 + half, rel=1e-5)
    assert compare([result.model_copy(update={"scale": "quick"})])[0].measured is None


def test_a_reason_is_the_first_that_fits_or_not_known():
    assert "Tatoeba" in reason(cell(1.0, None, dataset="IWSLT14"))
    assert reason(cell(1.0, None, dataset="IMDB")) == NOT_KNOWN
