"""tutek's units: what is shared, how δ and η are chosen, what is measured; the paper's cells."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attnscope.analysis.choice import GridPoint
from attnscope.claims.printed_cells import corpora, printed_as
from attnscope.claims.published import published
from attnscope.data.corpus import GrammarSentiment
from attnscope.data.jain_wallace import jain_wallace
from attnscope.data.known import definitions
from attnscope.errors import UsageError
from attnscope.models.attentions import DotProduct, LearnedQuery
from attnscope.models.embedding import Rescaled
from attnscope.recipes.kit.lab import Lab, leaves
from attnscope.recipes.kit.sheet import Sheet
from attnscope.recipes.tutek import fig1, fig2, table1, table2, table6, units
from attnscope.recipes.tutek.evaluation import LABELS, heading, held_out
from attnscope.recipes.tutek.table1 import statistics_rows
from attnscope.recipes.tutek.units import (
    ModelVariant,
    TutekConfig,
    choosing_count,
    model_of,
    unit_of,
)
from attnscope.running.run import run
from attnscope.runs.result import Matrix, Result
from attnscope.training.engine.workers import Workers
from attnscope.training.masked_lm import MaskedWords
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.tying import Tying
from cases import for_each

SMALL: dict[str, Any] = {"corpus": "grammar-sentiment", "vectors": "", "most_steps": 3, "hidden": 4}
SOURCE = GrammarSentiment()


def config(**settings: Any) -> table1.Config:
    return table1.Config.model_validate(SMALL | settings)


def named(dataset: str, table: str, percent: bool = False) -> Sheet:
    """Return a sheet of a corpus that is never read."""
    return Sheet(dataset, "test", range(5), "tutek", table, printed_as("tutek", dataset), percent)


@for_each(
    ("table", "percent"),
    [("table1", True), ("table2", False), ("table3", False), ("table5", False)],
)
def test_every_printed_cell_is_found_beside_a_measurement(table: str, percent: bool):
    names = {printed: found[0][0] for printed, found in corpora("tutek").items()}
    rows = [row for row in published("tutek") if row.table == table]
    assert {row.dataset for row in rows} <= set(names)
    for row in rows:
        sheet = named(names[row.dataset], table, percent)
        assert sheet.point(row.metric, 0.0, dict(row.variant)).published == row.value


def test_table_6_is_found_by_model_and_layers():
    rows = [row for row in published("tutek") if row.table == "table6"]
    names = {printed: found[0][0] for printed, found in corpora("tutek").items()}
    for row in rows:
        layers, model = (dict(row.variant)[key] for key in ("layers", "model"))
        sheet = named(names[row.dataset], "table6", percent=True)
        axes = table6.axes_of(ModelVariant(model, "additive", int(layers)))
        assert sheet.point(row.metric, 0.0, axes).published == row.value


@pytest.mark.parametrize("largest", [0.8, 0.9])
def test_the_weight_with_the_highest_validation_f1_is_chosen_and_the_smallest_of_equals(
    largest: float, tmp_path: Path
):
    which = ModelVariant("tying", "dot")
    unit = unit_of(config(), SOURCE, which, 0, 1.0)
    untrained = TrainedUnit(unit, unit.folder(tmp_path))
    f1 = {30.0: largest, 1.0: 0.7, 10.0: 0.9}
    grid = {weight: GridPoint(untrained, value) for weight, value in f1.items()}
    assert units.TutekUnits(SOURCE, {}, {which: grid}).weight(which) == 10
    assert units.TutekUnits(SOURCE, {}, {}).weight(which) is None


@pytest.mark.parametrize(("weights", "drawn"), [((1.0,), False), ((1.0, 10.0), True)])
def test_what_weights_do_is_drawn_where_there_are_several(weights: tuple[float, ...], drawn: bool):
    made = named("tutek-sst", "table1")
    of = {"attention": "dot", "model": "tying"}
    rows = [made.point(name, 0.0, of) for name in table1.HEADLINE[:3]]
    for weight in weights:
        for name in ("validation_f1", "ablation_drop_uniform", "ablation_drop_permuted"):
            rows.append(made.point(name, weight, of | {"weight": weight}))
    result = Result(
        recipe="tutek/table1",
        scale="full",
        config=config().model_dump(mode="json"),
        environment={"device": "cpu"},
        seconds=1.0,
        measurements=tuple(rows),
    )
    assert ("ablation-tutek-sst" in table1.draw(result, [])) is drawn


@pytest.mark.parametrize(
    ("attentions", "told"),
    [(("dot",), "(• dot attention)"), (("dot", "additive"), "(+ additive, • dot attention)")],
)
def test_a_figures_title_says_what_the_marks_of_attention_mean(
    attentions: tuple[str, ...], told: str
):
    made = named("tutek-sst", "table1")
    rows = [
        made.point("f1_trained", 0.0, {"attention": name, "model": "base"}) for name in attentions
    ]
    assert heading("tutek-sst", rows) == f"tutek-sst {told}"


def test_choosing_weights_never_looks_at_other_attention(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def refused(*_: object, **__: object) -> None:
        raise AssertionError("the choice must not see this")

    for rule in ("Uniform", "Permuted"):
        monkeypatch.setattr(f"attnscope.models.intervention.{rule}.__call__", refused)
    monkeypatch.setattr("attnscope.analysis.fragility.compute_fragility", refused)
    monkeypatch.setattr("attnscope.analysis.replaced_attention.outputs_under", refused)
    small = config(seeds=2, deltas=[1, 10], etas=[1], attention="additive")
    models = [
        ModelVariant("base", "additive"),
        ModelVariant("tying", "additive"),
        ModelVariant("mlm", "additive"),
    ]
    with Workers(tmp_path) as workers:
        (runs,) = units.train_corpora(small, Lab(workers), models)
    tried = {weight: one.f1 for weight, one in runs.grids[models[1]].items()}
    assert list(tried) == [1, 10]
    assert runs.weight(models[1]) == max(tried, key=lambda weight: tried[weight])
    assert list(runs.units) == models
    assert [len(each) for each in runs.units.values()] == [2, 2, 2]
    # The seed that chose is one of the seeds that are measured, and is trained once.
    grid = runs.grids[models[1]][runs.weight(models[1])].unit
    assert runs.units[models[1]][0].folder.path == grid.folder.path


def test_what_chooses_is_never_measured():
    chosen = set(SOURCE.evaluation_batch(choosing_count(SOURCE)).ids.tolist())
    measured = set(held_out(SOURCE).batch.ids.tolist())
    assert not chosen & measured
    assert len(chosen) + len(measured) == len(SOURCE.validation_examples)


def test_models_are_the_papers():
    full = TutekConfig(vectors="")
    base, concat, residual = (
        model_of(full, ModelVariant(name, "dot")) for name in ("base", "concat", "residual")
    )
    assert base.attention == DotProduct(scale="root", query=LearnedQuery(initial="normal"))
    built = {spec.encoder.kind: spec.build(SOURCE, 0) for spec in (base, concat, residual)}  # type: ignore[attr-defined]
    assert {kind: model.encoder.width for kind, model in built.items()} == {
        "recurrent": 300,
        "concat": 600,
        "residual": 300,
    }
    deep = model_of(full, ModelVariant("base", "additive", layers=3))
    assert deep.encoder.layers == 3  # type: ignore[attr-defined]


def test_settings_reach_the_terms_of_the_objective():
    small = config(tying="norm", masked_words="mean")
    tied = unit_of(small, SOURCE, ModelVariant("tying", "dot"), 0, 20.0).training.objective[1]
    masked = unit_of(small, SOURCE, ModelVariant("mlm", "dot"), 0, 0.3).training.objective[1]
    assert tied == Tying(weight=20.0, power=1)
    assert masked == MaskedWords(weight=0.3, reduction="mean")


def test_some_models_of_the_table_may_be_trained_alone():
    assert [one.model for one in config(attention="dot").columns] == [
        *("base", "concat", "residual", "tying", "mlm")
    ]
    some = config(attention="dot", models="tying,base").columns
    assert [one.model for one in some] == ["base", "tying"]
    with pytest.raises(UsageError, match="query=instance trains base and instance alone"):
        _ = config(query="instance", models="base,tying").columns


def test_vectors_are_brought_to_a_length_and_otherwise_are_the_same_unit(tmp_path: Path):
    (tmp_path / "v.txt").write_text("good 1 2\nbad 3 4\n")
    plain, longer = (
        model_of(
            config(vectors=str(tmp_path / "v.txt"), vector_length=length),
            ModelVariant("base", "dot"),
        )
        for length in (None, 4.6)
    )
    assert longer.vectors == Rescaled(of=plain.vectors, length=4.6)
    assert longer.model_copy(update={"vectors": plain.vectors}) == plain


def test_embeddings_are_frozen_in_every_model():
    for which in config().columns:
        unit = unit_of(config(), SOURCE, which, 0, 1.0)
        assert unit.training.frozen == ("embedding",)


def test_recipes_share_their_units(tmp_path: Path):
    small = SMALL | {"seeds": 1, "deltas": [1], "etas": [1], "attention": "additive"}
    first = run("tutek/table1", small | {"permutations": 1}, device="cpu", jobs=1, out=tmp_path)
    folders = set((tmp_path / "units").iterdir())
    again = run("tutek/table3", small, device="cpu", jobs=1, out=tmp_path)
    assert set((tmp_path / "units").iterdir()) == folders
    assert set(again.result.units) <= set(first.result.units)


@for_each(
    ("recipe", "beside"), [(table1, []), (table2, ["dot"]), (table6, ["dot"]), (fig1, ["dot"])]
)
def test_attention_that_a_recipe_does_not_have_by_default_stands_beside_it(
    recipe: Any, beside: list[str]
):
    for attention, more in (("additive", []), ("dot", beside)):
        settings = recipe.Config.model_validate(SMALL | {"attention": attention})
        assert settings.parts == ["grammar-sentiment", *more]


def test_a_query_of_the_instances_own_is_compared_with_the_learned_one():
    instance = config(query="instance")
    assert {which.model for which in instance.columns} == {"base", "instance"}
    assert instance.part == "grammar-sentiment+instance"
    assert table1.Config(query="instance", vectors="").part == "instance"
    assert table1.Config(vectors="").part == ""


def test_a_setting_may_be_one_number_or_several():
    assert config(deltas=10).deltas == (10,)
    assert config(deltas="1,10").deltas == (1, 10)
    with pytest.raises(ValueError, match="give each once"):
        config(corpus="a,a")


def test_a_corpus_without_labels_is_one_sentence():
    with pytest.raises(UsageError, match="grammar-translation has no labels"):
        units.open_corpus(config(), "grammar-translation")


def test_mean_length_counts_no_boundaries():
    rows = {row.name: row for row in statistics_rows(SOURCE)}
    words = [len(example.inputs) - 1 for example in SOURCE.training_examples]  # <eos>
    assert rows["avg_length"].value == pytest.approx(np.mean(words))


def test_jain_and_wallaces_vocabulary_is_by_texts_and_for_the_papers_corpora():
    assert jain_wallace("tutek-20news-uncut") == jain_wallace("tutek-20news")
    # `min_df` of their preprocessing.
    least = {"tutek-sst": 1, "tutek-imdb": 10, "tutek-20news": 2, "tutek-ag-news": 5}
    for corpus, texts in least.items():
        read = jain_wallace(corpus)
        assert (read["min_count"], read["counted"]) == (texts, "texts")
    settings = units.TutekConfig.model_validate(SMALL | {"vocabulary": "jain-wallace"})
    with pytest.raises(UsageError, match=r"tutek-sst, .*; grammar-sentiment is not among them"):
        units.open_corpus(settings, "grammar-sentiment")


def test_an_imitator_differs_from_its_base_in_seed_and_knows_no_labels():
    settings = fig1.Config.model_validate(SMALL)
    base = unit_of(settings, SOURCE, ModelVariant("base", "additive"), 1)
    imitator = fig1.imitator_of(settings, base, 0.1)
    assert imitator.seed != base.seed
    assert [term.kind for term in imitator.training.objective] == ["imitation"]  # type: ignore[attr-defined]
    assert imitator.model == base.model


def test_deeper_models_have_the_weight_that_was_chosen_for_one_layer(tmp_path: Path):
    settings = table6.Config.model_validate(SMALL | {"seeds": 1})
    which = ModelVariant("tying", "additive")
    unit = unit_of(settings, SOURCE, which, 0, 1.0)
    untrained = TrainedUnit(unit, unit.folder(tmp_path))
    tried = {weight: GridPoint(untrained, f1) for weight, f1 in ((1.0, 0.2), (20.0, 0.9))}
    planned = table6.deeper_units(settings, units.TutekUnits(SOURCE, {which: []}, {which: tried}))
    assert [deep.layers for deep in planned] == [2, 3]
    assert all(unit.training.objective[1].weight == 20.0 for unit in leaves(planned))  # type: ignore[attr-defined]


def test_a_sentence_of_ones_own_is_drawn_word_by_word(tmp_path: Path):
    settings = SMALL | {"seeds": 1, "deltas": [1], "etas": [1]}
    done = run(
        "tutek/fig2",
        settings | {"sentence": "the acting is dull"},
        device="cpu",
        jobs=1,
        out=tmp_path,
    )
    axes = {"model": "base", "sentence": "given"}
    words = done.result.picture(Matrix, "word_probability", **axes)
    assert words.columns[:4] == ("the", "acting", "is", "dull")
    attention = done.result.picture(Matrix, "word_attention", **axes)
    assert np.sum(attention.values) == pytest.approx(1.0, abs=1e-5)
    assert next(path.stem for path in done.figures) == "fig2-grammar-sentiment"


@pytest.mark.parametrize(
    ("sentence", "told"), [("the dragon is dull", "'dragon' is not"), ("  ", "has no word")]
)
def test_a_sentence_that_cannot_be_read_is_told_before_anything_is_trained(
    sentence: str, told: str, tmp_path: Path
):
    with pytest.raises(UsageError, match=told):
        run("tutek/fig2", SMALL | {"sentence": sentence}, device="cpu", jobs=1, out=tmp_path)
    assert not list(tmp_path.rglob("config.json"))


def test_a_corpus_without_marks_is_told_before_anything_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def none(*_: object) -> None:
        raise UsageError("No text has a rationale.")

    monkeypatch.setattr("attnscope.recipes.extra.rationales.marked_texts", none)
    with pytest.raises(UsageError, match="has a rationale"):
        run("tutek/rationales", SMALL, device="cpu", jobs=1, out=tmp_path)
    assert not list(tmp_path.rglob("config.json"))


def test_the_sentences_for_figures_are_chosen_by_confidence():
    batch = held_out(SOURCE).batch
    confidence = torch.linspace(0.5, 0.9, len(batch))
    labels = batch.targets[:, 0]
    made = [
        fig2.TokenProbabilities(batch.ids, labels, labels, sure, sure, sure)
        for sure in (confidence, confidence.flip(0))
    ]
    chosen = fig2.chosen_sentences(SOURCE, {"base": made[:1], "tying": made[1:]})
    places = {title: batch.ids.tolist().index(int(one.ids[0])) for title, one in chosen.items()}
    assert places["sure"] > places["unsure"]
    assert places["regularised surer"] == places["unsure"]
    assert int(chosen["long"].input_lengths[0]) == min(30, int(batch.input_lengths.max()))


def test_three_ways_to_a_logit_agree_on_every_classifier():
    rows = fig2.identity_rows(config(), SOURCE)
    assert len({row.axes["classifier"] for row in rows}) == 2 * len(LABELS) + 5
    assert max(row.number for row in rows) <= fig2.EXACT


def test_every_default_corpus_is_known_and_has_a_part_to_choose_by_and_one_to_measure():
    for name in (*units.CORPORA, "mimic-anemia", "mimic-diabetes", "movies_rationales"):
        known = definitions()[name]
        assert known.task == "classification"
        assert known.val
        assert known.test == "test"


@pytest.mark.skipif(
    not os.environ.get("ATTNSCOPE_DATA"), reason="needs ATTNSCOPE_DATA: real corpora"
)
def test_real_corpora_have_jain_and_wallaces_sizes():
    sst = units.open_corpus(TutekConfig(), "tutek-sst")
    sizes = [len(part) for part in (sst.training_examples, sst.validation_examples)]
    assert (*sizes, len(held_out(sst).batch)) == (6920, 872, 1821)
    assert {row.name: row.value for row in statistics_rows(sst)}["avg_length"] == pytest.approx(
        17, abs=0.5
    )
    news = units.open_corpus(TutekConfig(), "tutek-20news")
    assert len(held_out(news).batch) == 387
    assert int(held_out(news).batch.input_lengths.max()) < 500
