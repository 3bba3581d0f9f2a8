"""Files that are either absent or complete: everything is written aside and renamed.

A process killed at any moment leaves at most a file whose name starts with ``.aside-`` and its own
number, so that two writers of one file never meet; readers never look at those.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from attnscope.errors import DamagedFile, WorkspaceError

ASIDE = ".aside-"


def write_bytes(path: Path, content: bytes) -> None:
    """Write ``content`` to ``path`` so that no reader ever sees a part of it."""
    aside = path.with_name(f"{ASIDE}{os.getpid()}-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(aside, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(aside, path)
        finally:
            aside.unlink(missing_ok=True)
    except OSError as error:
        raise WorkspaceError(
            f"Cannot write {path}: {error.strerror or error}; choose another folder with --out."
        ) from error


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
    write_bytes(path, (text + "\n").encode())


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
    write_bytes(path, "".join(lines).encode())


def read_json(path: Path) -> Any:
    """Read a JSON file, or say which file cannot be read and why."""
    try:
        return json.loads(path.read_text(encoding="utf8"))
    except (OSError, ValueError) as error:
        raise WorkspaceError(f"Cannot read {path}: {error}.") from error


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read what `write_rows` wrote; a missing file has no rows."""
    if not path.exists():
        return []
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf8").split("\n") if line]
    except ValueError as error:
        raise DamagedFile(f"{path} is truncated or altered ({error}).") from error
