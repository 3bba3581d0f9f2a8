"""The state of a workspace: units done, running (where, at which step), waiting, failed (why).

Read from the folder alone, on any host that sees it, whoever trains.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from attnscope.errors import AttnscopeError, WorkspaceError
from attnscope.runs.host import describe
from attnscope.runs.lock import LEASE_SECONDS, holder_of
from attnscope.runs.queue import WorkerFacts, live_workers, sweeps
from attnscope.runs.unit import UnitFolder
from attnscope.runs.workspace import unreadable_folders


@dataclass(frozen=True)
class RunningUnit:
    """A unit in training; ``where`` names process, host and job."""

    unit: str
    where: str
    step: int
    steps: int


@dataclass(frozen=True)
class Status:
    """The units of a workspace.

    Attributes
    ----------
    done, waiting
        Numbers of units; those that wait are in the queue and not in training.
    running
        Units in training.
    failed
        Reasons by unit.
    workers
        Number of workers that were heard of in the last minute.
    seconds_left
        At the speed of the workers that train now; None if nothing is queued or nobody trains.
    notes
        Sentences of workers, as about a corpus that a host lacks, about processes that hold a group
        and are not heard of, and about files and folders that cannot be read.
    """

    done: int
    waiting: int
    running: tuple[RunningUnit, ...]
    failed: Mapping[str, str]
    workers: int
    seconds_left: float | None
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the status as JSON."""
        return asdict(self)


def status(workspace: str | Path) -> Status:
    """Return the state of a workspace.

    Parameters
    ----------
    workspace
        As given to ``--out``.
    """
    folder = Path(workspace)
    if not folder.is_dir():
        raise WorkspaceError(f"There is no folder {folder}; name a workspace, as given to --out.")
    workers = list(live_workers(folder))
    hidden = unreadable_folders(folder)
    done, running = _units(folder, workers, hidden)
    queued: dict[str, None] = {}
    failed: dict[str, str] = {}
    notes = [f"{each} cannot be read (Permission denied): it is left out." for each in hidden]
    notes += [sentence for worker in workers for sentence in worker.notes]
    steps_left = 0
    for sweep in sweeps(folder):
        try:
            sizes = sweep.facts.groups
            for reasons in sweep.failures().values():
                failed |= reasons
            notes += sweep.silent_holders()
            keys = sweep.waiting()
        except (AttnscopeError, OSError) as error:
            if sweep.path.exists():  # It may end meanwhile.
                notes.append(f"{error}")
            continue
        for key in keys:
            try:
                group = sweep.group(key)
            except (AttnscopeError, OSError) as error:
                if key in sweep.waiting():
                    notes.append(f"{error}")
                continue
            queued |= {} if group is None else {unit.name: None for unit in group.units}
            steps_left += sizes.get(key, (0, 0))[1]
    made = sum(worker.done for worker in workers if worker.group)
    rate = sum(worker.rate for worker in workers if worker.group)
    waiting = queued.keys() - done - {unit.unit for unit in running} - failed.keys()
    return Status(
        done=len(done),
        waiting=len(waiting),
        running=tuple(running),
        failed=failed,
        workers=len(workers),
        seconds_left=max(0.0, steps_left - made) / rate if rate and queued else None,
        notes=tuple(dict.fromkeys(notes)),
    )


def _units(
    folder: Path, workers: list[WorkerFacts], hidden: list[Path]
) -> tuple[set[str], list[RunningUnit]]:
    """Return the finished units, and those whose lock is held by somebody heard of lately."""
    done: set[str] = set()
    running = []
    by_process = {(worker.host, worker.pid): worker for worker in workers if worker.units}
    for path in sorted((folder / "units").glob("*")):
        if path in hidden:
            continue
        if (path / "done.json").is_file():
            done.add(path.name)
            continue
        holder = holder_of(path / "lock")
        if holder is None or holder["idle"] > LEASE_SECONDS:
            continue
        worker = by_process.get((holder.get("host", ""), holder.get("pid", 0)))
        step = None if worker is None else worker.done // worker.units
        running.append(_running(UnitFolder(path, folder), describe(holder), step))
    return done, running


def _running(folder: UnitFolder, where: str, step: int | None) -> RunningUnit:
    """Return a unit in training; without a worker's word, its step is the last evaluated one."""
    logged, steps = 0, 0
    with suppress(WorkspaceError, LookupError, TypeError, ValueError):
        steps = int(folder.config["training"]["steps"])
        logged = folder.log[-1]["step"]
    return RunningUnit(folder.name, where, logged if step is None else step, steps)
