"""What a run ran on: versions and device, recorded beside every unit and result."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from attnscope import __version__

_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn")


def environment(device: str) -> dict[str, Any]:
    """Return the versions that decide numbers, and the device's kind."""
    return {
        "attnscope": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "device": device,
    } | {name: _version(name) for name in _PACKAGES}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
