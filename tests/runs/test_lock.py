"""One process per unit, and no lock that outlives its holder."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys

import pytest

from attnscope.errors import UnitLocked, WorkspaceError
from attnscope.runs.lock import locked

# Holds the lock until its standard input ends, then leaves a word behind.
HOLDER = """
import sys
from pathlib import Path
from attnscope.runs.lock import locked

with locked(Path(sys.argv[1]), wait=False):
    print("held", flush=True)
    sys.stdin.read()
    Path(sys.argv[2]).write_text("left")
"""


@pytest.fixture
def hold(tmp_path):
    """Start processes that hold the lock of a unit; end them with the test."""
    processes = []

    def start():
        paths = [str(tmp_path / "unit" / "lock"), str(tmp_path / "diary")]
        process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        with process:
            process.kill()


def test_second_process_is_told_who_holds_the_unit(tmp_path, hold):
    holder = hold()
    assert holder.stdout.readline() == "held\n"
    with (
        pytest.raises(UnitLocked, match=rf"unit is being trained by process {holder.pid};"),
        locked(tmp_path / "unit" / "lock", wait=False),
    ):
        pass


def test_killed_holder_leaves_the_unit_free(tmp_path, hold):
    holder = hold()
    assert holder.stdout.readline() == "held\n"
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with locked(tmp_path / "unit" / "lock", wait=False):
        pass


def test_waiting_process_comes_in_when_the_holder_has_left(tmp_path, hold, monkeypatch):
    holder = hold()
    assert holder.stdout.readline() == "held\n"
    flock = fcntl.flock

    def holder_leaves_once_it_is_waited_for(stream, how):
        assert not how & fcntl.LOCK_NB
        with pytest.raises(BlockingIOError):
            flock(stream, how | fcntl.LOCK_NB)
        holder.stdin.close()
        flock(stream, how)

    monkeypatch.setattr(fcntl, "flock", holder_leaves_once_it_is_waited_for)
    with locked(tmp_path / "unit" / "lock", wait=True):
        assert (tmp_path / "diary").read_text() == "left"


def test_lock_is_free_again_after_its_block(tmp_path):
    for _ in range(2):
        with locked(tmp_path / "lock", wait=False):
            pass
    with pytest.raises(RuntimeError), locked(tmp_path / "lock", wait=False):
        raise RuntimeError
    with locked(tmp_path / "lock", wait=False):
        pass


def test_locks_of_two_units_do_not_meet(tmp_path):
    with (
        locked(tmp_path / "one" / "lock", wait=False),
        locked(tmp_path / "two" / "lock", wait=False),
    ):
        pass


def test_folder_that_cannot_be_made_is_a_clear_error(tmp_path):
    (tmp_path / "taken").write_text("")
    with (
        pytest.raises(WorkspaceError, match=r"Cannot write in .*taken/unit: .* --out"),
        locked(tmp_path / "taken" / "unit" / "lock", wait=False),
    ):
        pass
