"""Families in miniature; without transformers there is nothing to test."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers")
