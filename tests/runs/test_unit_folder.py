"""A unit's folder: what is damaged is named, and what is sound is used."""

from __future__ import annotations

import numpy as np
import pytest

from attnscope.errors import DamagedFile, UsageError, WorkspaceError
from attnscope.runs.atomic import ASIDE
from attnscope.runs.unit import UnitFolder

CONFIG, ENVIRONMENT = {"steps": 30}, {"torch": "2.13.0", "device": "cpu"}


@pytest.fixture
def folder(tmp_path):
    """A unit in training, with checkpoints of steps 10 and 20."""
    folder = UnitFolder.of(tmp_path, "copy-seed0", CONFIG)
    folder.begin(CONFIG, ENVIRONMENT)
    for step in (10, 20):
        folder.save_checkpoint(step, {"weight": np.full(3, float(step))})
        folder.save_scores(f"step-{step:08d}", {"attention": np.full(2, float(step))})
    folder.write_log([{"step": 10}, {"step": 20}])
    folder.save_weights("best", 10, {"weight": np.full(3, 10.0)})
    return folder


@pytest.fixture
def finished(folder):
    folder.save_weights("last", 20, {"weight": np.full(3, 20.0)})
    folder.finish()
    return folder


def checkpoint(folder, step):
    return folder.path / f"checkpoint-{step:08d}.safetensors"


def truncate(path):
    path.write_bytes(path.read_bytes()[:-1])


def alter(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


def test_newest_checkpoint_is_used(folder):
    step, state, complaints = folder.load_checkpoint()
    assert (step, complaints) == (20, [])
    np.testing.assert_array_equal(state["weight"], np.full(3, 20.0))


@pytest.mark.parametrize("damage", [truncate, alter])
def test_damaged_checkpoint_is_named_and_the_previous_one_used(folder, damage):
    damage(checkpoint(folder, 20))
    step, state, complaints = folder.load_checkpoint()
    assert step == 10
    np.testing.assert_array_equal(state["weight"], np.full(3, 10.0))
    assert len(complaints) == 1
    assert str(checkpoint(folder, 20)) in complaints[0]
    assert "step 10" in complaints[0]


def test_unit_whose_checkpoints_are_all_damaged_starts_over_and_says_so(folder):
    truncate(checkpoint(folder, 10))
    alter(checkpoint(folder, 20))
    step, state, complaints = folder.load_checkpoint()
    assert (step, state) == (0, None)
    assert len(complaints) == 2
    for damaged, complaint in zip((20, 10), complaints, strict=True):
        assert str(checkpoint(folder, damaged)) in complaint
        assert "from the start" in complaint


def test_damaged_checkpoint_is_complained_about_once(folder):
    alter(checkpoint(folder, 20))
    folder.load_checkpoint()
    assert folder.load_checkpoint()[0::2] == (10, [])


def test_two_checkpoints_are_kept(folder):
    folder.save_checkpoint(30, {"weight": np.zeros(3)})
    kept = sorted(folder.path.glob("checkpoint-*"))
    assert kept == [checkpoint(folder, 20), checkpoint(folder, 30)]


def test_unit_is_finished_only_when_it_says_so(folder):
    assert folder.finished() == (False, [])


def test_finished_unit_is_sound_and_keeps_no_checkpoint(finished):
    assert finished.finished() == (True, [])
    assert list(finished.path.glob("checkpoint-*")) == []


KEPT = (
    "config.json",
    "environment.json",
    "log.jsonl",
    "last.safetensors",
    "best.safetensors",
    "scores/step-00000010.safetensors",
)


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("damage", [truncate, alter, lambda path: path.unlink()])
def test_altered_or_missing_file_of_a_finished_unit_is_named(finished, name, damage):
    damage(finished.path / name)
    done, complaints = finished.finished()
    assert not done
    assert len(complaints) == 1
    assert str(finished.path / name) in complaints[0]


@pytest.mark.parametrize(
    "content",
    ["", '{"files"', "{}", "[]", '{"files": 3}', '{"files": {}}', '{"files": {"../x": ""}}'],
)
def test_altered_list_of_files_is_named(finished, content):
    (finished.path / "done.json").write_text(content)
    done, complaints = finished.finished()
    assert not done
    assert len(complaints) == 1
    assert str(finished.path / "done.json") in complaints[0]


def test_same_environment_goes_on(folder):
    folder.begin(CONFIG, ENVIRONMENT)
    assert folder.load_checkpoint()[0] == 20
    assert [row["step"] for row in folder.log] == [10, 20]


def test_fact_that_an_earlier_release_did_not_record_is_no_change(folder):
    notes = []
    folder.begin(CONFIG, ENVIRONMENT | {"driver": "570.86"}, notes.append)
    assert folder.load_checkpoint()[0] == 20
    assert notes == []
    assert folder.environment == ENVIRONMENT | {"driver": "570.86"}


def test_changed_environment_starts_over_and_says_so(folder):
    notes = []
    folder.begin(CONFIG, ENVIRONMENT | {"torch": "2.14.0"}, notes.append)
    assert notes == [
        f"{folder.name} was begun under other versions (torch {ENVIRONMENT['torch']} and 2.14.0) "
        "and is trained from the start."
    ]
    assert folder.load_checkpoint() == (0, None, [])
    assert folder.log == []
    assert folder.score_steps == []
    with pytest.raises(WorkspaceError, match="no best weights"):
        folder.load_weights("best")


def test_what_a_killed_writer_left_aside_is_cleared_away_and_never_counted(folder):
    for place in (folder.path, folder.path / "scores"):
        (place / f"{ASIDE}123-best.safetensors").write_bytes(b"half")
    assert folder.score_steps == [10, 20]
    folder.begin(CONFIG, ENVIRONMENT)
    folder.save_weights("last", 20, {"weight": np.full(3, 20.0)})
    folder.finish()
    assert list(folder.path.rglob(f"{ASIDE}*")) == []
    assert folder.finished() == (True, [])


def test_cleared_unit_has_nothing_left_of_its_progress(finished):
    finished.clear()
    assert [path for path in finished.path.rglob("*") if path.is_file()] == []


def test_weights_come_back_with_their_step(finished):
    step, weights = finished.load_weights("best")
    assert step == 10
    np.testing.assert_array_equal(weights["weight"], np.full(3, 10.0))


def test_damaged_weights_are_named(finished):
    alter(finished.path / "last.safetensors")
    with pytest.raises(DamagedFile, match=r"last\.safetensors"):
        finished.load_weights("last")


def test_scores_that_are_not_stored_are_answered_with_those_that_are(finished):
    with pytest.raises(UsageError, match=r"step-00000010, step-00000020\.$"):
        finished.load_scores("step-00000015")


@pytest.mark.parametrize("name", ["best", "last"])
def test_weights_that_the_unit_was_not_finished_with_are_refused(finished, tmp_path, name):
    other = UnitFolder(tmp_path / "other")
    other.save_weights(name, 20, {"weight": np.full(3, 7.0)})
    (other.path / f"{name}.safetensors").replace(finished.path / f"{name}.safetensors")
    with pytest.raises(DamagedFile, match=rf"{name}\.safetensors is not the file"):
        finished.load_weights(name)


def test_scores_and_log_that_the_unit_was_not_finished_with_are_refused(finished):
    finished.save_scores("step-00000010", {"attention": np.zeros(2)})
    with pytest.raises(DamagedFile, match="is not the file"):
        finished.load_scores("step-00000010")
    finished.write_log([{"step": 10}])
    with pytest.raises(DamagedFile, match="is not the file"):
        _ = finished.log


@pytest.fixture
def victim(tmp_path):
    """Files outside the workspace, as bait."""
    place = tmp_path / "victim"
    (place / "scores").mkdir(parents=True)
    for name in ("config.json", "last.safetensors", ".aside-1-x", "scores/a.safetensors"):
        (place / name).write_text("precious")
    return place


def harmed(victim):
    return [path for path in victim.rglob("*") if path.is_file() and path.read_text() != "precious"]


@pytest.mark.parametrize("where", ["units", "unit", "scores", "lock", "config.json", "log.jsonl"])
def test_links_inside_a_workspace_lead_nowhere(tmp_path, victim, where):
    workspace = tmp_path / "runs"
    folder = UnitFolder.of(workspace, "copy-seed0", CONFIG)
    place = {"units": workspace / "units", "unit": folder.path}.get(where, folder.path / where)
    place.parent.mkdir(parents=True)
    place.symlink_to(victim / "config.json" if where in ("lock", "config.json") else victim)
    before = sorted(victim.rglob("*"))

    def train():
        with folder.lock():
            folder.begin(CONFIG, ENVIRONMENT)
            folder.write_log([])

    with pytest.raises(WorkspaceError, match="is a link to"):
        train()
    assert sorted(victim.rglob("*")) == before
    assert not harmed(victim)


def test_lock_that_has_a_second_name_is_held_and_not_written_to(tmp_path, victim):
    folder = UnitFolder.of(tmp_path / "runs", "copy-seed0", CONFIG)
    folder.path.mkdir(parents=True)
    (folder.path / "lock").hardlink_to(victim / "config.json")
    with folder.lock():
        pass
    assert not harmed(victim)
