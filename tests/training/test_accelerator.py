"""Facts about a GPU."""

from __future__ import annotations

import torch

from attnscope.training import accelerator

# As in NVIDIA's documentation of its kernel module.
VERSION = """NVRM version: NVIDIA UNIX x86_64 Kernel Module  525.60.13  Wed Nov 30 06:39:21 UTC 2022
GCC version:  gcc version 11.3.0 (Ubuntu 11.3.0-1ubuntu1~22.04)
"""
OPEN_VERSION = """NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build
GCC version:  gcc version 12.2.0
"""


def test_driver_is_read_from_the_kernel(tmp_path):
    path = tmp_path / "version"
    for text, expected in ((VERSION, "525.60.13"), (OPEN_VERSION, "570.86.15"), ("", "unknown")):
        path.write_text(text)
        assert accelerator.driver_version(path) == expected
    assert accelerator.driver_version(tmp_path / "missing") == "unknown"


def test_gpu_is_recorded_with_driver_and_cudnn(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H200")
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: 91002)
    accelerator.accelerator.cache_clear()
    found = accelerator.accelerator("cuda")
    accelerator.accelerator.cache_clear()
    assert found == found | {"gpu": "NVIDIA H200", "cudnn": "91002"}
    assert "driver" in found
    assert accelerator.accelerator("cpu") == {}
