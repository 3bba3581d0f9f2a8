"""Named arrays in a safetensors file that knows its own checksum.

The header carries a SHA-256 of the whole file (computed with zeros in its place), so a truncated
or altered file is recognised when it is read, and named. The same arrays always give the same
bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors.numpy import load, save

from attnscope.errors import DamagedFile
from attnscope.runs.atomic import write_bytes

Arrays = dict[str, np.ndarray]

# One metadata entry, because safetensors writes several in a random order.
_ENTRY = "attnscope"
_NO_DIGEST = "0" * 64
_DIGEST = re.compile(rb"sha256=([0-9a-f]{64});")


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray], facts: Mapping[str, str]) -> None:
    """Write arrays and a few facts (strings) about them, atomically and with a checksum."""
    # safetensors reads the buffer as it lies, so a transposed view must be laid out first.
    solid = {
        name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()
    }
    entry = f"sha256={_NO_DIGEST};{json.dumps(dict(facts), sort_keys=True)}"
    content = save(solid, metadata={_ENTRY: entry})
    digest = hashlib.sha256(content).hexdigest()
    write_bytes(path, content.replace(_NO_DIGEST.encode(), digest.encode(), 1))


def load_arrays(path: Path) -> tuple[Arrays, dict[str, str]]:
    """Read arrays and facts; a file that is not what was written raises `DamagedFile`."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DamagedFile(f"{path} cannot be read ({error.strerror}).") from error
    found = _DIGEST.search(content)
    if found is None or found[1].decode() != _digest_without(content, found[1]):
        raise DamagedFile(f"{path} is truncated, or was altered after it was written.")
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    entry = header["__metadata__"][_ENTRY]
    return load(content), json.loads(entry.partition(";")[2])


def _digest_without(content: bytes, digest: bytes) -> str:
    return hashlib.sha256(content.replace(digest, _NO_DIGEST.encode(), 1)).hexdigest()
