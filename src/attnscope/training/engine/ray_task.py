"""A group of units as a task of Ray, on a node that shares no folder with the driver.

The task gets configurations as JSON and files as bytes, trains in a folder of its own, and yields
messages: that it has started and where, steps, checkpoints, and in the end the files of every unit.
Files travel in parts of a few megabytes, so a unit may be larger than the object store.
"""

from __future__ import annotations

import json
import queue
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from attnscope.errors import AttnscopeError
from attnscope.runs.atomic import ASIDE
from attnscope.runs.environment import environment
from attnscope.runs.host import host, this_process
from attnscope.training.accelerator import accelerator
from attnscope.training.engine.workers import Outcome, attempt, give_back_memory
from attnscope.training.loop import CHECKPOINT_SECONDS
from attnscope.training.registry import read_unit

PART_BYTES = 4 * 2**20
BEAT_SECONDS = 2.0
_SHARE = 0.02  # of the time may be spent on mailing checkpoints

Message = dict[str, Any]
Part = tuple[str, str, int, bytes]


def train_task(order: str, files: Sequence[Any]) -> Iterator[Message]:
    """Train a group; yield messages.

    Parameters
    ----------
    order
        JSON: ``units`` (name and configuration of each), ``imports``, ``mail_seconds``.
    files
        References to messages of the kind ``parts``: checkpoints of the units, and the units that
        they need.
    """
    wanted = json.loads(order)
    scratch = Path(tempfile.mkdtemp(prefix="attnscope-ray-"))
    try:
        _receive(files, scratch / "units")
        yield from _Task(wanted, scratch).messages()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        give_back_memory()


def _receive(files: Sequence[Any], units: Path) -> None:
    for reference in files:
        import ray

        write_parts(units, ray.get(reference))


class _Ended(BaseException):
    """Nobody waits for the units any more; not an error of a unit."""


class _Task:
    def __init__(self, wanted: Message, scratch: Path) -> None:
        self.wanted, self.scratch = wanted, scratch
        self.names = [unit["name"] for unit in wanted["units"]]
        self.device = wanted["units"][0]["config"]["device"]
        self.outbox: queue.Queue[Any] = queue.Queue()
        self.steps = 0
        self.mail_after = float(wanted.get("mail_seconds", CHECKPOINT_SECONDS))
        self.next_mail = time.monotonic() + self.mail_after
        self.mailed: dict[Path, tuple[int, int]] = {}
        self.snapshot_free = threading.Event()
        self.snapshot_free.set()
        self.ended = False

    def messages(self) -> Iterator[Message]:
        yield {
            "kind": "started",
            "process": this_process(),
            "environment": environment(self.device, accelerator(self.device)),
        }
        thread = threading.Thread(target=self._train, daemon=True)
        thread.start()
        try:
            while True:
                try:
                    item = self.outbox.get(timeout=BEAT_SECONDS)
                except queue.Empty:
                    yield self._beat()
                    continue
                if isinstance(item, list):  # outcomes
                    break
                if isinstance(item, str):
                    yield {"kind": "note", "sentence": item}
                else:
                    yield from self._mail(item)
        finally:  # also where nobody asks for the next message
            self.ended = True
            thread.join()
        yield from bundles(self._finished_parts(item))
        steps = self._beat()["steps"]
        yield {"kind": "ended", "outcomes": item, "host": host(), "steps": steps}

    def _finished_parts(self, outcomes: Sequence[Outcome]) -> Iterator[Part]:
        for name, (status, _) in zip(self.names, outcomes, strict=True):
            if status == "finished":
                yield from parts(self.scratch / "units" / name, finished_files)

    def _beat(self) -> Message:
        steps, self.steps = self.steps, 0
        return {"kind": "beat", "steps": steps}

    def _train(self) -> None:
        try:
            for name in self.wanted["imports"]:
                import_module(name)
            units = [read_unit(unit["config"], unit["name"]) for unit in self.wanted["units"]]
            outcomes = attempt(
                units,
                self.scratch,
                self._report,
                self.outbox.put,
                checkpoint_seconds=self.mail_after,
            )
        except _Ended:
            return
        except AttnscopeError as error:
            outcomes = [("failed", str(error))] * len(self.names)
        except Exception as error:
            outcomes = [("failed", f"{type(error).__name__}: {error}")] * len(self.names)
        self.outbox.put(outcomes)

    def _report(self, steps: int) -> None:
        if self.ended:
            raise _Ended
        self.steps += steps
        if time.monotonic() >= self.next_mail and self.snapshot_free.is_set():
            self._snapshot()

    def _snapshot(self) -> None:
        """Read what changed since the last mail, between two steps: files belong together."""
        started = time.monotonic()
        folders = [self.scratch / "units" / name for name in self.names]
        listed = {folder.name: unfinished_files(folder) for folder in folders}
        if not all(map(_has_progress, listed.values())):
            self.next_mail = started + min(1.0, self.mail_after)
            return
        changed = []
        for folder in folders:
            for name in listed[folder.name]:
                facts = (folder / name).stat()
                if self.mailed.get(folder / name) != (facts.st_size, facts.st_mtime_ns):
                    self.mailed[folder / name] = facts.st_size, facts.st_mtime_ns
                    changed.append((folder.name, name, (folder / name).read_bytes()))
        self.snapshot_free.clear()
        self.outbox.put((started, listed, changed))

    def _mail(self, item: tuple[float, dict[str, list[str]], Any]) -> Iterator[Message]:
        """Yield a checkpoint, and put the next one off for as long as it is to cost 2 % at most."""
        started, listed, changed = item
        yield from bundles(part for file in changed for part in _parts(*file))
        yield {"kind": "mailed", "files": listed} | {"steps": self._beat()["steps"]}
        now = time.monotonic()
        self.next_mail = now + max(self.mail_after, (now - started) / _SHARE)
        self.snapshot_free.set()


def _has_progress(files: Sequence[str]) -> bool:
    """Whether a unit has a checkpoint of a step other than the first."""
    return bool(files) and files[-1].startswith("checkpoint-") and files[-1] > _FIRST


_FIRST = "checkpoint-00000000.safetensors"


def unfinished_files(folder: Path) -> list[str]:
    """Return the files that an unfinished unit is resumed from, its checkpoints last."""
    found = [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("lock", "done.json")
    ]
    kept = [name for name in found if not Path(name).name.startswith(ASIDE)]
    return sorted(kept, key=lambda name: (name.startswith("checkpoint-"), name))


def finished_files(folder: Path) -> list[str]:
    """Return the files of a finished unit, ``done.json`` last."""
    kept = [name for name in unfinished_files(folder) if not name.startswith("checkpoint-")]
    return [*kept, "done.json"]


def parts(folder: Path, listing: Callable[[Path], list[str]]) -> Iterator[Part]:
    """Yield the files of a unit in parts: unit, file, place in it, bytes."""
    for name in listing(folder):
        yield from _parts(folder.name, name, (folder / name).read_bytes())


def _parts(unit: str, name: str, content: bytes) -> Iterator[Part]:
    for start in range(0, max(len(content), 1), PART_BYTES):
        yield unit, name, start, content[start : start + PART_BYTES]


def bundles(parts: Iterable[Part]) -> Iterator[Message]:
    """Yield messages of several parts each: small files cost little more than one of them."""
    bundle: list[Part] = []
    for part in parts:
        if bundle and sum(len(each[3]) for each in (*bundle, part)) > PART_BYTES:
            yield {"kind": "parts", "parts": bundle}
            bundle = []
        bundle.append(part)
    if bundle:
        yield {"kind": "parts", "parts": bundle}


def write_parts(units: Path, message: Message) -> None:
    """Write parts of files below a folder of units."""
    for unit, file, start, data in message["parts"]:
        path = units / unit / file
        if ".." in path.relative_to(units).parts or path.is_symlink():
            raise AttnscopeError(f"{path} is not a file of a unit.")
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb" if start == 0 else "ab") as stream:
            stream.write(data)
