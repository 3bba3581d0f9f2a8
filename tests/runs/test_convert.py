"""Results of schema 1: rows of a picture become one record, and numbers stay as they are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from attnscope.errors import WorkspaceError
from attnscope.runs.convert import main
from attnscope.runs.result import Curve, Matrix, Measurement, Plane, Point, Result, read_result
from attnscope.runs.schema1 import with_pictures


def row(name: str, value: float | None, found: dict[str, Any] | None = None, **axes: Any) -> Any:
    return Measurement(
        name=name, dataset="d", axes=axes, found=found or {}, value=value, n=5, seeds=(0,)
    )


def converted(recipe: str, *rows: Measurement) -> Result:
    numbers, pictures = with_pictures(recipe, rows)
    return Result(
        recipe=recipe,
        scale="full",
        config={},
        environment={},
        seconds=1.0,
        measurements=numbers,
        pictures=pictures,
    )


def test_two_coordinates_of_a_point_become_one_point_of_a_plane():
    rows = [
        row("temporal_path", value, model="ao", side=side, step=step, pc=pc)
        for side in ("encoder", "decoder")
        for step in (1, 2)
        for pc, value in ((1, 0.123456), (2, float(step)))
    ]
    [plane] = converted("aitken/fig3", *rows).pictures
    assert plane == Plane(
        name="temporal_path",
        dataset="d",
        axes={"model": "ao"},
        x="PC 1",
        y="PC 2",
        joined=True,
        points=(
            Point("1", "encoder", 0.1235, 1.0),
            Point("2", "encoder", 0.1235, 2.0),
            Point("1", "decoder", 0.1235, 1.0),
            Point("2", "decoder", 0.1235, 2.0),
        ),
        n=5,
        seeds=(0,),
    )


def test_a_word_with_polarity_and_attention_is_a_point():
    rows = [
        row("word", 0.25, {"polarity": 0.5, "word": "good"}, model="DP", group="positive", place=0)
    ]
    [plane] = converted("sunlu/scores", *rows).pictures
    assert isinstance(plane, Plane)
    assert plane.points == (Point("good", "positive", 0.5, 0.25),)
    assert plane.axes == {"model": "DP"}
    assert not plane.joined


def test_cells_by_position_take_the_words_of_the_example_as_labels():
    words = [
        row("example", float(place), model="ao", side=side, place=place, word=word)
        for side, said in (("input", ["run", "left", "<eos>"]), ("output", ["RUN", "<eos>"]))
        for place, word in enumerate(said)
    ]
    cells = [
        row("attention", 0.75, model="ao", out=0, inp=0),
        row("attention", 0.5, model="ao", out=1, inp=1),
        row("temporal_attention", 0.5, model="ao", out=1, inp=0),
    ]
    attention, temporal = converted("aitken/fig3", *words, *cells).pictures
    assert attention == Matrix.of(
        "attention",
        "d",
        [[0.75, 0.0, 0.0], [0.0, 0.5, 0.0]],
        ["RUN", "<eos>"],
        ["run", "left", "<eos>"],
        axes={"model": "ao"},
        n=5,
        seeds=(0,),
    )
    assert isinstance(temporal, Matrix)
    assert (temporal.rows, temporal.columns) == ((1, 2), (1,))
    assert temporal.values == ((0.0,), (0.5,))


def test_a_row_of_weights_among_the_things_found_is_a_row_of_a_matrix():
    rows = [
        row("example_attention", 0.9, {"1 a": 0.9, "2 b c": 0.1}, of="x", step=1, output="A"),
        row("example_attention", 0.6, {"2 b c": 0.6}, of="x", step=2, output="B"),
    ]
    [matrix] = converted("aitken/fig2", *rows).pictures
    assert isinstance(matrix, Matrix)
    assert matrix.columns == ("a", "b c")
    assert matrix.rows == ("A", "B")
    assert matrix.values == ((0.9, 0.1), (None, 0.6))


def test_cells_with_intervals_keep_them():
    rows = [
        Measurement(
            name="readout_product",
            dataset="d",
            axes={"output": o, "input": i},
            value=value,
            low=value - 1,
            high=value + 1,
            n=3,
        )
        for (o, i), value in zip(
            [("x", "a"), ("x", "b"), ("y", "a"), ("y", "b")], (1.0, 2.0, 3.0, 4.0), strict=True
        )
    ]
    [matrix] = converted("aitken/fig4", *rows).pictures
    assert isinstance(matrix, Matrix)
    assert matrix.values == ((1.0, 2.0), (3.0, 4.0))
    assert matrix.low == ((0.0, 1.0), (2.0, 3.0))
    assert matrix.high == ((2.0, 3.0), (4.0, 5.0))


def test_a_profile_is_a_matrix_of_steps_and_offsets_with_gaps_at_its_ends():
    cells = {(1, 0): 1.0, (1, 1): 0.5, (2, -1): 0.25, (2, 0): 0.75}
    rows = [row("temporal_profile", value, step=s, offset=o) for (s, o), value in cells.items()]
    [matrix] = converted("aitken/fig5", *rows).pictures
    assert isinstance(matrix, Matrix)
    assert (matrix.rows, matrix.columns) == ((1, 2), (-1, 0, 1))
    assert matrix.values == ((None, 1.0, 0.5), (0.25, 0.75, None))


def test_words_of_a_sentence_are_one_row_with_the_predicted_label():
    rows = [
        row("confidence", 0.9, {"label": "positive"}, model="base", sentence="sure"),
        row("word_attention", 0.25, {"word": "so"}, model="base", sentence="sure", place=0),
        row("word_attention", 0.75, {"word": "good"}, model="base", sentence="sure", place=1),
    ]
    new = converted("tutek/fig2", *rows)
    [matrix] = new.pictures
    assert isinstance(matrix, Matrix)
    assert (matrix.rows, matrix.columns) == (("positive",), ("so", "good"))
    assert matrix.values == ((0.25, 0.75),)
    assert new.measurements == (rows[0],)


def test_numbers_along_an_axis_become_a_curve_of_which_select_returns_the_same_points():
    rows = [row("gamma", step / 100, step=step, place="gold") for step in (0, 50, 100)]
    new = converted("snell/fig7", *rows)
    [curve] = new.pictures
    assert isinstance(curve, Curve)
    assert (curve.axis, curve.x, curve.y) == ("step", (0, 50, 100), (0.0, 0.5, 1.0))
    assert curve.low is None
    assert new.select("gamma") == rows


def test_numbers_stay_numbers():
    rows = [row("accuracy", 0.5, step=100, run=3), row("gap", None, model="DP")]
    new = converted("snell/fig3", *rows)
    assert new.measurements == tuple(rows)
    assert new.pictures == ()


def test_points_are_in_the_order_of_drawing_and_rest_on_the_samples():
    rows = [
        row("input_plane", 0.5, point=point, word=word, number=0, pc=pc).model_copy(update={"n": 1})
        for point, word in (("state", "run"), ("origin", ""), ("component", "run"))
        for pc in (1, 2)
    ]
    _, [plane] = with_pictures("aitken/fig3", rows, samples=1000)
    assert isinstance(plane, Plane)
    assert [tuple(point[:2]) for point in plane.points] == [
        ("origin", "origin"),
        ("run", "component"),
        ("run", "state"),
    ]
    assert plane.n == 1000


def test_a_number_that_has_another_name_now_gets_it():
    [new] = converted("aitken/fig3", row("explained", 0.5, of="temporal", pcs=2)).measurements
    assert (new.name, new.axes) == ("explained_variance", {"of": "temporal", "axes": 2})


@pytest.fixture
def old_folder(tmp_path):
    folder = tmp_path / "snell" / "fig7"
    folder.mkdir(parents=True)
    rows = [row("gamma", 0.5, step=step).model_dump(mode="json") for step in (0, 1)]
    content = {
        "schema": 1,
        "recipe": "snell/fig7",
        "part": "",
        "scale": "full",
        "config": {},
        "environment": {},
        "seconds": 1.0,
        "measurements": rows,
        "units": [],
    }
    (folder / "result.json").write_text(json.dumps(content))
    return tmp_path


def test_the_command_rewrites_results_of_schema_1_once(old_folder, capsys):
    path = old_folder / "snell" / "fig7" / "result.json"
    assert main([str(old_folder)]) == 0
    assert "converted to schema 2" in capsys.readouterr().out
    written = json.loads(path.read_text())
    assert written["schema"] == 2
    assert written["measurements"] == []
    assert read_result(path).select("gamma", step=1)[0].value == 0.5
    assert main([str(old_folder)]) == 0
    assert capsys.readouterr().out == ""


def test_a_result_of_schema_1_is_read_with_a_warning_that_names_the_command(old_folder):
    path = old_folder / "snell" / "fig7" / "result.json"
    with pytest.warns(FutureWarning, match="python -m attnscope.runs.convert"):
        read = read_result(path)
    assert isinstance(read.pictures[0], Curve)
    assert [each.value for each in read.select("gamma")] == [0.5, 0.5]


def test_the_command_names_a_file_that_is_not_a_result(old_folder, capsys):
    path = old_folder / "snell" / "fig7" / "result.json"
    path.write_text(path.read_text().replace('"value": 0.5', '"value": "half"'))
    assert main([str(old_folder)]) == 1
    assert str(path) in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_picture_of_schema_1_that_cannot_be_read_is_named(old_folder):
    path = old_folder / "snell" / "fig7" / "result.json"
    content = json.loads(path.read_text())
    content["measurements"] = [row("attention", 0.5, out="one", inp=0).model_dump(mode="json")]
    path.write_text(json.dumps(content))
    with pytest.raises(WorkspaceError, match=r"fig7/result\.json has schema 1"):
        read_result(path)
