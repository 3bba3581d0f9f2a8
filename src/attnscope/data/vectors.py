"""Word vectors from a file: GloVe's text, word2vec's text, or a folder of words and an array.

Text has one word a line with its numbers behind it, all separated by single blanks, plain or
gzipped; word2vec's first line, "words numbers", may precede it. A folder holds
``words.txt.gz`` (one word a line) and ``vectors.f16.npy.gz`` (row i belongs to line i).
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import warnings
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from attnscope.errors import UsageError

_WORDS, _ARRAY = "words.txt.gz", "vectors.f16.npy.gz"


@dataclass(frozen=True)
class Vectors:
    """Words and their vectors, in the file's order; of a repeated word the first one is kept."""

    words: tuple[str, ...]
    array: np.ndarray

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return int(self.array.shape[1])

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words)}

    def row(self, word: str) -> int | None:
        """Return the row of a word as it is written, else in lower case, else None."""
        found = self._rows.get(word)
        return self._rows.get(word.lower()) if found is None else found


def find_vectors(path: str | Path) -> Path:
    """Return where vectors are; a bare name is looked up in the folder ``ATTNSCOPE_DATA`` too."""
    folder = os.environ.get("ATTNSCOPE_DATA")
    places = [Path(path).expanduser()]
    if folder and len(Path(path).parts) == 1:
        places.append(Path(folder) / path)
    for place in places:
        if place.exists():
            return place
    hint = "" if folder else " (set ATTNSCOPE_DATA to look up names in a data folder)"
    raise UsageError(
        f"There are no word vectors at {' or '.join(map(str, places))}{hint}; "
        "vectors= with nothing after it starts from random ones."
    )


def digest_of_vectors(path: str | Path) -> str:
    """Return the SHA-256 of the files that `read_vectors` would read."""
    place = find_vectors(path)
    digest = hashlib.sha256()
    for file in [place / _WORDS, place / _ARRAY] if place.is_dir() else [place]:
        with _opened(file, plain=True) as stream:
            while block := stream.read(2**20):
                digest.update(block)
    return digest.hexdigest()


def read_vectors(path: str | Path) -> Vectors:
    """Read word vectors from a text file, plain or gzipped, or from a folder.

    A repeated word keeps its first vector, and a warning says so.
    """
    place = find_vectors(path)
    return _read_folder(place) if place.is_dir() else _read_text(place)


def _opened(path: Path, plain: bool = False) -> io.BufferedIOBase:
    try:
        if path.suffix == ".gz" and not plain:
            return gzip.open(path, "rb")
        return open(path, "rb")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error


def _reason(error: Exception) -> str:
    return str(error).strip().rstrip(".")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers from 1."""
    number = 0
    with _opened(path) as stream:
        try:
            # Split at "\n" alone: vectors exist for words such as U+0085.
            for number, line in enumerate(stream, 1):
                yield number, line.decode().rstrip("\r\n")
        except (OSError, EOFError, zlib.error) as error:
            raise UsageError(f"{path} is damaged after line {number}: {_reason(error)}.") from error
        except UnicodeDecodeError as error:
            raise UsageError(f"{path}, line {number}: it is not UTF-8.") from error


def _read_text(path: Path) -> Vectors:
    words: list[str] = []
    rows: list[np.ndarray] = []
    width = announced = None
    for number, line in _lines(path):
        word, *columns = line.rstrip(" ").split(" ")
        if number == 1 and len(columns) == 1 and word.isdecimal() and columns[0].isdecimal():
            announced, width = int(word), int(columns[0])
            continue
        width = len(columns) if width is None else width
        if not word or not columns or len(columns) != width:
            raise UsageError(
                f"{path}, line {number}: a word and {width or 'its'} numbers expected here, "
                f"not {len(columns) + bool(word)} columns."
            )
        words.append(word)
        rows.append(_numbers(columns, path, number))
    if not rows:
        raise UsageError(f"{path} has no word vectors in it.")
    if announced not in (None, len(rows)):
        raise UsageError(f"{path}, line 1: it announces {announced} words, and {len(rows)} follow.")
    return _without_repeats(words, np.stack(rows), path)


def _numbers(columns: list[str], path: Path, number: int) -> np.ndarray:
    try:
        with np.errstate(over="ignore"):  # Too large is found to be infinite below.
            row = np.array(columns, dtype=np.float32)
    except ValueError:
        odd = next(column for column in columns if not _is_number(column))
        raise UsageError(f"{path}, line {number}: {odd!r} is not a number.") from None
    if not np.isfinite(row).all():
        raise UsageError(f"{path}, line {number}: a number is not finite.")
    return row


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_folder(folder: Path) -> Vectors:
    words = [word for _, word in _lines(folder / _WORDS)]
    path = folder / _ARRAY
    with _opened(path) as stream:
        try:
            array = np.load(io.BytesIO(stream.read()), allow_pickle=False)
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise UsageError(f"{path} is not a NumPy array: {_reason(error)}.") from error
    if array.ndim != 2 or array.dtype.kind != "f" or len(array) != len(words):
        raise UsageError(
            f"{path} is a {array.dtype} array of shape {array.shape}: {folder / _WORDS} asks for "
            f"{len(words)} rows of decimal numbers."
        )
    unfinished = np.flatnonzero(~np.isfinite(array).all(1))
    if len(unfinished):
        raise UsageError(f"{path}, row {unfinished[0] + 1}: a number is not finite.")
    return _without_repeats(words, array.astype(np.float32), folder / _WORDS)


def _without_repeats(words: Iterable[str], array: np.ndarray, path: Path) -> Vectors:
    words = tuple(words)
    first = dict(zip(reversed(words), reversed(range(len(words))), strict=True))
    if len(first) == len(words):
        return Vectors(words, array)
    kept = sorted(first.values())
    again = next(word for row, word in enumerate(words) if first[word] != row)
    warnings.warn(
        f"{path} has {len(words) - len(kept)} repeated words, {again!r} among them: the first "
        "vector of each is kept.",
        stacklevel=3,
    )
    return Vectors(tuple(words[row] for row in kept), array[kept])
