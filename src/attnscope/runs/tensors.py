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
from safetensors import SafetensorError
from safetensors.numpy import load, save

from attnscope.errors import DamagedFile, UnreadableFile
from attnscope.runs.atomic import write_bytes
from attnscope.runs.files import parse_json, read_file

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
    arrays, facts, _ = load_checked(path)
    return arrays, facts


def load_checked(path: Path) -> tuple[Arrays, dict[str, str], str]:
    """Read arrays, facts and the SHA-256 of the whole file."""
    try:
        content = read_file(path)
    except UnreadableFile as error:
        raise DamagedFile(f"{error}") from error
    header = content[8 : 8 + int.from_bytes(content[:8], "little")]
    found = _DIGEST.search(header)
    if found is None or found[1].decode() != _digest_without(content, found[1]):
        raise DamagedFile(f"{path} is truncated, or was altered after it was written.")
    try:
        facts = parse_json(parse_json(header)["__metadata__"][_ENTRY].partition(";")[2])
        arrays = load(content)
    except (SafetensorError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise DamagedFile(f"{path} does not hold arrays ({error}).") from error
    if not isinstance(facts, dict) or not all(isinstance(each, str) for each in facts.values()):
        raise DamagedFile(f"{path} does not hold arrays of attnscope.")
    return arrays, facts, hashlib.sha256(content).hexdigest()


def _digest_without(content: bytes, digest: bytes) -> str:
    return hashlib.sha256(content.replace(digest, _NO_DIGEST.encode(), 1)).hexdigest()
