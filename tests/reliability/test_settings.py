"""Settings that cannot fit are refused before anything is trained, with what they would need."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnscope.errors import AttnscopeError, UsageError
from attnscope.running.run import run
from attnscope.runs.spec import read_settings
from attnscope.training.memory import demand_memory, memory_errors, size
from attnscope.training.optimizer import Adagrad, Adam, ClippedAdam
from attnscope.training.registry import read_unit


@pytest.mark.parametrize(
    ("count", "told"),
    [(12, "12 bytes"), (1500, "1.5 kB"), (3_800_000_000_000, "3.8 TB"), (10**16, "1e+04 TB")],
)
def test_sizes_are_told_as_a_reader_says_them(count, told):
    assert size(count) == told


@pytest.mark.parametrize(
    "settings",
    [
        {"seeds": 10**9},
        {"examples": 10**10},
        {"length": 10**5},
        {"batch_size": 10**8},
        {"steps": 10**12},
        {"hidden": 10**6},
    ],
    ids=str,
)
def test_settings_beyond_the_machine_are_one_sentence(fig3, tmp_path, settings):
    with pytest.raises(AttnscopeError) as caught:
        run("snell/fig3", {**fig3, **settings}, device="cpu", jobs=1, out=tmp_path)
    assert "\n" not in str(caught.value)
    assert next(iter(settings)).split("_")[0] in str(caught.value) or "memory" in str(caught.value)


def test_unit_that_fits_is_not_refused(tiny):
    demand_memory([read_unit(tiny(steps=3, every=2))])


def test_examples_that_do_not_fit_are_estimated_before_they_are_drawn(tiny):
    unit = read_unit(tiny(steps=3, every=2))
    training = unit.training.model_copy(update={"examples": 10**13})
    with pytest.raises(UsageError, match=r"needs about \d+e?\S* TB of memory"):
        demand_memory([unit.model_copy(update={"training": training})])


def test_parameters_that_do_not_fit_are_counted_before_they_are_made(tiny):
    unit = read_unit(tiny(steps=3, every=2))
    model = unit.model.model_copy(update={"hidden": 10**7})
    with pytest.raises(UsageError, match=r"needs about \d+e?\S* TB of memory for its parameters"):
        demand_memory([unit.model_copy(update={"model": model})])


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), "1e999"])
def test_non_finite_settings_are_refused_everywhere(value):
    for model, name in ((Adam, "lr"), (Adagrad, "weight_decay"), (ClippedAdam, "clip")):
        with pytest.raises(UsageError, match="finite number"):
            read_settings(model, {name: value}, "x")


@pytest.mark.parametrize(
    "allocate",
    [
        lambda: torch.empty(10**15),
        lambda: torch.empty(2**40, 2**40),
        lambda: np.empty(10**15),
        lambda: np.empty((2**40, 2**40)),
    ],
)
def test_an_allocators_error_is_one_sentence(allocate):
    with pytest.raises(AttnscopeError, match="does not fit in memory"), memory_errors("x"):
        allocate()


def test_other_errors_pass_through():
    with pytest.raises(ValueError, match="odd"), memory_errors("x"):
        raise ValueError("odd")
