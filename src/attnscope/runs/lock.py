"""One process per unit: an advisory lock that the system releases when its holder dies."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from attnscope.errors import UnitLocked, WorkspaceError
from attnscope.runs.atomic import make_folder

# A link is not followed, and a FIFO in the place of the lock does not block.
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[None]:
    """Hold the lock file ``path``; without ``wait``, a lock held elsewhere raises `UnitLocked`."""
    descriptor = _opened(path)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            holder = os.read(descriptor, 20).decode("ascii", "replace")
            known = holder if holder.isdecimal() else "unknown"
            raise UnitLocked(
                f"{path.parent.name} is being trained by process {known}; "
                "wait for it, or stop it and run the same command again."
            ) from error
        _sign(descriptor)
        yield
    finally:
        os.close(descriptor)


def _sign(descriptor: int) -> None:
    """Write this process's number, for those who find the lock held."""
    # A file that has a second name somewhere is not written to; a full disk takes no number.
    if os.fstat(descriptor).st_nlink == 1:
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())


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
