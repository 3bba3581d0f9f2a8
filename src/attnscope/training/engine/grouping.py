"""Which units train together: a function of the units alone, not of the machine or ``--jobs``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise

from attnscope.runs.spec import fingerprint
from attnscope.training.engine.backend import backend_of
from attnscope.training.unit import Unit


def groups(units: Sequence[Unit]) -> list[list[Unit]]:
    """Return units in groups that train as one vmapped model; the others are groups of one.

    Units of one seed are neighbours, so that a split leaves few seeds to be drawn on both sides.
    """
    alike: dict[str, dict[int, list[Unit]]] = {}
    for unit in units:
        alike.setdefault(_likeness(unit), {}).setdefault(unit.seed, []).append(unit)
    found = []
    for seeds in alike.values():
        members = list(chain(*seeds.values()))
        found += _split(members, backend_of(members[0].device).parts(members))
    return found


def is_vmapped(units: Sequence[Unit]) -> bool:
    """Whether a group trains as one vmapped model; otherwise it is one unit by itself."""
    backend = backend_of(units[0].device)
    return len(units) > 1 or (backend.vmaps_single_units and backend.vectorises(units[0]))


def _likeness(unit: Unit) -> str:
    backend = backend_of(unit.device)
    if backend.vectorises(unit):
        return fingerprint(backend.likeness(unit))
    return fingerprint(unit.config())


def _split(units: list[Unit], parts: int) -> list[list[Unit]]:
    parts = min(parts, len(units))
    bounds = [len(units) * part // parts for part in range(parts + 1)]
    return [units[low:high] for low, high in pairwise(bounds)]
