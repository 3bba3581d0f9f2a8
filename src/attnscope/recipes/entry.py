"""A line of the table of recipes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """What `attnscope list` says of a recipe.

    ``cpu_minutes`` and ``gpu_minutes`` are rough times of a full run on two CPU cores and on one
    data-centre GPU; ``gpu_minutes`` is None where a GPU brings nothing.
    """

    name: str
    title: str
    needs: str
    cpu_minutes: float
    gpu_minutes: float | None
    module: str
