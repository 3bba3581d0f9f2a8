"""Corpora made of files that are pinned by repository, commit and SHA-256 (``pinned.csv``).

Files go into the user's cache and are never taken without their checksum. A download that breaks
off goes on where it was; what is there already needs no network. The raw files are then written as
corpus folders.
"""

from __future__ import annotations

import csv
import hashlib
import http.client
import io
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from attnscope.data.corpus_writer import cache_folder, corpora_folder, json_lines, place_folder
from attnscope.data.folder import CorpusError
from attnscope.errors import AttnscopeError, UsageError, suggestion
from attnscope.runs.files import read_unpacked
from attnscope.runs.lock import locked

BASE = "https://raw.githubusercontent.com"
ATTEMPTS = 3
TIMEOUT = 60.0


class FetchError(AttnscopeError):
    """A file could not be fetched."""


@dataclass(frozen=True)
class Pin:
    """One file of a repository at a commit."""

    dataset: str
    repository: str
    commit: str
    path: str
    bytes: int
    sha256: str


# What a conversion gives: the folder's name, its meta.json and its files.
Folder = tuple[str, dict[str, Any], dict[str, str]]
Raw = Mapping[str, Path]


@dataclass(frozen=True)
class Dataset:
    """The corpus folders that pinned files make, and how."""

    folders: tuple[str, ...]
    convert: Callable[[Raw], Iterator[Folder]]


@cache
def pins() -> tuple[Pin, ...]:
    """Return every pinned file."""
    with files("attnscope.data").joinpath("pinned.csv").open(encoding="utf8") as lines:
        _, *rows = csv.reader(lines)
    return tuple(Pin(a, b, c, d, int(size), digest) for a, b, c, d, size, digest in rows)


def holds(folder: str) -> bool:
    """Return whether a corpus folder is made of pinned files."""
    return folder in DATASETS or any(folder in dataset.folders for dataset in DATASETS.values())


def dataset_of(folder: str) -> str:
    """Return the data set that makes a corpus folder."""
    return next(name for name, made in DATASETS.items() if folder in (name, *made.folders))


def fetch(
    dataset: str, *, base: str | None = None, pinned: Sequence[Pin] | None = None
) -> list[Path]:
    """Fetch a data set's files and write its corpus folders into the cache.

    Parameters
    ----------
    dataset
        A name in ``pinned.csv``.
    base
        Where the repositories are served; by default ``ATTNSCOPE_MIRROR``, else GitHub.
    pinned
        Other files than those of ``pinned.csv``.

    Returns
    -------
    list of Path
        The corpus folders.
    """
    if dataset not in DATASETS:
        raise UsageError(f"No data set {dataset!r} is pinned; {suggestion(dataset, DATASETS)}")
    chosen = [pin for pin in (pins() if pinned is None else pinned) if pin.dataset == dataset]
    base = (base or os.environ.get("ATTNSCOPE_MIRROR") or BASE).rstrip("/")
    if not base.startswith(("http://", "https://", "file://")):
        raise UsageError(
            f"ATTNSCOPE_MIRROR={base!r} is not a URL (expected http://, https:// or file://)."
        )
    folder = cache_folder() / "pinned" / dataset
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FetchError(
            f"Cannot write {folder}: {error.strerror or error}; set ATTNSCOPE_CACHE to a folder."
        ) from error
    written = []
    with locked(folder / ".lock", wait=True):
        raw = {pin.path: _fetched(pin, base, folder) for pin in chosen}
        for name, meta, texts in DATASETS[dataset].convert(raw):
            sources = [{"repo": p.repository, "commit": p.commit, "path": p.path} for p in chosen]
            place_folder(corpora_folder() / name, {"name": name, **meta, "source": sources}, texts)
            written.append(corpora_folder() / name)
    return written


def _fetched(pin: Pin, base: str, folder: Path) -> Path:
    url = f"{base}/{pin.repository}/{pin.commit}/{quote(pin.path)}"
    path = folder / pin.path.replace("/", "_")
    part = path.with_name(f"{path.name}.part")
    try:
        if path.exists() and _digest(path) == pin.sha256:
            return path
        _download(url, part, pin.bytes)
        if _digest(part) != pin.sha256:
            part.unlink()
            raise FetchError(
                f"{url} is not the pinned file (its SHA-256 differs); it was not kept. Try again, "
                f"or another mirror with ATTNSCOPE_MIRROR."
            )
        os.replace(part, path)
    except OSError as error:
        raise FetchError(f"Cannot keep {url} in {folder}: {error.strerror or error}.") from error
    return path


def _digest(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _download(url: str, part: Path, size: int) -> None:
    """Download to ``part``, going on where an earlier attempt broke off."""
    reason = "the connection broke off"
    for _ in range(ATTEMPTS):
        try:
            _go_on(url, part, size)
        except urllib.error.HTTPError as error:
            if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise FetchError(
                    f"{url} cannot be fetched: {error.code} {error.reason}."
                ) from error
            # What is there is longer than the file: it cannot be a part of it.
            part.unlink(missing_ok=True)
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            reason = str(getattr(error, "reason", error) or type(error).__name__)
        if part.exists() and part.stat().st_size >= size:
            return
    have = part.stat().st_size if part.exists() else 0
    raise FetchError(
        f"{url} could not be fetched ({reason}); {have} of {size} bytes are kept: run the same "
        f"command again to resume."
    )


def _go_on(url: str, part: Path, size: int) -> None:
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        given = response.headers.get("Content-Range", "")
        resumed = response.status == http.client.PARTIAL_CONTENT
        if resumed and not given.startswith(f"bytes {have}-"):
            raise http.client.HTTPException(f"the server sent another range, {given!r}")
        with open(part, "ab" if resumed else "wb") as stream:
            left = size - stream.tell()
            while left >= 0 and (block := response.read(min(2**20, left + 1))):
                left -= len(block)
                # One byte too many shows that this is another file: the rest is not taken.
                stream.write(block)


def _lines(path: Path) -> list[str]:
    return read_unpacked(path).decode("utf8").removesuffix("\n").split("\n")


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _sizes(counts: Mapping[str, int]) -> dict[str, Any]:
    return {name: {"n": count} for name, count in counts.items()}


def _multi30k(raw: Raw) -> Iterator[Folder]:
    texts = {}
    for path, file in raw.items():
        name = path.rpartition("/")[2].removesuffix(".gz")
        texts[name] = [line.strip() for line in _lines(file)]
    counts = {name.partition(".")[0]: len(lines) for name, lines in texts.items()}
    langs = [
        lang for lang in ("en", "de", "fr") if any(name.endswith(f".{lang}") for name in texts)
    ]
    meta = {"kind": "parallel", "langs": langs, "stats": _sizes(counts)}
    yield "multi30k", meta, {name: _text(lines) for name, lines in texts.items()}


_SCAN_SPLITS = {
    "tasks.txt": "all",
    "simple_split/tasks_train_simple.txt": "simple_train",
    "simple_split/tasks_test_simple.txt": "simple_test",
}
_SCAN_LINE = re.compile(r"IN: (.+) OUT: (.+)")


def _scan(raw: Raw) -> Iterator[Folder]:
    texts = {}
    counts = {}
    for path, file in raw.items():
        split = _SCAN_SPLITS[path]
        found = [_matched(_SCAN_LINE, line, path, at) for at, line in enumerate(_lines(file), 1)]
        texts[f"{split}.in"] = _text(match[1].strip() for match in found)
        texts[f"{split}.out"] = _text(match[2].strip() for match in found)
        counts[split] = len(found)
    yield "scan", {"kind": "parallel", "langs": ["in", "out"], "stats": _sizes(counts)}, texts


def _matched(pattern: re.Pattern[str], line: str, path: str, at: int) -> re.Match[str]:
    match = pattern.fullmatch(line.strip())
    if match is None:
        raise CorpusError(f"{path}, line {at}: the line does not match {pattern.pattern}.")
    return match


_SST_LABELS = ("very_negative", "negative", "neutral", "positive", "very_positive")
_SST_TREE = re.compile(r"\(([0-4]) .+\)")
# Plain blanks alone end a word: some have a no-break space inside.
_SST_LEAF = re.compile(r"\([0-4] ([^() ]+)\)")
# What the Penn Treebank writes in place of characters that have a meaning in trees.
_SST_WORDS = {"-LRB-": "(", "-RRB-": ")"}


def _sst(raw: Raw) -> Iterator[Folder]:
    """Neutral sentences are left out of the binary task; ids keep their place in the file."""
    fine: dict[str, list[dict[str, Any]]] = {}
    for path, file in raw.items():
        split = path.rpartition("/")[2].removesuffix(".txt")
        fine[split] = []
        for at, line in enumerate(_lines(file)):
            tree = _matched(_SST_TREE, line, path, at + 1)
            leaves = _SST_LEAF.findall(tree[0])
            words = [_SST_WORDS.get(leaf, leaf.replace("\\/", "/")) for leaf in leaves]
            row = {"id": f"{split}-{at}", "label": int(tree[1]), "text": " ".join(words)}
            fine[split].append(row)
    binary = {
        split: [row | {"label": int(row["label"] > 2)} for row in rows if row["label"] != 2]
        for split, rows in fine.items()
    }
    yield _labelled("sst_binary", ("negative", "positive"), binary)
    yield _labelled("sst_fine", _SST_LABELS, fine)


def _labelled(
    name: str, labels: Sequence[str], rows: Mapping[str, list[dict[str, Any]]], **more: Any
) -> Folder:
    stats = _sizes({split: len(found) for split, found in rows.items()})
    meta = {"kind": "classification", "labels": list(labels), "stats": stats, **more}
    return name, meta, {f"{split}.jsonl": json_lines(found) for split, found in rows.items()}


def _ag_news(raw: Raw) -> Iterator[Folder]:
    (file,) = raw.values()
    rows = [
        {"id": f"test-{at}", "label": int(label) - 1, "title": title, "text": text}
        for at, (label, title, text) in enumerate(csv.reader(io.StringIO("\n".join(_lines(file)))))
    ]
    differs = "The test part alone: the training part is not pinned (the hub has it)."
    labels = ("World", "Sports", "Business", "Sci/Tech")
    yield _labelled("ag_news_test", labels, {"test": rows}, differs=differs)


_GOLD = {"enfr": ("en", "fr"), "roen": ("ro", "en")}
_LINK = re.compile(r"(\d+)([-p])(\d+)")


def _gold_align(raw: Raw) -> Iterator[Folder]:
    """Turn links that count from 1 (``-`` sure, ``p`` possible) into pairs from 0."""
    for pair, (source, target) in _GOLD.items():
        files_of = {path.rpartition(".")[2]: path for path in raw if f"/{pair}." in path}
        texts, golds = (_lines(raw[files_of[ending]]) for ending in ("src-tgt", "gold"))
        rows = []
        for at, (text, gold) in enumerate(zip(texts, golds, strict=True)):
            sides = [" ".join(side.split()) for side in text.split("|||")]
            found = [_matched(_LINK, link, files_of["gold"], at + 1) for link in gold.split()]
            links = {
                sort: {(int(m[1]) - 1, int(m[3]) - 1) for m in found if m[2] == sort}
                for sort in "-p"
            }
            rows.append(
                {
                    "id": f"{pair}-{at}",
                    **dict(zip((source, target), sides, strict=True)),
                    "sure": sorted(links["-"]),
                    "possible": sorted(links["p"] - links["-"]),
                }
            )
        stats = _sizes({"test": len(rows)})
        meta = {"kind": "word alignment", "langs": [source, target], "stats": stats}
        yield f"gold_align_{source}_{target}", meta, {"test.jsonl": json_lines(rows)}


DATASETS: dict[str, Dataset] = {
    "multi30k": Dataset(("multi30k",), _multi30k),
    "scan": Dataset(("scan",), _scan),
    "sst": Dataset(("sst_binary", "sst_fine"), _sst),
    "ag_news": Dataset(("ag_news_test",), _ag_news),
    "gold_align": Dataset(("gold_align_en_fr", "gold_align_ro_en"), _gold_align),
}
