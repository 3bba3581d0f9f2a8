"""Versions and device of a run, recorded with every unit and result."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from attnscope import __version__

_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "sentencepiece")


def environment(device: str, accelerator: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the versions that decide numbers, the device's kind, and facts about a GPU."""
    versions = {name: _version(name) for name in _PACKAGES}
    return {
        "attnscope": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "device": device,
        **versions,
        **(accelerator or {}),
    }


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the facts in which two environments differ, as in "torch 2.12.0 and 2.13.0".

    A fact that only one of them has, as units of earlier releases lack some, is not a difference.
    """
    shared = [name for name in one if name in other]
    return [f"{name} {one[name]} and {other[name]}" for name in shared if one[name] != other[name]]


@cache  # the file of a package's facts is read for every unit otherwise
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
