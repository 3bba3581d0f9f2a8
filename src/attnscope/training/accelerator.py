"""Facts about a GPU that may decide the last bits of a unit: model, driver, cuDNN."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import torch

_DRIVER = Path("/proc/driver/nvidia/version")


@cache
def accelerator(device: str) -> dict[str, str]:
    """Return model, driver and cuDNN version of the current GPU; nothing for a CPU."""
    if device != "cuda" or not torch.cuda.is_available():
        return {}
    return {
        "gpu": torch.cuda.get_device_name(),
        "driver": driver_version(_DRIVER),
        "cudnn": str(torch.backends.cudnn.version()),
    }


def driver_version(path: Path) -> str:
    """Return the version of NVIDIA's driver that a kernel names in a file, or "unknown"."""
    try:
        found = re.search(r"Module.*?\s(\d+\.\d+(?:\.\d+)?)\s", path.read_text())
    except OSError:
        found = None
    return found[1] if found else "unknown"
