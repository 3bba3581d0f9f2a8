"""The documentation: its pages, their code, and the built site (`make docs` builds it)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"
sys.path[:0] = [str(ROOT / "tools"), str(Path(__file__).parent)]


@pytest.fixture(scope="session")
def site() -> Path:
    assert (SITE / "index.html").exists(), "run make docs first"
    return SITE
