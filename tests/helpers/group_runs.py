"""Groups that are stopped in the middle, and their numbers next to those of their units alone."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from attnscope.runs.tensors import load_arrays
from attnscope.runs.unit import UnitFolder
from attnscope.training.engine.groups import train_group
from attnscope.training.loop import train_unit


class Stopped(Exception):
    """Raised to stop a group in the middle."""


def dropping(*names):
    """Give a test some of the classifiers with dropout; what it promises is the same for all."""
    return pytest.mark.parametrize("dropping", names, indirect=True)


def stop_at(units, workspace, step):
    """Train with checkpoints at each step, and stop after so many updates."""
    updates = itertools.count(1)

    def report(steps):
        if next(updates) == step:
            raise Stopped

    with pytest.raises(Stopped):
        train_group(units, workspace, report, checkpoint_seconds=0)


def stop_at_call(monkeypatch, units, workspace, method, number):
    """Train with checkpoints at each step, and stop before a call of a folder's method."""
    calls, original = itertools.count(1), getattr(UnitFolder, method)

    def call(self, *arguments):
        if next(calls) == number:
            raise Stopped
        return original(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(UnitFolder, method, call)
        with pytest.raises(Stopped):
            train_group(units, workspace, checkpoint_seconds=0)


def by_seed(scaled):
    """Return units of several models and two seeds with those of one seed together."""
    return [*scaled[::2], *scaled[1::2]]


def compare_with_one_by_one(units, tmp_path, atol=1e-9):
    """Train units as a group and one by one, and compare all files."""
    assert train_group(units, tmp_path / "together") == [None] * len(units)
    for unit in units:
        alone = train_unit(unit, tmp_path / "alone")
        grouped = unit.folder(tmp_path / "together")
        assert grouped.finished() == (True, [])
        assert len(grouped.log) == len(alone.log) == 5
        for one, other in zip(alone.log, grouped.log, strict=True):
            assert list(one) == list(other)
            assert one["accuracy"] == other["accuracy"]
            assert losses(other) == pytest.approx(losses(one), rel=0, abs=atol)
        files = sorted(path.relative_to(alone.path) for path in alone.path.rglob("*.safetensors"))
        assert files == sorted(
            path.relative_to(grouped.path) for path in grouped.path.rglob("*.safetensors")
        )
        for file in files:
            one, facts = load_arrays(alone.path / file)
            other, found = load_arrays(grouped.path / file)
            assert (facts, sorted(one)) == (found, sorted(other))
            for name, array in one.items():
                np.testing.assert_allclose(other[name], array, rtol=0, atol=atol)


def losses(row):
    """The two losses of a row; before the first update there is none of training."""
    return [row["loss"], row["training_loss"] or 0.0]
