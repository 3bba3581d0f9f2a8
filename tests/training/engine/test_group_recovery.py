"""A group ends with the same bytes whatever happened to it."""

from __future__ import annotations

import fcntl
import itertools
from collections import Counter

import pytest
import torch

from attnscope.errors import AttnscopeError, NonFiniteLoss, UnitLocked, UsageError
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.training import loop
from attnscope.training.engine import groups, vmapped
from attnscope.training.engine.groups import train_group
from attnscope.training.engine.workers import train_units
from attnscope.training.loop import train_unit
from attnscope.training.optimizer import Adam
from counted import Counted
from group_runs import (
    Stopped,
    by_seed,
    compare_with_one_by_one,
    dropping,
    stop_at,
    stop_at_call,
)


def alter(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


# Whatever happened to its files, a group ends with the bytes of one that nothing happened to.


@pytest.mark.parametrize("step", [1, 3, 4, 8])
def test_a_stopped_group_goes_on_to_the_same_bytes(units, tmp_path, expected, all_numbers, step):
    stop_at(units, tmp_path, step)
    assert train_group(units, tmp_path) == [None] * 3
    assert all_numbers(units, tmp_path) == expected


@pytest.mark.parametrize(
    ("dropping", "step"), [("DP", 1), ("DP-L", 6), ("AD", 6)], indirect=["dropping"]
)
def test_a_stopped_group_with_dropout_goes_on_to_the_same_bytes(
    droppers, tmp_path, all_numbers, step
):
    go_on_to_the_same_bytes(droppers, tmp_path, all_numbers, step)


@dropping("DP-A", "DP-L")
def test_a_stopped_group_of_several_lambda_goes_on_to_the_same_bytes(scaled, tmp_path, all_numbers):
    go_on_to_the_same_bytes(scaled, tmp_path, all_numbers, 6)


def go_on_to_the_same_bytes(units, tmp_path, all_numbers, step):
    stop_at(units, tmp_path / "stopped", step)
    for folder in ("stopped", "undisturbed"):
        assert train_group(units, tmp_path / folder) == [None] * len(units)
    found, expected = (all_numbers(units, tmp_path / f) for f in ("stopped", "undisturbed"))
    assert found == expected


@dropping("DP-A", "AD")
def test_a_group_that_lost_a_unit_of_a_seed_still_reads_every_seeds_own_batches(scaled, tmp_path):
    units = by_seed(scaled)
    train_unit(units[0], tmp_path / "together")  # Finished, and so left out.
    compare_with_one_by_one(units, tmp_path, atol=1e-12)


def test_a_stopped_group_goes_on_where_it_was(units, tmp_path, monkeypatch):
    stop_at(units, tmp_path, 6)  # The newest checkpoints are those of step 5.
    steps, update = [], groups._Group._update
    monkeypatch.setattr(
        groups._Group, "_update", lambda self, step: (steps.append(step), update(self, step))
    )
    train_group(units, tmp_path)
    assert steps == [5, 6, 7]


# Of three checkpoints each: those of step 0, of step 1 (the first that is used), of step 2, and
# those after the last update.
@pytest.mark.parametrize("number", [2, 5, 9, 26])
def test_a_group_stopped_between_its_checkpoints_goes_on_to_the_same_bytes(
    units, tmp_path, monkeypatch, expected, all_numbers, number
):
    stop_at_call(monkeypatch, units, tmp_path, "save_checkpoint", number)
    stop_at_call(monkeypatch, units, tmp_path, "save_checkpoint", 2)  # and once more
    together_at = []
    go = groups._Group.train
    monkeypatch.setattr(
        groups._Group, "train", lambda self: (together_at.append(len(self.members)), go(self))
    )
    assert train_group(units, tmp_path) == [None] * 3
    assert together_at == [3]
    assert all_numbers(units, tmp_path) == expected


def test_a_group_stopped_between_its_first_checkpoints_starts_anew_as_a_whole(
    units, tmp_path, monkeypatch, expected, all_numbers
):
    stop_at_call(monkeypatch, units, tmp_path, "save_checkpoint", 5)
    for folder in (unit.folder(tmp_path) for unit in units):
        (folder.path / "checkpoint-00000000.safetensors").unlink()
    assert [unit.folder(tmp_path).load_checkpoint()[0] for unit in units] == [1, 0, 0]
    steps = []
    train_group(units, tmp_path, steps.append)
    assert steps == [3] * 8
    assert all_numbers(units, tmp_path) == expected


@pytest.mark.parametrize("method", ["write_log", "save_scores"])
@pytest.mark.parametrize("number", [2, 8])
def test_a_group_stopped_in_an_evaluation_goes_on_to_the_same_bytes(
    units, tmp_path, monkeypatch, expected, all_numbers, method, number
):
    stop_at_call(monkeypatch, units, tmp_path, method, number)
    assert train_group(units, tmp_path) == [None] * 3
    assert all_numbers(units, tmp_path) == expected


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_group_stopped_between_its_ends_makes_no_update_again(
    units, tmp_path, monkeypatch, expected, all_numbers, number
):
    stop_at_call(monkeypatch, units, tmp_path, "finish", number)
    monkeypatch.setattr(groups._Group, "_update", None)
    assert train_group(units, tmp_path) == [None] * 3
    assert all_numbers(units, tmp_path) == expected


def test_a_damaged_checkpoint_is_named_and_the_group_ends_the_same(
    units, tmp_path, expected, all_numbers
):
    stop_at(units, tmp_path, 6)
    newest = sorted(units[1].folder(tmp_path).path.glob("checkpoint-*"))[-1]
    alter(newest)
    notes, steps = [], []
    train_group(units, tmp_path, steps.append, notes.append)
    assert [str(newest) in note for note in notes] == [True]
    assert steps[0] == 3 * 4  # All go on from the checkpoints before.
    assert all_numbers(units, tmp_path) == expected


def test_checkpoints_after_the_one_that_a_group_goes_on_from_are_forgotten(units, tmp_path):
    # They would take the place of one that the others will have too.
    stop_at(units, tmp_path, 6)
    (units[1].folder(tmp_path).path / "checkpoint-00000005.safetensors").unlink()
    stop_at(units, tmp_path, 2)  # What was done before is told first, then the update of step 4.
    assert [unit.folder(tmp_path).load_checkpoint()[0] for unit in units] == [4, 4, 4]


def test_an_altered_log_sends_its_own_unit_alone_back(units, tmp_path):
    stop_at(units, tmp_path, 6)
    folder = units[1].folder(tmp_path)
    (folder.path / "log.jsonl").unlink()
    notes, steps = [], []
    assert train_group(units, tmp_path, steps.append, notes.append) == [None] * 3
    assert [folder.name in note for note in notes] == [True]
    assert Counter(steps) == {10: 1, 2: 3, 1: 8}
    assert [row["step"] for row in folder.log] == [0, 2, 4, 6, 8]


def test_a_unit_of_a_stopped_group_goes_on_by_itself_to_the_same_numbers(seeds, tmp_path):
    go_on_by_themselves(seeds(dtype="float64"), tmp_path)


@dropping("DP", "DP-L")
def test_a_unit_with_dropout_goes_on_by_itself_to_the_same_numbers(droppers, tmp_path):
    go_on_by_themselves(droppers, tmp_path)


def go_on_by_themselves(units, tmp_path):
    stop_at(units, tmp_path / "stopped", 6)
    train_group(units, tmp_path / "undisturbed")
    for unit in units:
        steps = []
        found = train_unit(unit, tmp_path / "stopped", steps.append).log
        assert steps == [5, 1, 1, 1]
        for one, other in zip(unit.folder(tmp_path / "undisturbed").log, found, strict=True):
            assert other["loss"] == pytest.approx(one["loss"], rel=0, abs=1e-9)


def test_units_that_were_begun_by_themselves_go_on_as_a_group(seeds, tmp_path):
    go_on_as_a_group(seeds(dtype="float64"), tmp_path)


@dropping("DP-A", "AD")
def test_units_with_dropout_begun_by_themselves_go_on_as_a_group(droppers, tmp_path):
    go_on_as_a_group(droppers, tmp_path)


def go_on_as_a_group(units, tmp_path):
    for unit in units:
        updates = itertools.count(1)

        def report(steps, updates=updates):
            if next(updates) == 6:
                raise Stopped

        with pytest.raises(Stopped):
            train_unit(unit, tmp_path / "begun", report, checkpoint_seconds=0)
    steps = []
    assert train_group(units, tmp_path / "begun", steps.append) == [None] * 3
    assert steps == [15, 3, 3, 3]
    for unit in units:
        alone = train_unit(unit, tmp_path / "alone").log
        for one, other in zip(alone, unit.folder(tmp_path / "begun").log, strict=True):
            assert other["loss"] == pytest.approx(one["loss"], rel=0, abs=1e-9)


def test_seeds_that_are_added_do_not_send_the_others_back(seeds, tmp_path):
    stop_at(seeds(range(3)), tmp_path, 6)
    steps = []
    assert train_group(seeds(range(5)), tmp_path, steps.append) == [None] * 5
    assert Counter(steps) == {15: 1, 3: 3, 2: 8}


# Units that are not the group's to train.


def test_finished_units_are_left_out(units, tmp_path, numbers):
    folder = train_unit(units[1], tmp_path)
    before = numbers(folder.path)
    steps = []
    assert train_group(units, tmp_path, steps.append) == [None] * 3
    assert steps == [8] + [2] * 8
    assert numbers(folder.path) == before


def test_an_altered_file_of_a_finished_unit_is_named_and_the_unit_trained_again(units, tmp_path):
    train_group(units, tmp_path)
    folder = units[2].folder(tmp_path)
    alter(folder.path / "last.safetensors")
    notes = []
    assert train_group(units, tmp_path, note=notes.append) == [None] * 3
    assert [str(folder.path / "last.safetensors") in note for note in notes] == [True]
    assert folder.finished() == (True, [])


def test_a_group_with_a_unit_that_is_held_elsewhere_is_not_touched(units, tmp_path):
    with units[1].folder(tmp_path).lock():
        outcomes = train_group(units, tmp_path)
        assert [type(outcome) for outcome in outcomes] == [UnitLocked] * 3
        files = {path.name for path in tmp_path.rglob("*") if path.is_file()}
        assert files == {"lock"}


def test_a_group_holds_all_its_units(units, tmp_path):
    def report(steps):
        for unit in units:
            with pytest.raises(UnitLocked):
                train_unit(unit, tmp_path)

    assert train_group(units, tmp_path, report) == [None] * 3


def test_a_group_held_elsewhere_is_waited_for_as_a_whole(
    units, tmp_path, monkeypatch, expected, all_numbers
):
    held, flock = units[0].folder(tmp_path), fcntl.flock
    lock = held.lock()
    lock.__enter__()

    def leave_once_waited_for(stream, how):
        if not how & fcntl.LOCK_NB:
            lock.__exit__(None, None, None)
        flock(stream, how)

    monkeypatch.setattr(fcntl, "flock", leave_once_waited_for)
    progress = Counted()
    train_units(units, tmp_path, 1, progress)
    assert ["(3 units)" in note for note in progress.notes] == [True]
    assert len(progress.done) == 3
    assert progress.steps == 24
    assert all_numbers(units, tmp_path) == expected


# A loss that is not finite stops its unit and no other.


@pytest.fixture
def diverging(monkeypatch):
    """Let the loss of the unit with seed 0 be infinite from a step on, wherever it is stacked."""

    def set_up(step):
        update, losses = groups._Group._update, vmapped.stacked_losses
        now = []

        def remembered(self, number):
            seeds = [member.unit.seed for member in self.members]
            now[:] = [number, torch.tensor([seed == 0 for seed in seeds])]
            update(self, number)

        def infinite(*arguments):
            found = losses(*arguments)
            return found * torch.where(now[1] & (now[0] >= step), float("inf"), 1.0)

        monkeypatch.setattr(groups._Group, "_update", remembered)
        monkeypatch.setattr(vmapped, "stacked_losses", infinite)

    return set_up


@pytest.mark.parametrize(("step", "held"), [(0, 100), (3, 1), (3, 2), (3, 100), (7, 2)])
def test_a_diverged_unit_stops_alone_and_names_its_step(
    units, tmp_path, expected, all_numbers, diverging, monkeypatch, step, held
):
    monkeypatch.setattr(groups, "_LOSSES_HELD", held)
    diverging(step)
    outcomes = train_group(units, tmp_path)
    assert [type(outcome) for outcome in outcomes] == [type(None), NonFiniteLoss, type(None)]
    folder = units[1].folder(tmp_path)
    sentence = f"{folder.name}: the loss was inf at step {step}; no checkpoint"
    assert str(outcomes[1]).startswith(sentence)
    assert not folder.finished()[0]
    assert [row["step"] for row in folder.log] == [n for n in (0, 2, 4, 6) if n <= step]
    found = all_numbers(units, tmp_path)
    assert (found[0], found[2]) == (expected[0], expected[2])


def test_a_diverged_unit_keeps_its_last_good_checkpoint(units, tmp_path, diverging):
    diverging(3)
    outcomes = train_group(units, tmp_path, checkpoint_seconds=0)
    assert "at step 3; the last good checkpoint is that of step 2" in str(outcomes[1])
    assert units[1].folder(tmp_path).load_checkpoint()[0] == 2


def test_a_diverged_unit_does_not_send_a_killed_group_back(units, tmp_path, diverging):
    diverging(3)
    stop_at(units, tmp_path, 7)
    steps = []
    outcomes = train_group(units, tmp_path, steps.append, checkpoint_seconds=0)
    assert [type(outcome) for outcome in outcomes] == [type(None), NonFiniteLoss, type(None)]
    assert "at step 3; the last good checkpoint is that of step 2" in str(outcomes[1])
    assert steps[:3] == [12, 2, 2]


def test_diverged_units_all_of_them_end_the_group(seeds, tmp_path):
    units = seeds(optimizer=Adam(lr=1e30), final_scores=())
    outcomes = train_group(units, tmp_path)
    assert [type(outcome) for outcome in outcomes] == [NonFiniteLoss] * 3


def test_workers_tell_of_the_diverged_unit_and_finish_the_others(units, tmp_path, diverging):
    diverging(3)
    with pytest.raises(AttnscopeError, match=r"1 of 3 units failed\. .*loss was inf at step 3"):
        train_units(units, tmp_path)
    assert [unit.folder(tmp_path).finished()[0] for unit in units] == [True, False, True]


def test_a_model_that_cannot_be_built_fails_every_unit(seeds, tmp_path):
    units = seeds(model=EncoderDecoderSpec(hidden=5, input_dimension=1))
    with pytest.raises(UsageError, match="no room"):
        train_group(units, tmp_path)
    with pytest.raises(AttnscopeError, match=r"3 of 3 units failed\. .*no room"):
        train_units(units, tmp_path)


def test_units_of_another_version_start_over(units, tmp_path, monkeypatch, expected, all_numbers):
    with monkeypatch.context() as patch:
        patch.setattr(loop, "environment", lambda device, *_: {"torch": "1.0", "device": device})
        stop_at(units, tmp_path, 6)
    steps = []
    train_group(units, tmp_path, steps.append)
    assert steps == [3] * 8
    assert all_numbers(units, tmp_path) == expected
