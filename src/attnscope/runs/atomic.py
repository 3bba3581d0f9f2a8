"""Files that are either absent or complete: each is written aside, synced and renamed.

A process killed at any moment leaves at most a file whose name starts with ``.aside-``, its host,
its number and a random token, so that two writers of one file never meet; readers never look at
those. After a power loss
the same holds: the content reaches the disk before the name does, and the name before the next
file is begun.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

from attnscope.errors import DamagedFile, UnreadableFile, WorkspaceError
from attnscope.runs.files import MOST_JSON, is_plain, kind_of_file, parse_json, read_file
from attnscope.runs.host import unique_prefix

ASIDE = ".aside-"
_LONGEST_NAME = 200  # bytes; a file system takes 255, of which the aside's prefix takes up to 50


def write_bytes(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` so that no reader ever sees a part of it.

    Only regular files are replaced: a link, a device or a FIFO of that name is refused.
    """
    try:
        make_folder(path.parent)
        _refuse_other_kinds(path)
        aside = path.with_name(f"{ASIDE}{unique_prefix()}-{_short(path.name)}")
        try:
            with open(aside, "xb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(aside, path)
            sync_folder(path.parent)
        finally:
            aside.unlink(missing_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path.
        reason = getattr(error, "strerror", None) or str(error)
        raise WorkspaceError(
            f"Cannot write {path}: {reason}; choose another folder with --out."
        ) from error


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, each of them on the disk before the next."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def _refuse_other_kinds(path: Path) -> None:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise WorkspaceError(
            f"Cannot write {path}: it is {kind_of_file(mode)}, not a regular file; choose another "
            "place with --out."
        )


def _short(name: str) -> str:
    encoded = os.fsencode(name)
    if len(encoded) <= _LONGEST_NAME:
        return name
    return hashlib.sha256(encoded).hexdigest()[:16]


def sync_folder(folder: Path) -> None:
    """Bring a folder's names to the disk, where its file system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:  # A folder that may be written in and not be read.
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def write_json(path: Path, value: Any, width: int = 0) -> None:
    """Write ``value`` as indented JSON; keys keep their order.

    Parameters
    ----------
    width
        Longest line for a list or an object two levels down or deeper; 0 for one line a value.
        Lists of numbers and strings always stand on one line then.
    """
    if width:
        text = _compact(value, width, 0)
    else:
        text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    write_bytes(path, _encoded(path, text + "\n"))


def _compact(value: Any, width: int, depth: int) -> str:
    flat = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    parts = value.values() if isinstance(value, dict) else value
    if (
        not isinstance(value, (list, dict))
        or (depth > 1 and len(flat) <= width)
        or (isinstance(value, list) and not any(isinstance(part, (list, dict)) for part in parts))
    ):
        return flat
    lines = [_compact(part, width, depth + 1) for part in parts]
    if isinstance(value, dict):
        keys = [json.dumps(key, ensure_ascii=False) for key in value]
        lines = [f"{key}:{line}" for key, line in zip(keys, lines, strict=True)]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    inside = f",\n{' ' * (depth + 1)}".join(lines)
    return f"{opening}\n{' ' * (depth + 1)}{inside}\n{' ' * depth}{closing}"


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write one JSON object a line."""
    lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows]
    write_bytes(path, _encoded(path, "".join(lines)))


def _encoded(path: Path, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise WorkspaceError(
            f"Cannot write {path}: a text in it has half of a surrogate pair."
        ) from error


def read_json(path: Path, *, plain: bool = False) -> Any:
    """Read a JSON file, or say which file cannot be read and why.

    With ``plain``, text with NUL or half of a surrogate pair is refused too.
    """
    try:
        value = parse_json(read_file(path, MOST_JSON).decode("utf8"))
    except UnreadableFile as error:
        raise UnreadableFile(f"Cannot read {path}: {error}") from error
    except ValueError as error:
        raise UnreadableFile(f"Cannot read {path}: {_reason(error)}.") from error
    if plain and not is_plain(value):
        raise UnreadableFile(f"Cannot read {path}: a text in it has NUL or half a surrogate pair.")
    return value


def _reason(error: ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"its bytes are not UTF-8 (byte {error.start})"
    return str(error).rstrip(".")


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read what `write_rows` wrote; a missing file has no rows."""
    if not path.exists():
        return []
    try:
        lines = read_file(path, MOST_JSON).decode("utf8").split("\n")
        rows = [parse_json(line) for line in lines if line]
    except ValueError as error:
        raise DamagedFile(f"{path} is truncated or altered ({_reason(error)}).") from error
    if not all(isinstance(row, dict) for row in rows):
        raise DamagedFile(f"{path} is altered (a line is not a JSON object).")
    return rows
