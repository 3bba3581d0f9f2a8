"""The count of printed results: which cells there are, what they are compared with, and how."""

from __future__ import annotations

import csv
import math
from pathlib import Path

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
from attnscope.claims.printed_cells import corpora, is_result, queries
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
            for asked in queries(paper, row) if is_result(paper, row) else ():
                assert asked.recipe in recipes
        for places in corpora(paper).values():
            assert {kind for _, kind in places} <= {"own", "part", "stand-in"}


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


def full(recipe: str, dataset: str, name: str, value: float, **more: object) -> Result:
    settings, axes = more.pop("config", {}), more
    row = Measurement(name=name, dataset=dataset, axes=axes, split="test", value=value, n=9)
    fields = {"recipe": recipe, "scale": "full", "config": settings, "environment": {}}
    return Result(**fields, seconds=0.0, measurements=(row,))  # type: ignore[arg-type]


def test_whole_texts_are_preferred_to_cut_ones_and_are_the_papers_own():
    axes = {"attention": "additive", "model": "base"}
    cut = full("tutek/table1", "tutek-imdb", "f1_trained", 88.0, **axes)
    whole = full("tutek/table1", "tutek-imdb-uncut", "f1_trained", 90.0, **axes)
    for results, corpus, value in (([cut], "part", 88.0), ([whole, cut], "own", 90.0)):
        found = [c for c in compare(results) if c.measured is not None]
        assert {c.corpus for c in found} == {corpus}
        assert found[0].measured is not None
        assert found[0].measured.value == value


def test_tables_of_bleu_are_compared_with_the_checkpoint_of_the_best_bleu_by_the_codes_way():
    rows = []
    for way, value in (("text", 30.0), ("code", 31.0), ("code-bleu", 32.0)):
        result = full("snell/table5", "multi30k-de-en", "A(alpha,beta_uf)", value, way=way)
        rows += [row.model_copy(update={"split": "val"}) for row in result.measurements]
    both = full("snell/table5", "", "", 0.0).model_copy(update={"measurements": tuple(rows)})
    for way, expected in (("text", {30.0}), ("code", {31.0, 32.0})):
        found = {c.row.table: c.measured for c in compare([both], way) if c.measured}
        assert {each.value for each in found.values()} == expected
        if way == "code":
            assert (found["table5"].value, found["table6"].value) == (31.0, 32.0)


def test_escan_at_other_lengths_than_those_recorded_is_a_part():
    recorded = {"separator": "marked", "shortest_output": 10, "longest_output": 15}
    axes = {"model": "ao", "cell": "gru", "attention": "dot"}
    for settings, corpus in ((recorded, "own"), ({"separator": "none"}, "part")):
        given = {"config": settings, **axes}
        result = full("aitken/fig3", "escan", "padded_accuracy", 0.98, **given)
        found = [c for c in compare([result]) if c.measured is not None]
        assert [c.corpus for c in found] == [corpus]


def test_runs_with_other_settings_count_where_there_are_none_at_the_defaults():
    def named(changed, value):
        axes = {"model": "ao", "cell": "gru", "attention": "dot", "form": "raw", "term": "muD.muE"}
        result = full("aitken/fig5", "escan", "term_share", value, **axes)
        scale = "changed" if changed else "full"
        return result.model_copy(update={"scale": scale, "changed": changed})

    other, plain = named({"drawing": "shape"}, 0.7), named({}, 0.8)
    for results, expected in (([other], 70.0), ([plain, other], 80.0)):
        found = [c.measured for c in compare(results) if c.measured is not None]
        assert [each.value for each in found] == [pytest.approx(expected)]


def test_the_measurement_over_most_seeds_is_compared():
    axes = {"attention": "additive", "model": "base"}
    few, many = (full("tutek/table1", "tutek-sst", "f1_trained", at, **axes) for at in (80.0, 84.0))
    rows = [few.measurements[0].model_copy(update={"seeds": (0, 1)})]
    rows += [many.measurements[0].model_copy(update={"seeds": (0, 1, 2)})]
    both = [few.model_copy(update={"measurements": (row,)}) for row in rows]
    for results in (both, both[::-1]):
        found = [c.measured for c in compare(results) if c.measured is not None]
        assert found
        assert {each.value for each in found} == {84.0}


def test_a_reason_is_the_first_that_fits_or_not_known():
    assert "Tatoeba" in reason(cell(1.0, None, dataset="IWSLT14", metric="xi_star"))
    assert reason(cell(1.0, None, dataset="IMDB", metric="xi_star")) == NOT_KNOWN


def test_a_reason_is_of_a_part_of_a_table_where_it_says_so():
    def of(model: str, scale: str) -> str:
        row = next(
            row
            for row in published("sunlu")
            if (row.table, row.variant) == ("table2", (("model", model), ("lambda", scale)))
        )
        return reason(ComparedCell("sunlu", row, "own", None))

    assert "one word or few" in of("AD", "0.001")
    assert "one word or few" not in of("DP-L", "10")


def test_what_shows_a_reason_is_there_and_other_reasons_are_supposed():
    root = Path(__file__).parents[2]
    lines = csv.DictReader((root / "src/attnscope/claims/fidelity_reasons.csv").open())
    for line in lines:
        shown = line["shown"]
        assert shown in ("", "print") or list((root / shown).rglob("result.json"))
    yelp = cell(1.0, None, dataset="Yelp", metric="xi_star")
    assert reason(yelp).startswith("supposed: a tenth")
    both = cell(1.0, None, dataset="Yelp", metric="A(alpha,beta)")
    assert reason(both).endswith("(shown: results/snell/table5)")


def test_a_reason_about_cut_texts_is_not_given_where_whole_ones_are_measured():
    row = next(row for row in published("tutek") if (row.table, row.dataset) == ("table1", "20NG"))
    cut, whole = (ComparedCell("tutek", row, kind, None) for kind in ("part", "own"))
    assert "cut at 500" in reason(cut)
    assert "cut at" not in reason(whole)
