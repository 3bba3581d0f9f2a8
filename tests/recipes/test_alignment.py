"""The recipe of gold alignments: links come from the right words, whoever finds them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attnscope.analysis.alignment import alignment_error, link_sets, links_of
from attnscope.data import grammar
from attnscope.data.folder import Aligned
from attnscope.errors import UsageError
from attnscope.recipes.extra import alignment as recipe
from attnscope.recipes.extra.alignment import Gold
from attnscope.recipes.kit.lab import Lab
from attnscope.runs.result import Measurement, Result
from attnscope.training.engine.workers import Workers
from attnscope.training.trained_unit import TrainedUnit
from cases import for_each

TINY = recipe.QUICK | {"translation_hidden": 8, "translation_steps": 3, "examples": 200}
SENTENCES = (
    ("das Haus ist klein", "the house is small"),
    ("das Buch ist neu", "the book is new"),
    ("ein Haus", "a house"),
    ("ein Buch", "a book"),
    ("das kleine Buch", "the small book"),
)


def pair(source: str, target: str, *links: tuple[int, int]) -> Aligned:
    sure = frozenset(links)
    return Aligned(source, tuple(source.split()), tuple(target.split()), sure, sure)


def gold_of(*pairs: Aligned) -> Gold:
    return Gold("made-up", "test", ("de", "en"), pairs)


def measure(folder: Path, **settings: Any) -> list[Measurement]:
    with Workers(folder, 1) as workers:
        return recipe.measure(recipe.Config(**(TINY | settings)), Lab(workers))


def write_gold(folder: Path, first: str = "de", second: str = "en") -> Path:
    folder.mkdir()
    (folder / "meta.json").write_text(json.dumps({"langs": [first, second]}))
    rows = [
        {"id": "0", first: "das Haus", second: "the house", "sure": [[0, 0]], "possible": [[1, 1]]},
        {"id": "1", first: "ja", second: "oh yes", "sure": [[0, 1]], "possible": []},
    ]
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def write_parallel(folder: Path) -> Path:
    folder.mkdir()
    (folder / "meta.json").write_text(json.dumps({"langs": ["de", "en"]}))
    for n, language in enumerate(("de", "en")):
        text = "".join(f"{sentences[n]}\n" for sentences in SENTENCES)
        for split in ("train", "val"):
            (folder / f"{split}.{language}").write_text(text)
    return folder


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workspace")


@pytest.fixture(scope="module")
def rows(workspace: Path) -> list[Measurement]:
    return measure(workspace)


# Where the gold comes from.


def test_gold_of_the_grammar_links_every_output_word_to_what_it_translates() -> None:
    gold = recipe.open_gold("grammar-translation")
    pairs = grammar.translation_corpus()["val"]
    assert [p.source for p in gold.sentences] == [p.source for p in pairs]
    sets = link_sets(gold.sure)
    assert sets == [frozenset((s, t) for t, s in p.alignment) for p in pairs]
    assert gold.sure.equal(gold.possible)


def test_gold_is_read_in_the_direction_of_the_training_text(tmp_path: Path) -> None:
    folder = str(write_gold(tmp_path / "mine"))
    own = recipe.open_gold(folder)
    turned = recipe.open_gold(folder, ("en", "de"))
    assert (own.dataset, own.languages, turned.languages) == ("mine", ("de", "en"), ("en", "de"))
    assert turned.sentences[1].source == ("oh", "yes")
    assert turned.sure.equal(own.sure.mT)
    assert turned.possible.equal(own.possible.mT)
    assert recipe.open_gold(folder, ("en", "fr")).languages == ("de", "en")


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


# Training text.


def test_gold_words_are_aligned_in_lower_case_and_without_their_links() -> None:
    told, untold = (gold_of(pair("Das Haus", "The House", *links)) for links in ([(0, 0)], []))
    assert told.lowered == untold.lowered == ([["das", "haus"]], [["the", "house"]])


def test_training_text_of_a_folder_is_cut_and_lower_cased(tmp_path: Path) -> None:
    folder = str(write_parallel(tmp_path / "parallel"))
    sources, targets = recipe.training_text(recipe.Config(training=folder))
    assert sources[0] == ["das", "haus", "ist", "klein"]
    assert targets[-1] == ["the", "small", "book"]


def test_training_text_of_the_grammar_has_no_boundaries() -> None:
    sources, targets = recipe.training_text(recipe.Config(**TINY))
    pairs = grammar.translation_corpus()["train"]
    assert [tuple(words) for words in sources] == [p.source for p in pairs]
    assert [tuple(words) for words in targets] == [p.target for p in pairs]


# The translator.


def test_links_of_attention_are_its_highest_weights_among_the_words(
    rows: list[Measurement], workspace: Path
) -> None:
    (path,) = (workspace / "units").glob("grammar-translation-seq2seq-*")
    unit = TrainedUnit.read(path)
    gold = recipe.open_gold("grammar-translation")
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
