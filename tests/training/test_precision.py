"""The precision of a GPU's products is stored where it is not the default, and set in training."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError

import attnscope
from attnscope.errors import UsageError
from attnscope.training.engine.groups import train_group
from attnscope.training.imitation import Imitation
from attnscope.training.loop import train_unit
from attnscope.training.registry import read_unit
from attnscope.training.repeatable import repeatable


def test_the_default_precision_is_not_stored_and_tf32_is(tiny):
    plain, tf32 = tiny(), tiny(precision="tf32")
    assert "precision" not in plain.config()["training"]
    assert tf32.config()["training"]["precision"] == "tf32"
    assert plain.config() == tiny(precision="float32").config()
    for unit in (plain, tf32):
        assert read_unit(unit.config()) == unit


def test_the_default_precision_of_an_imitated_unit_is_not_stored_either(tiny):
    config = tiny(objective=(Imitation(base=tiny()),)).config()
    assert "precision" not in config["training"]["objective"][0]["base"]["training"]


def test_tf32_of_double_numbers_is_refused(tiny):
    with pytest.raises(ValidationError, match="precision=tf32 needs dtype=float32"):
        tiny(precision="tf32", dtype="float64")


def products():
    return torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32


@pytest.mark.parametrize(("precision", "allowed"), [("float32", False), ("tf32", True)])
def test_products_have_the_units_precision_in_training_and_the_users_after_it(precision, allowed):
    before = products()
    with repeatable("cpu", precision):
        assert products() == (allowed, allowed)
    assert products() == before


@pytest.mark.parametrize(
    "train", [train_unit, lambda unit, path, *rest: train_group([unit], path, *rest)]
)
def test_units_are_trained_in_their_precision(tiny, tmp_path, train):
    found = []
    train(tiny(precision="tf32"), tmp_path, lambda steps: found.append(products()))
    assert set(found) == {(True, True)}


def test_a_result_says_that_its_units_trained_in_tf32(tmp_path):
    # It trains nothing, so that workers with a GPU are not needed.
    given = {"quick": True, "device": "cuda", "on": "workers"}
    results = [
        attnscope.run("snell/initial-derivative", out=tmp_path / name, precision=name, **given)
        for name in ("float32", "tf32")
    ]
    plain, tf32 = (run.result for run in results)
    assert "precision" not in plain.environment
    assert tf32.environment == plain.environment | {"precision": "tf32"}
    assert tf32.config == plain.config


def test_tf32_on_a_cpu_is_refused(tmp_path):
    with pytest.raises(UsageError, match="tf32 is a precision of GPUs"):
        attnscope.run("snell/fig3", quick=True, device="cpu", precision="tf32", out=tmp_path)
