"""Settings of PyTorch under which the same unit gives the same bytes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def repeatable(device: str, precision: str = "float32") -> Iterator[None]:
    """Use one CPU thread and deterministic kernels, so that a unit's bytes are reproducible.

    ``precision`` is that of a GPU's products: ``float32`` or ``tf32``.
    """
    if device == "cuda":
        # cuBLAS reads this when it is first used; without it its sums are not deterministic.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    with _one_thread(), _deterministic_kernels(), _tf32_products(precision == "tf32"):
        yield


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


_mutex = threading.Lock()
_inside = 0  # blocks that are entered, in all threads: the mode is the process's
_before: tuple[int, bool] = (0, False)  # mode and filling of memory, before the first of them


@contextmanager
def _deterministic_kernels() -> Iterator[None]:
    global _inside, _before
    memory: Any = torch.utils.deterministic
    with _mutex:
        if not _inside:
            _before = torch.get_deterministic_debug_mode(), memory.fill_uninitialized_memory
        _inside += 1
        # The same as `torch.use_deterministic_algorithms`, without its import of the compiler
        # (1.4 s).
        torch.set_deterministic_debug_mode("error")
        # Nothing here reads memory that it has not written; filling it costs a kernel a tensor.
        memory.fill_uninitialized_memory = False
    try:
        yield
    finally:
        with _mutex:
            _inside -= 1
            if not _inside:
                mode, memory.fill_uninitialized_memory = _before
                torch.set_deterministic_debug_mode(mode)


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
