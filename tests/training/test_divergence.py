"""A loss that is no number stops its unit, keeps what was good, and stops no other unit."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope.errors import AttnscopeError, NonFiniteLoss
from attnscope.training.engine.workers import train_units
from attnscope.training.loop import build_model, train_unit
from attnscope.training.optimizer import Adam
from cases import for_each

# The first update makes weights of about 1e30, whose products overflow in step 1.
TOO_LARGE = Adam(lr=1e30)


@pytest.mark.parametrize("schedule", [(), (1,)], ids=["between evaluations", "at an evaluation"])
def test_diverged_unit_names_the_step_and_says_what_to_do(tiny, tmp_path, schedule):
    unit = tiny(optimizer=TOO_LARGE, evaluate_at=schedule)
    with pytest.raises(NonFiniteLoss, match=r"loss was nan at step 1;.*Lower the learning rate"):
        train_unit(unit, tmp_path)
    assert not unit.folder(tmp_path).finished()[0]


@for_each("held", [1, 2, 3])
def test_step_is_named_however_many_losses_are_looked_at_together(
    tiny, tmp_path, monkeypatch, held
):
    monkeypatch.setattr("attnscope.training.loop._LOSSES_HELD", held)
    with pytest.raises(NonFiniteLoss, match="at step 1;"):
        train_unit(tiny(optimizer=TOO_LARGE, evaluate_at=()), tmp_path)


def test_diverged_unit_keeps_its_last_good_checkpoint(tiny, tmp_path):
    unit = tiny(optimizer=TOO_LARGE)
    with pytest.raises(NonFiniteLoss, match="checkpoint is that of step 0"):
        train_unit(unit, tmp_path, checkpoint_seconds=0)
    step, state, complaints = unit.folder(tmp_path).load_checkpoint()
    assert (step, complaints) == (0, [])
    for name, parameter in build_model(unit).named_parameters():
        np.testing.assert_array_equal(state[f"model.{name}"], parameter.detach().numpy())


def test_diverged_unit_without_a_checkpoint_claims_none(tiny, tmp_path):
    with pytest.raises(NonFiniteLoss, match="no checkpoint"):
        train_unit(tiny(optimizer=TOO_LARGE), tmp_path)
    assert list(tmp_path.rglob("checkpoint-*")) == []


def test_diverged_unit_logs_and_stores_numbers_alone(tiny, tmp_path):
    unit = tiny(optimizer=TOO_LARGE, evaluate_at=(1,))
    with pytest.raises(NonFiniteLoss):
        train_unit(unit, tmp_path)
    folder = unit.folder(tmp_path)
    assert [row["step"] for row in folder.log] == [0]
    assert folder.score_steps == [0]


def test_diverged_unit_diverges_again_at_the_same_step_when_it_goes_on(tiny, tmp_path):
    unit = tiny(optimizer=TOO_LARGE)
    sentences = []
    for _ in range(2):
        with pytest.raises(NonFiniteLoss) as raised:
            train_unit(unit, tmp_path, checkpoint_seconds=0)
        sentences.append(str(raised.value))
    assert sentences[0] == sentences[1]


@pytest.mark.parametrize("jobs", [1, 2])
def test_other_units_go_on(tiny, tmp_path, jobs):
    bad = tiny(optimizer=TOO_LARGE)
    good = [tiny(seed=seed) for seed in range(2)]
    with pytest.raises(AttnscopeError, match=r"1 of 3 units failed\. .*loss was nan at step 1"):
        train_units([bad, *good], tmp_path, jobs)
    assert all(unit.folder(tmp_path).finished()[0] for unit in good)
