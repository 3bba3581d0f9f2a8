"""Many units at once: one process and one thread each, as many side by side as asked for.

Units that differ in nothing but their seed, or on a GPU in a number such as λ, share a process, as
one program, where their model can.
Units that another command is training are left to it and waited for at the end. Units that do not
fit into a GPU's memory beside the others are tried again in half as many processes when these are
done. A unit that fails does not stop the others.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from attnscope.errors import AttnscopeError, UnitLocked
from attnscope.training.engine.groups import groups, is_program, train_together
from attnscope.training.loop import train_unit
from attnscope.training.progress import Progress, Silent
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Unit

# Steps between two reports of a process: often enough for a bar, seldom enough to cost nothing.
_REPORT_EVERY = 10
# What every worker would import otherwise; the first optimiser of a process imports the second.
_PRELOADED = [__name__, "torch._dynamo"]


class Workers:
    """Processes that train units, kept for as long as a recipe runs.

    They are forked from a server that has imported all they need and started nothing, so that the
    imports are waited for once.

    Parameters
    ----------
    workspace
        Where units lie.
    jobs
        Processes side by side; 1 trains in this process.
    """

    def __init__(self, workspace: Path, jobs: int = 1) -> None:
        self.workspace = workspace
        self.jobs = jobs
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(_PRELOADED)
        self._processes: list[Any] = []
        self._todo: Any = None
        self._told: Any = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_processes()

    def _end_processes(self) -> None:
        for process in self._processes:
            process.terminate()
            process.join()
        self._processes = []

    def train(
        self, units: Sequence[Unit], progress: Progress | None = None, title: str = "training"
    ) -> list[TrainedUnit]:
        """Train units, or go on with them, or reuse them; return them in the order given."""
        progress = progress or Silent()
        waiting = list({unit.folder(self.workspace).path: unit for unit in units}.values())
        progress.begin(title, len(waiting), sum(unit.training.steps for unit in waiting))
        try:
            failures, locked = self._train(waiting, progress)
            for unit in locked:
                name = unit.folder(self.workspace).name
                progress.note(f"{name} is being trained by another process; waiting for it.")
                told = _attempt(unit, self.workspace, progress.advance, progress.note, wait=True)
                if told[0] == "finished":
                    progress.finished(name)
                else:
                    failures.append(told[1])
        finally:
            progress.end()
        if failures:
            raise AttnscopeError(f"{len(failures)} of {len(waiting)} units failed. {failures[0]}")
        return [TrainedUnit(unit, unit.folder(self.workspace)) for unit in units]

    def _train(self, units: list[Unit], progress: Progress) -> tuple[list[str], list[Unit]]:
        left, jobs = groups(units, self.jobs), self.jobs
        told: list[Told] = []
        while left:
            jobs = min(jobs, len(left))
            train = self._side_by_side if jobs > 1 else self._in_turn
            now = list(self._noted(train(left, jobs, progress), progress))
            # These groups stay what they are: what a unit ends with may depend on them.
            left = [group for group, outcomes in now if _crowded(outcomes) and jobs > 1]
            told += [(group, outcomes) for group, outcomes in now if group not in left]
            if left:
                jobs //= 2
                self._end_processes()
                progress.note(
                    f"{sum(map(len, left))} units did not fit into the GPU's memory beside the "
                    f"others and are tried again, {jobs} at a time; a smaller --jobs avoids it."
                )
        ended = [pair for group, outcomes in told for pair in zip(group, outcomes, strict=True)]
        locked = [unit for unit, (status, _) in ended if status == "locked"]
        failures = [message for _, (status, message) in ended if status in ("crowded", "failed")]
        return failures, locked

    @staticmethod
    def _noted(told: Iterator[Told], progress: Progress) -> Iterator[Told]:
        for group, outcomes in told:
            for status, message in outcomes:
                if status == "finished":
                    progress.finished(message)
            yield group, outcomes

    def _in_turn(self, work: list[list[Unit]], _: int, progress: Progress) -> Iterator[Told]:
        for group in work:
            yield group, _attempt_group(group, self.workspace, progress.advance, progress.note)

    def _side_by_side(
        self, work: list[list[Unit]], jobs: int, progress: Progress
    ) -> Iterator[Told]:
        self._start([unit for group in work for unit in group], jobs)
        for index, group in enumerate(work):
            self._todo.put((index, group))
        unfinished = len(work)
        while unfinished:
            status, content, index = self._listen()
            if status == "steps":
                progress.advance(content)
            elif status == "note":
                progress.note(content)
            else:
                unfinished -= 1
                yield work[index], content

    def _start(self, units: list[Unit], jobs: int) -> None:
        if not self._processes:
            self._todo, self._told = self._context.Queue(), self._context.Queue()
        arguments = (self._todo, self._told, self.workspace)
        # A process that is still starting is not known yet, and so could not be ended.
        with _interrupt_put_off(), _script_left_alone(units):
            for _ in range(jobs - len(self._processes)):
                process = self._context.Process(target=_work, args=arguments, daemon=True)
                process.start()
                self._processes.append(process)

    def _listen(self) -> tuple[str, Any, int]:
        while True:
            try:
                return self._told.get(timeout=1.0)
            except queue.Empty:
                codes = [process.exitcode for process in self._processes if process.exitcode]
                if codes:
                    raise AttnscopeError(
                        f"A training process died (exit code {codes[0]}), perhaps for lack of "
                        "memory; run the same command again to go on, with a smaller --jobs."
                    ) from None


Outcome = tuple[str, str]  # finished, locked, crowded or failed; and a name or a sentence
Told = tuple[list[Unit], list[Outcome]]


def _crowded(outcomes: list[Outcome]) -> bool:
    # A program does not fit as a whole, or not at all.
    return outcomes[0][0] == "crowded"


def train_units(
    units: Sequence[Unit], workspace: Path, jobs: int = 1, progress: Progress | None = None
) -> list[TrainedUnit]:
    """Train units in processes that end with the call; see `Workers`."""
    with Workers(workspace, jobs) as workers:
        return workers.train(units, progress)


def _attempt(
    unit: Unit,
    workspace: Path,
    report: Callable[[int], None],
    note: Callable[[str], None],
    wait: bool = False,
) -> Outcome:
    try:
        return "finished", train_unit(unit, workspace, report, note, wait=wait).name
    except (AttnscopeError, torch.OutOfMemoryError) as error:
        return _unfinished(error)


def _attempt_group(
    units: list[Unit],
    workspace: Path,
    report: Callable[[int], None],
    note: Callable[[str], None],
) -> list[Outcome]:
    if not is_program(units):
        return [_attempt(units[0], workspace, report, note)]
    try:
        errors = train_together(units, workspace, report, note)
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


@contextmanager
def _interrupt_put_off() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block, and keep it from the server started inside."""
    if threading.current_thread() is not threading.main_thread():
        yield  # No other thread may set handlers, or is interrupted.
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
def _script_left_alone(units: list[Unit]) -> Iterator[None]:
    """Keep processes started in the block from running the user's script, as Python has them do.

    A script that calls attnscope and does not ask ``if __name__ == "__main__"`` would start over in
    each of them. Only those that train what the script itself defines need it.
    """
    script = sys.modules["__main__"]
    if b"__main__" not in pickle.dumps(units):
        sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _work(todo: Any, told: Any, workspace: Path) -> None:
    # Ctrl-C reaches every process of a terminal; the parent alone decides, and ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        index, group = todo.get()
        report = _Report(told)
        try:
            outcomes = _attempt_group(group, workspace, report, report.note)
        except Exception as error:
            outcomes = [("failed", f"{type(error).__name__}: {error}")] * len(group)
        report.send()
        _give_back_memory()
        told.put(("ended", outcomes, index))


def _give_back_memory() -> None:
    """Leave a GPU's memory to other processes: one keeps what it no longer uses otherwise."""
    if torch.cuda.is_initialized():
        gc.collect()  # Graphs, and what they hold, are in cycles.
        torch.cuda.empty_cache()


def _end_with_parent() -> None:
    """Leave no orphan: it would hold its unit against the command that goes on with it."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


class _Report:
    """Counts steps and sends them now and then."""

    def __init__(self, told: Any) -> None:
        self.told, self.steps = told, 0

    def __call__(self, steps: int) -> None:
        self.steps += steps
        if self.steps >= _REPORT_EVERY:
            self.send()

    def send(self) -> None:
        self.told.put(("steps", self.steps, -1))
        self.steps = 0

    def note(self, sentence: str) -> None:
        self.told.put(("note", sentence, -1))
