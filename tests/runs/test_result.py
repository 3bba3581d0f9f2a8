"""``result.json``: the fields of its schema, and numbers that are undefined stay so."""

from __future__ import annotations

import json

import pytest

from attnscope.analysis.intervals import mean_interval
from attnscope.errors import WorkspaceError
from attnscope.runs.environment import environment
from attnscope.runs.result import (
    Measurement,
    Result,
    headline,
    measured,
    read_result,
    select,
)
from cases import for_each


class Span:
    """An interval with known ends."""

    value, low, high, n = 19.9, 18.0, 21.8, 872


MEASUREMENT = measured(
    "A(alpha,beta_uf)", "sst", Span(), {"attention": "mlp"}, seeds=[0], published=19.85
)


def result(*measurements: Measurement) -> Result:
    return Result(
        recipe="snell/fig3",
        scale="full",
        config={"seeds": 1},
        environment=environment("cpu"),
        seconds=61.2,
        measurements=measurements or (MEASUREMENT,),
        units=("permutations-40-seq2seq-seed0-0123456789ab",),
    )


def test_written_result_has_the_fields_of_the_schema(tmp_path):
    result().write(tmp_path)
    written = json.loads((tmp_path / "result.json").read_text())
    assert written["schema"] == 2
    assert {"recipe", "scale", "config", "environment", "seconds", "measurements"} < set(written)
    assert written["measurements"] == [
        {
            "name": "A(alpha,beta_uf)",
            "dataset": "sst",
            "split": "val",
            "axes": {"attention": "mlp"},
            "value": 19.9,
            "low": 18.0,
            "high": 21.8,
            "n": 872,
            "seeds": [0],
            "published": 19.85,
        }
    ]


def test_result_comes_back_as_it_was_written(tmp_path):
    result().write(tmp_path)
    assert read_result(tmp_path / "result.json") == result()


@for_each("undefined", [float("nan"), float("inf"), float("-inf")])
def test_undefined_numbers_become_null(tmp_path, undefined):
    row = Measurement(name="x", dataset="d", value=undefined, low=undefined, high=undefined, n=0)
    result(row).write(tmp_path)
    written = json.loads((tmp_path / "result.json").read_text())["measurements"][0]
    assert [written[key] for key in ("value", "low", "high")] == [None] * 3


def test_zero_is_a_number():
    assert Measurement(name="x", dataset="d", value=0.0, n=1).value == 0.0


@for_each(
    "damage",
    [
        lambda content: content[: len(content) // 2],
        lambda content: content.replace('"schema":2', '"schema":3'),
        lambda content: content.replace('"value"', '"valeu"'),
        lambda content: content.replace("19.9", '"nineteen"'),
        lambda content: content.replace('"full"', '"huge"'),
        lambda content: "[]",
    ],
)
def test_file_that_is_no_result_is_named(tmp_path, damage):
    result().write(tmp_path)
    path = tmp_path / "result.json"
    content = path.read_text()
    path.write_text(damage(content))
    assert path.read_text() != content
    with pytest.raises(WorkspaceError, match=r"result\.json"):
        read_result(path)


def test_missing_result_is_named(tmp_path):
    with pytest.raises(WorkspaceError, match=r"result\.json"):
        read_result(tmp_path / "result.json")


def test_selection_is_by_name_data_set_and_axes():
    rows = [
        Measurement(name=name, dataset=dataset, axes={"heads": heads}, value=0.0, n=1)
        for name in ("a", "b")
        for dataset in ("d", "e")
        for heads in (1, 2)
    ]
    assert select(rows, "a") == rows[:4]
    assert select(rows, "a", "e") == rows[2:4]
    assert select(rows, "a", heads=2) == [rows[1], rows[3]]
    assert result(*rows).select("b", "d", heads=1) == [rows[4]]
    assert select(rows, "a", absent=1) == []


def test_a_headline_has_its_names_in_order_the_last_step_and_no_other_way():
    def row(name, **axes):
        return Measurement(name=name, dataset="d", axes=axes, value=0.0, n=1)

    text, code = row("a", way="text"), row("a", way="code")
    first, last = row("b", step=1), row("b", step=2)
    rows = [first, row("c"), text, code, last, row("c", way="text")]
    assert headline(rows, ("b", "a"), {"way": "text"}) == [last, text]
    assert headline(rows, ("a",)) == [text, code]


def test_environment_names_the_versions_and_the_device():
    import platform

    import numpy
    import sentencepiece
    import torch

    known = environment("cuda")
    assert known["python"] == platform.python_version()
    assert known["numpy"] == numpy.__version__
    assert known["torch"].split("+")[0] == torch.__version__.split("+")[0]
    assert known["device"] == "cuda"
    assert known["sentencepiece"] == sentencepiece.__version__
    assert environment("cuda", {"gpu": "H200"})["gpu"] == "H200"


def test_a_copy_does_not_remember_the_numbers_of_the_original():
    original = result()
    assert len(original.numbers) == 1
    assert original.model_copy(update={"measurements": ()}).numbers == ()


def test_a_measurement_keeps_the_number_of_each_seed_in_six_digits():
    interval = mean_interval([1 / 3, 2 / 3])
    row = measured("accuracy", "sst", interval, seeds=(4, 7))
    assert row.values == (0.333333, 0.666667)
    assert measured("accuracy", "sst", interval, seeds=(4,)).values == ()
    assert "values" not in measured("accuracy", "sst", interval).model_dump()


def test_a_result_says_how_its_intervals_were_made(tmp_path):
    made = result()
    made.write(tmp_path)
    assert read_result(tmp_path / "result.json").intervals == "student"
    content = json.loads((tmp_path / "result.json").read_text())
    del content["intervals"]
    (tmp_path / "result.json").write_text(json.dumps(content))
    assert read_result(tmp_path / "result.json").intervals == "bootstrap"
