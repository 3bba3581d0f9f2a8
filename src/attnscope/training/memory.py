"""Memory that settings ask for: estimated before training, and named where it cannot be had."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch

from attnscope.data.corpus import Corpus
from attnscope.errors import AttnscopeError, UsageError
from attnscope.training.unit import Unit

# What torch and NumPy say when a tensor does not fit, or has more elements than can be counted.
_ALLOCATION = re.compile(
    r"you tried to allocate (\d+) bytes|Unable to allocate|not enough memory|can't allocate|"
    r"calculation overflowed|array is too big|Maximum allowed dimension|too large|exceeds max",
    re.IGNORECASE,
)
_INTEGER = 8  # bytes of an id
_FLOAT = 4


def needed_bytes(unit: Unit) -> int:
    """Estimate the largest tensors of a unit: its evaluation examples, and one step's attention.

    Lower than what training takes, so that nothing is refused that would fit.
    """
    batch = unit.source.training_batch(0, 0, 1)
    inputs, outputs = batch.inputs.shape[1], batch.targets.shape[1]
    examples = unit.training.examples * (inputs + 3 * outputs) * _INTEGER
    attention = unit.training.batch_size * inputs * outputs * _FLOAT
    return max(examples, attention)


def parameter_bytes(unit: Unit) -> int:
    """Return the bytes of a unit's parameters, without making them; 0 where that cannot be done.

    Only for parts of the package: a user's own may keep tensors that are made on the way.
    """
    if not all(
        type(part).__module__.startswith("attnscope.") for part in (unit.model, unit.source)
    ):
        return 0
    try:
        with torch.device("meta"), memory_errors(unit.name):
            parameters = list(unit.model.build(unit.source, unit.seed).parameters())
    except AttnscopeError:
        raise
    except Exception:  # a model may need real numbers to be made
        return 0
    return sum(each.numel() * each.element_size() for each in parameters)


def demand_memory(units: Iterable[Unit]) -> None:
    """Raise if a unit's parameters or largest tensors are larger than this machine's memory."""
    room = _physical_bytes()
    units = list(units)
    for unit in {(unit.source, unit.model): unit for unit in units}.values():
        if (needed := parameter_bytes(unit)) > room:
            raise UsageError(
                f"{unit.name} needs about {size(needed)} of memory for its parameters, and this "
                f"machine has {size(room)}: choose a smaller network."
            )
    seen = set()
    for unit in units:
        key = (unit.source, unit.training.examples, unit.training.batch_size)
        # A corpus has no more examples than its files, and is read by those who train on it.
        if key in seen or isinstance(unit.source, Corpus):
            continue
        seen.add(key)
        needed = needed_bytes(unit)
        if needed > room:
            raise UsageError(
                f"{unit.name} needs about {size(needed)} of memory for one tensor, and this "
                f"machine has {size(room)}: choose fewer examples, a smaller batch_size or shorter "
                "sequences."
            )


def _physical_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def size(count: int) -> str:
    """Return bytes as a reader says them, such as "3.8 TB"."""
    value = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TB"


@contextmanager
def memory_errors(where: str) -> Iterator[None]:
    """Turn an allocator's error into one sentence; a full GPU is left to those who can retry."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except (MemoryError, RuntimeError, ValueError, OverflowError) as error:
        found = _ALLOCATION.search(str(error))
        if found is None and not isinstance(error, MemoryError):
            raise
        asked = f" of {size(int(found[1]))}" if found and found[1] else ""
        raise AttnscopeError(
            f"{where}: a tensor{asked} does not fit in memory; choose smaller settings."
        ) from error
