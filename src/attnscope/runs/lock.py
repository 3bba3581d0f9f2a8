"""One process per unit, on any number of hosts: a lock that does not outlive its holder.

Where ``flock`` works, the system releases it when its holder dies. Where it does not (ENOSYS,
ENOLCK, ENOTSUP, or a lock that two descriptors can hold at once), the lock is a lease of
`filelock.SoftFileLease`: its holder refreshes it, and it may be taken once it has not been
refreshed for a minute. The lock file names its holder (host, job, process) and is touched every ten
seconds: some file systems keep ``flock`` to one host, so a lock signed on another host is held for
as long as it is touched.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from attnscope.errors import UnitLocked, WorkspaceError
from attnscope.runs.atomic import ASIDE, make_folder
from attnscope.runs.host import describe, host, this_process, unique_prefix

LEASE_SECONDS = 60.0
"""A holder on another host that has not been heard of for so long is dead."""

_BEAT_SECONDS = 10.0
_POLL_SECONDS = 0.5
_MOST_BYTES = 1024
# A link is not followed, and a FIFO in the place of the lock does not block.
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_SIGNED: dict[str, type] = {"host": str, "job": str, "pid": int, "token": str, "deaths": int}
_NO_FLOCK = {errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP}


class Held:
    """A lock that this process holds.

    Attributes
    ----------
    deaths
        Number of holders in a row before this one that died without releasing it.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path, self._descriptor = path, descriptor
        self._own = this_process()
        before = _signature(descriptor)
        self.deaths = 0 if before is None else int(before.get("deaths", 0)) + 1
        # A file that has a second name somewhere is not written to.
        self._signs = os.fstat(descriptor).st_nlink == 1
        self._write(self._own | {"deaths": self.deaths})

    def demand(self) -> None:
        """Raise `UnitLocked` if another process took the lock, as while this one was stopped."""
        holder = _signature(self._descriptor)
        if self._signs and holder is not None and holder.get("token") != self._own["token"]:
            raise UnitLocked(
                f"{self._path.parent.name} was taken over by {describe(holder)} while this process "
                "did not answer; its work stands."
            )

    def survive(self) -> None:
        """Forget earlier holders' deaths: this one has made progress."""
        if self.deaths:
            self.deaths = 0
            self._write(self._own | {"deaths": 0})

    def _write(self, signature: dict[str, Any] | None) -> None:
        if not self._signs:
            return
        content = b"" if signature is None else json.dumps(signature).encode()
        try:
            os.pwrite(self._descriptor, content, 0)
            os.ftruncate(self._descriptor, len(content))
        except OSError:  # A full disk takes no signature, and then nothing can be compared with it.
            self._signs = False

    def _release(self) -> None:
        with suppress(UnitLocked):
            self.demand()
            self._write(None)


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[Held]:
    """Hold the lock file ``path``; without ``wait``, a lock held elsewhere raises `UnitLocked`."""
    descriptor = _opened(path)
    try:
        with _exclusive(path, descriptor, wait):
            held = Held(path, descriptor)
            with _beating(descriptor):
                try:
                    yield held
                finally:
                    held._release()
    finally:
        os.close(descriptor)


def holder_of(path: Path) -> dict[str, Any] | None:
    """Return who holds a lock file, and ``idle``: seconds since it was heard of; None if no one."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = _signature(descriptor)
        idle = time.time() - os.fstat(descriptor).st_mtime
    finally:
        os.close(descriptor)
    return None if found is None else found | {"idle": max(0.0, idle)}


@contextmanager
def _exclusive(path: Path, descriptor: int, wait: bool) -> Iterator[None]:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError as error:
        raise _locked_by(path, descriptor) from error
    except OSError as error:
        if error.errno not in _NO_FLOCK:
            raise
        useful = False
    else:
        useful = _excludes(path, descriptor)
    if not useful:
        with _lease(path, descriptor, wait):
            yield
        return
    while _held_on_another_host(path, descriptor):
        if not wait:
            raise _locked_by(path, descriptor)
        time.sleep(_POLL_SECONDS)
    yield


_useful: dict[int, bool] = {}  # by device


def _excludes(path: Path, descriptor: int) -> bool:
    """Whether a second descriptor is refused the lock that the first one holds."""
    device = os.fstat(descriptor).st_dev
    if device not in _useful:
        second = os.open(path, _FLAGS)
        try:
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _useful[device] = False
        except OSError:
            _useful[device] = True
        finally:
            os.close(second)
    return _useful[device]


_leases: dict[Path, Any] = {}  # kept between attempts: a lease expires by what one object has seen


@contextmanager
def _lease(path: Path, descriptor: int, wait: bool) -> Iterator[None]:
    from filelock import SoftFileLease, Timeout

    name = path.with_name(f"{path.name}.lease")
    lease = _leases.get(name)
    if lease is None:
        lease = SoftFileLease(name, lease_duration=LEASE_SECONDS, thread_local=False)
    if lease.is_locked:  # An object is entered again by its own process.
        raise _locked_by(path, descriptor)
    _leases[name] = lease
    try:
        lease.acquire(timeout=-1 if wait else 0)
    except Timeout as error:
        raise _locked_by(path, descriptor) from error
    try:
        yield
    finally:
        lease.release()
        _leases.pop(name, None)


_seen: dict[Path, tuple[int, float]] = {}  # time of the last touch, and when it was noticed here


def _held_on_another_host(path: Path, descriptor: int) -> bool:
    """Whether a holder on another host, which ``flock`` may not reach, is still heard of."""
    holder = _signature(descriptor)
    if holder is None or holder.get("host") in (None, host()):
        return False
    touched = os.fstat(descriptor).st_mtime_ns
    if _clock_of(path.parent) - touched / 1e9 > 2 * LEASE_SECONDS:
        return False
    known = _seen.get(path)
    if known is None or known[0] != touched:
        _seen[path] = known = touched, time.monotonic()
    if time.monotonic() - known[1] < LEASE_SECONDS:
        return True
    del _seen[path]
    return False


def _clock_of(folder: Path) -> float:
    """Return the time by the file system's clock, which dates the touches of all hosts."""
    probe = folder / f"{ASIDE}{unique_prefix()}-clock"
    descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        return os.fstat(descriptor).st_mtime
    finally:
        os.close(descriptor)
        probe.unlink(missing_ok=True)


def _locked_by(path: Path, descriptor: int) -> UnitLocked:
    return UnitLocked(
        f"{path.parent.name} is being trained by {describe(_signature(descriptor))}; "
        "wait for it, or stop it and run the same command again."
    )


def _signature(descriptor: int) -> dict[str, Any] | None:
    try:
        found = json.loads(os.pread(descriptor, _MOST_BYTES, 0))
    except (OSError, ValueError, RecursionError):
        return None
    # Releases before locks named their host wrote the process's number alone, and left it there.
    if not isinstance(found, dict):
        return None
    sound = all(isinstance(found.get(key, kind()), kind) for key, kind in _SIGNED.items())
    return found if sound else None


def _opened(path: Path) -> int:
    try:
        make_folder(path.parent)
        descriptor = os.open(path, _FLAGS, 0o666)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise WorkspaceError(
            f"Cannot write in {path.parent}: {reason}; choose another folder with --out."
        ) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise WorkspaceError(f"{path} is not a regular file; remove it.")
    return descriptor


class _Heart:
    """One thread per process that touches the locks which this process holds."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.mutex, self.descriptors = threading.Lock(), set[int]()
        threading.Thread(target=self._beat, name="attnscope-locks", daemon=True).start()

    def _beat(self) -> None:
        while True:
            time.sleep(_BEAT_SECONDS)
            with self.mutex:
                for descriptor in self.descriptors:
                    with suppress(OSError):
                        os.utime(descriptor)


_heart: _Heart | None = None


@contextmanager
def _beating(descriptor: int) -> Iterator[None]:
    global _heart
    if _heart is None or _heart.process != os.getpid():  # A fork has no threads.
        _heart = _Heart()
    heart = _heart
    with heart.mutex:
        heart.descriptors.add(descriptor)
    try:
        yield
    finally:
        with heart.mutex:
            heart.descriptors.discard(descriptor)
