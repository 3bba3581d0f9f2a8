"""What tells units, and sources, apart: as few of their settings as do it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attnscope.report.candidates import Candidate


def labels(candidates: Sequence[Candidate]) -> list[str]:
    """Return what tells units apart: as few settings as do it, and the seed."""
    hidden = ("seed", "device", "source", "training.scores", "training.final", "training.metrics")
    settings = [
        {key: value for key, value in flat(each.config) if not key.startswith(hidden)}
        for each in candidates
    ]
    seeds = [f"seed {each.config['seed']}" for each in candidates]
    return [
        ", ".join([*told, seed]) for told, seed in zip(telling(settings, seeds), seeds, strict=True)
    ]


def telling(settings: Sequence[Mapping[str, Any]], known: Sequence[str]) -> list[list[str]]:
    """Return for each of several settings what sets it apart from the others.

    ``known`` is what a reader is told anyway. Kinds come first; a setting that tells no more than
    those before it is left out.
    """
    keys = sorted({key for one in settings for key in one}, key=lambda k: (_rank(k), k))
    told: list[list[str]] = [[] for _ in settings]
    for key in keys:
        more = [[*own, _told(key, one.get(key))] for own, one in zip(told, settings, strict=True)]
        if _distinct(more, known) > _distinct(told, known):
            told = more
    return [[part for part in own if part] for own in told]


def _distinct(told: Sequence[Sequence[str]], known: Sequence[str]) -> int:
    return len({(*own, name) for own, name in zip(told, known, strict=True)})


def _rank(key: str) -> int:
    return 0 if key.endswith("kind") else 1


def _told(key: str, value: Any) -> str:
    """Return a setting as a reader wants it, nothing where it is not there."""
    parts = [part for part in key.split(".") if not part.isdigit()]
    name = parts[-2] if parts[-1] == "kind" and len(parts) > 1 else parts[-1]
    return "" if value is None else f"{name.replace('_', ' ')} {value}"


def flat(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every single setting with the path to it."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from flat(part, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from flat(part, f"{prefix}.{place}")
    else:
        yield prefix, value
