"""A line of the table of recipes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A recipe as `attnscope list` shows it.

    ``cpu_minutes`` and ``gpu_minutes`` are rough times of a full run on two CPU cores and on one
    data-centre GPU; ``gpu_minutes`` is None where a GPU does not help, and both are None where
    nobody has measured them.
    """

    name: str
    title: str
    needs: str
    cpu_minutes: float | None
    gpu_minutes: float | None
    module: str
