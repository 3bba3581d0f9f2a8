"""Files that are absent or complete, whatever interrupts their writer."""

from __future__ import annotations

import errno
import json
import os

import pytest

from attnscope.errors import DamagedFile, WorkspaceError
from attnscope.runs import atomic
from attnscope.runs.atomic import read_json, read_rows, write_bytes, write_json, write_rows
from cases import for_each

OLD, NEW = b"old content\n", b"new content, longer than the old one\n"
MOMENTS = ("open", "write", "flush", "fsync", "replace", "after replace")


class FaultyStream:
    """A file that fails in the middle of a write, or when it is flushed."""

    def __init__(self, stream, moment, fault):
        self.stream, self.moment, self.fault = stream, moment, fault

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()

    def write(self, content):
        self.stream.write(content[: len(content) // 2])
        if self.moment == "write":
            raise self.fault
        self.stream.write(content[len(content) // 2 :])

    def flush(self):
        if self.moment == "flush":
            raise self.fault
        self.stream.flush()

    def fileno(self):
        return self.stream.fileno()


@pytest.fixture
def fail_at(monkeypatch):
    """Make the next writes fail at a moment."""

    def inject(moment, fault):
        def failing_open(path, mode):
            if moment == "open":
                raise fault
            return FaultyStream(open(path, mode), moment, fault)

        def failing_fsync(descriptor):
            if moment == "fsync":
                raise fault

        replace = os.replace

        def failing_replace(source, target):
            if moment == "replace":
                raise fault
            replace(source, target)
            if moment == "after replace":
                raise fault

        monkeypatch.setattr(atomic, "open", failing_open, raising=False)
        monkeypatch.setattr(os, "fsync", failing_fsync)
        monkeypatch.setattr(os, "replace", failing_replace)

    return inject


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("fault", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left")])
def test_interrupted_write_leaves_the_old_file_or_the_new_one(tmp_path, fail_at, moment, fault):
    path = tmp_path / "log.jsonl"
    write_bytes(path, OLD)
    fail_at(moment, fault)
    with pytest.raises((KeyboardInterrupt, WorkspaceError)):
        write_bytes(path, NEW)
    assert path.read_bytes() == (NEW if moment == "after replace" else OLD)


@pytest.mark.parametrize("moment", MOMENTS[:-1])
def test_interrupted_first_write_leaves_nothing_at_all(tmp_path, fail_at, moment):
    fail_at(moment, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        write_bytes(tmp_path / "log.jsonl", NEW)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("moment", MOMENTS[:-1])
def test_failed_write_names_the_file_the_reason_and_a_way_out(tmp_path, fail_at, moment):
    path = tmp_path / "log.jsonl"
    fail_at(moment, OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(WorkspaceError, match=f"{path}: No space left on device; .* --out"):
        write_bytes(path, NEW)


def test_written_bytes_reach_the_disk_before_the_name_does(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: (calls.append("fsync"), fsync(descriptor)))
    monkeypatch.setattr(os, "replace", lambda a, b: (calls.append("replace"), replace(a, b)))
    write_bytes(tmp_path / "file", NEW)
    assert calls == ["fsync", "replace", "fsync"]  # the last one of the folder


def test_two_writers_of_one_file_never_mix(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    fsync = os.fsync

    def other_writer_comes_between(descriptor):
        fsync(descriptor)
        monkeypatch.setattr(os, "fsync", fsync)
        monkeypatch.setattr(os, "getpid", lambda: 1)
        write_bytes(path, OLD)
        assert path.read_bytes() == OLD
        monkeypatch.undo()

    monkeypatch.setattr(os, "fsync", other_writer_comes_between)
    write_bytes(path, NEW)
    assert path.read_bytes() == NEW
    assert list(tmp_path.iterdir()) == [path]


def test_write_makes_the_folders_it_needs(tmp_path):
    write_bytes(tmp_path / "a" / "b" / "file", NEW)
    assert (tmp_path / "a" / "b" / "file").read_bytes() == NEW


def test_write_below_a_file_is_a_clear_error(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(WorkspaceError, match="taken/file"):
        write_bytes(tmp_path / "taken" / "file", NEW)


def other_kinds(folder):
    """Return everything that is not a regular file, made in a temporary folder."""
    import socket

    kinds = {name: folder / name for name in ("folder", "fifo", "link", "dangling", "socket")}
    target = folder / "target"
    target.write_bytes(OLD)
    kinds["folder"].mkdir()
    os.mkfifo(kinds["fifo"])
    kinds["link"].symlink_to(target)
    kinds["dangling"].symlink_to(folder / "nowhere")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(".", os.O_RDONLY)
        os.chdir(folder)  # A socket's path is short.
        listener.bind("socket")
        os.fchdir(here)
        os.close(here)
    return kinds


@for_each("kind", ["folder", "fifo", "link", "dangling", "socket"])
def test_only_regular_files_and_new_names_are_written(tmp_path, kind):
    path = other_kinds(tmp_path)[kind]
    before = os.lstat(path)
    with pytest.raises(WorkspaceError, match=f"Cannot write {path}"):
        write_bytes(path, NEW)
    after = os.lstat(path)
    assert (before.st_mode, before.st_ino) == (after.st_mode, after.st_ino)
    assert (tmp_path / "target").read_bytes() == OLD
    assert not (tmp_path / "nowhere").exists()


@for_each("kind", ["folder", "fifo", "dangling", "socket"])
def test_only_regular_files_are_read(tmp_path, kind):
    path = other_kinds(tmp_path)[kind]
    with pytest.raises(WorkspaceError, match=str(path)):
        read_json(path)


def test_file_written_aside_names_its_host_and_no_two_writers_share_it(tmp_path, monkeypatch):
    names, replace = [], os.replace

    def noting(aside, path):
        names.append(aside.name)
        replace(aside, path)

    monkeypatch.setattr(os, "replace", noting)
    # The same process number on two hosts, twice on each.
    for host in ("node-1", "node-2", "node-1", "node-2"):
        monkeypatch.setenv("ATTNSCOPE_HOST", host)
        write_bytes(tmp_path / "file", NEW)
    prefixes = [f"{atomic.ASIDE}{host}-{os.getpid()}-" for host in ("node1", "node2")] * 2
    assert all(map(str.startswith, names, prefixes))
    assert len(set(names)) == 4


def test_name_of_255_bytes_is_written(tmp_path):
    path = tmp_path / ("ü" * 127 + "x")
    write_bytes(path, NEW)
    assert path.read_bytes() == NEW


def test_json_comes_back_as_it_was_with_keys_in_order(tmp_path):
    value = {"b": [1, 2.5, None], "a": {"β": "ü", "inner": True}}
    write_json(tmp_path / "value.json", value)
    assert read_json(tmp_path / "value.json") == value
    assert list(read_json(tmp_path / "value.json")) == ["b", "a"]


def test_rows_come_back_as_they_were_one_a_line(tmp_path):
    rows = [{"step": 0, "loss": 1 / 3}, {"step": 10, "word": "line\nbreak"}]
    write_rows(tmp_path / "log.jsonl", rows)
    assert read_rows(tmp_path / "log.jsonl") == rows
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == rows


def test_nan_is_never_written_as_json(tmp_path):
    for write, value in ((write_json, {"x": float("nan")}), (write_rows, [{"x": float("inf")}])):
        with pytest.raises(ValueError, match="not JSON compliant"):
            write(tmp_path / "file", value)
        assert not (tmp_path / "file").exists()


@for_each(
    ("text", "reason"),
    [
        ("NaN", "NaN is not a number"),
        ("[-Infinity]", "-Infinity is not a number"),
        ("1e999", "too large"),
        ("9223372036854775808", "too large"),
        ("1" * 5000, "too large"),
        ("[" * 100_000, "nested too deeply"),
        ("[" * 150 + "]" * 150, "nested too deeply"),
        ("\ufeff{}", "BOM"),
        ("", "Expecting value"),
    ],
)
def test_json_that_is_not_plain_data_is_one_sentence(tmp_path, text, reason):
    (tmp_path / "file.json").write_text(text, encoding="utf8")
    with pytest.raises(WorkspaceError, match=reason) as caught:
        read_json(tmp_path / "file.json")
    assert str(tmp_path / "file.json") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_log_has_no_rows(tmp_path):
    assert read_rows(tmp_path / "log.jsonl") == []


def test_unreadable_json_is_named(tmp_path):
    path = tmp_path / "config.json"
    with pytest.raises(WorkspaceError, match=r"config\.json"):
        read_json(path)
    path.write_text('{"a": ')
    with pytest.raises(WorkspaceError, match=r"config\.json"):
        read_json(path)


def test_truncated_log_is_named(tmp_path):
    path = tmp_path / "log.jsonl"
    write_rows(path, [{"step": 0}, {"step": 10}])
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(DamagedFile, match=r"log\.jsonl"):
        read_rows(path)
