"""A corpus as a folder: ``meta.json`` and one file per split, or per split and language.

Labelled text is ``<split>.jsonl`` (``id``, ``label``, ``text``; ``rationales`` where people marked
what decides the label), parallel text ``<split>.<language>``, aligned text ``<split>.jsonl`` with
both sentences and their links; each may end in ``.gz``. Reading is strict: malformed input is one
sentence that names file and line, since a corpus that is half read gives numbers that nobody can
explain.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from attnscope.errors import AttnscopeError, UnreadableFile, suggestion
from attnscope.runs.files import parse_json, read_unpacked

META = "meta.json"
Kind = Literal["classification", "translation", "alignment"]
LANGUAGE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
# What a reader expects first; other splits follow by name.
_ORDER = ("train", "val", "valid", "validation", "dev", "test")


class CorpusError(AttnscopeError):
    """A corpus that is malformed or lacks something it needs."""


@dataclass(frozen=True)
class LabelledRecord:
    """A text and its class, an index into the labels.

    ``rationales`` are spans [start, end) over ``text.split()`` that a person has marked as reasons
    for the class; None where nobody has looked for any.
    """

    id: str
    label: int
    text: str
    rationales: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True)
class Pair:
    """A sentence and its translation."""

    source: str
    target: str


@dataclass(frozen=True)
class Aligned:
    """A sentence and its translation in words, with gold links (source index, target index).

    The possible links include the sure ones.
    """

    id: str
    source: tuple[str, ...]
    target: tuple[str, ...]
    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]


@dataclass(frozen=True)
class CorpusFolder:
    """A corpus on disk; made by `CorpusFolder.open`, which reads nothing but ``meta.json``.

    Attributes
    ----------
    path, name
        The folder and its last part.
    kind
        Labelled, parallel or aligned text.
    labels
        Names of the classes; empty unless text is labelled.
    languages
        Names of the languages; empty if text is labelled.
    splits
        Names of the splits, ``train`` first.
    sizes
        Examples per split where ``meta.json`` has them.
    """

    path: Path
    name: str
    kind: Kind
    labels: tuple[str, ...]
    languages: tuple[str, ...]
    splits: tuple[str, ...]
    sizes: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def open(cls, path: str | Path) -> CorpusFolder:
        """Open a folder."""
        path = Path(path)
        if not path.is_dir():
            raise CorpusError(f"{path} is not a folder; a corpus is a folder with a {META}.")
        meta = _meta(path / META)
        labels = _names(path / META, meta, "labels")
        languages = () if labels else _names(path / META, meta, "langs")
        try:
            files = {found.name.removesuffix(".gz") for found in path.iterdir()}
        except OSError as error:
            raise CorpusError(f"{path} cannot be read ({error.strerror or error}).") from error
        if str(meta.get("kind")).startswith("parallel") and not labels:
            languages = languages or _languages(files)
        if not labels and not languages:
            raise CorpusError(
                f"{path / META} has neither 'labels' (names of the classes, for classification) "
                f"nor 'langs' (names of the languages, for translation)."
            )
        jsonl, parallel = _splits(files, ("jsonl",)), _splits(files, languages)
        splits = jsonl if labels or not parallel else parallel
        if not splits:
            files_of = "<split>.jsonl" if labels else f"<split>.{languages[0]} (or <split>.jsonl)"
            raise CorpusError(f"{path} has no splits: no file {files_of}, with or without .gz.")
        kind: Kind = "translation"
        if labels:
            kind = "classification"
        elif jsonl and not parallel:
            kind = "alignment"
        # The name it was asked for by, also where that is a link.
        name = os.path.basename(os.path.abspath(path))
        return cls(path, name, kind, labels, languages, splits, _sizes(meta))

    def labelled(self, split: str) -> list[LabelledRecord]:
        """Read a split of labelled text."""
        self._require("classification", "labelled text")
        path = self._file(split, "jsonl")
        texts = []
        for line, row, id in _rows(path):
            label = _value(path, line, row, "label")
            # Not isinstance: True is an int in Python and no label.
            if type(label) is not int:
                raise _bad(path, line, f"label {_shown(label)} is not a whole number")
            if not 0 <= label < len(self.labels):
                raise _bad(path, line, f"label {label} is out of range; {self._told_labels()}")
            text = _text(path, line, row, "text")
            texts.append(LabelledRecord(id, label, text, _spans(path, line, row, text)))
        return texts

    def pairs(self, split: str, source: str, target: str) -> list[Pair]:
        """Read a split of parallel text in one direction."""
        self._require("translation", "parallel text")
        paths = [self._file(split, self._language(language)) for language in (source, target)]
        sides = [_lines(path) for path in paths]
        counts = [len(lines) for lines in sides]
        if counts[0] != counts[1]:
            raise CorpusError(
                f"{paths[0]} has {counts[0]} lines but {paths[1].name} has {counts[1]}; line i of "
                f"one must be the translation of line i of the other."
            )
        for path, lines in zip(paths, sides, strict=True):
            _check_sentences(path, lines)
        return [Pair(*(side.strip() for side in pair)) for pair in zip(*sides, strict=True)]

    def aligned(self, split: str, source: str, target: str) -> list[Aligned]:
        """Read a split of aligned text in one direction; links turn with it."""
        self._require("alignment", "aligned text")
        # The links count the words of the first language first, whichever is the source.
        if len(self.languages) != 2:
            raise CorpusError(f"{self.path / META}: aligned text has two languages in 'langs'.")
        sides = {self._language(source), self._language(target)}
        if len(sides) != 2:
            raise CorpusError(f"{self.path}: source and target are both {source!r}.")
        path = self._file(split, "jsonl")
        turned = source != self.languages[0]
        read = []
        for line, row, id in _rows(path):
            words = [tuple(_text(path, line, row, name).split()) for name in self.languages]
            limits = (len(words[0]), len(words[1]))
            sure = _links(path, line, row, "sure", limits)
            possible = sure | _links(path, line, row, "possible", limits)
            if turned:
                words.reverse()
                sure, possible = _turned(sure), _turned(possible)
            read.append(Aligned(id, words[0], words[1], sure, possible))
        return read

    def _require(self, kind: Kind, text: str) -> None:
        if self.kind != kind:
            raise CorpusError(f"{self.path} is a corpus for {self.kind}; it has no {text}.")

    def _language(self, name: str) -> str:
        if name not in self.languages:
            near = suggestion(name, self.languages)
            raise CorpusError(f"{self.path / META} names no language {name!r}; {near}")
        return name

    def _file(self, split: str, ending: str) -> Path:
        if split not in self.splits:
            near = suggestion(split, self.splits)
            raise CorpusError(f"{self.path} has no split {split!r}; {near}")
        plain = self.path / f"{split}.{ending}"
        packed = self.path / f"{split}.{ending}.gz"
        if plain.exists() and packed.exists():
            raise CorpusError(f"{packed} and {plain.name} both exist; remove one of them.")
        if not plain.exists() and not packed.exists():
            raise CorpusError(f"{plain} (or {packed.name}) is missing.")
        return plain if plain.exists() else packed

    def _told_labels(self) -> str:
        labels = [f"{index} ({name})" for index, name in enumerate(self.labels)]
        if len(labels) > 6:
            return f"labels are {labels[0]} to {labels[-1]}"
        return f"labels are {', '.join(labels)}"


def _bad(path: Path, line: int, what: str) -> CorpusError:
    return CorpusError(f"{path}, line {line}: {what}.")


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=True)
    except RecursionError:
        text = "(deeply nested)"
    return text if len(text) <= 40 else f"{text[:37]}..."


def _content(path: Path) -> str:
    try:
        content = read_unpacked(path)
    except UnreadableFile as error:
        raise CorpusError(str(error)) from error
    try:
        # Windows' editors put a byte order mark first.
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The position counts from after the mark.
        at = error.start + (3 if content.startswith(b"\xef\xbb\xbf") else 0)
        line = content.count(b"\n", 0, at) + 1
        raise _bad(path, line, "the bytes are not UTF-8; save the file as UTF-8") from error
    nul = text.find("\0")
    if nul >= 0:
        raise _bad(path, text.count("\n", 0, nul) + 1, "the text has a NUL byte")
    return text


def _lines(path: Path) -> list[str]:
    text = _content(path).replace("\r\n", "\n").removesuffix("\n")
    if not text:
        raise CorpusError(f"{path} is empty; a split needs at least one line.")
    # Not splitlines, which also cuts at characters that may occur inside a sentence.
    return text.split("\n")


def _check_sentences(path: Path, lines: list[str]) -> None:
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            raise _bad(path, number, "the line is empty; every line needs a sentence")
        if "\r" in line:
            raise _bad(path, number, "the line has a carriage return; end lines with \\n")


def _meta(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise CorpusError(f"{path} is missing; a corpus needs it to name its labels or languages.")
    try:
        meta = parse_json(_content(path))
    except ValueError as error:
        raise CorpusError(f"{path} is not JSON ({error}).") from error
    if not isinstance(meta, dict):
        raise CorpusError(f"{path} must hold a JSON object, with 'labels' or 'langs' in it.")
    return meta


def _names(path: Path, meta: dict[str, Any], key: str) -> tuple[str, ...]:
    names = meta.get(key)
    if names is None:
        return ()
    if not isinstance(names, list) or not all(isinstance(n, str) and n.strip() for n in names):
        raise CorpusError(f"{path}: {key!r} must be a list of names.")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise CorpusError(f"{path}: {key!r} has {repeated[0]!r} twice.")
    if len(names) < 2:
        raise CorpusError(f"{path}: {key!r} needs at least two names, not {len(names)}.")
    if key == "langs":
        odd = [name for name in names if not LANGUAGE.fullmatch(name)]
        if odd:
            raise CorpusError(f"{path}: {odd[0]!r} is not the name of a language; use letters.")
    return tuple(names)


def _sizes(meta: dict[str, Any]) -> dict[str, int]:
    stats = meta.get("stats")
    if not isinstance(stats, dict):
        return {}
    counts = {name: row.get("n") for name, row in stats.items() if isinstance(row, dict)}
    return {name: count for name, count in counts.items() if type(count) is int}


_LANGUAGE = re.compile(r"train\.([a-z]{2,3})")


def _languages(files: set[str]) -> tuple[str, ...]:
    """Return the two languages that the training part has files in; none of another number."""
    found = sorted(match[1] for match in map(_LANGUAGE.fullmatch, files) if match)
    return tuple(found) if len(found) == 2 else ()


def _splits(files: set[str], endings: tuple[str, ...]) -> tuple[str, ...]:
    found = {
        name.removesuffix(f".{ending}")
        for name in files
        for ending in endings
        if name.endswith(f".{ending}") and not name.startswith(".")
    }
    rank = {name: place for place, name in enumerate(_ORDER)}
    return tuple(sorted(found, key=lambda name: (rank.get(name, len(rank)), name)))


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any], str]]:
    seen: dict[str, int] = {}
    for line, text in enumerate(_lines(path), 1):
        if not text or text.isspace():
            raise _bad(path, line, "the line is empty; every line needs a JSON object")
        try:
            row = parse_json(text)
        except ValueError as error:
            reason = getattr(error, "msg", str(error))
            raise _bad(path, line, f"this is not JSON ({reason})") from error
        if not isinstance(row, dict):
            raise _bad(path, line, f"a JSON object is needed, not {_shown(row)}")
        id = _text(path, line, row, "id")
        if id in seen:
            raise _bad(path, line, f"id {_shown(id)} was given to line {seen[id]} already")
        seen[id] = line
        yield line, row, id


def _value(path: Path, line: int, row: dict[str, Any], key: str) -> Any:
    if key not in row:
        raise _bad(path, line, f"the field {key!r} is missing")
    return row[key]


def _text(path: Path, line: int, row: dict[str, Any], key: str) -> str:
    text = _value(path, line, row, key)
    if not isinstance(text, str):
        raise _bad(path, line, f"{key} {_shown(text)} is not a string")
    if not text or text.isspace():
        raise _bad(path, line, f"{key} is empty")
    if "\0" in text:
        raise _bad(path, line, f"{key} has a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _bad(path, line, f"{key} has half of a surrogate pair (\\ud800 … \\udfff)") from error
    return text


def _spans(
    path: Path, line: int, row: dict[str, Any], text: str
) -> tuple[tuple[int, int], ...] | None:
    if "rationales" not in row:
        return None
    spans, count = row["rationales"], len(text.split())
    if not isinstance(spans, list):
        raise _bad(path, line, "rationales is not a list of [start, end) pairs")
    for span in spans:
        if not isinstance(span, list) or [type(end) for end in span] != [int, int]:
            raise _bad(
                path, line, f"rationales has {_shown(span)}, which is not a pair of integers"
            )
        if not 0 <= span[0] <= span[1] <= count:
            raise _bad(path, line, f"rationales has {_shown(span)}, but there are {count} words")
    return tuple((start, end) for start, end in spans)


def _turned(links: frozenset[tuple[int, int]]) -> frozenset[tuple[int, int]]:
    return frozenset((b, a) for a, b in links)


def _links(
    path: Path, line: int, row: dict[str, Any], key: str, limits: tuple[int, int]
) -> frozenset[tuple[int, int]]:
    links = _value(path, line, row, key)
    if not isinstance(links, list):
        raise _bad(path, line, f"{key} is not a list of [i, j] pairs")
    for link in links:
        if not isinstance(link, list) or [type(end) for end in link] != [int, int]:
            raise _bad(path, line, f"{key} has {_shown(link)}, which is not a pair of integers")
        if not all(0 <= end < limit for end, limit in zip(link, limits, strict=True)):
            sizes = f"{limits[0]} and {limits[1]} words"
            raise _bad(path, line, f"{key} has {_shown(link)}, but there are {sizes}")
    return frozenset((a, b) for a, b in links)
