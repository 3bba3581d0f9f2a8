"""A disk that is full at any write: one sentence, and the unit resumes when there is room."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from itertools import count

import pytest

from attnscope.errors import WorkspaceError
from attnscope.runs import atomic
from attnscope.training.loop import train_unit
from attnscope.training.registry import read_unit


class FullDisk:
    """A disk that takes so many changes, then half of the next one and nothing more."""

    def __init__(self, room: int, patch: pytest.MonkeyPatch) -> None:
        self.room = room
        self.fsync, self.mkdir = os.fsync, os.mkdir
        patch.setattr(atomic, "open", self._opened, raising=False)
        patch.setattr(os, "fsync", self._synced)
        patch.setattr(os, "mkdir", self._made)

    def take(self) -> None:
        self.room -= 1
        if self.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _opened(self, path, mode):
        stream, disk = open(path, mode), self  # noqa: SIM115

        class Halves:
            def __enter__(self):
                return self

            def __exit__(self, *_):
                stream.close()

            def __getattr__(self, name):
                return getattr(stream, name)

            def write(self, content):
                stream.write(content[: len(content) // 2])
                disk.take()
                stream.write(content[len(content) // 2 :])

        return Halves()

    def _synced(self, descriptor):
        self.take()
        self.fsync(descriptor)

    def _made(self, *rest, **named):
        self.take()
        self.mkdir(*rest, **named)


@pytest.fixture(scope="module")
def unit(tiny):
    return read_unit(tiny(steps=3, every=2))


@pytest.fixture(scope="module")
def expected(unit, contents, tmp_path_factory):
    """The files of a run that had room."""
    workspace = tmp_path_factory.mktemp("room")
    train_unit(unit, workspace, checkpoint_seconds=0)
    return contents(workspace)


def test_unit_stops_with_a_sentence_at_every_write_and_resumes_when_there_is_room(
    unit, expected, contents, tmp_path
):
    for room in count():
        workspace = tmp_path / f"{room}"
        with pytest.MonkeyPatch.context() as patch:
            disk = FullDisk(room, patch)
            try:
                train_unit(unit, workspace, checkpoint_seconds=0)
            except WorkspaceError as error:
                said = str(error)
        if disk.room >= 0:
            break
        assert "No space left on device" in said
        assert "\n" not in said
        if workspace.exists():
            contents(workspace)  # Every file is complete.
        train_unit(unit, workspace, checkpoint_seconds=0)
        assert contents(workspace) == expected, room
        shutil.rmtree(workspace)
    assert room > 3 * len(expected)


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of 32 kB, and a function that makes it larger."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(options: str) -> bool:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
        return (
            shutil.which("mount") is not None
            and not subprocess.run(command, capture_output=True, check=False).returncode
        )

    if not mount("size=32k"):
        pytest.skip("mounting a file system is not permitted")
    yield place, lambda: mount("remount,size=8m")
    subprocess.run(["umount", str(place)], check=True)


def test_unit_on_a_full_file_system_resumes_when_it_has_grown(unit, expected, contents, small_disk):
    place, grow = small_disk
    with pytest.raises(WorkspaceError, match="No space left on device"):
        train_unit(unit, place, checkpoint_seconds=0)
    assert grow()
    train_unit(unit, place, checkpoint_seconds=0)
    assert contents(place) == expected
