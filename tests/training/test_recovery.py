"""Whatever happened to its files, a unit ends with the bytes of one that nothing happened to."""

from __future__ import annotations

import itertools

import pytest

from attnscope.errors import UnitLocked
from attnscope.training import loop
from attnscope.training.loop import train_unit

SCORES = "scores/step-00000002.safetensors"


class Stopped(Exception):
    """What stops a unit in the middle."""


@pytest.fixture
def unit(tiny):
    return tiny(steps=8, evaluate_at=(2, 4, 6))


@pytest.fixture
def expected(unit, tmp_path, numbers):
    return numbers(train_unit(unit, tmp_path / "undisturbed").path)


def stop_at(unit, workspace, step):
    """Train with a checkpoint at each step, and stop after so many updates."""
    updates = itertools.count(1)

    def report(steps):
        if next(updates) == step:
            raise Stopped

    with pytest.raises(Stopped):
        train_unit(unit, workspace, report, checkpoint_seconds=0)
    return unit.folder(workspace)


def alter(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("step", range(1, 9))
def test_stopped_unit_goes_on_to_the_same_bytes(unit, tmp_path, expected, numbers, step):
    stop_at(unit, tmp_path, step)
    assert numbers(train_unit(unit, tmp_path).path) == expected


def test_stopped_unit_goes_on_where_it_was(unit, tmp_path, monkeypatch):
    stop_at(unit, tmp_path, 6)  # The newest checkpoint is that of step 5.
    steps = []
    update = loop._Run._update
    monkeypatch.setattr(
        loop._Run, "_update", lambda self, step: (steps.append(step), update(self, step))
    )
    train_unit(unit, tmp_path)
    assert steps == [5, 6, 7]


def test_checkpoints_are_taken_between_evaluations(tiny, tmp_path):
    folder = stop_at(tiny(steps=8, evaluate_at=()), tmp_path, 5)
    assert folder.load_checkpoint()[0] == 4


def test_damaged_checkpoint_is_named_and_the_unit_ends_the_same(unit, tmp_path, expected, numbers):
    folder = stop_at(unit, tmp_path, 6)
    newest = sorted(folder.path.glob("checkpoint-*"))[-1]
    alter(newest)
    notes = []
    train_unit(unit, tmp_path, note=notes.append)
    assert len(notes) == 1
    assert str(newest) in notes[0]
    assert numbers(folder.path) == expected


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-3]),
        lambda path: path.write_text(path.read_text().split("\n", 1)[1]),
        lambda path: path.unlink(),
    ],
    ids=["truncated", "a row is missing", "missing"],
)
def test_damaged_log_of_an_unfinished_unit_is_told_and_the_unit_ends_the_same(
    unit, tmp_path, expected, numbers, damage
):
    folder = stop_at(unit, tmp_path, 6)
    damage(folder.path / "log.jsonl")
    notes = []
    train_unit(unit, tmp_path, note=notes.append)
    assert len(notes) == 1
    assert "log" in notes[0]
    assert numbers(folder.path) == expected


@pytest.mark.parametrize(
    "name", ["last.safetensors", "best.safetensors", "log.jsonl", SCORES, "config.json"]
)
def test_altered_file_of_a_finished_unit_is_named_and_the_unit_ends_the_same(
    unit, tmp_path, expected, numbers, name
):
    folder = train_unit(unit, tmp_path)
    config = folder.config
    alter(folder.path / name)
    notes = []
    train_unit(unit, tmp_path, note=notes.append)
    assert len(notes) == 1
    assert str(folder.path / name) in notes[0]
    assert numbers(folder.path) == expected
    assert folder.config == config
    assert folder.finished() == (True, [])


def test_unit_that_is_trained_again_and_stopped_goes_on_like_any_other(
    unit, tmp_path, expected, numbers
):
    folder = train_unit(unit, tmp_path)
    alter(folder.path / "last.safetensors")
    stop_at(unit, tmp_path, 6)
    steps, notes = [], []
    train_unit(unit, tmp_path, steps.append, notes.append)
    assert (steps, notes) == ([5, 1, 1, 1], [])
    assert numbers(folder.path) == expected


def test_finished_unit_is_not_trained_again(unit, tmp_path, monkeypatch):
    train_unit(unit, tmp_path)
    monkeypatch.setattr(loop, "_Run", None)
    steps, notes = [], []
    train_unit(unit, tmp_path, steps.append, notes.append)
    assert (steps, notes) == ([8], [])


def test_unfinished_unit_of_another_version_starts_over(
    unit, tmp_path, monkeypatch, expected, numbers
):
    monkeypatch.setattr(loop, "environment", lambda device, *_: {"torch": "1.0", "device": device})
    folder = stop_at(unit, tmp_path, 6)
    monkeypatch.undo()
    steps = []
    train_unit(unit, tmp_path, steps.append)
    assert steps == [1] * 8  # None of them was taken over.
    assert numbers(folder.path) == expected


def test_unit_that_is_held_is_not_touched(unit, tmp_path):
    folder = unit.folder(tmp_path)
    with folder.lock(), pytest.raises(UnitLocked, match=folder.name):
        train_unit(unit, tmp_path)
    assert [path.name for path in folder.path.iterdir()] == ["lock"]


def test_unit_without_stored_examples_trains(tiny, tmp_path):
    folder = train_unit(tiny(stored=0), tmp_path)
    assert folder.finished() == (True, [])
