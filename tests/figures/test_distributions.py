"""Groups of values as points, as boxes, and words of a sentence, judged by what the charts hold."""

from __future__ import annotations

import json
from typing import Any

from attnscope.figures.distributions import boxes, strips
from attnscope.figures.panel import Axis
from attnscope.figures.save import svg
from attnscope.figures.word_curves import word_curves

COLOURS = {"neutral": "#5F5F63", "good": "#0072B2", "bad": "#D55E00"}


def tables(chart: Any) -> list[list[dict[str, Any]]]:
    """Return the rows of each layer."""
    layers = chart.to_dict()["layer"]
    return [json.loads(layer["data"]["values"]) for layer in layers if "data" in layer]


def texts(chart: Any) -> str:
    return svg(chart).decode()


def test_values_of_a_group_stand_in_its_column_and_its_name_below():
    chart = strips({"bad": [-1.0, -2.0], "good": [3.0]}, Axis("score s"), COLOURS, title="SST")
    dots = [row for table in tables(chart) for row in table if "group" in row and "y" in row]
    assert {row["group"]: int(row["x"]) for row in dots} == {"bad": 0, "good": 1}
    assert sorted(row["y"] for row in dots) == [-2.0, -1.0, 3.0]
    shown = texts(chart)
    assert all(word in shown for word in (">bad<", ">good<", "score s", "SST"))


def test_a_box_is_drawn_for_each_group_and_outliers_as_circles():
    numbers = {
        "low_whisker": 0.0,
        "first_quartile": 1.0,
        "median": 2.0,
        "third_quartile": 3.0,
        "high_whisker": 4.0,
    }
    chart = boxes({"good": numbers}, {"good": [9.0]}, COLOURS, y_title="weight", title="SST")
    rows = [row for table in tables(chart) for row in table]
    assert {"group": "good", **numbers} in rows
    assert {"group": "good", "value": 9.0} in rows
    bare = boxes({"good": numbers}, {"good": []}, COLOURS, y_title="weight")
    assert len(bare.to_dict()["layer"]) == len(chart.to_dict()["layer"]) - 1
    assert "weight" in texts(chart)


def test_words_are_data_and_what_cannot_be_printed_is_replaced():
    chart = word_curves(
        ["<b>fine</b>", "a\u0007b", "${x}"],
        {"good": [0.1, 0.2, 0.9]},
        {"good": 0.7},
        {"good": COLOURS["good"]},
        y_title="probability",
        title="a sentence",
        subtitle="dotted: all",
    )
    rows = [row for table in tables(chart) for row in table]
    assert [row["word"] for row in rows if "word" in row] == ["<b>fine</b>", "a\ufffdb", "${x}"]
    assert {"place": 2, "value": 0.9, "model": "good"} in rows
    assert {"value": 0.7, "model": "good"} in rows
    shown = texts(chart)
    assert "<b>" not in shown
    assert "&lt;b&gt;fine" in shown
