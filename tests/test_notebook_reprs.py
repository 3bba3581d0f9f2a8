"""Reprs are one short line, and a notebook shows scores and results as pictures and tables."""

from __future__ import annotations

import base64
import math
import re
from dataclasses import replace

import pytest
import torch

import attnscope
from attnscope.analysis.intervals import Interval
from attnscope.data.vocabulary import Vocabulary
from attnscope.runs.result import Measurement, Result
from attnscope.scores.score import Score
from attnscope.training.trained_unit import TrainedUnit


@pytest.fixture(scope="module")
def demo() -> TrainedUnit:
    return attnscope.load("demo")


@pytest.fixture(scope="module")
def score(demo: TrainedUnit) -> Score:
    return demo.score("attention")


def test_reprs_are_one_short_line_with_sizes(demo: TrainedUnit, score: Score) -> None:
    trace = demo.model.trace(score.batch)
    assert repr(demo) == "TrainedUnit('grammar-translation-seq2seq-seed0', steps=2000)"
    assert repr(score) == "Score('attention', examples=8, outputs=15, inputs=15)"
    assert repr(score.batch) == "Batch(examples=8, inputs=15, outputs=15)"
    assert repr(trace) == "Trace(examples=8, sites=['cross'])"
    assert repr(Interval(0.93617, 0.88296, 0.9878, 8)) == "Interval(0.9362 (0.883 to 0.9878), n=8)"
    assert repr(Interval(0.5, math.nan, math.nan, 1)) == "Interval(0.5, n=1)"
    assert repr(trace.sites["cross"]) == "Site(examples=8, heads=1, outputs=15, inputs=15)"


def svg_of(html: str) -> str:
    data = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    assert data is not None
    return base64.b64decode(data[1]).decode()


def test_a_notebook_shows_a_score_as_a_heat_map_of_its_words(score: Score) -> None:
    drawing = svg_of(score._repr_html_() or "")
    inputs, outputs = score.words(0)
    assert all(f">{word}</text>" in drawing for word in {*inputs, *outputs} - {"<eos>"})


def test_a_heat_map_of_hostile_words_is_text_alone_and_asks_no_network(score: Score) -> None:
    hostile = ('</script><script src="https://evil.example/x.js">', "<img src=x onerror=alert(1)>")
    words = Vocabulary((*hostile, *map(str, range(500))))
    one = score.batch.rows(slice(1))
    batch = replace(one, inputs=one.inputs.clone())
    batch.inputs[0, :2] = torch.tensor([0, 1])
    shown = Score("attention", score.values[:1], score.input_mask[:1], batch, words, words)
    html = shown._repr_html_() or ""
    assert re.fullmatch(r'<img alt="[^"<>]*" src="data:image/svg\+xml;base64,[^"]*">', html)
    drawing = svg_of(html)
    assert "&lt;/script&gt;" in drawing
    assert "<script" not in drawing
    assert "<img" not in drawing
    assert not re.search(r'(href|src)="http', drawing)


def a_result(*names: str) -> Result:
    rows = tuple(Measurement(name=name, dataset="sst", value=0.5, low=0.4, n=3) for name in names)
    return Result(
        recipe="snell/fig3", scale="quick", config={}, environment={}, seconds=1, measurements=rows
    )


def test_a_result_is_one_line_and_in_a_notebook_its_table() -> None:
    result = a_result("accuracy", "loss")
    line = "Result('snell/fig3', scale='quick', measurements=2, pictures=0)"
    assert repr(result) == str(result) == line
    table = result._repr_html_()
    assert table.count("<tr>") == 3
    assert "<td>accuracy</td><td>sst</td>" in table
    assert "38 more in .measurements" in a_result(*map(str, range(78)))._repr_html_()


def test_names_in_a_result_are_text_and_never_markup() -> None:
    table = a_result("<script>alert(1)</script>")._repr_html_()
    assert "<script" not in table
    assert "&lt;script&gt;" in table
