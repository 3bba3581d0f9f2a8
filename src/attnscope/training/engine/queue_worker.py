"""A worker: takes groups of units from a workspace's queue, trains them, sleeps.

It needs the shared folder and nothing else. A group is held whole, by one worker; that of a worker
that died is free again, and the next one resumes it. What is missing on this host alone (a corpus)
leaves the group to others; what fails anywhere is recorded and not tried again.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from attnscope.data.text import demand_digest
from attnscope.errors import AttnscopeError, UnitLocked
from attnscope.runs.environment import environment
from attnscope.runs.host import host, this_process
from attnscope.runs.lock import Held, locked
from attnscope.runs.queue import QueuedGroup, Sweep, WorkerFile, live_workers, sweeps
from attnscope.training.accelerator import accelerator
from attnscope.training.engine.workers import Outcome, attempt, give_back_memory
from attnscope.training.loop import CHECKPOINT_SECONDS, Note
from attnscope.training.registry import read_unit
from attnscope.training.unit import Unit

# Processes in a row that may die over one group without a checkpoint; then it fails.
MOST_DEATHS = 5
_FIRST_SLEEP, _LONGEST_SLEEP = 0.1, 5.0
_PUBLISH_SECONDS = 5.0
Trains = frozenset[tuple[str, str]]  # tokens of workers, each with its group


class QueueWorker:
    """Takes groups one by one.

    Parameters
    ----------
    workspace
        The shared folder.
    device
        Groups of units on this device are taken.
    note
        Called with a sentence when something is to be said.
    """

    def __init__(
        self,
        workspace: Path,
        device: Literal["cpu", "cuda"],
        note: Note = lambda sentence: None,
    ) -> None:
        self.workspace, self.device = workspace, device
        self._environment = environment(device, accelerator(device))
        self._process = this_process()
        self._order = random.Random(self._process["token"])  # workers do not queue at one group
        self._refused: set[str] = set()
        self._said: set[tuple[str, str]] = set()
        # What others of this host trained when a group did not fit into the GPU next to it.
        self._crowd: Trains = frozenset()
        self._note = note
        self._notes: list[str] = []
        self._public = WorkerFile(workspace, self._process)

    def note(self, sentence: str) -> None:
        """Say something here, and to the command that waits for the sweep."""
        self._note(sentence)
        self._notes = [*self._notes[-9:], sentence]

    def run(
        self,
        until_idle: float | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> int:
        """Train groups until nothing came for so many seconds; return how many were finished."""
        count, sleep, idle_since = 0, _FIRST_SLEEP, time.monotonic()
        try:
            while not stop():
                if self.take():
                    count, sleep, idle_since = count + 1, _FIRST_SLEEP, time.monotonic()
                    continue
                idle = time.monotonic() - idle_since
                if until_idle is not None and idle >= until_idle:
                    break
                self._public.write(state="idle", notes=self._notes)
                time.sleep(sleep)
                sleep = min(2 * sleep, _LONGEST_SLEEP)
        finally:
            self._public.remove()
        return count

    def take(self) -> bool:
        """Train one group, if one is free; return whether it left the queue.

        After one that did not fit into the GPU's memory, another worker's group must end first.
        """
        if self._crowd and self._crowd == self._others():
            return False
        self._crowd = frozenset()
        for sweep in sweeps(self.workspace):
            try:
                if self._takes_part(sweep) and self._take_from(sweep):
                    return True
                if self._crowd:
                    return False
            except (AttnscopeError, OSError) as error:
                # The command that wrote the sweep may have ended it meanwhile.
                if sweep.path.exists():
                    self._refuse(sweep.path.name, f"{host()} leaves the sweep to others: {error}")
        return False

    def _takes_part(self, sweep: Sweep) -> bool:
        if sweep.facts.device != self.device:
            return False
        reason = sweep.join(self._environment)
        if reason is not None:
            self._refuse(
                sweep.path.name,
                f"The sweep {sweep.path.name} runs under other versions than {host()} has "
                f"({reason}); {host()} takes no part in it (--mixed lets it).",
            )
        return reason is None

    def _refuse(self, what: str, sentence: str) -> None:
        """Say once why something is left to other workers."""
        self._refused.add(what)
        if self._say_once(what, sentence):
            self._public.write(state="refuses", notes=self._notes)

    def _say_once(self, what: str, sentence: str) -> bool:
        """Say something of a sweep or a group, unless it was said before; return whether it was."""
        new = (what, sentence) not in self._said
        if new:
            self._said.add((what, sentence))
            self.note(sentence)
        return new

    def _take_from(self, sweep: Sweep) -> bool:
        keys = sorted(sweep.waiting() - self._refused)
        self._order.shuffle(keys)
        for key in keys:
            try:
                with locked(sweep.lock_of(key), wait=False) as held:
                    group = self._group(sweep, key)
                    if group is not None and self._train(sweep, key, group, held):
                        return True
                if self._crowd:
                    break
            except UnitLocked:
                continue
        return False

    def _group(self, sweep: Sweep, key: str) -> QueuedGroup | None:
        """Return a waiting group, or say why it cannot be read."""
        try:
            return sweep.group(key)
        except AttnscopeError as error:
            self._refuse(
                f"{sweep.path.name}/{key}",
                f"{host()} leaves a group to others: {error} The command that queued it writes it "
                "anew when it is run again.",
            )
            return None

    def _train(self, sweep: Sweep, key: str, group: QueuedGroup, held: Held) -> bool:
        names = [unit.name for unit in group.units]
        if held.deaths >= MOST_DEATHS:
            reason = (
                f"{held.deaths} processes in a row died while they trained it, perhaps for lack of "
                "memory; run the same command again to try it once more."
            )
            held.survive()
            sweep.fail(key, dict.fromkeys(names, reason))
            return True
        units = self._units_here(key, group)
        if units is None:
            return False
        before = self._others()
        with self._published(sweep, key, group, held) as report:
            outcomes = self._attempt(units, report)
        give_back_memory()
        others = self._others()
        if outcomes[0][0] == "crowded" and before | others:
            self._say_once(
                f"{sweep.path.name}/{key}",
                f"The group of {names[0]} did not fit into the GPU's memory next to others; it is "
                "tried again when one of them is finished.",
            )
            self._crowd = others
            return False
        return self._settle(sweep, key, names, outcomes)

    def _others(self) -> Trains:
        """Return which groups other workers of this host train."""
        own = self._process["token"]
        return frozenset(
            (one.token, one.group)
            for one in live_workers(self.workspace)
            if one.host == host() and one.state == "trains" and one.token != own
        )

    def _units_here(self, key: str, group: QueuedGroup) -> list[Unit] | None:
        """Return a group's units, or say what this host lacks to train them."""
        try:
            units = [read_unit(unit.config, unit.name) for unit in group.units]
            for unit, queued in zip(units, group.units, strict=True):
                demand_digest(unit.source, queued.name)
                if unit.folder(self.workspace).name != queued.name:
                    raise AttnscopeError(
                        f"{queued.name} was queued by another release of attnscope."
                    )
                len(unit.source.input_words)  # Opens the corpus, if it is one.
            return units
        except (AttnscopeError, OSError) as error:
            self._refuse(key, f"{host()} cannot train {group.units[0].name}: {error}")
            return None

    def _attempt(self, units: list[Unit], report: Callable[[int], None]) -> list[Outcome]:
        try:
            return attempt(units, self.workspace, report, self.note)
        except Exception as error:
            return [("failed", f"{type(error).__name__}: {error}")] * len(units)

    def _settle(
        self, sweep: Sweep, key: str, names: Sequence[str], outcomes: Sequence[Outcome]
    ) -> bool:
        """Take a group out of the queue if it is finished or failed; return whether it was."""
        statuses = {status for status, _ in outcomes}
        if "locked" in statuses:  # Another command trains units of it.
            return False
        reasons = {
            name: f"{host()}: {message}"
            for name, (status, message) in zip(names, outcomes, strict=True)
            if status != "finished"
        }
        if reasons:
            sweep.fail(key, reasons)
        else:
            sweep.finish(key)
        return True

    @contextmanager
    def _published(
        self, sweep: Sweep, key: str, group: QueuedGroup, held: Held
    ) -> Iterator[Callable[[int], None]]:
        """Publish the steps that are reported, and that this worker lives."""
        started, ended, steps, made_here = time.monotonic(), threading.Event(), [0], [0]

        def publish() -> None:
            seconds = max(time.monotonic() - started, 1e-3)
            if seconds > 2 * CHECKPOINT_SECONDS:
                held.survive()
            self._public.write(
                state="trains",
                sweep=sweep.path.name,
                group=key,
                unit=group.units[0].name,
                units=len(group.units),
                done=steps[0],
                steps=group.steps,
                rate=round(made_here[0] / seconds, 3),
                notes=self._notes,
            )

        def beat() -> None:
            while not ended.wait(_PUBLISH_SECONDS):
                publish()

        def report(made: int) -> None:
            steps[0] += made
            # More than one step of each unit at once were made by an earlier holder.
            made_here[0] += made if made <= len(group.units) else 0

        publish()
        thread = threading.Thread(target=beat, name="attnscope-worker", daemon=True)
        thread.start()
        try:
            yield report
        finally:
            ended.set()
            thread.join()
