"""Writing corpus folders: from a user's rows, from pinned files, from the hub.

A folder appears whole or not at all: it is written aside and renamed. The same rows always give
the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attnscope.data.folder import LANGUAGE, META, CorpusError
from attnscope.errors import UsageError, suggestion
from attnscope.runs.atomic import ASIDE
from attnscope.runs.host import unique_prefix

MADE = "attnscope.write_corpus"


def cache_folder() -> Path:
    """Return ``$ATTNSCOPE_CACHE``, or attnscope's part of the user's cache folder."""
    given = os.environ.get("ATTNSCOPE_CACHE")
    if given:
        return Path(given)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "attnscope"
    except RuntimeError as error:  # A user that the system does not know.
        raise UsageError("There is no home folder; set ATTNSCOPE_CACHE to a folder.") from error


def corpora_folder() -> Path:
    """Return where fetched corpora are kept."""
    return cache_folder() / "corpora"


def write_corpus(
    folder: str | Path,
    rows: Iterable[Any],
    *,
    languages: Sequence[str] | None = None,
    validation: float = 0.1,
    labels: Sequence[str] | None = None,
) -> Path:
    r"""Make a corpus folder from two columns, with a training and a validation part.

    Equal texts stay on one side of the split, which depends on nothing but the text, so that the
    same rows in any order give the same parts.

    Parameters
    ----------
    folder
        Where to write; a folder that this function made before is replaced.
    rows
        Pairs of text and label; with ``languages``, pairs of sentence and translation.
    languages
        Names of the two columns' languages, for example ``("de", "en")``.
    validation
        The share of different texts that is kept for validation.
    labels
        Names of the classes in their order; by default those found, sorted.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> import csv
    >>> with open("reviews.tsv", newline="", encoding="utf8") as file:  # doctest: +SKIP
    ...     write_corpus("my-reviews", csv.reader(file, delimiter="\t"))
    """
    folder = Path(folder)
    if not 0 < validation < 1:
        raise UsageError(f"validation={validation} is not a share between 0 and 1.")
    if languages is not None and labels is not None:
        raise UsageError("Give languages (for translation) or labels (for classes), not both.")
    _check_replaceable(folder)
    if languages is None:
        meta, files = _labelled(_columns(rows), validation, labels)
    else:
        meta, files = _parallel(_columns(rows), validation, languages)
    place_folder(folder, {"name": folder.resolve().name, "made": MADE, **meta}, files)
    return folder


def place_folder(folder: Path, meta: Mapping[str, Any], files: Mapping[str, str]) -> None:
    """Write a corpus folder aside, gzip-compressed, and put it in its place.

    Parameters
    ----------
    folder
        Its place; a folder there is replaced.
    meta
        What ``meta.json`` holds.
    files
        Text of each file by its name without ``.gz``.
    """
    folder = folder.resolve()
    aside = folder.with_name(f"{ASIDE}{unique_prefix()}-{folder.name}")
    old = folder.with_name(f".old-{unique_prefix()}-{folder.name}")
    try:
        aside.mkdir(parents=True)
        try:
            for name, text in files.items():
                # Without a time in the header the same text gives the same bytes.
                (aside / f"{name}.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
            text = json.dumps(dict(meta), indent=1, ensure_ascii=False) + "\n"
            (aside / META).write_text(text, encoding="utf8")
            if folder.exists():
                folder.rename(old)
            try:
                aside.rename(folder)
            except OSError:
                if old.exists():
                    old.rename(folder)
                raise
            shutil.rmtree(old, ignore_errors=True)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        raise CorpusError(f"Cannot write {folder}: {error.strerror or error}.") from error


def json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return one JSON object a line."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _check_replaceable(folder: Path) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    try:
        made = json.loads((folder / META).read_text(encoding="utf8")).get("made")
    except (OSError, ValueError, AttributeError):
        made = None
    if made != MADE:
        raise UsageError(f"{folder} exists and was not made by write_corpus; choose another name.")


def _columns(rows: Iterable[Any]) -> list[tuple[Any, Any]]:
    columns = []
    for number, row in enumerate(rows, 1):
        if not isinstance(row, list | tuple) or len(row) != 2:
            shown = repr(row) if len(repr(row)) <= 60 else f"{repr(row)[:57]}..."
            raise CorpusError(f"Row {number} is not a pair of two columns: {shown}.")
        columns.append((row[0], row[1]))
    if not columns:
        raise CorpusError("There are no rows to make a corpus from.")
    return columns


def _text(number: int, column: int, value: Any) -> str:
    if not isinstance(value, str):
        raise CorpusError(f"Row {number}: column {column} must be text, not {value!r}.")
    text = value.strip()
    if not text:
        raise CorpusError(f"Row {number}: column {column} is empty.")
    if "\0" in text:
        raise CorpusError(f"Row {number}: column {column} has a NUL character.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise CorpusError(f"Row {number}: column {column} is not valid Unicode.") from error
    return text


def _labelled(
    rows: list[tuple[Any, Any]], validation: float, labels: Sequence[str] | None
) -> tuple[dict[str, Any], dict[str, str]]:
    texts = [_text(number, 1, text) for number, (text, _) in enumerate(rows, 1)]
    given = [_label(number, label) for number, (_, label) in enumerate(rows, 1)]
    names = list(labels) if labels is not None else _sorted(given)
    if len(set(names)) != len(names) or len(names) < 2:
        raise CorpusError(
            f"A classification corpus needs at least two different labels, not "
            f"{', '.join(map(repr, names)) or 'none'}."
        )
    index = {name: place for place, name in enumerate(names)}
    for number, label in enumerate(given, 1):
        if label not in index:
            raise CorpusError(f"Row {number}: unknown label {label!r}; {suggestion(label, names)}")
    parts = _split(texts, validation)
    files = {}
    stats: dict[str, Any] = {}
    for part, places in parts.items():
        rows_of = [
            {"id": f"{part}-{place}", "label": index[given[place]], "text": texts[place]}
            for place in places
        ]
        files[f"{part}.jsonl"] = json_lines(rows_of)
        stats[part] = {"n": len(places)}
    return {"kind": "classification", "labels": names, "stats": stats}, files


def _parallel(
    rows: list[tuple[Any, Any]], validation: float, languages: Sequence[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    names = list(languages)
    if len(names) != 2 or names[0] == names[1] or not all(map(LANGUAGE.fullmatch, names)):
        raise UsageError(f"languages={languages!r} must be two names, for example ('de', 'en').")
    sides = [
        [_sentence(number, column + 1, row[column]) for number, row in enumerate(rows, 1)]
        for column in (0, 1)
    ]
    parts = _split(sides[0], validation)
    files = {}
    for part, places in parts.items():
        for name, side in zip(names, sides, strict=True):
            files[f"{part}.{name}"] = "".join(f"{side[place]}\n" for place in places)
    stats = {part: {"n": len(places)} for part, places in parts.items()}
    return {"kind": "parallel", "langs": names, "stats": stats}, files


def _sentence(number: int, column: int, value: Any) -> str:
    text = _text(number, column, value)
    if "\n" in text or "\r" in text:
        raise CorpusError(f"Row {number}: column {column} has a line break.")
    return text


def _label(number: int, label: Any) -> str:
    if isinstance(label, int) and not isinstance(label, bool):
        return str(label)
    return _text(number, 2, label)


def _sorted(given: Iterable[str]) -> list[str]:
    # Numbers by their value: 2 comes before 10.
    return sorted(set(given), key=lambda name: (len(name) if name.isdecimal() else 0, name))


def _split(texts: list[str], validation: float) -> dict[str, list[int]]:
    shares = {text: _share(text) for text in texts}
    if len(shares) < 2:
        raise CorpusError("At least two different texts are needed: one to train on, one to test.")
    first, *_, last = sorted(shares, key=lambda text: (shares[text], text))
    held_out = {text for text, share in shares.items() if share < validation}
    # Neither part may be empty, however few texts there are.
    held_out = (held_out | {first}) - {last}
    return {
        "train": [place for place, text in enumerate(texts) if text not in held_out],
        "val": [place for place, text in enumerate(texts) if text in held_out],
    }


def _share(text: str) -> float:
    """Return a number in [0, 1) that depends on the text alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48
