"""The one way into files that somebody else may have written.

Only regular files of bounded size are opened: a FIFO, a device, a socket or a folder is refused
before anything is read from it. Compressed files may not unpack to more than a bound, JSON has
finite numbers and a bounded depth. Whatever is wrong is one sentence that names the file.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NoReturn

from attnscope.errors import UnreadableFile, WorkspaceError

MOST_JSON = 2**29
"""Bytes of a JSON file (the largest reference result has 2 MB)."""

MOST_BYTES = 2**34
"""Bytes of any other file, after unpacking."""

# Text packs at 3 to 20; gzip reaches 1,030. Small files may be as repetitive as they like.
_MOST_RATIO = 200
_FREELY_UNPACKED = 2**26
_CHUNK = 2**20
_MOST_DEPTH = 100
_MOST_INTEGER = 2**63
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a link",
}


def kind_of_file(mode: int) -> str:
    """Return what a mode that is not a regular file's stands for."""
    return _KINDS.get(stat.S_IFMT(mode), "not a regular file")


def open_regular(path: Path, most: int = MOST_BYTES) -> IO[bytes]:
    """Open a regular file of at most ``most`` bytes for reading."""
    try:
        # Opening a device may have an effect, so it is looked at first.
        _refuse_other_kinds(path, os.stat(path), most)
        # Whatever takes its place meanwhile: opening a FIFO does not wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path.
        _refuse(path, error)
    stream = os.fdopen(descriptor, "rb")
    try:
        _refuse_other_kinds(path, os.fstat(descriptor), most)
    except UnreadableFile:
        stream.close()
        raise
    return stream


def _refuse_other_kinds(path: Path, about: os.stat_result, most: int) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise UnreadableFile(f"{path} cannot be read (it is {kind_of_file(about.st_mode)}).")
    if about.st_size > most:
        raise UnreadableFile(
            f"{path} cannot be read ({about.st_size:,} bytes; at most {most:,} are read)."
        )


def _refuse(path: Path, error: Exception) -> NoReturn:
    reason = getattr(error, "strerror", None) or str(error)
    raise UnreadableFile(f"{path} cannot be read ({reason}).") from error


def read_file(path: Path, most: int = MOST_BYTES) -> bytes:
    """Read a regular file of at most ``most`` bytes."""
    try:
        with open_regular(path, most) as stream:
            # Reading makes room for as many bytes as it is asked for.
            content = stream.read(os.fstat(stream.fileno()).st_size + 1)
            while more := stream.read(_CHUNK):  # It grew while it was read.
                content += more
                if len(content) > most:
                    break
    except OSError as error:
        _refuse(path, error)
    except MemoryError as error:
        raise UnreadableFile(f"{path} does not fit in memory.") from error
    if len(content) > most:
        raise UnreadableFile(f"{path} cannot be read (more than {most:,} bytes).")
    return content


def read_unpacked(path: Path, most: int = MOST_BYTES) -> bytes:
    """Read a file, unpacked if its name ends in ``.gz``."""
    if path.suffix != ".gz":
        return read_file(path, most)
    try:
        return b"".join(unpacked_chunks(path, most))
    except MemoryError as error:
        raise UnreadableFile(f"{path} does not fit in memory.") from error


def unpacked_chunks(path: Path, most: int = MOST_BYTES) -> Iterator[bytes]:
    """Yield the content of a file in pieces, unpacked if its name ends in ``.gz``."""
    with open_regular(path, most) as stream:
        packed = os.fstat(stream.fileno()).st_size
        source: Any = gzip.GzipFile(fileobj=stream) if path.suffix == ".gz" else stream
        total = 0
        try:
            while chunk := source.read(_CHUNK):
                total += len(chunk)
                if total > most or (
                    total > _FREELY_UNPACKED and total > _MOST_RATIO * packed and source != stream
                ):
                    raise UnreadableFile(
                        f"{path} unpacks to more than {total - len(chunk):,} bytes from {packed:,}:"
                        " it is not read any further."
                    )
                yield chunk
        except (EOFError, zlib.error) as error:
            raise UnreadableFile(f"{path} is truncated or damaged gzip ({error}).") from error
        except gzip.BadGzipFile as error:
            raise UnreadableFile(f"{path} is not sound gzip ({error}).") from error
        except OSError as error:
            _refuse(path, error)


def parse_json(text: str | bytes) -> Any:
    """Parse JSON whose numbers are finite and whose depth is bounded, or raise ValueError."""
    try:
        value = json.loads(
            text, parse_float=_finite, parse_int=_integer, parse_constant=_no_constant
        )
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    _bound_depth(value)
    return value


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"the number {digits[:20]} is too large")
    return value


def _integer(digits: str) -> int:
    if len(digits) > 20 or abs(int(digits)) >= _MOST_INTEGER:
        raise ValueError(f"the number {digits[:20]} is too large")
    return int(digits)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _bound_depth(value: Any) -> None:
    level = [value]
    for _ in range(_MOST_DEPTH):
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                below += each.values()
            elif isinstance(each, list):
                below += each
        level = below
        if not level:
            return
    raise ValueError("nested too deeply")


def is_plain(value: Any) -> bool:
    """Return whether every string of a JSON value is text that can be encoded, without NUL."""
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, dict):
        return is_plain(list(value)) and is_plain(list(value.values()))
    return all(map(is_plain, value)) if isinstance(value, list) else True


def refuse_links(path: Path, root: Path) -> None:
    """Raise if ``path`` is reached from ``root`` through a symbolic link, or is not below it.

    A workspace may come from anybody: nothing in it leads to files elsewhere.
    """
    try:
        parts = path.relative_to(root).parts
    except ValueError:
        parts = ("..",)
    place = root
    for part in parts:
        if part == "..":
            raise WorkspaceError(f"{path} lies outside {root}.")
        place = place / part
        if place.is_symlink():
            raise WorkspaceError(
                f"{place} is a link to {os.readlink(place)}; links inside a workspace are not "
                "followed."
            )
