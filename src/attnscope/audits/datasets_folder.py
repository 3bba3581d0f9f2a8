"""A folder that Hugging Face `datasets` saved (``save_to_disk``): Arrow files and their names.

The files are read with pyarrow alone: nothing that the folder names is imported or run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnscope.errors import UsageError
from attnscope.runs.atomic import read_json

_TEXT, _TARGET = ("text", "sentence", "source"), "target"
_INFO, _STATE, _SPLITS = "dataset_info.json", "state.json", "dataset_dict.json"
_PARALLEL = "translation"  # a column of two languages


@dataclass(frozen=True)
class Columns:
    """Texts with labels or translations, None where there are none."""

    texts: Sequence[str]
    labels: Sequence[int] | None = None
    targets: Sequence[str] | None = None


def is_dataset(path: Path) -> bool:
    """Tell whether a folder is a data set that was saved, or several splits of one."""
    return any((path / name).is_file() for name in (_INFO, _STATE, _SPLITS))


def splits_of(path: Path) -> list[str]:
    """Return the names of the splits; empty for a single data set."""
    file = path / _SPLITS
    return [str(name) for name in read_json(file).get("splits", ())] if file.is_file() else []


def read_columns(path: Path) -> Columns:
    """Read the texts of one data set, with their labels or translations."""
    table = _table(path)
    names = table.column_names
    if _PARALLEL in names:
        pairs = table[_PARALLEL].to_pylist()
        source, target = (str(each.name) for each in table.schema.field(_PARALLEL).type)
        texts, targets = (
            [_string(path, pair[side]) for pair in pairs] for side in (source, target)
        )
        return Columns(texts, targets=targets)
    name = next((each for each in _TEXT if each in names), None)
    if name is None:
        raise UsageError(
            f"{path} has no column 'text', 'sentence', 'source' or 'translation', but {names}."
        )
    texts = [_string(path, each) for each in table[name].to_pylist()]
    if "label" in names:
        return Columns(texts, labels=[_label(path, each) for each in table["label"].to_pylist()])
    if _TARGET in names:
        return Columns(texts, targets=[_string(path, each) for each in table[_TARGET].to_pylist()])
    return Columns(texts)


def _table(path: Path) -> Any:
    pyarrow = import_pyarrow(f"{path} is a folder of Arrow files")
    tables = []
    for file in _files(path):
        try:
            with pyarrow.memory_map(str(file)) as source:
                tables.append(pyarrow.ipc.open_stream(source).read_all())
        except (OSError, pyarrow.ArrowInvalid) as error:
            raise UsageError(f"{file} cannot be read as Arrow ({error}).") from error
    return pyarrow.concat_tables(tables)


def _files(path: Path) -> list[Path]:
    """Return the Arrow files in their order: as the state names them, else by name."""
    state = path / _STATE
    named = read_json(state).get("_data_files", ()) if state.is_file() else ()
    files = [path / Path(str(each["filename"])).name for each in named]
    files = files or sorted(path.glob("*.arrow"))
    if not files:
        raise UsageError(f"{path} has no Arrow files.")
    return files


def import_pyarrow(why: str) -> Any:
    """Return pyarrow, or raise one sentence that names the extra."""
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError as error:
        raise UsageError(f"{why}, which needs pyarrow: pip install 'attnscope[arrow]'.") from error
    return pyarrow


def _string(path: Path, value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{path} has a text that is not a string: {value!r}.")
    return value


def _label(path: Path, value: Any) -> int:
    if not isinstance(value, int):
        raise UsageError(f"{path} has a label that is not a whole number: {value!r}.")
    return value
