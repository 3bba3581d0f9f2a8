"""A group as a task of Ray, without Ray: what it sends is a whole unit, or one to resume."""

from __future__ import annotations

import json

import pytest

from attnscope.errors import AttnscopeError
from attnscope.runs.environment import environment
from attnscope.training.engine import ray_task
from attnscope.training.engine.ray_task import train_task, unfinished_files, write_parts
from attnscope.training.engine.workers import train_units


@pytest.fixture
def order(tmp_path):
    """Write an order for units."""

    def write(units, seconds=10.0):
        named = [{"name": u.folder(tmp_path).name, "config": u.config()} for u in units]
        return json.dumps({"units": named, "imports": [], "mail_seconds": seconds})

    return write


def spooled(messages, folder):
    """Write the parts that come, and yield the other messages."""
    for message in messages:
        if message["kind"] == "parts":
            write_parts(folder, message)
        else:
            yield message


def test_units_arrive_whole_in_parts_with_done_json_last(
    seeds, order, tmp_path, numbers, monkeypatch
):
    monkeypatch.setattr(ray_task, "PART_BYTES", 100)
    units = seeds()
    names = [unit.folder(tmp_path).name for unit in units]
    sent = list(train_task(order(units), []))
    others = list(spooled(sent, tmp_path / "sent"))
    assert others[0]["kind"] == "started"
    assert others[-1]["outcomes"] == [("finished", name) for name in names]
    assert sum(message.get("steps", 0) for message in others) == 24
    for name in names:
        parts = [part for message in sent for part in message.get("parts", ())]
        files = [file for unit, file, _, _ in parts if unit == name]
        assert files[-1] == "done.json"
        assert len(files) > len(set(files))  # in several parts
    for unit, here in zip(units, train_units(units, tmp_path / "here"), strict=True):
        folder = unit.folder(tmp_path)
        assert numbers(tmp_path / "sent" / folder.name) == numbers(here.folder.path)


def test_mailed_checkpoint_is_resumed_to_the_same_bytes(
    tiny, order, tmp_path, numbers, monkeypatch
):
    unit = tiny(steps=40)
    name = unit.folder(tmp_path).name
    stopped = train_task(order([unit], seconds=0.0), [])
    for message in spooled(stopped, tmp_path / "mailed"):
        if message["kind"] == "mailed":
            break
    stopped.close()
    step = int(message["files"][name][-1][11:19])
    assert 0 < step <= 40
    assert set(unfinished_files(tmp_path / "mailed" / name)) >= set(message["files"][name])
    # Only what was listed belongs together.
    for file in unfinished_files(tmp_path / "mailed" / name):
        if file not in message["files"][name]:
            (tmp_path / "mailed" / name / file).unlink()
    parts = ray_task.parts(tmp_path / "mailed" / name, unfinished_files)
    monkeypatch.setattr(ray_task, "_receive", receive_all)
    messages = list(
        spooled(train_task(order([unit]), list(ray_task.bundles(parts))), tmp_path / "sent")
    )
    assert messages[-1]["steps"] == 40
    [here] = train_units([unit], tmp_path / "here")
    assert numbers(tmp_path / "sent" / name) == numbers(here.folder.path)


def test_unit_that_starts_over_on_a_node_because_versions_changed_says_so(
    tiny, order, tmp_path, monkeypatch
):
    unit = tiny()
    folder = unit.folder(tmp_path)
    folder.begin(unit.config(), environment("cpu") | {"torch": "2.12.0"})
    parts = list(ray_task.bundles(ray_task.parts(folder.path, unfinished_files)))
    monkeypatch.setattr(ray_task, "_receive", receive_all)
    messages = list(train_task(order([unit]), parts))
    [note] = [message["sentence"] for message in messages if message["kind"] == "note"]
    assert f"{folder.name} was begun under other versions (torch 2.12.0 and" in note
    assert messages[-1]["outcomes"] == [("finished", folder.name)]


def receive_all(messages, folder):
    for message in messages:
        write_parts(folder, message)


def test_mail_costs_two_percent_of_the_time_at_most(tiny, order, tmp_path, monkeypatch):
    """After a mail that took s seconds the next one comes 50 s later at the earliest."""
    clock = [0.0]
    monkeypatch.setattr(ray_task.time, "monotonic", lambda: clock[0])
    task = ray_task._Task(json.loads(order([tiny()], seconds=1.0)), tmp_path)
    for cost in (0.5, 2.0, 0.001):
        started = clock[0]
        mail = task._mail((started, {}, []))
        clock[0] += cost
        list(mail)
        assert task.next_mail - clock[0] == pytest.approx(max(50 * cost, 1.0))


def test_unit_that_cannot_be_read_on_a_node_fails_and_says_why(tiny, order):
    wanted = json.loads(order([tiny()]))
    wanted["units"][0]["config"]["model"]["kind"] = "mine"
    *_, last = train_task(json.dumps(wanted), [])
    [(status, reason)] = last["outcomes"]
    assert status == "failed"
    assert "unknown kind 'mine'" in reason


def test_file_outside_a_unit_is_refused(tmp_path):
    message = {"kind": "parts", "parts": [("x", "../../etc/passwd", 0, b"")]}
    with pytest.raises(AttnscopeError, match="not a file of a unit"):
        write_parts(tmp_path, message)
