"""What holds in every test: shapes and types are enforced, and nothing is left to chance.

pytest imports this file before any test module, in the main process and in each xdist worker, so
that the import hook is in force before the package is imported.
"""

import gc
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import settings

import enforced

if "attnscope" in sys.modules:
    raise RuntimeError("attnscope was imported before its types could be enforced")

enforced.install("attnscope")

# What is imported and collected stays to the end: until then nothing is searched for garbage.
gc.disable()

# One thread per process, as in training; it also keeps xdist's workers out of each other's way.
torch.set_num_threads(1)

# The same examples in every run. To look for new ones: pytest --hypothesis-profile=explore.
settings.register_profile(
    "attnscope", deadline=None, max_examples=40, derandomize=True, print_blob=True
)
settings.register_profile("explore", deadline=None, max_examples=1000, print_blob=True)
settings.load_profile("attnscope")

# Files of tests lie in memory where there is room: a unit waits for the disk at every checkpoint.
MEMORY, ROOM = Path("/dev/shm"), 4 * 2**30
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

# Begun first, so that at the end no process waits for another that is in one of them.
LONGEST = (
    "test_every_recipe.py",
    "test_scores.py",
    "test_zoo.py",
    "test_extend.py",
    "test_groups.py",
    "test_group_recovery.py",
    "test_audit.py",
    "test_own_text.py",
    "test_report.py",
    "test_folders.py",
    "test_cli.py",
    "test_cuda_graphs.py",
    "test_gpu_groups.py",
)


def pytest_collection_finish() -> None:
    """Look for garbage from now on, among what tests make alone."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first; the others stay in their order."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))
