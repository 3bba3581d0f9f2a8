"""Charts of measurements hold the numbers of the measurements."""

from __future__ import annotations

import json
from typing import Any

from attnscope.figures.charts import Axis, Panel
from attnscope.recipes.kit.lab import Logged
from attnscope.recipes.kit.plots import (
    accuracy_curves,
    axis_values,
    band,
    datasets,
    dot_tables,
    dots,
    matrix,
    plane,
    span,
)
from attnscope.recipes.kit.sheet import Sheet
from attnscope.runs.result import Measurement, Point, Result


def row(value: float | None, published: float | None = None, **axes: Any) -> Measurement:
    ends = {} if value is None else {"low": value - 1, "high": value + 2}
    return Measurement(
        name="x", dataset="d", axes=axes, value=value, n=3, published=published, **ends
    )


def drawn(chart: Any) -> list[dict[str, Any]]:
    """Return the rows that the layers of a chart hold."""
    layers = chart.to_dict()["layer"]
    tables = [json.loads(layer["data"]["values"]) for layer in layers if "data" in layer]
    if "data" in chart.to_dict():
        tables.append(json.loads(chart.to_dict()["data"]["values"]))
    return [line for table in tables for line in table]


def test_dots_show_value_interval_and_published_number():
    chart = dots([row(1.0, 5.0, model="a")], Axis("x"), label=lambda r: f"model {r.axes['model']}")
    line = {"group": "model a", "x": 1.0, "low": 0.0, "high": 3.0, "published": 5.0}
    assert line in drawn(chart)
    bare = dots([row(1.0, 5.0, model="a")], Axis("x"), label=lambda r: "a", published=False)
    assert all(line["published"] is None for line in drawn(bare))


def test_a_band_takes_its_x_and_its_group_from_the_axes():
    panel = Panel(Axis("x"), Axis("y"), {"a": "#000000"})
    chart = band([row(1.0, step=10, model="a")], panel, x="step", group="model")
    assert {"x": 10, "y": 1.0, "group": "a", "low": 0.0, "high": 3.0} in drawn(chart)


def test_curves_of_accuracy_are_those_of_the_logs():
    logs = [Logged({}, "d", [{"step": 0, "accuracy": a, "loss": 1.0}]) for a in (0.25, 0.5)]
    chart = accuracy_curves({"learns": logs}, {"learns": "#000000"}, steps=10)
    lines = drawn(chart)
    for run, accuracy in enumerate((0.25, 0.5)):
        assert {"x": 0, "y": accuracy, "group": "learns", "detail": run} in lines


def test_the_span_holds_all_ends_and_some_room():
    rows = [row(1.0, 11.0), row(None), row(4.0)]
    assert span(rows, room=0.0) == (0.0, 11.0)
    assert span(rows, room=0.0, published=False) == (0.0, 6.0)
    low, high = span([row(5.0)], room=0.1, zero=True)
    assert low < 0 < 7 < high
    assert span([], room=0.0) == (0.0, 1.0)


def test_data_sets_and_axis_values_keep_their_order():
    rows = [row(1.0, model="b"), row(1.0, model="a"), row(2.0, model="b"), row(1.0)]
    assert axis_values(rows, "model") == ["b", "a"]
    assert datasets(rows) == ["d"]


def test_a_matrix_is_drawn_with_its_labels_and_without_missing_cells():
    picture = Sheet("d").matrix("m", [[0.5, None]], rows=["out"], columns=["a", "b"])
    chart = matrix(picture)
    assert drawn(chart) == [{"row": 0, "column": 0, "value": 0.5}]
    axes = chart.to_dict()["layer"][0]["encoding"]
    assert axes["x"]["axis"]["labelExpr"] == '["a", "b"][datum.value]'
    assert axes["y"]["axis"]["title"] == "output"


def test_a_path_goes_through_its_points_in_their_order():
    points = [Point("1", "a", 2.0, 0.0), Point("2", "a", 1.0, 3.0)]
    panel = Panel(Axis("x"), Axis("y"), {"a": "#000000"}, labels="none")
    joined = Sheet("d").plane("p", points, x="PC 1", y="PC 2", joined=True)
    line = {"x": 1.0, "y": 3.0, "group": "a"}
    assert line | {"order": 1} in drawn(plane(joined, panel))
    scattered = drawn(plane(joined.model_copy(update={"joined": False}), panel))
    assert line in scattered
    assert not any("order" in point for point in scattered)


def test_a_table_is_a_figure_for_each_data_set_and_a_panel_for_each_name():
    rows = [
        Measurement(name=name, dataset=dataset, axes={"model": model}, value=value, n=3)
        for name, value in (("level", 5.0), ("up", 2.0), ("down", -4.0))
        for dataset in ("one", "two")
        for model in ("b", "a")
    ]
    result = Result(
        recipe="r/table", scale="full", config={}, environment={}, seconds=1, measurements=rows
    )
    tables = dot_tables(
        result,
        "t",
        {"level": Axis("level"), "up": "up", "down": "down"},
        label=lambda row: str(row.axes["model"]),
        colour=lambda row: "#000000",
        order=lambda row: str(row.axes["model"]),
        title=lambda dataset, rows: f"{dataset}: {len(rows)}",
        alike=["up", "down"],
    )
    assert list(tables) == ["t-one", "t-two"]
    drawn_table = tables["t-one"].to_dict()
    assert drawn_table["title"]["text"] == "one: 6"
    panels = drawn_table["concat"]
    domains = [panel["layer"][0]["encoding"]["x"]["scale"].get("domain") for panel in panels]
    assert domains[0] is None
    assert domains[1] == domains[2] == [-4.24, 2.24]
    assert panels[0]["layer"][0]["encoding"]["y"]["sort"] == ["a", "b"]
