"""One process per unit: an advisory lock that the system releases when its holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attnscope.errors import UnitLocked, WorkspaceError


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[None]:
    """Hold the lock file ``path``; without ``wait``, a lock held elsewhere raises `UnitLocked`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = open(path, "a+", encoding="utf8")  # noqa: SIM115
    except OSError as error:
        raise WorkspaceError(
            f"Cannot write in {path.parent}: {error.strerror}; choose another folder with --out."
        ) from error
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            stream.seek(0)
            holder = stream.read().strip() or "unknown"
            raise UnitLocked(
                f"{path.parent.name} is being trained by process {holder}; "
                "wait for it, or stop it and run the same command again."
            ) from error
        stream.seek(0)
        stream.truncate()
        stream.write(str(os.getpid()))
        stream.flush()
        yield
