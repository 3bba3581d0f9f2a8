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
from typing import Any, Literal

from attnscope.data.corpus_rows import Row, read_parts
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
    rows: Iterable[Any] | None = None,
    *,
    train: Iterable[Any] | None = None,
    val: Iterable[Any] | None = None,
    test: Iterable[Any] | None = None,
    header: bool | None = None,
    blank: Literal["error", "skip"] = "error",
    languages: Sequence[str] | None = None,
    validation: float = 0.1,
    labels: Sequence[str] | None = None,
) -> Path:
    r"""Make a corpus folder from two or three columns, with a training and a validation part.

    Equal texts stay on one side of the split, which depends on nothing but the text, so that the
    same rows in any order give the same parts.

    Parameters
    ----------
    folder
        Where to write; a folder that this function made before is replaced.
    rows
        Pairs of text and label; with ``languages``, pairs of sentence and translation. A third
        column has, for labelled text, the words that a person has marked as reasons, as spans
        ``[(start, end), …]`` over ``text.split()``; for sentence pairs the gold alignment of their
        words in Pharaoh's format, ``"0-0 1-2"``, possible links as ``1p2``. A pandas data frame is
        taken by its columns, numpy's labels as their values.
    train, val, test
        The parts of a corpus that is split already, in place of ``rows``. ``val`` may be left out:
        then it is taken from ``train``.
    header
        Whether the first row of each part names its columns; by default a first row that looks
        like one is an error that asks.
    blank
        Whether rows without text are an ``"error"`` or left out (``"skip"``).
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
    if blank not in ("error", "skip"):
        raise UsageError(f"blank={blank!r} is not valid; valid: error, skip.")
    if not 0 < validation < 1:
        raise UsageError(f"validation={validation} is not a share between 0 and 1.")
    if languages is not None and labels is not None:
        raise UsageError("Give languages (for translation) or labels (for classes), not both.")
    _check_replaceable(folder)
    parts = read_parts(rows, {"train": train, "val": val, "test": test}, header, blank)
    if languages is None:
        meta, files = _labelled(parts, validation, labels)
    elif any(row.marks is not None for part in parts.values() for row in part):
        meta, files = _aligned(parts, languages)
    else:
        meta, files = _parallel(parts, validation, languages)
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


Parts = Mapping[str, Sequence[Row]]


def _labelled(
    parts: Parts, validation: float, labels: Sequence[str] | None
) -> tuple[dict[str, Any], dict[str, str]]:
    given = [row.label for part in parts.values() for row in part]
    names = list(labels) if labels is not None else _sorted(given)
    if len(set(names)) != len(names) or len(names) < 2:
        raise CorpusError(
            f"A classification corpus needs at least two different labels, not "
            f"{', '.join(map(repr, names)) or 'none'}."
        )
    index = {name: place for place, name in enumerate(names)}
    for part in parts.values():
        for row in part:
            if row.label not in index:
                near = suggestion(row.label, names)
                raise CorpusError(f"{row.where}: unknown label {row.label!r}; {near}")
    files = {}
    stats: dict[str, Any] = {}
    for name, chosen in _split_parts(parts, validation).items():
        files[f"{name}.jsonl"] = json_lines(
            {"id": f"{name}-{place}", "label": index[row.label], "text": row.text} | row.rationales
            for place, row in chosen
        )
        stats[name] = {"n": len(chosen)}
    return {"kind": "classification", "labels": names, "stats": stats}, files


def _parallel(
    parts: Parts, validation: float, languages: Sequence[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    names = _two_languages(languages)
    files = {}
    chosen = _split_parts(parts, validation)
    for name, rows in chosen.items():
        sides = [row.sentences for _, row in rows]
        for column, language in enumerate(names):
            files[f"{name}.{language}"] = "".join(f"{side[column]}\n" for side in sides)
    stats = {name: {"n": len(rows)} for name, rows in chosen.items()}
    return {"kind": "parallel", "langs": names, "stats": stats}, files


def _aligned(parts: Parts, languages: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return sentence pairs with gold links: nothing is trained on them, so nothing is held out."""
    names = _two_languages(languages)
    files = {}
    only = {"val" if name == "train" and len(parts) == 1 else name: parts[name] for name in parts}
    for name, rows in only.items():
        lines = []
        for place, row in enumerate(rows):
            sides = dict(zip(names, row.sentences, strict=True))
            lines.append({"id": f"{name}-{place}"} | sides | row.links)
        files[f"{name}.jsonl"] = json_lines(lines)
    stats = {name: {"n": len(rows)} for name, rows in only.items()}
    return {"kind": "alignment", "langs": names, "stats": stats}, files


def _two_languages(languages: Sequence[str]) -> list[str]:
    names = list(languages)
    if len(names) != 2 or names[0] == names[1] or not all(map(LANGUAGE.fullmatch, names)):
        raise UsageError(f"languages={languages!r} must be two names, for example ('de', 'en').")
    return names


def _split_parts(parts: Parts, validation: float) -> dict[str, list[tuple[int, Row]]]:
    """Return the rows of each part with their places; without validation texts some are drawn."""
    numbered = {name: list(enumerate(rows)) for name, rows in parts.items()}
    if "val" in parts:
        return numbered
    rows = parts["train"]
    drawn = _split([row.text for row in rows], validation)
    train_and_val = {name: [(place, rows[place]) for place in drawn[name]] for name in drawn}
    return train_and_val | {name: part for name, part in numbered.items() if name != "train"}


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
