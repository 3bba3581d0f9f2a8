"""The recipe of gold alignments: links come from the right words, whoever finds them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attnscope.analysis.alignment import alignment_error, links_of
from attnscope.analysis.gold_alignments import open_gold
from attnscope.errors import UsageError
from attnscope.recipes.extra import alignment as recipe
from attnscope.recipes.kit.lab import Lab
from attnscope.runs.result import Measurement, Result
from attnscope.training.engine.workers import Workers
from attnscope.training.trained_unit import TrainedUnit
from cases import for_each
from gold import write_gold

TINY = recipe.QUICK | {"translation_hidden": 8, "translation_steps": 3, "examples": 200}


def measure(folder: Path, **settings: Any) -> list[Measurement]:
    with Workers(folder, 1) as workers:
        return recipe.measure(recipe.Config(**(TINY | settings)), Lab(workers))


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workspace")


@pytest.fixture(scope="module")
def rows(workspace: Path) -> list[Measurement]:
    return measure(workspace)


# Corpora.


@for_each(
    ("settings", "said"),
    [
        ({"gold": "multi30k-de-en"}, "gold= needs gold alignments"),
        ({"training": "gold-en-fr"}, "training= needs parallel text"),
        ({"training": "sst"}, "training= needs parallel text"),
    ],
)
def test_a_corpus_of_the_wrong_kind_is_refused_in_one_sentence(
    tmp_path: Path, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said) as error:
        measure(tmp_path, **settings)
    assert "\n" not in str(error.value)


# The translator.


def test_links_of_attention_are_its_highest_weights_among_the_words(
    rows: list[Measurement], workspace: Path
) -> None:
    (path,) = (workspace / "units").glob("grammar-translation-seq2seq-*")
    unit = TrainedUnit.read(path)
    gold = open_gold("grammar-translation")
    found = recipe.model_links(gold, unit, unit.model, {"attention": recipe._RULES["attention"]})
    stored = unit.stored("attention")  # of the same sentences, read while training
    words_in = torch.arange(stored.batch.inputs.shape[1]) < stored.batch.input_lengths[:, None] - 1
    words_out = (
        torch.arange(stored.batch.targets.shape[1]) < stored.batch.target_lengths[:, None] - 1
    )
    expected = links_of(stored.values, words_in, words_out)[:, :-1, :-1]
    assert found["attention"].equal(expected)
    (row,) = [
        r
        for r in rows
        if r.name == "aer"
        and r.axes.get("checkpoint") == "last"
        and r.axes["method"] == "attention"
    ]
    rate = alignment_error(expected, gold.sure, gold.possible, rng=np.random.default_rng(0))
    assert row.value == pytest.approx(rate.value)


# What is measured.


def test_every_method_is_measured_with_its_interval(rows: list[Measurement]) -> None:
    rates = [row for row in rows if row.name == "aer"]
    methods = [str(row.axes["method"]) for row in rates]
    # Model 1: two training texts, with and without NULL, four ways to join directions.
    assert {name: methods.count(name) for name in methods} == {
        "diagonal": 1,
        "ibm_model1": 16,
        "attention": 2,
        "lexical_probe": 2,
    }
    for row in rates:
        assert 0 <= row.low <= row.value <= row.high <= 1  # type: ignore[operator]
        assert (row.n, row.split) == (200, "val")


def test_gold_in_other_languages_is_aligned_by_model1_on_its_own_sentences(tmp_path: Path) -> None:
    folder = write_gold(tmp_path / "mine", "ro", "en")
    found = measure(tmp_path / "workspace", gold=str(folder))
    assert {row.dataset for row in found} == {"mine"}
    assert {row.axes["method"] for row in found} == {"diagonal", "ibm_model1"}
    assert {row.axes.get("training") for row in found} == {None, recipe.ALONE}


def test_methods_can_be_left_out_and_then_nothing_is_trained(tmp_path: Path) -> None:
    found = measure(tmp_path, methods="ibm_model1")
    assert {row.axes["method"] for row in found} == {"ibm_model1"}
    assert not list(tmp_path.glob("units/*"))


def test_figure_has_one_line_for_every_rate(rows: list[Measurement]) -> None:
    result = Result(
        recipe="snell/alignment",
        scale="quick",
        config={},
        environment={},
        seconds=0,
        measurements=tuple(rows),
    )
    labels = [recipe._label(row) for row in result.select("aer")]
    assert len(set(labels)) == len(labels) == 21
    assert set(recipe.draw(result, [])) == {"aer-grammar-translation"}


@pytest.mark.skipif(
    not os.environ.get("ATTNSCOPE_DATA"), reason="needs ATTNSCOPE_DATA: real corpora"
)
def test_model1_beats_the_diagonal_on_the_romanian_gold(tmp_path: Path) -> None:
    found = measure(tmp_path, gold="gold-ro-en", methods="diagonal,ibm_model1")
    rates = {(r.axes["method"], r.axes["direction"]): r for r in found if r.name == "aer"}
    diagonal, joined = rates["diagonal", "forward"], rates["ibm_model1", "intersection"]
    assert diagonal.n == 248
    assert joined.high < diagonal.low  # type: ignore[operator]
