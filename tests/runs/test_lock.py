"""One process per unit, and no lock that outlives its holder."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time

import pytest

from attnscope.errors import UnitLocked, WorkspaceError
from attnscope.runs import lock
from attnscope.runs.host import describe, host
from attnscope.runs.lock import locked
from attnscope.runs.unit import UnitFolder

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
        pytest.raises(
            UnitLocked, match=rf"unit is being trained by process {holder.pid} on {host()};"
        ),
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
        if how & fcntl.LOCK_NB:  # The lock is tried once per device, by a second descriptor.
            return flock(stream, how)
        with pytest.raises(BlockingIOError):
            flock(stream, how | fcntl.LOCK_NB)
        holder.stdin.close()
        return flock(stream, how)

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


# Ways in which a file system fails at flock: it says so, or lets everybody in.
def refusing(number):
    def flock(stream, how):
        raise OSError(number, "flock does not work here")

    return flock


BROKEN = {
    "ENOSYS": refusing(errno.ENOSYS),
    "ENOLCK": refusing(errno.ENOLCK),
    "ENOTSUP": refusing(errno.ENOTSUP),
    "silently useless": lambda stream, how: None,
}
LEASED = """
import fcntl, sys
def useless(stream, how): pass
fcntl.flock = useless
exec(sys.argv.pop(1))
"""


@pytest.fixture
def no_flock(monkeypatch):
    """Replace flock, and forget what was found out about the real one."""

    def replace(flock):
        monkeypatch.setattr(fcntl, "flock", flock)
        monkeypatch.setattr(lock, "_useful", {})

    return replace


@pytest.mark.parametrize("broken", BROKEN)
def test_file_system_without_flock_keeps_a_second_holder_out(tmp_path, no_flock, broken):
    no_flock(BROKEN[broken])
    path = tmp_path / "unit" / "lock"
    for _ in range(2):
        with locked(path, wait=False):
            # Another process has no knowledge of this one's objects.
            held, lock._leases = lock._leases, {}
            with pytest.raises(UnitLocked, match=f"on {host()};"), locked(path, wait=False):
                pass
            lock._leases = held
    assert [file.name for file in path.parent.iterdir()] == ["lock"]


def test_error_of_flock_that_is_not_about_locks_is_raised(tmp_path, no_flock):
    no_flock(refusing(errno.EIO))
    with pytest.raises(OSError, match="does not work"), locked(tmp_path / "lock", wait=False):
        pass


def test_killed_holder_of_a_lease_leaves_the_unit_free(tmp_path, no_flock):
    paths = [str(tmp_path / "unit" / "lock"), str(tmp_path / "diary")]
    command = [sys.executable, "-c", LEASED, HOLDER, *paths]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        no_flock(BROKEN["silently useless"])
        with pytest.raises(UnitLocked), locked(tmp_path / "unit" / "lock", wait=False):
            pass
        holder.kill()
    with locked(tmp_path / "unit" / "lock", wait=False) as held:
        assert held.deaths == 1


def test_lock_kept_to_one_host_holds_on_others_for_as_long_as_it_is_heard_of(
    tmp_path, no_flock, monkeypatch
):
    """One process number on two hosts; each host's flock is granted without the other's."""
    path, clock = tmp_path / "unit" / "lock", [0.0]
    no_flock(lambda stream, how: None)
    monkeypatch.setattr(lock, "_excludes", lambda path, descriptor: True)
    monkeypatch.setattr(lock.time, "monotonic", lambda: clock[0])
    monkeypatch.setenv("ATTNSCOPE_HOST", "node-1")
    with locked(path, wait=False) as first:
        monkeypatch.setenv("ATTNSCOPE_HOST", "node-2")
        for touch in range(3):
            os.utime(path, (time.time() + touch, time.time() + touch))
            clock[0] += lock.LEASE_SECONDS - 1
            with pytest.raises(UnitLocked, match="on node-1;"), locked(path, wait=False):
                pass
        # Stopped, it is not heard of any more; the other host takes over.
        clock[0] += lock.LEASE_SECONDS
        with locked(path, wait=False) as second:
            assert second.deaths == 1
            second.demand()
            with pytest.raises(UnitLocked, match=r"taken over by .* on node-2 while"):
                first.demand()
            second.survive()
        assert lock.holder_of(path) is None


def test_holder_on_another_host_that_was_silent_for_two_leases_is_dead(tmp_path, monkeypatch):
    path = tmp_path / "unit" / "lock"
    path.parent.mkdir()
    for age, dead in ((lock.LEASE_SECONDS, False), (2 * lock.LEASE_SECONDS + 5, True)):
        path.write_text('{"host": "node-1", "pid": 7, "token": "x"}')
        os.utime(path, (time.time() - age, time.time() - age))
        if dead:
            with locked(path, wait=False) as held:
                assert held.deaths == 1
        else:
            with pytest.raises(UnitLocked, match="process 7 on node-1"), locked(path, wait=False):
                pass
    assert [file.name for file in path.parent.iterdir()] == ["lock"]


def test_stopped_process_that_lost_its_unit_writes_nothing_more(tmp_path, no_flock, monkeypatch):
    no_flock(lambda stream, how: None)
    monkeypatch.setattr(lock, "_excludes", lambda path, descriptor: True)
    one, other = (UnitFolder(tmp_path / "unit") for _ in range(2))
    with one.lock():
        one.write_log([{"step": 0}])
        with other.lock():
            other.write_log([{"step": 0}, {"step": 1}])
            other.save_checkpoint(1, {})
            for write in (
                lambda: one.write_log([]),
                lambda: one.save_scores("examples", {}),
                lambda: one.save_weights("last", 0, {}),
                lambda: one.save_checkpoint(0, {}),
                lambda: one.save_words({}, b"pieces"),
                lambda: one.drop_checkpoints_after(0),
                one.drop_checkpoints,
                one.finish,
                one.clear,
            ):
                with pytest.raises(UnitLocked, match="taken over"):
                    write()
            assert len(other.log) == 2
            assert other.load_checkpoint()[0] == 1


def test_holder_is_named_with_host_job_and_process(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNSCOPE_HOST", "node-7")
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "99")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "3")
    with locked(tmp_path / "lock", wait=False):
        holder = lock.holder_of(tmp_path / "lock")
        assert describe(holder) == f"process {os.getpid()} on node-7 (job 99_3)"
        assert holder["idle"] < lock.LEASE_SECONDS
    assert lock.holder_of(tmp_path / "lock") is None


def test_lock_file_of_an_earlier_release_is_free(tmp_path):
    (tmp_path / "lock").write_text("12345")
    with locked(tmp_path / "lock", wait=False) as held:
        assert held.deaths == 0
