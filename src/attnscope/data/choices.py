"""Random choices that are the same on every machine and in every version of Python."""

from __future__ import annotations

from random import Random
from typing import TypeVar

_Option = TypeVar("_Option")


def pick(rng: Random, options: tuple[_Option, ...]) -> _Option:
    """Return one of the options."""
    # Of all of Random's methods only random() is promised to stay the same across versions.
    return options[int(rng.random() * len(options))]


def shuffled(rng: Random, options: tuple[_Option, ...]) -> list[_Option]:
    """Return the options in a random order."""
    return [option for _, option in sorted((rng.random(), option) for option in options)]


def words(text: str) -> tuple[str, ...]:
    """Split a list written as text."""
    return tuple(text.split())
