"""Pictures of a result: strict records that come back as written, and curves that are numbers."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from pydantic import ValidationError

from attnscope.errors import UsageError, WorkspaceError
from attnscope.runs.result import Curve, Matrix, Measurement, Plane, Point, Result, read_result
from cases import for_each


@dataclass
class Span:
    value: float
    low: float
    high: float
    n: int


NAN = float("nan")
MATRIX = Matrix.of(
    "attention",
    "escan",
    [[0.12341, NAN], [0.004, 0.9]],
    rows=["RUN", "<eos>"],
    columns=["run", "<eos>"],
    axes={"model": "aed"},
    n=1,
    seeds=[3],
    digits=4,
)
PLANE = Plane(
    name="temporal_path",
    dataset="escan",
    x="PC 1",
    y="PC 2",
    points=(Point("1", "encoder", 0.5, -0.5), Point("2", "encoder", 0.25, 1.0)),
    joined=True,
    n=1000,
    seeds=(3,),
)
CURVE = Curve.of(
    "gamma",
    "copying",
    "step",
    {0: Span(0.5, 0.25, 0.75, 7), 100: Span(0.75, NAN, NAN, 1)},
    {"place": "gold"},
    seeds=range(7),
)


def result(*pictures: Matrix | Plane | Curve, measurements: tuple[Measurement, ...] = ()) -> Result:
    return Result(
        recipe="own/one",
        scale="full",
        config={},
        environment={},
        seconds=1.0,
        measurements=measurements,
        pictures=pictures,
    )


def test_pictures_come_back_as_they_were_written(tmp_path):
    whole = result(MATRIX, PLANE, CURVE)
    whole.write(tmp_path)
    assert read_result(tmp_path / "result.json") == whole


def test_a_written_matrix_has_labels_rounded_values_and_null_for_what_was_not_measured(tmp_path):
    result(MATRIX).write(tmp_path)
    [written] = json.loads((tmp_path / "result.json").read_text())["pictures"]
    assert written["rows"] == ["RUN", "<eos>"]
    assert written["values"] == [[0.1234, None], [0.004, 0.9]]
    assert written["kind"] == "matrix"
    assert written["seeds"] == [3]


def test_a_measurement_and_a_row_of_a_matrix_are_one_line_of_the_file(tmp_path):
    number = Measurement(name="gap", dataset="d", value=1.0, n=1)
    wide = Matrix.of("wide", "d", [[0.5] * 300] * 3, n=1)
    result(wide, measurements=(number, number)).write(tmp_path)
    lines = (tmp_path / "result.json").read_text().splitlines()
    assert sum('"gap"' in line for line in lines) == 2
    assert sum("0.5,0.5" in line for line in lines) == 3


def test_rows_and_columns_without_labels_are_numbered_from_1():
    numbered = Matrix.of("m", "d", [[0.9, 0.1, 0.0], [0.4, 0.6, 0.0]], n=1)
    assert (numbered.rows, numbered.columns) == ((1, 2), (1, 2, 3))


@for_each(
    "wrong",
    [
        {"rows": ("a",)},
        {"values": ((0.1,), (0.2,))},
        {"low": ((0.1, 0.2),)},
        {"marks": ((0, 2),)},
        {"marks": ((-1, 0),)},
    ],
)
def test_a_matrix_whose_parts_do_not_fit_is_refused(wrong):
    with pytest.raises(ValidationError):
        Matrix(**{**dict(MATRIX), **wrong})


def test_a_point_without_a_place_is_refused():
    with pytest.raises(ValidationError):
        Plane(**{**dict(PLANE), "points": (("1", "encoder", NAN, 0.0),)})


@for_each("wrong", [{"x": (0,)}, {"n": (1,)}, {"low": (0.1,)}, {"axes": {"step": 3}}])
def test_a_curve_whose_parts_do_not_fit_is_refused(wrong):
    with pytest.raises(ValidationError):
        Curve(**{**dict(CURVE), **wrong})


def test_a_curve_without_intervals_has_no_bounds():
    bare = Curve.of("gap", "d", "epoch", {1: Span(0.5, NAN, NAN, 1)})
    assert (bare.low, bare.high) == (None, None)
    assert bare.measurements()[0].low is None


def test_points_of_a_curve_are_selected_like_measurements():
    whole = result(CURVE, measurements=(Measurement(name="gamma", dataset="d", value=2.0, n=1),))
    assert [row.value for row in whole.select("gamma")] == [2.0, 0.5, 0.75]
    [first] = whole.select("gamma", "copying", place="gold", step=0)
    assert (first.value, first.low, first.high, first.n) == (0.5, 0.25, 0.75, 7)
    assert first.seeds == tuple(range(7))
    assert whole.measurements == whole.numbers[:1]


def test_one_picture_is_selected_by_kind_name_data_set_and_axes():
    other = MATRIX.model_copy(update={"axes": {"model": "ao"}})
    whole = result(MATRIX, other, PLANE)
    assert whole.picture(Matrix, "attention", "escan", model="ao") is other
    assert whole.select_pictures(Plane, "attention") == []
    with pytest.raises(UsageError, match=r"own/one has 2 matrix 'attention'"):
        whole.picture(Matrix, "attention")
    with pytest.raises(UsageError, match=r"no plane 'path' of escan with model=ao"):
        whole.picture(Plane, "path", "escan", model="ao")


def test_two_pictures_of_one_thing_are_refused():
    with pytest.raises(ValidationError, match="two pictures 'attention' of 'escan'"):
        result(MATRIX, MATRIX)


@for_each(
    ("right", "wrong"),
    [
        ('"kind":"matrix"', '"kind":"cube"'),
        ("[0.004,0.9]", "[0.004]"),
        ('"columns"', '"colums"'),
        ("0.004", '"much"'),
    ],
)
def test_an_edited_file_that_is_wrong_is_named_with_the_place_in_one_line(tmp_path, right, wrong):
    result(MATRIX).write(tmp_path)
    path = tmp_path / "result.json"
    text = path.read_text()
    assert right in text
    path.write_text(text.replace(right, wrong))
    with pytest.raises(WorkspaceError) as caught:
        read_result(path)
    assert str(caught.value).startswith(f"{path} is not a result of attnscope: pictures.0")
    assert "\n" not in str(caught.value)


def test_a_transposed_matrix_has_rows_for_columns() -> None:
    marked = MATRIX.model_copy(update={"marks": ((0, 1),), "low": MATRIX.values})
    turned = marked.transposed
    assert (turned.rows, turned.columns) == (MATRIX.columns, MATRIX.rows)
    assert (turned.row_axis, turned.column_axis) == ("input", "output")
    assert turned.values == turned.low == ((0.1234, 0.004), (None, 0.9))
    assert turned.marks == ((1, 0),)
    assert turned.transposed == marked
