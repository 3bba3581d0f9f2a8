"""Processes that work off a queue on this host, started again when one dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Literal

from attnscope.errors import AttnscopeError
from attnscope.training.engine.queue_worker import QueueWorker
from attnscope.training.engine.workers import (
    PRELOADED,
    end_with_parent,
    interrupt_deferred,
    main_module_hidden,
)
from attnscope.training.loop import Note

# Processes in a row that may end with an error in so many seconds; then others would too.
_MOST_BROKEN, _SOON = 5, 60.0


class Crew:
    """Supervised worker processes.

    A process that is killed, for lack of memory for example, is replaced. Where processes end with
    an error as they start, one after another, this one raises it.

    Parameters
    ----------
    jobs
        Number of processes.
    until_idle
        Seconds without work after which they end; None to go on.
    imports, import_one
        Modules of the user's, which each process imports by ``import_one(name)``.
    """

    def __init__(
        self,
        workspace: Path,
        device: Literal["cpu", "cuda"],
        jobs: int,
        *,
        until_idle: float | None = None,
        imports: Sequence[str] = (),
        import_one: Callable[[str], Any] = import_module,
        note: Note = lambda sentence: None,
    ) -> None:
        self._arguments = (workspace, device, until_idle, list(imports), import_one)
        self._note = note
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(PRELOADED)
        self._processes: list[Any] = []
        self._started: dict[Any, float] = {}
        self._broken = 0
        for _ in range(jobs):
            self._start()

    def _start(self) -> None:
        with interrupt_deferred(), main_module_hidden([]):
            process = self._context.Process(target=_work, args=self._arguments, daemon=True)
            process.start()
            self._processes.append(process)
        self._started[process] = time.monotonic()

    def check(self, timeout: float | None = 0.0) -> bool:
        """Replace processes that died; return whether any is left.

        Parameters
        ----------
        timeout
            Seconds to wait for one to end; None to wait for it.
        """
        wait([process.sentinel for process in self._processes], timeout)
        ended = [process for process in self._processes if process.exitcode is not None]
        self._processes = [p for p in self._processes if p.exitcode is None]
        for process in ended:
            soon = time.monotonic() - self._started.pop(process) < _SOON
            if process.exitcode != 0:
                self._demand_sound(process.exitcode, soon)
                self._note(f"A worker process died (exit code {process.exitcode}); another starts.")
                self._start()
        return bool(self._processes)

    def _demand_sound(self, code: int, soon: bool) -> None:
        """Raise if processes end with an error, one after another, soon after their start."""
        # A negative code is a signal: it was killed.
        self._broken = self._broken + 1 if code > 0 and soon else 0
        if self._broken >= _MOST_BROKEN:
            raise AttnscopeError(
                f"{self._broken} worker processes in a row ended with an error as they started "
                f"(exit code {code}); what they wrote is above."
            )

    def close(self) -> None:
        """End the processes; their groups are free for others."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()
        self._processes = []


def _work(
    workspace: Path,
    device: Literal["cpu", "cuda"],
    until_idle: float | None,
    imports: Sequence[str],
    import_one: Callable[[str], Any],
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent alone decides.
    signal.signal(signal.SIGTERM, _leave)
    threading.Thread(target=end_with_parent, daemon=True).start()
    for name in imports:
        import_one(name)
    QueueWorker(workspace, device, _say).run(until_idle)


def _leave(*_: object) -> None:
    """Unwind, so that locks are released and name no dead holder."""
    raise SystemExit(0)


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def run_crew(crew: Crew) -> None:
    """Keep a crew going until its processes end by themselves, or this process is asked to."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _leave)
    try:
        while crew.check(timeout=None):
            pass
    finally:
        crew.close()


def worker_jobs(device: str, jobs: int | None) -> int:
    """Return the number of processes of a worker: by default one per core, or one on a GPU."""
    if jobs is not None:
        return jobs
    return 1 if device == "cuda" else os.cpu_count() or 1
