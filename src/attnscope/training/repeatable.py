"""Settings of PyTorch under which the same unit gives the same bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def repeatable(device: str, precision: str = "float32") -> Iterator[None]:
    """Use one CPU thread and deterministic kernels, so that a unit's bytes are reproducible.

    ``precision`` is that of a GPU's products: ``float32`` or ``tf32``.
    """
    threads = torch.get_num_threads()
    mode = torch.get_deterministic_debug_mode()
    memory: Any = torch.utils.deterministic
    filling = memory.fill_uninitialized_memory
    if device == "cuda":
        # cuBLAS reads this when it is first used; without it its sums are not deterministic.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.set_num_threads(1)
    # The same as `torch.use_deterministic_algorithms`, without its import of the compiler (1.4 s).
    torch.set_deterministic_debug_mode("error")
    # Nothing here reads memory that it has not written; filling it costs a kernel a tensor.
    memory.fill_uninitialized_memory = False
    try:
        with _tf32_products(precision == "tf32"):
            yield
    finally:
        torch.set_num_threads(threads)
        torch.set_deterministic_debug_mode(mode)
        memory.fill_uninitialized_memory = filling


@contextmanager
def _tf32_products(allowed: bool) -> Iterator[None]:
    libraries: list[Any] = [torch.backends.cuda.matmul, torch.backends.cudnn]
    before = [library.allow_tf32 for library in libraries]
    for library in libraries:
        library.allow_tf32 = allowed
    try:
        yield
    finally:
        for library, known in zip(libraries, before, strict=True):
            library.allow_tf32 = known
