"""A power loss at any moment leaves a workspace that resumes to the same bytes.

The system calls of a training run are recorded. What a disk holds after a loss follows from them as
on a journalling file system: the content of a file as it was last synced, and the names of a folder
as they were last synced, with any of the later renames, removals and new names applied or lost, in
an order of its own.
"""

from __future__ import annotations

import builtins
import os
import random
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from attnscope.runs.atomic import ASIDE
from attnscope.training.loop import train_unit
from attnscope.training.registry import read_unit


@dataclass
class Disk:
    """What a disk surely holds, and the changes of names that may or may not have reached it.

    ``synced`` are the contents of files (by a number of their own), ``names`` the file behind each
    name, ``pending`` the changes of names that no sync of their folder has followed yet.
    """

    synced: dict[int, bytes] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    pending: list[tuple[str, int | None]] = field(default_factory=list)

    def sync_folder(self, folder: str) -> None:
        here = [change for change in self.pending if os.path.dirname(change[0]) == folder]
        self.pending = [change for change in self.pending if change not in here]
        for name, number in here:
            self._apply(name, number)

    def _apply(self, name: str, number: int | None) -> None:
        if number is None:
            self.names.pop(name, None)
        else:
            self.names[name] = number

    def after_loss(self, rng: random.Random | None) -> Disk:
        """Return the disk after a loss: all pending changes lost, or some of them in some order."""
        left = Disk(dict(self.synced), dict(self.names), set(self.folders))
        if rng is not None:
            for name, number in rng.sample(self.pending, rng.randint(0, len(self.pending))):
                left._apply(name, number)
        return left

    def write(self, workspace: Path) -> None:
        for folder in self.folders:
            (workspace / folder).mkdir(parents=True, exist_ok=True)
        for name, number in self.names.items():
            (workspace / name).parent.mkdir(parents=True, exist_ok=True)
            # A file that was never synced may be there and empty.
            (workspace / name).write_bytes(self.synced.get(number, b""))


class Recorder:
    """Follows the calls that change files of a workspace, and keeps the disk after each."""

    def __init__(self, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = str(workspace)
        self.disk, self.moments = Disk(), []
        self.live: dict[str, int] = {}
        self.count = 0
        self._opened: dict[int, str] = {}
        open_, fsync, replace, unlink, os_open = (
            builtins.open, os.fsync, os.replace, os.unlink, os.open
        )  # fmt: skip

        def opened(path, mode="r", *rest, **named):
            stream = open_(path, mode, *rest, **named)
            if "x" in mode and self._ours(path):
                self._new(self._name(path))
                self._opened[stream.fileno()] = self._name(path)
            return stream

        def os_opened(path, flags, *rest, **named):
            descriptor = os_open(path, flags, *rest, **named)
            if isinstance(path, (str, Path)) and self._ours(path):
                self._opened[descriptor] = self._name(path)
            return descriptor

        def synced(descriptor):
            fsync(descriptor)
            name = self._opened.get(descriptor)
            if name is None:
                return
            path = Path(self.root, name)
            if path.is_dir():
                self.disk.sync_folder(name)
            elif name in self.live:
                self.disk.synced[self.live[name]] = path.read_bytes()
            self._moment()

        def replaced(source, target, *rest, **named):
            replace(source, target, *rest, **named)
            if self._ours(target):
                number = self.live.pop(self._name(source))
                self.live[self._name(target)] = number
                self.disk.pending += [(self._name(source), None), (self._name(target), number)]
                self._moment()

        def unlinked(path, *rest, **named):
            unlink(path, *rest, **named)
            if self._ours(path) and self._name(path) in self.live:
                del self.live[self._name(path)]
                self.disk.pending.append((self._name(path), None))
                self._moment()

        monkeypatch.setattr(builtins, "open", opened)
        monkeypatch.setattr(os, "open", os_opened)
        monkeypatch.setattr(os, "fsync", synced)
        monkeypatch.setattr(os, "replace", replaced)
        monkeypatch.setattr(os, "unlink", unlinked)

    def _ours(self, path: object) -> bool:
        return isinstance(path, (str, Path)) and str(path).startswith(self.root)

    def _name(self, path: object) -> str:
        return os.path.relpath(str(path), self.root).removeprefix(".").lstrip("/")

    def _new(self, name: str) -> None:
        self.count += 1
        self.live[name] = self.count
        self.disk.pending.append((name, self.count))
        self._moment()

    def _moment(self) -> None:
        disk = self.disk
        copied = Disk(dict(disk.synced), dict(disk.names), set(disk.folders), list(disk.pending))
        self.moments.append(copied)


@pytest.fixture(scope="module")
def recorded(tiny, tmp_path_factory):
    """The disk at every moment of a run, and the files that the run leaves."""
    workspace = tmp_path_factory.mktemp("recorded")
    with pytest.MonkeyPatch.context() as patch:
        recorder = Recorder(workspace, patch)
        train_unit(read_unit(tiny(steps=3, every=2)), workspace, checkpoint_seconds=0)
    return recorder


def test_the_recorded_disk_is_the_real_one(recorded):
    last = recorded.moments[-1].after_loss(None)
    for name, number in recorded.live.items():
        path = Path(recorded.root, name)
        assert last.synced[number] == path.read_bytes(), name
    # Removals may be pending; every file that is left has its name on the disk.
    assert {name: last.names[name] for name in recorded.live} == recorded.live


def test_synced_names_never_lead_to_files_that_were_not_synced(recorded):
    for disk in recorded.moments:
        for name, number in disk.names.items():
            assert ASIDE in name or number in disk.synced


def states(recorder: Recorder) -> list[Disk]:
    """Return every different disk that a loss may leave, at every moment of the run."""
    rng = random.Random(0)
    found: dict[frozenset[tuple[str, bytes]], Disk] = {}
    for moment in recorder.moments:
        for draw in (None, rng, rng):
            disk = moment.after_loss(draw)
            key = frozenset((name, disk.synced.get(n, b"")) for name, n in disk.names.items())
            found.setdefault(key, disk)
    return list(found.values())


def test_loss_at_any_moment_resumes_to_the_same_bytes(recorded, server, contents, tiny, tmp_path):
    expected = contents(Path(recorded.root))
    everything = states(recorded)
    assert len(everything) > 40
    # `ATTACK=1` tries all of them.
    tried = everything if "ATTACK" in os.environ else random.Random(1).sample(everything, 12)
    for number, disk in enumerate(tried):
        workspace = tmp_path / str(number)
        workspace.mkdir()
        disk.write(workspace)
        assert server.run(workspace, unit=tiny(steps=3, every=2)).status == 0, number
        assert contents(workspace) == expected, number
