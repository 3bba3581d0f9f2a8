"""Sunlu's recipes: the paper's cells, settings and groups, and shared units."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnscope.claims.published import published
from attnscope.data.corpus import GrammarSentiment
from attnscope.data.known import definitions
from attnscope.errors import UsageError
from attnscope.models.attentions import DotProduct
from attnscope.models.encoders import Affine, Recurrent, WordStates
from attnscope.recipes.kit.corpora import held_out
from attnscope.recipes.kit.lab import leaves
from attnscope.recipes.kit.sheet import Sheet
from attnscope.recipes.sunlu import scores, table2, weights
from attnscope.recipes.sunlu.corpora import (
    GROUP_SIZES,
    answers_of,
    groups_of,
    statistics_rows,
)
from attnscope.recipes.sunlu.units import (
    CORPORA,
    MODELS,
    SCALES,
    SunluConfig,
    Variant,
    model_of,
    open_corpus,
    planned,
    unit_of,
)
from attnscope.running.run import run
from attnscope.training.engine.workers import train_units
from attnscope.training.optimizer import Adagrad

needs_corpora = pytest.mark.skipif(
    not os.environ.get("ATTNSCOPE_DATA"), reason="needs ATTNSCOPE_DATA: real corpora"
)
SMALL: dict[str, Any] = {
    "embedding": 6,
    "hidden": 6,
    "lstm_hidden": 3,
    "epochs": 1,
    "batch_size": 500,
}


# The paper's own numbers.


def test_every_cell_of_table_2_is_found_beside_the_grid():
    printed = {definitions()[name].published for name in CORPORA}
    cells = {}
    for name in printed:
        sheet = Sheet("any", "test", (), "sunlu", "table2", name, percent=True)
        for model, scale in product(MODELS, SCALES):
            row = sheet.point("accuracy", 0.0, {"model": model, "lambda": scale})
            cells[name, model, scale] = row.published
    assert len(cells) == 112
    assert None not in cells.values()
    rows = [entry for entry in published("sunlu") if entry.table == "table2"]
    assert sorted(cells.values()) == sorted(entry.value for entry in rows)  # type: ignore[type-var]
    assert cells["SST", "DP", 10.0] == 82.2
    assert cells["20News II", "AD", 0.001] == 59.2


def test_models_and_training_are_as_in_the_authors_code():
    config = SunluConfig()
    plain, lstm = (model_of(config, Variant(name, 10.0)) for name in ("DP", "DP-L"))
    assert isinstance(plain.encoder, WordStates)
    assert isinstance(plain.attention, DotProduct)
    assert (plain.embedding, plain.dropout, plain.output.bias) == (100, 0.5, "off")
    assert (plain.attention.scale, plain.attention.query.initial) == (10.0, "normal")  # type: ignore[attr-defined]
    assert isinstance(model_of(config, Variant("DP-A", 1.0)).encoder, Affine)
    assert isinstance(lstm.encoder, Recurrent)
    assert 2 * lstm.encoder.hidden == plain.embedding
    unit = unit_of(config, GrammarSentiment(), Variant("AD", 1.0), 0)
    assert unit.training.optimizer == Adagrad(lr=0.02, lr_decay=0.001, weight_decay=0)
    assert (unit.training.batch_size, unit.training.steps) == (100, 40 * 20)
    assert len(unit.training.schedule) == 41


def test_l2_and_the_penalty_are_where_the_paper_has_them():
    def kinds(model: str, penalty: float = 0.0) -> list[tuple[str, Any]]:
        cell = Variant(model, 10.0, penalty)
        unit = unit_of(SunluConfig(), GrammarSentiment(), cell, 0)
        return [(term.kind, getattr(term, "parts", None)) for term in unit.training.objective]  # type: ignore[attr-defined]

    assert kinds("DP") == [("likelihood", None)]
    assert kinds("DP-A")[1:] == [("squared-norm", ("encoder",))]
    assert kinds("DP-L")[1:] == [("squared-norm", ("encoder",))]
    assert kinds("AD")[1:] == [("squared-norm", ("attention.hidden",))]
    assert kinds("DP", 1e-4)[1:] == [("direction-product", None)]


@needs_corpora
def test_sst_has_the_papers_words_groups_and_sizes():
    source = open_corpus(SunluConfig(), "sunlu-sst")
    # 16,171 types; the paper has three further entries, here there are four.
    assert len(source.input_words) - 4 == 16_174 - 3
    sizes = tuple(len(ids) for ids in groups_of(source).members.values())
    assert sizes == GROUP_SIZES["SST"] == (265, 412, 1384)
    rows = [row for row in statistics_rows(source) if row.name.endswith("_size")]
    counted = [row for row in rows if row.name not in ("vocab_size",)]
    assert all(row.value == row.published for row in counted)
    assert held_out(source).split == "test"
    assert len(held_out(source).examples) == 1821
    # Neither <bos> nor <eos>, and no unknown word.
    used = {int(word) for example in held_out(source).examples for word in example.inputs}
    assert not used & set(range(4))


@needs_corpora
def test_three_classes_get_the_rule_nearest_to_the_supplements_sizes():
    groups = groups_of(open_corpus(SunluConfig(), "sunlu-20news-2"))
    assert groups.polar == ("rec.motorcycles", "sci.med", "talk.politics.guns")
    sizes = np.array([len(ids) for ids in groups.members.values()])
    wanted = np.array(GROUP_SIZES["20News II"])
    assert (np.abs(sizes - wanted) / wanted < 0.5).all()


# Shared units.


def test_figures_use_the_units_of_table_2_and_of_each_other():
    source = GrammarSentiment()

    def names(module: Any) -> set[str]:
        config = module.Config()
        units = planned(config, source, module.plan(config))
        return {unit.model_dump_json() for unit in leaves(units)}

    assert names(weights) <= names(scores)
    shared = names(table2) & names(scores)
    # DP at λ = 10 and 100, and the three other models at λ = 10.
    assert len(shared) == 5 * table2.Config().seeds


def test_a_corpus_without_labels_is_one_sentence():
    with pytest.raises(UsageError, match="grammar-translation has no labels"):
        open_corpus(SunluConfig(), "grammar-translation")


# Measured.


def test_a_cells_labels_are_those_of_its_best_epoch(tmp_path: Path):
    config = SunluConfig(**SMALL | {"epochs": 3})
    source = open_corpus(config, "grammar-sentiment")
    # Hardly anything is learned at so small a λ: epochs go up and down.
    plan = {Variant("DP", 0.01): 1, Variant("DP", 0.001): 6}
    units = list(leaves(planned(config, source, plan)))
    trained = train_units([units[0], units[-1]], tmp_path)
    assert any(unit.best_step < unit.unit.training.steps for unit in trained)
    cell = answers_of(trained, source, "cpu")
    labels = np.array([example.targets[0] for example in source.validation_examples])
    # Without a test part the validation part is reported on, which the log has.
    best = [unit.log_row(unit.best_step)["accuracy"] for unit in trained]
    assert (cell.predicted[:, 0] == labels).mean(-1) == pytest.approx(best)
    assert np.nanmax(cell.entropy) <= 1 + 1e-9


def test_own_corpora_of_three_labels_go_through_scores_and_table_2(tmp_path: Path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "meta.json").write_text('{"labels": ["a", "b", "c"]}')
    for split in ("train", "dev", "test"):
        rows = [
            f'{{"id": "{n}", "label": {n % 3}, "text": "the {"abc"[n % 3]}{n % 2} word it"}}'
            for n in range(60)
        ]
        (folder / f"{split}.jsonl").write_text("\n".join(rows))
    given = SMALL | {"corpus": str(folder), "seeds": 1}
    out = tmp_path / "runs"
    found = run("sunlu/scores", given | {"dot_seeds": 1, "others": ("AD",)}, device="cpu", out=out)
    rows = found.result.select("AUC(attention)", "mine", model="DP", **{"lambda": 10.0})
    assert {row.axes["group"] for row in rows} == {"a", "b", "c"}
    done = run("sunlu/table2", given | {"models": "DP", "scales": (1, 10)}, device="cpu", out=out)
    accuracy = done.result.select("accuracy")
    assert {row.split for row in accuracy} == {"test"}
    assert all(row.published is None for row in accuracy)
    assert done.folder.parent == out / "sunlu" / "table2"
    assert done.folder.name.startswith("mine-")
