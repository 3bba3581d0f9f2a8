"""Scores of an audit on disk: one file per score, by example, with words."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from attnscope.audits.datasets_folder import import_pyarrow
from attnscope.audits.subject import Subject
from attnscope.data.tokenised import TokenisedBatch
from attnscope.errors import UsageError, WorkspaceError, suggestion
from attnscope.runs.atomic import read_json, write_bytes, write_json
from attnscope.runs.tensors import load_arrays, save_arrays


def save_scores(folder: Path, subject: Subject) -> None:
    """Write the scores that were read, and the words of their examples."""
    examples: dict[str, Any] = {}
    for name, scores in subject.stored.items():
        arrays: dict[str, np.ndarray] = {}
        for score in scores:
            values = score.values.masked_fill(~score.mask, float("nan")).float().cpu().numpy()
            for row, example in enumerate(score.batch.ids.tolist()):
                out = int(score.batch.target_lengths[row])
                inp = int(score.batch.input_lengths[row])
                arrays[str(example)] = values[row, :out, :inp]
                examples.setdefault(str(example), _words(subject, score, row, out, inp))
        save_arrays(folder / "scores" / f"{name}.safetensors", arrays, {"score": name})
    if examples:
        ordered = dict(sorted(examples.items(), key=lambda item: int(item[0])))
        write_json(folder / "scores" / "examples.json", ordered)


def _words(subject: Subject, score: Any, row: int, out: int, inp: int) -> dict[str, Any]:
    cut = subject.model.tokeniser
    inputs = score.batch.inputs[row, :inp].tolist()
    targets = score.batch.targets[row, :out].tolist()
    spelled = [str(each) for each in inputs] if cut is None else cut.decode(inputs)
    if subject.labels or cut is None:
        written = [str(each) for each in targets]
    else:
        written = cut.decode(targets)
    told: dict[str, Any] = {"inputs": spelled, "outputs": written}
    if isinstance(score.batch, TokenisedBatch):
        told["words"] = score.batch.input_words[row, :inp].tolist()
    return told


def export(folder: str | Path, path: str | Path, format: str | None = None) -> Path:
    """Write all stored scores of an audit as one table.

    Parameters
    ----------
    folder
        Of an audit, with ``scores``.
    path
        The file to write.
    format
        ``parquet`` (extra ``arrow``), ``csv`` or ``npz``; by default the file's ending.
    """
    folder, path = Path(folder), Path(path)
    if not (folder / "scores" / "examples.json").exists():
        raise WorkspaceError(f"{folder} has no stored scores: it is not the folder of an audit.")
    writers = {"csv": _csv, "npz": _npz, "parquet": _parquet}
    chosen = path.suffix.removeprefix(".") if format is None else format
    if chosen not in writers:
        raise UsageError(f"{path}: {chosen!r} is not a format; {suggestion(chosen, writers)}")
    writers[chosen](folder, path)
    return path


def _rows(folder: Path) -> Iterator[tuple[str, int, int, str, int, str, float]]:
    words = read_json(folder / "scores" / "examples.json")
    for file in sorted((folder / "scores").glob("*.safetensors")):
        arrays, _ = load_arrays(file)
        for example in sorted(arrays, key=int):
            spelled = words[example]
            for (t, place), value in np.ndenumerate(arrays[example]):
                if not np.isnan(value):
                    output, word = spelled["outputs"][t], spelled["inputs"][place]
                    yield file.stem, int(example), t, output, place, word, float(value)


_COLUMNS = ("score", "example", "t", "output", "l", "input", "value")


def _csv(folder: Path, path: Path) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(_COLUMNS)
    writer.writerows(_rows(folder))
    write_bytes(path, text.getvalue().encode())


def _npz(folder: Path, path: Path) -> None:
    columns = list(zip(*_rows(folder), strict=True))
    buffer = io.BytesIO()
    arrays = {name: np.array(column) for name, column in zip(_COLUMNS, columns, strict=True)}
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    write_bytes(path, buffer.getvalue())


def _parquet(folder: Path, path: Path) -> None:
    pyarrow = import_pyarrow("The format is Parquet")
    import pyarrow.parquet as parquet

    columns = list(zip(*_rows(folder), strict=True))
    arrays = {name: list(column) for name, column in zip(_COLUMNS, columns, strict=True)}
    buffer = io.BytesIO()
    parquet.write_table(pyarrow.table(arrays), buffer)
    write_bytes(path, buffer.getvalue())
