"""Explicit randomness: a generator is a pure function of a key, never of earlier draws."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

_Option = TypeVar("_Option")


def seed_of(*key: str | int) -> int:
    """Return a 63-bit seed for a key such as ``("train", seed, step)``."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def generator(*key: str | int) -> torch.Generator:
    """Return a CPU generator for a key."""
    return torch.Generator().manual_seed(seed_of(*key))


@contextmanager
def seeded(*key: str | int) -> Iterator[None]:
    """Draw from a key's own stream inside the block, as module constructors need it."""
    with torch.random.fork_rng(devices=[]):
        # Not torch.manual_seed, which reseeds every GPU too and does not restore it.
        torch.default_generator.manual_seed(seed_of(*key))
        yield


def pick(rng: Random, options: tuple[_Option, ...]) -> _Option:
    """Return one of the options, the same on every machine and in every version of Python."""
    # Of all of Random's methods only random() is promised to stay the same across versions.
    return options[int(rng.random() * len(options))]


def shuffled(rng: Random, options: tuple[_Option, ...]) -> list[_Option]:
    """Return the options in a random order."""
    return [option for _, option in sorted((rng.random(), option) for option in options)]


def counter_uniform(
    seed: int | Int[Tensor, ""], *counters: Int[Tensor, "..."]
) -> Float[Tensor, "..."]:
    """Return numbers in [0, 1) that depend on the seed and the counters alone.

    Counter-based numbers (SplitMix64's mixing) do not depend on how examples are batched or padded,
    unlike those that a generator draws in order. A seed that is a tensor must be random bits
    already: it is not mixed any further.
    """
    # A plain number stays one: a tensor of it would wait for a GPU.
    state: Any = seed if isinstance(seed, Tensor) else seed_of("counter", seed)
    for counter in counters:
        state = _mix(state + counter * -7046029254386353131)  # 2^64 / golden ratio
    return (_shift(state, 11)).double() / 2**53


def _shift(value: Int[Tensor, "..."], bits: int) -> Int[Tensor, "..."]:
    # torch shifts int64 arithmetically; SplitMix64 wants zeros from the left.
    return (value >> bits) & ((1 << (64 - bits)) - 1)


def _mix(value: Int[Tensor, "..."]) -> Int[Tensor, "..."]:
    value = (value ^ _shift(value, 30)) * -4658895280553007687
    value = (value ^ _shift(value, 27)) * -7723592293110705685
    return value ^ _shift(value, 31)
