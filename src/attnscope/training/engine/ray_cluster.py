"""Training by Ray, for clusters without a shared folder: one task per group.

The driver holds a group while its task runs, takes the task's messages one by one and drops their
references at once: a kept one could make Ray train a finished group again when its node dies. Ray
retries nothing. A task whose node died, or that has not been heard of for a while (its process may
be stopped), is given up and started elsewhere, from the last checkpoint that was mailed; whatever
it says later is not read. There are no actors: tasks talk to the driver.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from inspect import unwrap
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from attnscope.errors import AttnscopeError, UnitLocked, UsageError
from attnscope.runs.atomic import ASIDE, sync_folder
from attnscope.runs.environment import differences
from attnscope.runs.host import describe, unique_prefix
from attnscope.runs.unit import UnitFolder
from attnscope.training.engine.queue_worker import MOST_DEATHS
from attnscope.training.engine.queued import finished_apart, require, shared_environment
from attnscope.training.engine.ray_task import (
    Part,
    bundles,
    finished_files,
    parts,
    train_task,
    unfinished_files,
    write_parts,
)
from attnscope.training.engine.trainer import Trainer
from attnscope.training.loop import CHECKPOINT_SECONDS
from attnscope.training.progress import Progress
from attnscope.training.unit import Unit

_HANG_SECONDS = 120.0
_WAIT_SECONDS = 0.5
_IN_FLIGHT = 4  # messages that a task may be ahead of the driver


@dataclass(eq=False)
class _Flight:
    """A group, the locks of its units, and the task that trains it."""

    group: list[Unit]
    held: ExitStack
    spool: Path
    messages: Any = None
    heard: float = field(default_factory=time.monotonic)
    steps: int = 0
    where: str = "a node"


@dataclass
class _Order:
    """A group that is to be trained."""

    group: list[Unit]
    deaths: int = 0
    shown: int = 0


class RayWorkers(Trainer):
    """Trains by tasks of a Ray cluster.

    Parameters
    ----------
    address
        Of the cluster's head, or ``auto``; without one, Ray is started on this host, on loopback.
    mixed
        Whether nodes of different versions or GPUs may take part.
    imports
        Installed modules of the user's that nodes import.
    hang_seconds
        A task that was not heard of for so long is given up.
    mail_seconds
        Time between two checkpoints that are mailed, at least.
    """

    def __init__(
        self,
        workspace: Path,
        jobs: int = 1,
        *,
        address: str | None = None,
        mixed: bool = False,
        imports: Sequence[str] = (),
        hang_seconds: float = _HANG_SECONDS,
        mail_seconds: float = CHECKPOINT_SECONDS,
    ) -> None:
        super().__init__(workspace, jobs)
        self.mixed, self.imports = mixed, list(imports)
        self.hang_seconds, self.mail_seconds = hang_seconds, mail_seconds
        if address is None:  # Read by Ray as it is imported: it starts on loopback.
            os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        self._ray = require("ray", "ray")
        self._started = _connect(self._ray, address, jobs)
        self._environment: dict[str, Any] | None = None

    def close(self) -> None:
        """Leave the cluster; a head that was started here ends."""
        if self._started:
            self._ray.shutdown()

    def train_groups(self, groups: list[list[Unit]], progress: Progress, title: str) -> list[str]:
        """Train what is not finished, a task per group."""
        left = finished_apart(groups, self.workspace, progress)
        self._environment = None if self.mixed else shared_environment(groups, self.workspace)
        return _Sweep(self, left, progress).run()

    def submit(self, group: list[Unit]) -> Any:
        """Start a task; return the stream of its messages."""
        gpus = 1 if group[0].device == "cuda" else 0
        task = self._ray.remote(num_cpus=1, num_gpus=gpus, max_retries=0)(unwrap(train_task))
        task = task.options(num_returns="streaming", _generator_backpressure_num_objects=_IN_FLIGHT)
        units = [
            {"name": unit.folder(self.workspace).name, "config": unit.config()} for unit in group
        ]
        order = {"units": units, "imports": self.imports, "mail_seconds": self.mail_seconds}
        sent = [self._ray.put(message) for message in bundles(self._files_for(group))]
        return task.remote(json.dumps(order), sent)

    def _files_for(self, group: list[Unit]) -> Iterator[Part]:
        """Yield the units that a group needs, and what is left of an earlier attempt at it."""
        needed = {base.folder(self.workspace).path for unit in group for base in base_units(unit)}
        for path in sorted(needed):
            if (path / "done.json").exists():
                yield from parts(path, finished_files)
        for unit in group:
            path = unit.folder(self.workspace).path
            if list(path.glob("checkpoint-*.safetensors")):
                yield from parts(path, unfinished_files)
            elif (path / "done.json").exists():
                yield from parts(path, finished_files)

    def demand_environment(self, environment: dict[str, Any], where: str) -> None:
        """Raise if a node's versions or GPU are not those of the other nodes."""
        if self.mixed:
            return
        self._environment = self._environment or environment
        changed = differences(self._environment, environment)
        if changed:
            raise UsageError(
                f"{where} has other versions than the rest of the sweep ({'; '.join(changed)}); "
                "make them equal, or accept it with --mixed."
            )


def _connect(ray: Any, address: str | None, jobs: int) -> bool:
    """Connect to a cluster, or start Ray on loopback; return whether this call did."""
    if ray.is_initialized():
        return False
    options: dict[str, Any] = {"log_to_driver": False, "namespace": "attnscope"}
    try:
        if address is not None:
            ray.init(address=address, **options)
            return True
        ray.init(num_cpus=jobs, include_dashboard=False, _node_ip_address="127.0.0.1", **options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        if address is None:
            raise UsageError(
                f"--on ray: Ray could not be started on this host: {reason}"
            ) from error
        raise UsageError(f"--on ray: no cluster was found at {address}: {reason}") from error
    if not str(ray.util.get_node_ip_address()).startswith("127."):
        ray.shutdown()
        raise UsageError(
            "Ray would listen on more than this host, which attnscope does not start; start a "
            "cluster yourself and name it: --on ray:ADDRESS."
        )
    return True


def base_units(unit: Unit) -> list[Unit]:
    """Return the trained units that a unit's objective names."""
    found: list[Unit] = []

    def walk(value: Any) -> None:
        if isinstance(value, Unit):
            found.append(value)
        elif isinstance(value, BaseModel):
            for name in type(value).model_fields:
                walk(getattr(value, name))
        elif isinstance(value, list | tuple):
            for each in value:
                walk(each)
        elif isinstance(value, dict):
            walk(list(value.values()))

    walk(unit.training)
    return found


class _Sweep:
    """The tasks of one call of `Trainer.train`."""

    def __init__(self, trainer: RayWorkers, groups: list[list[Unit]], progress: Progress) -> None:
        self.trainer, self.progress, self.ray = trainer, progress, trainer._ray
        self.workspace = trainer.workspace
        self.waiting = deque(_Order(group) for group in groups)
        self.flights: dict[Any, tuple[_Flight, _Order]] = {}
        self.failures: list[str] = []
        self.spool = trainer.workspace / "queue" / f"{ASIDE}ray-{unique_prefix()}"

    def run(self) -> list[str]:
        """Return the failures' sentences once every group has ended."""
        try:
            while self.waiting or self.flights:
                self._start()
                if not self.flights:
                    time.sleep(_WAIT_SECONDS)
                    continue
                ready, _ = self.ray.wait(
                    list(self.flights), num_returns=1, timeout=_WAIT_SECONDS, fetch_local=False
                )
                for messages in ready:
                    self._listen(messages)
                self._give_up_hung()
            return self.failures
        finally:
            for messages in list(self.flights):
                self._drop(messages)
            shutil.rmtree(self.spool, ignore_errors=True)

    def _start(self) -> None:
        """Start tasks for waiting groups, some more than the cluster can run at once."""
        slots = self.ray.cluster_resources()
        most = 2 + int(slots.get("CPU", 1))
        for _ in range(len(self.waiting)):
            if len(self.flights) >= most:
                return
            order = self.waiting.popleft()
            held = ExitStack()
            try:
                folders = [unit.folder(self.workspace) for unit in order.group]
                for folder in sorted(folders, key=lambda folder: folder.name):
                    held.enter_context(folder.lock())
            except UnitLocked:  # Another command trains a unit of it.
                held.close()
                self.waiting.append(order)
                continue
            if not finished_apart([order.group], self.workspace, self.progress):
                held.close()
                continue
            flight = _Flight(order.group, held, self.spool / unique_prefix())
            flight.messages = self.trainer.submit(order.group)
            self.flights[flight.messages] = flight, order

    def _listen(self, messages: Any) -> None:
        flight, order = self.flights[messages]
        try:
            reference = next(messages)
            message = self.ray.get(reference, timeout=self.trainer.hang_seconds)
            del reference
        except StopIteration:
            self._again(messages, "its task ended without a word")
            return
        except self.ray.exceptions.RayTaskError as error:
            self._fail(messages, f"{type(error.cause).__name__}: {error.cause}")
            return
        except (self.ray.exceptions.RayError, TimeoutError) as error:
            self._again(messages, f"{type(error).__name__}")
            return
        flight.heard = time.monotonic()
        self._take(messages, flight, order, message)

    def _take(self, messages: Any, flight: _Flight, order: _Order, message: dict[str, Any]) -> None:
        kind = message["kind"]
        if kind == "started":
            flight.where = describe(message["process"])
            self.trainer.demand_environment(message["environment"], message["process"]["host"])
        elif kind == "parts":
            write_parts(flight.spool, message)
        elif kind == "note":
            self.progress.note(message["sentence"])
        if kind == "mailed":
            self._store_checkpoint(flight, message["files"])
            order.deaths = 0
        if kind in ("beat", "mailed", "ended"):
            flight.steps += message["steps"]
            if flight.steps > order.shown:  # Steps after a restart are shown once.
                self.progress.advance(flight.steps - order.shown)
                order.shown = flight.steps
        if kind == "ended":
            self._end(messages, flight, message)

    def _store_checkpoint(self, flight: _Flight, files: dict[str, list[str]]) -> None:
        for unit in flight.group:
            folder = unit.folder(self.workspace).path
            spooled = flight.spool / folder.name
            arrived = unfinished_files(spooled) if spooled.exists() else []
            _move(spooled, folder, arrived)
            for path in folder.glob("checkpoint-*.safetensors"):
                if path.name not in files[folder.name]:
                    path.unlink()

    def _end(self, messages: Any, flight: _Flight, message: dict[str, Any]) -> None:
        failures, deaths = [], []
        for unit, (status, sentence) in zip(flight.group, message["outcomes"], strict=True):
            folder = unit.folder(self.workspace)
            if status != "finished":
                failures.append(f"{message['host']}: {sentence}")
            elif not self._store_unit(flight, folder):
                deaths.append(folder.name)
            else:
                self.progress.evaluated(len(unit.training.schedule))
                self.progress.finished(folder.name)
        if deaths:
            self._again(messages, f"the files of {deaths[0]} arrived damaged")
            return
        self.failures += failures
        self._drop(messages, cancel=False)  # Cancelling would end its process, which others use.

    def _store_unit(self, flight: _Flight, folder: UnitFolder) -> bool:
        """Put a finished unit in its place, ``done.json`` last, if it arrived sound."""
        if folder.finished()[0]:
            return True  # A finished unit is never overwritten.
        spooled = flight.spool / folder.name
        if not UnitFolder(spooled, flight.spool).finished()[0]:
            return False
        _move(spooled, folder.path, finished_files(spooled))
        folder.drop_checkpoints()
        return True

    def _give_up_hung(self) -> None:
        now = time.monotonic()
        for messages, (flight, _) in list(self.flights.items()):
            # A task that has not started waits for a free node, which may take long.
            if flight.where != "a node" and now - flight.heard > self.trainer.hang_seconds:
                self._again(messages, f"not heard of for {self.trainer.hang_seconds:g} s")

    def _again(self, messages: Any, reason: str) -> None:
        """Start a group once more, elsewhere."""
        flight, order = self.flights[messages]
        order.deaths += 1
        if order.deaths >= MOST_DEATHS:
            self._fail(messages, f"{order.deaths} tasks in a row died; the last one: {reason}")
            return
        self.progress.note(
            f"{self.trainer.name_of(flight.group)} was lost with {flight.where} ({reason}) and is "
            "started again from its last checkpoint."
        )
        self._drop(messages)
        self.waiting.append(order)

    def _fail(self, messages: Any, reason: str) -> None:
        flight, _ = self.flights[messages]
        self.failures += [f"{flight.where}: {reason}"] * len(flight.group)
        self._drop(messages)

    def _drop(self, messages: Any, *, cancel: bool = True) -> None:
        """Forget a task: cancel it if it runs, release its units, and drop all references."""
        flight, _ = self.flights.pop(messages)
        if cancel:
            with suppress(self.ray.exceptions.RayError, ValueError, TypeError):
                self.ray.cancel(messages, force=True)
        flight.messages = None
        flight.held.close()
        shutil.rmtree(flight.spool, ignore_errors=True)


def _move(source: Path, target: Path, names: Sequence[str]) -> None:
    """Move files to where they belong, in order, each on the disk before the next."""
    for name in names:
        destination = target / name
        if destination.is_symlink() or destination.parent.is_symlink():
            raise AttnscopeError(f"{destination} is a link; it is not written to.")
        destination.parent.mkdir(parents=True, exist_ok=True)
        with open(source / name, "rb") as stream:
            os.fsync(stream.fileno())
        os.replace(source / name, destination)
        sync_folder(destination.parent)
