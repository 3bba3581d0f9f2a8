"""Named arrays in a safetensors file that knows its own checksum.

The header's metadata carries a SHA-256 over names, shapes, types and bytes, so a truncated or
altered file is recognised when it is read, and named.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from attnscope.errors import DamagedFile
from attnscope.runs.atomic import write_bytes

Arrays = dict[str, np.ndarray]


def _digest(arrays: Mapping[str, np.ndarray], facts: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for key in sorted(facts):
        digest.update(f"{key}={facts[key]};".encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name}{array.shape}{array.dtype};".encode())
        digest.update(memoryview(np.ascontiguousarray(array).reshape(-1)).cast("B"))
    return digest.hexdigest()


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray], facts: Mapping[str, str]) -> None:
    """Write arrays and a few facts (strings) about them, atomically and with a checksum."""
    # safetensors reads the buffer as it lies, so a transposed view must be laid out first.
    solid = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()}
    metadata = dict(facts) | {"sha256": _digest(solid, facts)}
    write_bytes(path, save(solid, metadata=metadata))


def load_arrays(path: Path) -> tuple[Arrays, dict[str, str]]:
    """Read arrays and facts; raise `DamagedFile`, naming the file, if it is not what was written."""
    try:
        with safe_open(str(path), framework="numpy") as stream:
            facts = dict(stream.metadata() or {})
            arrays = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, ValueError) as error:
        raise DamagedFile(f"{path} cannot be read ({error}); it is truncated or altered.") from error
    expected = facts.pop("sha256", "")
    if expected != _digest(arrays, facts):
        raise DamagedFile(f"{path} was altered after it was written (its checksum does not match).")
    return arrays, facts
