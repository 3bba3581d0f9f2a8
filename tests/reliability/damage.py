"""Damaged inputs as data: sound files of every kind, and the ways in which each is damaged.

A `Case` is one file of one kind of input with one damage. `must_refuse` says that no reader may
accept it; elsewhere a changed text is another sound text, and is accepted rightly.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnscope.cli_status import lines
from attnscope.data.folder import CorpusFolder
from attnscope.data.tasks import PermutationCopy
from attnscope.data.vectors import digest_of_vectors, read_vectors
from attnscope.errors import WorkspaceError
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.runs.atomic import write_json
from attnscope.runs.environment import environment
from attnscope.runs.host import this_process
from attnscope.runs.queue import QueuedGroup, QueuedUnit, Sweep, WorkerFile
from attnscope.runs.status import status
from attnscope.runs.tensors import load_arrays, save_arrays
from attnscope.runs.unit import UnitFolder
from attnscope.training.engine.queue_worker import QueueWorker
from attnscope.training.loop import load_model
from attnscope.training.trained_unit import TrainedUnit, demo_folder
from attnscope.training.unit import Training, Unit

Damage = Callable[[Path, random.Random], None]
TEXTS = ("a good film", "not a good film", "the actors are bad", "I liked all of it .")


# Sound inputs, each a function that writes a folder, with a function that reads all of it.


def write_labelled(folder: Path) -> None:
    (folder / "meta.json").write_text(
        json.dumps({"labels": ["bad", "good"], "stats": {"train": {"n": 4}}})
    )
    rows = [
        {"id": f"{n}", "label": n % 2, "text": text, "rationales": [[0, 1]]}
        for n, text in enumerate(TEXTS)
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "train.jsonl").write_text(lines)
    (folder / "val.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))


def read_labelled(folder: Path) -> Any:
    corpus = CorpusFolder.open(folder)
    return [corpus.labels, [corpus.labelled(split) for split in corpus.splits]]


def write_parallel(folder: Path) -> None:
    (folder / "meta.json").write_text(json.dumps({"langs": ["de", "en"]}))
    for language in ("de", "en"):
        text = "".join(f"{language} {line}\n" for line in TEXTS)
        (folder / f"train.{language}").write_text(text)
        (folder / f"val.{language}.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def read_parallel(folder: Path) -> Any:
    corpus = CorpusFolder.open(folder)
    return [corpus.pairs(split, "de", "en") for split in corpus.splits]


def write_aligned(folder: Path) -> None:
    (folder / "meta.json").write_text(json.dumps({"langs": ["en", "fr"]}))
    rows = [
        {"id": f"{n}", "en": text, "fr": text, "sure": [[0, 0]], "possible": [[1, 1]]}
        for n, text in enumerate(TEXTS)
    ]
    (folder / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def read_aligned(folder: Path) -> Any:
    return CorpusFolder.open(folder).aligned("test", "en", "fr")


def write_text_vectors(folder: Path) -> None:
    lines = "".join(f"word{n} {n / 7:.4f} -{n}.5 1e-3\n" for n in range(9))
    (folder / "v.txt").write_text(f"9 3\n{lines}")


def write_packed_vectors(folder: Path) -> None:
    lines = "".join(f"word{n} {n / 7:.4f} -{n}.5 1e-3\n" for n in range(9))
    (folder / "v.txt.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))


def read_text_vectors(folder: Path) -> Any:
    path = next(folder.iterdir(), folder / "v.txt")
    digest_of_vectors(path)
    found = read_vectors(path)
    return [found.words, found.array.tolist()]


def write_array_vectors(folder: Path) -> None:
    words = "".join(f"word{n}\n" for n in range(9))
    (folder / "words.txt.gz").write_bytes(gzip.compress(words.encode(), mtime=0))
    import io

    array = io.BytesIO()
    np.save(array, np.arange(27, dtype=np.float16).reshape(9, 3))
    (folder / "vectors.f16.npy.gz").write_bytes(gzip.compress(array.getvalue(), mtime=0))


def read_array_vectors(folder: Path) -> Any:
    digest_of_vectors(folder)
    found = read_vectors(folder)
    return [found.words, found.array.tolist()]


def write_finished(folder: Path) -> None:
    """The demo's unit, with the scores of its last step alone."""
    for name in ("config.json", "environment.json", "log.jsonl", "last.safetensors"):
        shutil.copy(demo_folder() / name, folder / name)
    shutil.copy(folder / "last.safetensors", folder / "best.safetensors")
    (folder / "scores").mkdir()
    for name in ("examples", "step-00002000"):
        shutil.copy(demo_folder() / "scores" / f"{name}.safetensors", folder / "scores")
    UnitFolder(folder).finish()


def write_running(folder: Path) -> None:
    """The same unit before it was finished, which has no list of checksums."""
    write_finished(folder)
    (folder / "done.json").unlink()


def read_unit_folder(folder: Path) -> Any:
    unit = TrainedUnit.read(folder)
    for complaint in unit.folder.finished()[1]:
        raise WorkspaceError(complaint)
    score = unit.stored("attention", 2000)
    models = [load_model(unit.unit, unit.folder, which) for which in ("last", "best")]
    weights = [float(parameter.sum()) for model in models for parameter in model.parameters()]
    values = np.nan_to_num(score.array(), nan=-1.0).tolist()
    return [unit.unit.config(), unit.log, values, score.words(0), weights]


def write_queue(folder: Path) -> None:
    """A sweep with a group that waits, one that failed, and a worker that trains a unit."""
    unit = _small_unit()
    name, config = unit.folder(folder).name, unit.config()
    queued = QueuedGroup(units=(QueuedUnit(name=name, config=config),), steps=3)
    sweep = Sweep.create(folder, [queued], "sweep", "cpu", environment=environment("cpu"))
    write_json(sweep.path / "failed" / "0.json", {"other": "why"})
    process = this_process() | {"pid": 1, "token": "0"}
    WorkerFile(folder, process).write(
        state="trains",
        sweep=sweep.path.name,
        group=queued.key,
        unit=name,
        units=1,
        done=2,
        steps=3,
        rate=0.5,
        notes=["a note"],
    )
    place = unit.folder(folder).path
    write_json(place / "config.json", config)
    write_json(place / "lock", process | {"deaths": 0})


def _small_unit() -> Unit:
    training = Training(steps=3, batch_size=2, evaluate_at=(), examples=2, stored=1)
    model = Seq2SeqSpec(embedding=4, hidden=4)
    return Unit(source=PermutationCopy(length=3), model=model, training=training, seed=0)


def read_queue(folder: Path) -> None:
    for pattern in ("queue/workers/*", "units/*/lock"):
        for path in folder.glob(pattern):
            with suppress(OSError):
                os.utime(path)  # Those who have not been heard of for a minute are not read.
    found = status(folder)
    json.dumps(found.as_json(), allow_nan=False)
    lines(found)
    for note in found.notes:
        if note != "a note":
            raise WorkspaceError(note)
    said: list[str] = []
    worker = QueueWorker(folder, "cpu", said.append)
    worker._attempt = lambda units, report: [("locked", "")] * len(units)  # type: ignore[assignment]
    assert not worker.take()
    worker._public.remove()
    for sentence in said:
        raise WorkspaceError(sentence)


# Damages of any file. Each takes the path and a source of random numbers.


def _content(change: Callable[[bytes, random.Random], bytes]) -> Damage:
    return lambda path, rng: _rewrite(path, change(path.read_bytes(), rng))


def _rewrite(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _unpacked(change: Callable[[bytes, random.Random], bytes]) -> Damage:
    """Change what is inside a gzip, or the file itself."""

    def damage(path: Path, rng: random.Random) -> None:
        if path.suffix == ".gz":
            inside = gzip.decompress(path.read_bytes())
            path.write_bytes(gzip.compress(change(inside, rng), mtime=0))
        else:
            path.write_bytes(change(path.read_bytes(), rng))

    return damage


def _replaced(make: Callable[[Path], object]) -> Damage:
    def damage(path: Path, rng: random.Random) -> None:
        path.unlink()
        make(path)

    return damage


def _socket(path: Path) -> None:
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(path.parent)  # A socket's path is short.
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    finally:
        os.fchdir(here)
        os.close(here)


def _sparse(path: Path) -> None:
    with open(path, "wb") as stream:
        stream.truncate(2**42)


def _bomb(path: Path) -> None:
    with gzip.open(path, "wb") as stream:
        for _ in range(300):
            stream.write(b"a" * 2**20)


def _flip(content: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(max(1, len(content)))
    return content[:at] + bytes([content[at] ^ (1 << rng.randrange(8))]) + content[at + 1 :]


def _insert(piece: bytes) -> Callable[[bytes, random.Random], bytes]:
    def change(content: bytes, rng: random.Random) -> bytes:
        at = rng.randrange(len(content) + 1)
        return content[:at] + piece + content[at:]

    return change


# Whatever the file: it is not one.
NOT_FILES: dict[str, Damage] = {
    "a FIFO": _replaced(os.mkfifo),
    "a folder": _replaced(os.mkdir),
    "a dangling link": _replaced(lambda path: path.symlink_to("nowhere")),
    "a link to itself": _replaced(lambda path: path.symlink_to(path.name)),
    "a socket": _replaced(_socket),
    "4 TB of nothing": _replaced(_sparse),
}
BYTES: dict[str, Damage] = {
    "removed": lambda path, rng: path.unlink(),
    "emptied": _content(lambda content, rng: b""),
    "truncated": _content(lambda content, rng: content[: rng.randrange(len(content))]),
    "a bit flipped": _content(_flip),
    "twice": _content(lambda content, rng: content + content),
    "bytes appended": _content(lambda content, rng: content + rng.randbytes(20)),
    "random bytes": _content(lambda content, rng: rng.randbytes(rng.randrange(1, 3000))),
    "shuffled": _content(lambda content, rng: bytes(rng.sample(content, len(content)))),
}
INSIDE: dict[str, Damage] = {
    "not UTF-8": _unpacked(_insert(b"\xff\xfe")),
    "NUL": _unpacked(_insert(b"\0")),
    "byte order mark": _unpacked(lambda content, rng: b"\xef\xbb\xbf" + content),
    "carriage returns": _unpacked(lambda content, rng: content.replace(b"\n", b"\r\n")),
    "an empty line": _unpacked(lambda content, rng: content + b"\n\n"),
    "a line dropped": _unpacked(
        lambda content, rng: b"".join(content.splitlines(keepends=True)[1:])
    ),
    "a line doubled": _unpacked(
        lambda content, rng: content.splitlines(keepends=True)[0] + content
    ),
    "full-width digits": _unpacked(
        lambda content, rng: content.replace(b"1", "１".encode()).replace(b"0", "０".encode())
    ),
    "underscores": _unpacked(lambda content, rng: content.replace(b"1", b"1_000")),
}
PACKED: dict[str, Damage] = {
    "a gzip bomb": _replaced(_bomb),
    "gzip cut": _content(lambda content, rng: content[: 12 + rng.randrange(len(content) - 12)]),
    "not gzip": _content(lambda content, rng: gzip.decompress(content)),
}
_VALUES = (
    "null", "true", "-1", "1e308", "-1e308", "1e999", "NaN", "-Infinity", "9" * 30, '""', '"x"',
    '"\\u0000"', '"\\ud800"', "[]", "{}", "[[[]]]", "[" * 3000 + "]" * 3000, '{"a": {"b": [null]}}',
)  # fmt: skip


def _json_value(value: str) -> Damage:
    """Put a value in the place of some other one, anywhere in the file's JSON."""

    def change(content: bytes, rng: random.Random) -> bytes:
        lines = content.decode().splitlines(keepends=True)
        whole = len(lines) == 1 or not lines[0].rstrip().endswith("}")
        at = 0 if whole else rng.randrange(len(lines))
        document = json.loads(content if whole else lines[at])
        mark = "\N{REPLACEMENT CHARACTER}here"
        _put(document, mark, rng)
        text = json.dumps(document).replace(json.dumps(mark), value)
        if whole:
            return text.encode()
        return "".join([*lines[:at], text + "\n", *lines[at + 1 :]]).encode()

    return _unpacked(change)


def _put(document: Any, value: Any, rng: random.Random) -> None:
    place = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = rng.choice(keys)
        below = place[key]
        if not isinstance(below, (dict, list)) or not below or rng.random() < 0.3:
            place[key] = value
            return
        place = below


def _dropped(content: bytes, rng: random.Random) -> bytes:
    document = json.loads(content)
    _remove(document, rng)
    return json.dumps(document).encode()


def _remove(document: Any, rng: random.Random) -> None:
    while isinstance(document, dict) and document:
        key = rng.choice(list(document))
        if not isinstance(document[key], dict) or not document[key] or rng.random() < 0.4:
            del document[key]
            return
        document = document[key]


JSON: dict[str, Damage] = {
    **{f"value {value[:12]}": _json_value(value) for value in _VALUES},
    "a key dropped": _unpacked(
        lambda content, rng: (
            _dropped(content.splitlines()[0], rng)
            + b"\n"
            + b"".join(content.splitlines(keepends=True)[1:])
            if content.count(b"\n") > 1 and content.splitlines()[0].rstrip().endswith(b"}")
            else _dropped(content, rng)
        )
    ),
}


def _arrays(change: Callable[[dict[str, np.ndarray], random.Random], object]) -> Damage:
    """Change the arrays of a safetensors file and write it with a checksum that is right."""

    def damage(path: Path, rng: random.Random) -> None:
        arrays, facts = load_arrays(path)
        arrays = {name: array.copy() for name, array in arrays.items()}
        change(arrays, rng)
        save_arrays(path, arrays, facts)

    return damage


def _some(arrays: dict[str, np.ndarray], rng: random.Random) -> str:
    return rng.choice(sorted(arrays))


def _set(make: Callable[[np.ndarray], np.ndarray]) -> Damage:
    def change(arrays: dict[str, np.ndarray], rng: random.Random) -> None:
        name = _some(arrays, rng)
        arrays[name] = make(arrays[name])

    return _arrays(change)


ARRAYS: dict[str, Damage] = {
    "an array dropped": _arrays(lambda arrays, rng: arrays.pop(_some(arrays, rng))),
    "an array renamed": _arrays(
        lambda arrays, rng: arrays.update({"other": arrays.pop(_some(arrays, rng))})
    ),
    "no arrays": _arrays(lambda arrays, rng: arrays.clear()),
    "one number": _set(lambda array: array.reshape(-1)[:1].reshape(())),
    "shorter": _set(lambda array: array[:-1] if array.ndim else array.reshape(1)),
    "empty": _set(lambda array: array.reshape(-1)[:0]),
    "transposed": _set(lambda array: array.T if array.ndim > 1 else array[:, None]),
    "repeated": _set(lambda array: np.concatenate([array.reshape(-1)] * 2)),
    "as text": _set(lambda array: np.frombuffer(array.tobytes(), np.uint8).copy()),
    "as booleans": _set(lambda array: array.astype(bool)),
    "as integers": _set(lambda array: array.astype(np.int64) + 2),
    "huge integers": _set(lambda array: np.full(array.shape, 2**62)),
    "negative": _set(lambda array: np.full(array.shape, -5, array.dtype)),
    "NaN": _set(lambda array: np.full(array.shape, np.nan, np.float32)),
}


# Another draw would be the same damage.
_WITHOUT_CHANCE = {
    *NOT_FILES, "a gzip bomb", "removed", "emptied", "twice", "byte order mark", "carriage returns",
    "an empty line", "a line dropped", "a line doubled", "full-width digits", "underscores",
    "not gzip", "no arrays",
}  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A kind of input: how a sound one is written and read, and which of its files are damaged."""

    write: Callable[[Path], None]
    read: Callable[[Path], Any]
    checked: bool = False  # Whether a checksum covers it: then no change at all is accepted.


KINDS: dict[str, Kind] = {
    "labelled corpus": Kind(write_labelled, read_labelled),
    "parallel corpus": Kind(write_parallel, read_parallel),
    "gold alignments": Kind(write_aligned, read_aligned),
    "vectors, text": Kind(write_text_vectors, read_text_vectors),
    "vectors, gzip": Kind(write_packed_vectors, read_text_vectors),
    "vectors, folder": Kind(write_array_vectors, read_array_vectors),
    "finished unit": Kind(write_finished, read_unit_folder, checked=True),
    "unit in training": Kind(write_running, read_unit_folder),
    "queue": Kind(write_queue, read_queue),
}


@dataclass(frozen=True)
class Case:
    """One damage to one file of one kind of input; ``draw`` seeds its random numbers."""

    kind: str
    file: str
    damage: str
    draw: int = 0

    @property
    def apply(self) -> Damage:
        return _damages(self.file)[self.damage]

    @property
    def must_refuse(self) -> bool:
        """Whether no reader may accept it (a log that is missing is one that was not begun)."""
        optional = self.file == "environment.json" or self.kind == "queue"
        needed = not optional and self.damage != "removed"
        return needed and (self.damage in NOT_FILES or self.damage in PACKED)


def _damages(file: str) -> dict[str, Damage]:
    found = NOT_FILES | BYTES
    if file.endswith(".safetensors"):
        return found | ARRAYS
    found |= INSIDE
    if file.endswith(".gz"):
        found |= PACKED
    if ".json" in file or file.endswith("lock"):
        found |= JSON
    return found


def _has_content(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def write_sound(folder: Path) -> None:
    """Write a sound input of every kind into folders of these names."""
    for name, kind in KINDS.items():
        (folder / name).mkdir()
        kind.write(folder / name)


def cases(folder: Path, draws: int) -> Iterator[Case]:
    """Yield every damage of every file of `write_sound`, then those that are random again."""
    for draw in range(draws):
        for name in KINDS:
            sound = folder / name
            paths = sorted(path for path in sound.rglob("*") if _has_content(path))
            for file in (str(path.relative_to(sound)) for path in paths):
                for damage in _damages(file):
                    if draw == 0 or damage not in _WITHOUT_CHANCE:
                        yield Case(name, file, damage, draw)
