"""Training by workers of a shared folder: write the queue, wait, and show the work of all of them.

Nothing is trained here unless asked for. A worker that dies costs the steps since its last
checkpoint: its group waits again. The command may be stopped and started again; meanwhile the
workers go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from attnscope.errors import AttnscopeError
from attnscope.runs.queue import QueuedGroup, QueuedUnit, Sweep, live_workers, one_environment
from attnscope.training.engine.crew import Crew
from attnscope.training.engine.trainer import Trainer
from attnscope.training.progress import Progress
from attnscope.training.unit import Unit

_POLL_SECONDS = 0.2
_LOOK_SECONDS = 10.0  # between two looks at the locks of groups that were begun
# A shared file system may show a worker's last files that much later than its removal of the group.
_VISIBLE_SECONDS = 60.0


class QueuedWorkers(Trainer):
    """Trains by `attnscope work` processes, on any host that sees the workspace.

    Parameters
    ----------
    here
        Number of processes that train on this host too.
    mixed
        Whether workers of different versions or GPUs may take part.
    imports, import_one
        Modules of the user's for the processes on this host; see `Crew`.
    """

    def __init__(
        self,
        workspace: Path,
        jobs: int = 1,
        *,
        here: int = 0,
        mixed: bool = False,
        imports: Sequence[str] = (),
        import_one: Callable[[str], Any] = import_module,
    ) -> None:
        super().__init__(workspace, jobs)
        self.mixed, self.imports, self.import_one = mixed, list(imports), import_one
        self._here = here
        self._crew: Crew | None = None

    def close(self) -> None:
        """End the processes on this host; other workers go on."""
        if self._crew is not None:
            self._crew.close()

    def keep_workers(self, sweep: Sweep, device: str, progress: Progress) -> None:
        """Start workers, and replace those that died; called again and again."""
        if self._here and self._crew is None:
            self._crew = Crew(
                self.workspace,
                device,  # type: ignore[arg-type]
                self._here,
                imports=self.imports,
                import_one=self.import_one,
                note=progress.note,
            )
        if self._crew is not None:
            self._crew.check()

    def train_groups(self, groups: list[list[Unit]], progress: Progress, title: str) -> list[str]:
        """Queue what is not finished, and wait for it."""
        left = finished_apart(groups, self.workspace, progress)
        environment = None if self.mixed else shared_environment(groups, self.workspace)
        if not left:
            return []
        waiting = {id(group) for group in left}
        every = [(_queued(group, self.workspace), id(group) in waiting) for group in groups]
        queued = {group.key: group for group, waits in every if waits}
        device = left[0][0].device
        sweep = Sweep.create(
            self.workspace,
            [group for group, _ in every],
            title,
            device,
            finished=[group.key for group, waits in every if not waits],
            mixed=self.mixed,
            environment=environment,
        )
        if not self._here and not list(live_workers(self.workspace)):
            progress.note(self._advice(device))
        failures = _Waiting(self, sweep, queued, progress).wait(device)
        sweep.remove()
        return failures

    def _advice(self, device: str) -> str:
        return (
            f"No worker is there yet; start some, on any host that sees the folder: "
            f"attnscope work {self.workspace} --device {device}"
        )


def finished_apart(
    groups: list[list[Unit]], workspace: Path, progress: Progress
) -> list[list[Unit]]:
    """Count the groups that are finished already; return the others."""
    left = []
    for group in groups:
        complaints: list[str] = []
        done = True
        for unit in group:
            sound, said = unit.folder(workspace).finished()
            done, complaints = done and sound, complaints + said
        for sentence in complaints:
            progress.note(sentence)
        if not done:
            left.append(group)
            continue
        progress.advance(sum(unit.training.steps for unit in group))
        progress.evaluated(sum(len(unit.training.schedule) for unit in group))
        for unit in group:
            progress.finished(unit.folder(workspace).name)
    return left


def shared_environment(groups: list[list[Unit]], workspace: Path) -> dict[str, Any] | None:
    """Return the environment of the units that are finished; raise if they have several."""
    known = {}
    for group in groups:
        for unit in group:
            folder = unit.folder(workspace)
            if (folder.path / "done.json").exists() and folder.environment is not None:
                known[folder.name] = folder.environment
    found = one_environment(known)
    return None if found is None else dict(found)


def _queued(group: Sequence[Unit], workspace: Path) -> QueuedGroup:
    units = tuple(
        QueuedUnit(name=unit.folder(workspace).name, config=unit.config()) for unit in group
    )
    return QueuedGroup(
        units=units,
        steps=sum(unit.training.steps for unit in group),
        evaluations=sum(len(unit.training.schedule) for unit in group),
    )


class _Waiting:
    """The state of one sweep, as it is seen from the command that waits for it."""

    def __init__(
        self,
        trainer: QueuedWorkers,
        sweep: Sweep,
        queued: dict[str, QueuedGroup],
        progress: Progress,
    ) -> None:
        self.trainer, self.sweep, self.progress = trainer, sweep, progress
        self.left = dict(queued)
        self.failures: list[str] = []
        self.steps_of_done = self.shown = 0
        self.missing: dict[str, float] = {}
        self.looked = time.monotonic()
        self.told: set[str] = set()

    def wait(self, device: str) -> list[str]:
        """Return once every group is finished or failed."""
        while self.left:
            self.trainer.keep_workers(self.sweep, device, self.progress)
            if not self._poll():
                time.sleep(_POLL_SECONDS)
        return self.failures

    def _poll(self) -> bool:
        """Take note of what ended; return whether anything did."""
        before = len(self.left)
        waiting = self.sweep.waiting()
        for key, reasons in self.sweep.failures().items():
            if key in self.left:
                self._ended(key, reasons)
        for key in [key for key in self.left if key not in waiting]:
            self._left_the_queue(key)
        self._show_workers()
        return len(self.left) < before

    def _left_the_queue(self, key: str) -> None:
        group = self.left[key]
        folders = [self.trainer.workspace / "units" / unit.name for unit in group.units]
        if all((folder / "done.json").exists() for folder in folders):
            self._ended(key, {})
            return
        since = self.missing.setdefault(key, time.monotonic())
        if time.monotonic() - since > _VISIBLE_SECONDS:
            del self.missing[key]
            self.sweep.put(group)

    def _ended(self, key: str, reasons: dict[str, str]) -> None:
        group = self.left.pop(key)
        self.steps_of_done += group.steps
        self.failures += reasons.values()
        self.progress.evaluated(group.evaluations)
        for unit in group.units:
            if unit.name not in reasons:
                self.progress.finished(unit.name)

    def _show_workers(self) -> None:
        steps = self.steps_of_done
        for worker in live_workers(self.trainer.workspace):
            if worker.sweep == self.sweep.path.name and worker.group in self.left:
                steps += worker.done
            self._tell(worker.notes)
        if time.monotonic() - self.looked >= _LOOK_SECONDS:
            self._tell(self.sweep.silent_holders())
            self.looked = time.monotonic()
        if steps > self.shown:
            self.progress.advance(steps - self.shown)
            self.shown = steps

    def _tell(self, sentences: Iterable[str]) -> None:
        """Note each sentence once."""
        for sentence in sentences:
            if sentence not in self.told:
                self.told.add(sentence)
                self.progress.note(sentence)


def require(extra: str, module: str) -> Any:
    """Import an optional package, or raise one sentence that names the extra that brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise AttnscopeError(
            f"--on {extra} needs {module}, which is not installed: pip install 'attnscope[{extra}]'"
        ) from error
