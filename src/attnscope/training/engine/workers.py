"""A pool of worker processes, one thread each (``--jobs``), that trains groups of units.

Groups that another command is training are left to it and waited for at the end. Groups that do not
fit into a GPU's memory together are tried again in half as many processes. A unit that fails does
not stop the others.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import queue
import resource
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, TypedDict

import torch

from attnscope.errors import AttnscopeError, UnitLocked, UsageError
from attnscope.training.engine.grouping import is_vmapped
from attnscope.training.engine.groups import train_group
from attnscope.training.engine.trainer import Trainer
from attnscope.training.loop import CHECKPOINT_SECONDS, train_unit, uncounted
from attnscope.training.memory import memory_errors
from attnscope.training.progress import Progress
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Unit

# Steps between two reports of a process: often enough for a progress bar, at no cost.
_REPORT_EVERY = 10
# Imported once by the fork server instead of by every worker; optimisers import the second.
PRELOADED = [__name__, "torch._dynamo"]


class Workers(Trainer):
    """Processes that train units, kept for as long as a recipe runs.

    They are forked from a server that has imported all they need and started nothing, so that
    imports are paid for once.

    Parameters
    ----------
    workspace
        The folder of the units.
    jobs
        Number of processes; 1 trains in this process.
    """

    def __init__(self, workspace: Path, jobs: int = 1) -> None:
        super().__init__(workspace, jobs)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(PRELOADED)
        self._processes: list[Any] = []
        self._todo: Any = None
        self._results: Any = None

    def close(self) -> None:
        """End the processes."""
        self._end_processes()

    def _end_processes(self) -> None:
        for process in self._processes:
            process.terminate()
            process.join()
        self._processes = []

    def train_groups(self, groups: list[list[Unit]], progress: Progress, title: str) -> list[str]:
        """Train groups here, then those that other processes were training."""
        failures, locked = self._train(groups, progress)
        for group in locked:
            progress.note(f"{self.name_of(group)} is being trained by another process; waiting.")
            outcomes = attempt(
                group, self.workspace, progress.advance, progress.note, True, progress.evaluated
            )
            give_back_memory()
            _count_finished(outcomes, progress)
            failures += [message for status, message in outcomes if status != "finished"]
        return failures

    def _train(
        self, groups: list[list[Unit]], progress: Progress
    ) -> tuple[list[str], list[list[Unit]]]:
        """Train all groups; return the failures' sentences, and the groups held elsewhere."""
        left, jobs = groups, self.jobs
        ended: list[Ended] = []
        while left:
            jobs = min(jobs, len(left))
            train = self._in_parallel if jobs > 1 else self._in_turn
            now = []
            for group, outcomes in train(left, jobs, progress):
                _count_finished(outcomes, progress)
                now.append((group, outcomes))
            # Groups are not split: the last bits of their units may depend on them.
            left = [group for group, outcomes in now if _crowded(outcomes) and jobs > 1]
            ended += [(group, outcomes) for group, outcomes in now if group not in left]
            if left:
                jobs //= 2
                self._end_processes()
                progress.note(
                    f"{sum(map(len, left))} units did not fit into the GPU's memory with the "
                    f"others and are tried again, {jobs} processes at a time; a smaller --jobs "
                    "avoids it."
                )
        locked = [group for group, outcomes in ended if outcomes[0][0] == "locked"]
        failures = []
        for _, outcomes in ended:
            failures += [message for status, message in outcomes if status in _FAILED]
        return failures, locked

    def _in_turn(self, work: list[list[Unit]], _: int, progress: Progress) -> Iterator[Ended]:
        for group in work:
            counts = progress.advance, progress.note, False, progress.evaluated
            outcomes = attempt(group, self.workspace, *counts)
            give_back_memory()
            yield group, outcomes

    def _in_parallel(
        self, work: list[list[Unit]], jobs: int, progress: Progress
    ) -> Iterator[Ended]:
        self._start([unit for group in work for unit in group], jobs)
        for index, group in enumerate(work):
            self._todo.put((index, group))
        unfinished = len(work)
        while unfinished:
            status, content, index = self._listen()
            if status == "counted":
                steps, evaluations = content
                if steps:
                    progress.advance(steps)
                if evaluations:
                    progress.evaluated(evaluations)
            elif status == "note":
                progress.note(content)
            else:
                unfinished -= 1
                yield work[index], content

    def _start(self, units: list[Unit], jobs: int) -> None:
        _demand_open_files(jobs)
        _demand_short_sockets()
        if not self._processes:
            self._todo, self._results = self._context.Queue(), self._context.Queue()
        arguments = (self._todo, self._results, self.workspace)
        # A process that is still starting is not listed yet, and so could not be ended.
        with interrupt_deferred(), main_module_hidden(units):
            for _ in range(jobs - len(self._processes)):
                process = self._context.Process(target=_work, args=arguments, daemon=True)
                process.start()
                self._processes.append(process)

    def _listen(self) -> tuple[str, Any, int]:
        while True:
            try:
                return self._results.get(timeout=1.0)
            except queue.Empty:
                codes = [process.exitcode for process in self._processes if process.exitcode]
                if codes:
                    raise AttnscopeError(
                        f"A training process died (exit code {codes[0]}), perhaps for lack of "
                        "memory; run the same command again to resume, with a smaller --jobs."
                    ) from None


Outcome = tuple[str, str]  # finished, locked, crowded or failed; and a name or a sentence
Ended = tuple[list[Unit], list[Outcome]]
_FAILED = ("crowded", "failed")


def _crowded(outcomes: list[Outcome]) -> bool:
    # A group fits as a whole, or not at all.
    return outcomes[0][0] == "crowded"


def _count_finished(outcomes: list[Outcome], progress: Progress) -> None:
    for status, message in outcomes:
        if status == "finished":
            progress.finished(message)


def train_units(
    units: Sequence[Unit], workspace: Path, jobs: int = 1, progress: Progress | None = None
) -> list[TrainedUnit]:
    """Train units in processes that end with the call; see `Workers`."""
    with Workers(workspace, jobs) as workers:
        return workers.train(units, progress)


class _Options(TypedDict):
    evaluated: Callable[[int], None]
    wait: bool
    checkpoint_seconds: float


def attempt(
    units: list[Unit],
    workspace: Path,
    report: Callable[[int], None],
    note: Callable[[str], None],
    wait: bool = False,
    evaluated: Callable[[int], None] = uncounted,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> list[Outcome]:
    """Train or resume a group, held whole or not at all; return what became of each unit."""
    try:
        with memory_errors(units[0].name):
            errors: list[AttnscopeError | None] = [None]
            options = _Options(
                evaluated=evaluated, wait=wait, checkpoint_seconds=checkpoint_seconds
            )
            if is_vmapped(units):
                errors = train_group(units, workspace, report, note, **options)
            else:
                train_unit(units[0], workspace, report, note, **options)
    except (AttnscopeError, torch.OutOfMemoryError) as error:
        return [_unfinished(error)] * len(units)
    return [
        ("finished", unit.folder(workspace).name) if error is None else _unfinished(error)
        for unit, error in zip(units, errors, strict=True)
    ]


def _unfinished(error: Exception) -> Outcome:
    if isinstance(error, torch.OutOfMemoryError):
        return "crowded", f"The GPU's memory was full: {str(error).partition('. ')[0]}."
    return "locked" if isinstance(error, UnitLocked) else "failed", str(error)


# Pipes and semaphores of the pool, and of each of its processes.
_FILES_OF_POOL, _FILES_OF_PROCESS = 24, 4


def _demand_open_files(jobs: int) -> None:
    allowed, needed = _open_files(), _FILES_OF_POOL + _FILES_OF_PROCESS * jobs
    if allowed < needed:
        raise UsageError(
            f"{jobs} processes need {needed} open files and {allowed} are allowed; raise the limit "
            "(ulimit -n), or train in one process with --jobs 1."
        )


# A socket's whole path has 104 bytes at most; multiprocessing adds 32 to the folder's.
_LONGEST_FOLDER = 70


def _demand_short_sockets() -> None:
    folder = tempfile.gettempdir()
    if len(os.fsencode(folder)) > _LONGEST_FOLDER:
        raise UsageError(
            f"The folder for temporary files, {folder}, has too long a name for the sockets of "
            "several processes; set TMPDIR to a shorter one, or use --jobs 1."
        )


def _open_files() -> int:
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if allowed == resource.RLIM_INFINITY else allowed


@contextmanager
def interrupt_deferred() -> Iterator[None]:
    """Defer Ctrl-C to the end of the block, and hide it from the server started inside."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread may set handlers, and only it is interrupted.
        return
    came: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
        if came:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def main_module_hidden(units: list[Unit]) -> Iterator[None]:
    """Keep processes started in the block from running the user's script, as Python makes them.

    A script that calls attnscope without ``if __name__ == "__main__"`` would start over in each of
    them. Only those that train what the script itself defines need it.
    """
    script = sys.modules["__main__"]
    if b"__main__" not in pickle.dumps(units):
        sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _work(todo: Any, results: Any, workspace: Path) -> None:
    # Ctrl-C reaches every process of a terminal; the parent alone decides, and ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_parent, daemon=True).start()
    while True:
        index, group = todo.get()
        report = _Counter(results)
        try:
            outcomes = attempt(group, workspace, report, report.note, evaluated=report.evaluated)
        except Exception as error:
            outcomes = [("failed", f"{type(error).__name__}: {error}")] * len(group)
        report.send()
        give_back_memory()
        results.put(("ended", outcomes, index))


def give_back_memory() -> None:
    """Return a GPU's unused memory, which PyTorch keeps otherwise, to the next group and others."""
    if torch.cuda.is_initialized():
        gc.collect()  # Graphs, and the tensors they hold, are in reference cycles.
        torch.cuda.empty_cache()


def end_with_parent() -> None:
    """End with the parent: an orphan would hold its units against the command that resumes them."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


class _Counter:
    """Counts steps and evaluations, and sends them now and then."""

    def __init__(self, results: Any) -> None:
        self.results, self.steps, self.evaluations = results, 0, 0

    def __call__(self, steps: int) -> None:
        self.steps += steps
        if self.steps >= _REPORT_EVERY:
            self.send()

    def evaluated(self, evaluations: int) -> None:
        self.evaluations += evaluations
        self.send()

    def send(self) -> None:
        self.results.put(("counted", (self.steps, self.evaluations), -1))
        self.steps = self.evaluations = 0

    def note(self, sentence: str) -> None:
        self.results.put(("note", sentence, -1))
