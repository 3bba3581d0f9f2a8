"""The queue of a workspace: groups of units that wait for a worker, as JSON and nothing else.

::

    DIR/queue/<sweep>/sweep.json            title, device, whether versions may differ, all groups
    DIR/queue/<sweep>/environment.json      versions of the units that are finished or trained first
    DIR/queue/<sweep>/waiting/<group>.json  the configurations of a group that is not finished
    DIR/queue/<sweep>/failed/<group>.json   why units of a group failed
    DIR/queue/<sweep>/locks/<group>         who trains it
    DIR/queue/workers/<worker>.json         what each worker does

A sweep is named after all its groups, finished ones too, so the same command finds the same one
again. A group leaves ``waiting`` when all its units are finished, or moves to ``failed``.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from attnscope.errors import UsageError, WorkspaceError
from attnscope.runs.atomic import ASIDE, make_folder, read_json, write_json
from attnscope.runs.environment import differences
from attnscope.runs.files import refuse_links
from attnscope.runs.host import describe, host
from attnscope.runs.lock import LEASE_SECONDS, holder_of, locked
from attnscope.runs.spec import Settings, fingerprint, usage_errors


class QueuedUnit(Settings):
    """A unit by the name of its folder and its configuration."""

    name: str
    config: dict[str, Any]


class QueuedGroup(Settings):
    """Units that are trained together."""

    units: tuple[QueuedUnit, ...] = Field(min_length=1)
    steps: int
    evaluations: int = 0

    @property
    def key(self) -> str:
        """The name of the group's files."""
        return fingerprint([unit.name for unit in self.units])


class SweepFacts(Settings):
    """What ``sweep.json`` holds; a group has a number of units and of steps."""

    schema_version: Literal[1] = 1
    title: str
    device: Literal["cpu", "cuda"]
    mixed: bool
    groups: dict[str, tuple[int, int]]


class WorkerFacts(Settings):
    """What a worker's file holds; those after the token only while it trains."""

    host: str
    job: str
    pid: int = Field(ge=1)
    token: str
    state: str = ""
    sweep: str = ""
    group: str = ""
    unit: str = ""
    units: int = Field(0, ge=0)
    done: int = Field(0, ge=0)
    steps: int = Field(0, ge=0)
    rate: float = Field(0.0, ge=0)
    notes: tuple[str, ...] = ()


class Sweep:
    """One sweep of a queue."""

    def __init__(self, path: Path, workspace: Path) -> None:
        self.path, self._workspace = path, workspace

    @classmethod
    def create(
        cls,
        workspace: Path,
        groups: Sequence[QueuedGroup],
        title: str,
        device: Literal["cpu", "cuda"],
        *,
        finished: Collection[str] = (),
        mixed: bool = False,
        environment: Mapping[str, Any] | None = None,
    ) -> Sweep:
        """Write a sweep of groups, or find it again; what failed in it waits again.

        Parameters
        ----------
        finished
            Keys of groups that are finished already, and do not wait.
        mixed
            Whether workers of different versions or GPUs may take part.
        environment
            That of units of the sweep which are finished already, if any are.
        """
        sizes = {group.key: (len(group.units), group.steps) for group in groups}
        sweep = cls(workspace / "queue" / fingerprint(list(sizes)), workspace)
        failed = sweep._place("failed", "")
        for path in failed.glob("*.json"):
            path.unlink(missing_ok=True)
        facts = SweepFacts(title=title, device=device, mixed=mixed, groups=sizes)
        write_json(sweep._place("sweep.json"), facts.model_dump(mode="json"))
        if environment is not None:
            write_json(sweep._place("environment.json"), dict(environment))
        elif not list(live_workers(workspace, sweep.path.name)):
            sweep._place("environment.json").unlink(missing_ok=True)
        for group in groups:
            if group.key in finished:
                sweep.finish(group.key)
            else:
                sweep.put(group)
        return sweep

    def put(self, group: QueuedGroup) -> None:
        """Let a group wait for a worker."""
        path = self._place("waiting", f"{group.key}.json")
        write_json(path, group.model_dump(mode="json"))

    def _place(self, *parts: str) -> Path:
        path = self.path.joinpath(*parts)
        refuse_links(path, self._workspace)
        return path

    @property
    def facts(self) -> SweepFacts:
        """Title, device and groups."""
        path = self._place("sweep.json")
        with usage_errors(str(path)):
            return SweepFacts.model_validate(read_json(path, plain=True))

    def waiting(self) -> set[str]:
        """Return the groups that are neither finished nor failed."""
        return set(_names(self._place("waiting")))

    def failures(self) -> dict[str, dict[str, str]]:
        """Return reasons by unit, by group."""
        found = {}
        for key in _names(self._place("failed")):
            with suppress(WorkspaceError):  # Moved back meanwhile.
                reasons = read_json(self._place("failed", f"{key}.json"), plain=True)
                if isinstance(reasons, dict):
                    found[key] = {str(unit): str(reason) for unit, reason in reasons.items()}
        return found

    def group(self, key: str) -> QueuedGroup | None:
        """Return a waiting group; None if it waits no longer."""
        path = self._place("waiting", f"{key}.json")
        if not path.exists():
            return None
        with usage_errors(str(path)):
            return QueuedGroup.model_validate(read_json(path, plain=True))

    def lock_of(self, key: str) -> Path:
        """Return the lock file of a group."""
        return self._place("locks", key)

    def silent_holders(self) -> list[str]:
        """Return a sentence per waiting group whose holder was not heard of for a lease.

        It may be stopped, and where ``flock`` works nobody else can take the group before it ends.
        One of this host that has ended holds nothing.
        """
        begun = {path.name for path in self._place("locks").glob("*")}
        found = []
        for key in sorted(begun & self.waiting()):
            holder = holder_of(self.lock_of(key))
            if holder is None or holder["idle"] <= LEASE_SECONDS:
                continue
            if not _is_dead(holder.get("host", ""), holder.get("pid", 0)):
                found.append(
                    f"The group {key} was taken by {describe(holder)}, which was not heard of for "
                    "more than a minute; if that process is stopped, end it, and another worker "
                    "goes on."
                )
        return found

    def finish(self, key: str) -> None:
        """Take a group whose units are all finished out of the queue."""
        self._place("waiting", f"{key}.json").unlink(missing_ok=True)

    def fail(self, key: str, reasons: Mapping[str, str]) -> None:
        """Record why units of a group failed, and let no worker try it again."""
        if self.path.exists():
            write_json(self._place("failed", f"{key}.json"), dict(reasons))
            self.finish(key)

    def join(self, environment: Mapping[str, Any]) -> str | None:
        """Take part with an environment; return why not, if others take part with another one."""
        path = self._place("environment.json")
        if self.facts.mixed:
            return None
        with locked(self._place("locks", "environment"), wait=True):
            if not path.exists():
                write_json(path, dict(environment))
        known = read_json(path)
        changed = differences(known, environment) if isinstance(known, dict) else []
        return "; ".join(changed) or None

    def remove(self) -> None:
        """Remove a sweep in which nothing waits or failed."""
        if not self.waiting() and not self.failures():
            shutil.rmtree(self.path, ignore_errors=True)


def sweeps(workspace: Path) -> list[Sweep]:
    """Return the sweeps of a workspace, the oldest first."""
    root = workspace / "queue"
    refuse_links(root, workspace)
    found = [path.parent for path in root.glob("*/sweep.json")]
    dated = []
    for path in found:
        with suppress(OSError):  # A sweep that ends meanwhile.
            dated.append(((path / "sweep.json").stat().st_mtime, path))
    return [Sweep(path, workspace) for _, path in sorted(dated)]


class WorkerFile:
    """What one worker does, for those who look on."""

    def __init__(self, workspace: Path, process: Mapping[str, Any]) -> None:
        folder = workspace / "queue" / "workers"
        refuse_links(folder, workspace)
        self._path = folder / f"{process['pid']}-{process['token']}.json"
        self._process = dict(process)

    def write(self, **facts: Any) -> None:
        """Publish the worker's state; a disk that takes nothing does not stop the worker."""
        with suppress(WorkspaceError):
            write_json(self._path, self._process | facts)

    def remove(self) -> None:
        """Remove it, as the worker ends."""
        self._path.unlink(missing_ok=True)


def live_workers(
    workspace: Path, sweep: str | None = None, within: float = 60.0
) -> Iterator[WorkerFacts]:
    """Yield the workers that were heard of lately, in a sweep or anywhere."""
    folder = workspace / "queue" / "workers"
    refuse_links(folder, workspace)
    for path in sorted(folder.glob("*.json")):
        if path.name.startswith(ASIDE) or path.is_symlink():
            continue
        try:
            heard = time.time() - path.stat().st_mtime <= within
            if not heard:
                continue
            worker = WorkerFacts.model_validate(read_json(path, plain=True))
        except (OSError, WorkspaceError, ValidationError):
            continue
        if not _is_dead(worker.host, worker.pid) and sweep in (None, worker.sweep):
            yield worker


def _is_dead(name: str, pid: int) -> bool:
    """Whether a process ran on the host of this name, which is this one, and runs no longer."""
    if name != host() or pid < 1:
        return False
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # Another user's process, or a system without /proc.
        return False
    return state in ("Z", "X")  # Ended, and waiting for its parent to notice.


def one_environment(environments: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the environment that units have in common, or raise a `UsageError` naming two units.

    Parameters
    ----------
    environments
        By unit.
    """
    first: tuple[str, Mapping[str, Any]] | None = None
    for unit, environment in environments.items():
        first = first or (unit, environment)
        changed = differences(first[1], environment)
        if changed:
            raise UsageError(
                f"{first[0]} and {unit} were trained under different versions "
                f"({'; '.join(changed)}); train one of them again, or accept it with --mixed."
            )
    return None if first is None else first[1]


def _names(folder: Path) -> list[str]:
    return [path.stem for path in folder.glob("*.json") if not path.name.startswith(ASIDE)]


def make_queue(workspace: Path) -> None:
    """Make the queue's folder, so that workers may be started first."""
    refuse_links(workspace / "queue", workspace)
    make_folder(workspace / "queue" / "workers")
