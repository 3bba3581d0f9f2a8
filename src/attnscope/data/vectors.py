"""Word vectors from a file: GloVe's text, word2vec's text, or a folder of words and an array.

Text has one word a line with its numbers behind it, all separated by single blanks, plain or
gzipped; word2vec's first line, "words numbers", may precede it. A folder holds
``words.txt.gz`` (one word a line) and ``vectors.f16.npy.gz`` (row i belongs to line i). Where words
share vectors, ``rows.u16.npy.gz`` has the row of each line.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from attnscope.errors import UnreadableFile, UsageError
from attnscope.runs.files import open_regular, read_unpacked, unpacked_chunks

_WORDS, _ARRAY, _ROWS = "words.txt.gz", "vectors.f16.npy.gz", "rows.u16.npy.gz"
_MOST_LINE = 2**20
_HEADER = re.compile(r"[0-9]{1,12} [0-9]{1,6}")
_ODD = re.compile(r"[^0-9+\-.eEinfatyINFATY]")  # not a part of a number, nan and infinity included
_NUMBER = re.compile(
    r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:[+-]?(nan|inf|infinity))"
)
# What NumPy raises for headers that somebody made up.
_NOT_AN_ARRAY = (
    OSError,
    EOFError,
    ValueError,
    SyntaxError,
    TypeError,
    MemoryError,
    OverflowError,
    RecursionError,
)


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
    for file in _files(place) if place.is_dir() else [place]:
        with open_regular(file) as stream:
            while block := stream.read(2**20):
                digest.update(block)
    return digest.hexdigest()


def _files(folder: Path) -> list[Path]:
    shared = [folder / _ROWS] if (folder / _ROWS).exists() else []
    return [folder / _WORDS, folder / _ARRAY, *shared]


def read_vectors(path: str | Path) -> Vectors:
    """Read word vectors from a text file, plain or gzipped, or from a folder.

    A repeated word keeps its first vector, and a warning says so.
    """
    place = find_vectors(path)
    return _read_folder(place) if place.is_dir() else _read_text(place)


def _reason(error: Exception) -> str:
    return str(error).strip().rstrip(".")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers from 1."""
    number, rest = 0, b""
    try:
        for chunk in unpacked_chunks(path):
            # Split at "\n" alone: vectors exist for words such as U+0085.
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                number += 1
                yield number, line.decode().rstrip("\r")
            if len(rest) > _MOST_LINE:
                raise UsageError(f"{path}, line {number + 1}: it has more than {_MOST_LINE} bytes.")
        if rest:
            number += 1
            yield number, rest.decode().rstrip("\r")
    except UnreadableFile as error:
        raise UsageError(f"{error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}, line {number}: it is not UTF-8.") from error


def _read_text(path: Path) -> Vectors:
    words: list[str] = []
    rows: list[np.ndarray] = []
    width = announced = None
    for number, line in _lines(path):
        word, *columns = line.rstrip(" ").split(" ")
        if number == 1 and _HEADER.fullmatch(line.rstrip(" ")):
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
        # Python also reads 1_000, digits of other scripts and numbers between tabs.
        if _ODD.search("".join(columns)):
            raise ValueError
        with np.errstate(over="ignore"):  # Too large is found to be infinite below.
            row = np.array(columns, dtype=np.float32)
    except ValueError:
        odd = next((each for each in columns if not _NUMBER.fullmatch(each)), columns[0])
        shown = odd if len(odd) <= 40 else f"{odd[:37]}..."
        raise UsageError(f"{path}, line {number}: {shown!r} is not a number.") from None
    if not np.isfinite(row).all():
        raise UsageError(f"{path}, line {number}: a number is not finite.")
    return row


def _read_folder(folder: Path) -> Vectors:
    words = [word for _, word in _lines(folder / _WORDS)]
    path = folder / _ARRAY
    array = _read_array(path)
    if not array.size:
        raise UsageError(f"{path} has no word vectors in it.")
    shared = (folder / _ROWS).exists()
    if array.ndim != 2 or array.dtype.kind != "f" or not (shared or len(array) == len(words)):
        raise UsageError(
            f"{path} is a {array.dtype} array of shape {array.shape}: {folder / _WORDS} asks for "
            f"{len(words)} rows of decimal numbers."
        )
    with np.errstate(over="ignore"):
        array = array.astype(np.float32)
    unfinished = np.flatnonzero(~np.isfinite(array).all(1))
    if len(unfinished):
        raise UsageError(f"{path}, row {unfinished[0] + 1}: a number is not finite.")
    if shared:
        array = array[_read_rows(folder / _ROWS, len(words), len(array))]
    return _without_repeats(words, array, folder / _WORDS)


def _read_rows(path: Path, words: int, vectors: int) -> np.ndarray:
    """Return which vector each word has."""
    rows = _read_array(path)
    if rows.shape != (words,) or rows.dtype.kind != "u" or (rows >= vectors).any():
        raise UsageError(
            f"{path} is a {rows.dtype} array of shape {rows.shape}: {words} whole numbers below "
            f"{vectors} are expected, the row of each word's vector."
        )
    return rows


def _read_array(path: Path) -> np.ndarray:
    try:
        array = np.load(io.BytesIO(read_unpacked(path)), allow_pickle=False)
    except UnreadableFile as error:
        raise UsageError(f"{error}") from error
    except _NOT_AN_ARRAY as error:
        raise UsageError(f"{path} is not a NumPy array: {_reason(error)}.") from error
    if not isinstance(array, np.ndarray):
        raise UsageError(f"{path} has no word vectors in it.")
    return array


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
