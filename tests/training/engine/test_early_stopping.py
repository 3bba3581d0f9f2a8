"""Early stopping: by itself, in a group, and killed and resumed, a unit stops at one place."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from attnscope.training.engine.groups import train_group
from attnscope.training.loop import train_unit
from attnscope.training.optimizer import Sgd
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Training, stops_early

LONG = {
    "steps": 60,
    "evaluate_at": tuple(range(0, 60, 2)),
    "optimizer": Sgd(lr=3.0),  # so that the loss goes up and down
    "best_by": "training_loss",
    "dtype": "float64",
}


class Killed(Exception):
    """What ends a process."""


def stops_at(log, patience):
    """Return where an epoch loop would stop: best loss so far, and evaluations since."""
    best, since = float("inf"), 0
    for row in log:
        loss = row["training_loss"]
        if loss is not None and loss < best:
            best, since, step = loss, 0, row["step"]
        elif loss is not None:
            since += 1
        if since == patience:
            return step, row["step"]
    return None


def trained(units, workspace):
    return [TrainedUnit(unit, unit.folder(workspace)) for unit in units]


def plain(log):
    return [{key: value for key, value in row.items() if key != "seconds"} for row in log]


@pytest.fixture
def units(seeds):
    return seeds(**LONG, patience=3)


@pytest.fixture
def patient(seeds):
    return seeds(**LONG)


def test_a_unit_stops_where_its_loss_has_not_fallen_for_as_long_as_its_patience_lasts(
    units, patient, tmp_path
):
    found = set()
    for unit, whole in zip(units, patient, strict=True):
        stopped = TrainedUnit(unit, train_unit(unit, tmp_path))
        log = TrainedUnit(whole, train_unit(whole, tmp_path)).log
        best, last = stops_at(log, 3)
        assert plain(stopped.log) == plain(row for row in log if row["step"] <= last)
        assert stopped.best_step == best
        assert stopped.folder.load_weights("best")[0] == best
        assert stopped.folder.load_weights("last")[0] == last
        found.add(last)
    assert len(found) > 1  # Members of the groups below stop at different evaluations.
    assert max(found) < 60


def test_the_last_weights_are_those_of_the_evaluation_at_which_it_stopped(units, seeds, tmp_path):
    unit = units[0]
    stopped = TrainedUnit(unit, train_unit(unit, tmp_path))
    steps = stopped.log[-1]["step"]
    (same,) = seeds((unit.seed,), **LONG | {"steps": steps})
    expected = train_unit(same, tmp_path).load_weights("last")[1]
    for name, weights in stopped.folder.load_weights("last")[1].items():
        np.testing.assert_array_equal(weights, expected[name])


def test_a_group_stops_its_units_where_they_stop_one_by_one(units, tmp_path):
    assert train_group(units, tmp_path / "group") == [None] * 3
    for unit, member in zip(units, trained(units, tmp_path / "group"), strict=True):
        alone = TrainedUnit(unit, train_unit(unit, tmp_path / "alone"))
        assert member.evaluated_steps == alone.evaluated_steps
        for which in ("best", "last"):
            step, weights = member.folder.load_weights(which)
            other, expected = alone.folder.load_weights(which)
            assert step == other
            for name in expected:
                np.testing.assert_allclose(weights[name], expected[name], atol=1e-9)


def test_progress_counts_the_steps_that_are_saved_too(units, tmp_path):
    steps, evaluations = [], []
    train_group(units, tmp_path / "group", steps.append, evaluated=evaluations.append)
    train_unit(units[0], tmp_path / "alone", steps.append, evaluated=evaluations.append)
    assert sum(steps) == 4 * 60
    assert sum(evaluations) == 4 * len(units[0].training.schedule)


def test_a_killed_group_of_which_some_have_stopped_resumes_to_the_same_bytes(
    units, tmp_path, numbers
):
    train_group(units, tmp_path / "whole")
    expected = [numbers(unit.folder(tmp_path / "whole").path) for unit in units]
    ends = sorted(unit.log[-1]["step"] for unit in trained(units, tmp_path / "whole"))
    for killed_at in (ends[0] // 2, ends[0] + 1, ends[-1] - 1):
        updates, workspace = itertools.count(1), tmp_path / str(killed_at)

        def report(steps, updates=updates, killed_at=killed_at):
            if next(updates) == killed_at:
                raise Killed

        with pytest.raises(Killed):
            train_group(units, workspace, report, checkpoint_seconds=0)
        notes: list[str] = []
        assert train_group(units, workspace, note=notes.append) == [None] * 3
        assert notes == []
        assert [numbers(unit.folder(workspace).path) for unit in units] == expected


def test_units_made_before_there_was_patience_keep_their_hash(seeds):
    assert "patience" not in seeds()[0].config()["training"]
    assert seeds(patience=2)[0].config()["training"]["patience"] == 2


def test_patience_counts_by_the_measure_that_chooses():
    training = Training(steps=9, batch_size=1, evaluate_at=(), patience=2)
    log = [{"step": k, "accuracy": value} for k, value in enumerate((0.1, 0.5, 0.5, 0.4))]
    assert [stops_early(log[:size], training) for size in range(5)] == [False] * 4 + [True]
