"""Configurations: mistakes are told with the valid names, and every setting counts in the hash."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, strategies as st
from pydantic import Field, ValidationError

from attnscope.data.source import Source
from attnscope.data.tasks import KeywordTask, MixtureCopy, PermutationCopy, SampledCopy
from attnscope.errors import UsageError
from attnscope.models.base import ModelSpec
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent
from attnscope.models.intervention import Permuted, Uniform
from attnscope.models.proxy import ProxySpec
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.runs.spec import Settings, Spec, fingerprint, read_settings
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.training.optimizer import Adam
from attnscope.training.registry import read_unit
from attnscope.training.unit import Training, Unit
from cases import for_each


class Kitchen(Settings):
    seeds: int = Field(3, ge=1)
    temperature: float = 20.0


class Shape(Spec):
    size: int = 1


class Circle(Shape):
    kind: Literal["circle"] = "circle"


class Square(Shape):
    kind: Literal["square"] = "square"
    corners: int = 4


class Drawing(Settings):
    shape: Shape


def test_unknown_setting_is_answered_with_the_nearest_name_and_all_names():
    with pytest.raises(UsageError) as raised:
        read_settings(Kitchen, {"seed": 5}, "my/recipe")
    assert str(raised.value) == (
        "my/recipe has no setting 'seed'; did you mean 'seeds'? Valid: seeds, temperature."
    )


def test_value_out_of_range_names_setting_value_and_bound():
    with pytest.raises(UsageError, match=r"my/recipe: seeds=0 is not valid: .*equal to 1\.$"):
        read_settings(Kitchen, {"seeds": 0}, "my/recipe")


def test_value_of_the_wrong_type_names_the_setting():
    with pytest.raises(UsageError, match=r"seeds='many' is not valid: .*integer"):
        read_settings(Kitchen, {"seeds": "many"}, "my/recipe")


def test_unknown_kind_is_answered_with_the_nearest_and_all_kinds():
    with pytest.raises(UsageError, match=r"did you mean 'circle'\? Valid: circle, square\.$"):
        read_settings(Drawing, {"shape": {"kind": "cirle"}}, "my/drawing")


def test_missing_kind_lists_all_kinds():
    with pytest.raises(UsageError, match=r"valid: circle, square\.$"):
        read_settings(Drawing, {"shape": {"size": 2}}, "my/drawing")


def test_setting_of_another_kind_is_refused():
    with pytest.raises(UsageError, match="corners"):
        read_settings(Drawing, {"shape": {"kind": "circle", "corners": 4}}, "my/drawing")


def test_kind_decides_the_class_and_roots_do_not_share_kinds():
    drawing = read_settings(Drawing, {"shape": {"kind": "square", "corners": 5}}, "my/drawing")
    assert drawing.shape == Square(corners=5)
    assert set(Shape.variants) == {"circle", "square"}
    assert not set(Shape.variants) & set(Source.variants)
    assert not set(Source.variants) & set(ModelSpec.variants)


def test_settings_cannot_be_changed():
    with pytest.raises(ValidationError):
        Kitchen().seeds = 4


small = st.integers(1, 9)
sources = st.one_of(
    st.builds(PermutationCopy, length=small),
    st.builds(SampledCopy, length=small, vocabulary=st.integers(9, 20)),
    st.builds(MixtureCopy, length=small),
    st.builds(KeywordTask, length=st.integers(2, 9)),
)
models = st.one_of(
    st.builds(Seq2SeqSpec, hidden=small, cell=st.sampled_from(["lstm", "gru"]), heads=small),
    st.builds(
        ClassifierSpec,
        encoder=st.builds(Recurrent, hidden=small, directions=st.sampled_from([1, 2])),
    ),
    st.builds(ProxySpec, embedding=small),
)
rules = st.one_of(st.builds(Uniform), st.builds(Permuted, seed=small))
scores = st.one_of(
    st.builds(Attention, heads=st.sampled_from(["mean", "max", 0])), st.builds(LexicalProbe)
)
# Not built inside the strategy: beartype's checks use the random module, which hypothesis minds.
trainings = st.fixed_dictionaries(
    dict(
        steps=small,
        batch_size=small,
        evaluate_at=st.lists(small, max_size=3).map(tuple),
        optimizer=st.builds(Adam, lr=st.floats(1e-9, 10)),
        attention=st.dictionaries(st.just("cross"), rules),
        frozen=st.lists(st.sampled_from(["attention", "encoder"]), max_size=2).map(tuple),
        scores=st.lists(scores, max_size=2, unique_by=type).map(tuple),
        dtype=st.sampled_from(["float32", "float64"]),
    )
)


@given(sources, models, trainings, st.integers(0, 9))
def test_unit_read_back_from_its_json_is_the_same_unit_with_the_same_hash(
    source, model, training, seed
):
    unit = Unit(source=source, model=model, training=Training(**training), seed=seed)
    again = read_unit(json.loads(json.dumps(unit.config())))
    assert again == unit
    assert type(again.source) is type(unit.source)
    assert again.folder(Path("runs")).path == unit.folder(Path("runs")).path


UNIT = Unit(
    source=SampledCopy(length=5, vocabulary=8),
    model=Seq2SeqSpec(embedding=8, hidden=8, layers=2),
    training=Training(
        steps=6, batch_size=4, evaluate_at=(3,), attention={"cross": Permuted()}, frozen=("hidden",)
    ),
)
# What each setting that is not a number may be changed to.
OTHERS = {
    "source.kind": "reordered-copy",
    "model.cell": "gru",
    "model.join": "averaged",
    "model.embeddings": "separate",
    "model.dropout": 0.5,
    "model.readout": "relu",
    "model.base_seed": 3,
    "model.head_seeds": [3],
    "training.frozen": [],
    "training.scores.0.site": "self",
    "training.scores.0.heads": "max",
    "training.splits.0": "train",
    "training.final_scores": [{"kind": "saliency"}],
    "training.metrics": [{"kind": "bleu"}],
    "training.best_by": "loss",
    "training.dtype": "float64",
    "device": "cuda",
}
# Kinds whose root has no other kind with the same settings.
ALONE = ("model", "optimizer", "objective.0", "attention.cross", "scores.0")


def leaves(value, path=""):
    """Yield the dotted path and the value of everything that holds nothing more."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        here = f"{path}.{key}" if path else str(key)
        deeper = isinstance(inner, dict | list) and len(inner) and here not in OTHERS
        yield from leaves(inner, here) if deeper else [(here, inner)]


def changed(config, path, value):
    config = copy.deepcopy(config)
    *folders, last = (int(part) if part.isdigit() else part for part in path.split("."))
    place = config
    for folder in folders:
        place = place[folder]
    place[last] = value
    return config


def settings_of(unit):
    ends = tuple(f"{place}.kind" for place in ALONE)
    return [(path, value) for path, value in leaves(unit.config()) if not path.endswith(ends)]


@for_each("path", [path for path, _ in settings_of(UNIT)])
def test_changing_any_setting_changes_the_units_folder(path):
    value = dict(settings_of(UNIT))[path]
    other = OTHERS[path] if path in OTHERS else value + 1
    unit = read_unit(changed(UNIT.config(), path, other))
    assert unit != UNIT
    assert unit.folder(Path("runs")).path != UNIT.folder(Path("runs")).path


def test_units_of_two_seeds_have_two_names():
    names = {UNIT.model_copy(update={"seed": seed}).name for seed in range(3)}
    assert len(names) == 3


def test_evaluating_in_another_order_is_the_same_unit():
    one, two = (Training(steps=9, batch_size=1, evaluate_at=steps) for steps in ((1, 5), (5, 1, 5)))
    assert one == two


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=4),
)


def shuffled(value, rng):
    if isinstance(value, dict):
        items = [(key, shuffled(inner, rng)) for key, inner in value.items()]
        return dict(rng.sample(items, len(items)))
    return [shuffled(inner, rng) for inner in value] if isinstance(value, list) else value


@given(values, st.randoms(use_true_random=False))
def test_hash_does_not_depend_on_the_order_of_keys(value, rng):
    assert fingerprint(shuffled(value, rng)) == fingerprint(value)


def test_hash_depends_on_the_order_of_lists_and_on_every_value():
    config = {"a": [1, 2, 3], "b": {"c": 0.1, "d": None}}
    others = [
        {"a": [3, 2, 1], "b": {"c": 0.1, "d": None}},
        {"a": [1, 2, 3], "b": {"c": 0.1}},
        {"a": [1, 2, 3], "b": {"c": 0.1000000001, "d": None}},
    ]
    assert len({fingerprint(value) for value in [config, *others]}) == 4
