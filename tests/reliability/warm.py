"""One warm interpreter that forks a process per run, so that a hundred runs import torch once.

A run tells each of its *moments* before it happens (a file about to be opened for writing, a
half-written file, an fsync, a rename, a removal, an update done), and kills itself with SIGKILL at
the one asked for.
"""

from __future__ import annotations

import builtins
import gc
import io
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

import torch

# What every run would import otherwise; the first optimiser of a process imports the first.
import torch._dynamo

import attnscope.figures.charts
import attnscope.recipes.snell.fig3  # noqa: F401
from attnscope.running.run import run
from attnscope.runs import lock
from attnscope.training.loop import train_unit
from attnscope.training.registry import read_unit

_FOR_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Moments:
    """Tells the moments of this process through a pipe, and ends it at one of them."""

    def __init__(self, workspace: Path, pipe: int, kill_at: int | None) -> None:
        self.workspace, self.pipe, self.kill_at = str(workspace), pipe, kill_at
        self.count = 0

    def come(self, name: str) -> None:
        if self.count == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        os.write(self.pipe, f"{name}\n".encode())
        self.count += 1

    def watch(self) -> None:
        """Have every call that changes a file of the workspace come by here first."""
        sys.addaudithook(self._audit)
        # Audit hooks see neither of these two.
        open_ = builtins.open

        def watched_fsync(descriptor: int) -> None:
            self.come("fsync")  # SIGKILL loses nothing that was written: no disk is waited for.

        def watched_open(path: Any, mode: str = "r", *rest: Any, **named: Any) -> Any:
            stream = open_(path, mode, *rest, **named)
            return _Halves(stream, self) if set(mode) & set("wx") and self._ours(path) else stream

        os.fsync = watched_fsync  # type: ignore[assignment]
        builtins.open = io.open = watched_open  # type: ignore[assignment]

    def _audit(self, event: str, values: tuple[Any, ...]) -> None:
        if event == "open" and self._ours(values[0]) and values[2] & _FOR_WRITING:
            self.come("open")
        elif event in ("os.rename", "os.remove", "os.truncate") and self._ours(values[0]):
            self.come(event)

    def _ours(self, path: Any) -> bool:
        return not isinstance(path, int) and os.fspath(path).startswith(self.workspace)


class _Halves:
    """A file whose every write has a moment in the middle, with one half on the disk."""

    def __init__(self, stream: Any, moments: Moments) -> None:
        self.stream, self.moments = stream, moments

    def __enter__(self) -> _Halves:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, content: Any) -> None:
        self.stream.write(content[: len(content) // 2])
        self.stream.flush()
        self.moments.come("half-written")
        self.stream.write(content[len(content) // 2 :])


def _do(request: dict[str, Any], pipe: int) -> NoReturn:
    """Be the process of one run."""
    workspace = Path(request["workspace"])
    moments = Moments(workspace, pipe, request["kill_at"])
    moments.watch()
    if "recipe" in request:
        run(request["recipe"], request["settings"], device="cpu", jobs=1, out=workspace)
    else:
        unit = read_unit(request["unit"])
        train_unit(unit, workspace, lambda _: moments.come("update"), checkpoint_seconds=0)
    os._exit(0)


def _warm_up(unit: dict[str, Any]) -> None:
    """Train a unit here: what the first one of a process takes longest for, each fork has done."""
    with tempfile.TemporaryDirectory() as folder:
        train_unit(read_unit(unit), Path(folder))
    lock._useful.clear()  # Each run tries anew whether locks exclude.
    gc.collect()
    gc.freeze()  # A collection would copy all that a fork shares.


def serve() -> None:
    """Answer each request, a line of JSON, with the run's moments and its exit status."""
    torch.set_num_threads(1)
    _warm_up(json.loads(sys.argv[1]))
    for line in sys.stdin:
        reading, writing = os.pipe()
        process = os.fork()
        if not process:
            _do(json.loads(line), writing)
        os.close(writing)
        with open(reading) as stream:
            moments = stream.read().splitlines()
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        print(json.dumps({"moments": moments, "status": status}), flush=True)


if __name__ == "__main__":
    serve()
