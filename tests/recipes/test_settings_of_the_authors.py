"""Settings that the authors' code has and the first runs did not: what each of them changes."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from attnscope.data.corpus import GrammarTranslation
from attnscope.data.polarity_texts import PolarityTexts
from attnscope.errors import UsageError
from attnscope.recipes.aitken.units import EscanConfig
from attnscope.recipes.snell import fig6, units as snell
from attnscope.recipes.sunlu import synthetic, units as sunlu
from attnscope.recipes.tutek import fig1, units as tutek


def opened(monkeypatch: pytest.MonkeyPatch, corpus: str, **settings: Any) -> dict[str, Any]:
    """Return the settings with which a labelled corpus would be read."""
    found: dict[str, Any] = {}

    def instead(name: str, **given: Any) -> GrammarTranslation:
        found.update(given)
        return GrammarTranslation()

    monkeypatch.setattr(snell, "open_text", instead)
    monkeypatch.setattr(snell, "find_vectors", lambda name: name)
    snell.open_corpus(snell.TextConfig(**settings), corpus)
    return dict(found["classification"])


def test_a_listed_word_is_known_and_its_embedding_random(monkeypatch):
    assert opened(monkeypatch, "sst")["vectors"] == "glove_100d"
    assert opened(monkeypatch, "sst", listed="")["vectors"] == ""
    assert opened(monkeypatch, "sst", vectors="spacy_md_300d")["vectors"] == "spacy_md_300d"
    assert opened(monkeypatch, "my/own/folder")["vectors"] == ""  # counts alone
    assert opened(monkeypatch, "sst")["bucket_size"] == 1


def test_a_list_that_is_not_there_is_one_sentence_with_a_way_out(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTNSCOPE_DATA", str(tmp_path))
    with pytest.raises(UsageError, match="listed= with nothing after it"):
        snell.open_corpus(snell.TextConfig(), "sst")


def test_translators_train_for_the_authors_epochs_unless_steps_are_given():
    source = GrammarTranslation()
    epoch = math.ceil(len(source.training_examples) / 16)
    assert snell.translation_steps(snell.TextConfig(), source) == 30 * epoch
    assert snell.translation_steps(snell.TextConfig(translation_steps=7), source) == 7
    assert snell._EPOCHS["multi30k-de-en"] * math.ceil(29_000 / 16) == 36_260


def test_escan_is_the_recorded_one_and_other_lengths_have_a_folder_of_their_own():
    recorded = EscanConfig()
    task = recorded.escan
    assert (task.separator, task.shortest_output, task.longest_output) == ("marked", 10, 15)
    assert recorded.part == ""
    text = EscanConfig(separator="none", shortest_output=15, longest_output=20)
    assert text.part == "text-lengths"
    assert fig6.Config().part == ""
    assert fig6.Config(**fig6.SCRIPT).part == "authors-script"


def test_concat_attends_with_half_of_its_state():
    config = tutek.TutekConfig(vectors="")
    widths = {}
    for name in ("base", "concat", "residual"):
        model = tutek.model_of(config, tutek.ModelVariant(name, "additive"))
        widths[name] = model.attention.hidden  # type: ignore[attr-defined]
    assert widths == {"base": 150, "concat": 300, "residual": 150}


def test_masked_words_keep_their_vectors_where_the_other_models_train_them():
    for embeddings, others in (("frozen", ("embedding",)), ("trained", ())):
        small = {"corpus": "grammar-sentiment", "vectors": "", "embeddings": embeddings}
        config = tutek.TutekConfig.model_validate(small)
        source = tutek.open_corpus(config, "grammar-sentiment")
        for name in ("base", "tying", "mlm"):
            variant = tutek.ModelVariant(name, "additive")
            weight = 1.0 if name in tutek.GRIDS else None
            frozen = tutek.unit_of(config, source, variant, 0, weight).training.frozen
            assert frozen == (("embedding",) if name == "mlm" else others)


def test_adversaries_train_longer_than_the_models_they_imitate():
    config = fig1.Config()
    assert (config.epochs, config.adversary_epochs) == (8, 80)
    assert set(config.lambdas) > {0.01, 0.03, 0.1, 0.3, 1}


def test_adversaries_stop_ten_epochs_after_the_lowest_training_loss():
    """Wiegreffe and Pinter's code: 80 epochs, patience 10, no development set."""
    small = {"corpus": "grammar-sentiment", "vectors": "", "hidden": 4}
    config = fig1.Config.model_validate(small)
    source = tutek.open_corpus(config, "grammar-sentiment")
    base = tutek.unit_of(config, source, tutek.ModelVariant("base", "additive"), 0)
    training = fig1.imitator_of(config, base, 0.1).training
    epoch = -(-len(source.training_examples) // 32)
    assert training.patience == 10
    assert training.best_by == "training_loss"
    assert training.steps == 80 * epoch
    assert training.schedule == tuple(range(0, 80 * epoch + 1, epoch))
    whole = fig1.imitator_of(config.model_copy(update={"patience": 0}), base, 0.1).training
    assert (whole.patience, whole.best_by) == (None, "loss")


def test_whole_texts_stray_as_in_the_notebook():
    small = {"positives": 400, "negatives": 400, "neutral_types": 50, "polar_types": 20}
    source = PolarityTexts(stray=0.3, strays="texts", **small)
    first_positive = source.neutral_types + source.polar_types
    for example in source.training_examples:
        words = torch.as_tensor(example.inputs)
        sides = (words[words >= source.neutral_types] >= first_positive).unique()
        assert len(sides) == 1  # both polar words are of one group
    mixed = PolarityTexts(stray=0.3, **small).training_examples
    sides_of = []
    for example in mixed:
        words = torch.as_tensor(example.inputs)
        sides_of.append(len((words[words >= 50] >= 70).unique()))
    assert 2 in sides_of


def test_units_of_before_keep_their_settings():
    assert "strays" not in PolarityTexts(stray=0.1).model_dump(mode="json")
    assert PolarityTexts(strays="texts").model_dump(mode="json")["strays"] == "texts"


def test_class_ratios_are_the_supplements_and_the_even_one_is_trained_once():
    config = synthetic.Config(texts=200, seeds=2, scales=(10.0,))
    sizes = {"1:1": (200, 200), "1:2": (100, 200), "1:5": (40, 200), "2:1": (200, 100)}
    data = synthetic.sources(config)
    assert {*sizes, "2:5"} == set(config.ratios)
    for ratio, (positives, negatives) in sizes.items():
        labels = [example.targets[0] for example in data[ratio].training_examples]
        assert (labels.count(1), labels.count(0)) == (positives, negatives)
    planned = synthetic.units(config)
    assert set(planned) == {(name, 10.0) for name in ("I", "II", "1:2", "1:5", "2:1", "2:5")}


def test_further_cells_of_the_synthetic_data_have_their_own_number_of_draws():
    given = {"texts": 200, "seeds": 3, "scales": (1.0, 10.0), "ratios": ("1:1", "1:5")}

    def counts(**further: int) -> dict[tuple[str, float], int]:
        planned = synthetic.units(synthetic.Config(**given, **further))
        return {cell: len(units) for cell, units in planned.items()}

    both = {("I", 10.0): 3, ("II", 10.0): 3}
    assert counts(further_seeds=0) == both
    assert counts(further_seeds=2) == both | {("I", 1.0): 2, ("1:5", 10.0): 2}
    assert counts() == both | {("I", 1.0): 3, ("1:5", 10.0): 3}


def test_synthetic_data_take_a_penalty_a_ratio_and_wide_embeddings():
    config = synthetic.Config(penalty=0.5, positives=100, texts=200, spread=1.0)
    data = synthetic.sources(config)["I"]
    assert (data.positives, data.negatives) == (100, 200)
    unit = synthetic.unit_of(config, data, 10.0, 0)
    assert [term.weight for term in unit.training.objective] == [1.0, 0.5]
    assert unit.model.vectors.spread == 1.0  # type: ignore[attr-defined]
    plain = synthetic.unit_of(synthetic.Config(texts=200), data, 10.0, 0)
    assert len(plain.training.objective) == 1


def test_no_text_is_too_long_for_sunlu():
    assert sunlu.SunluConfig().max_length is None
