"""The bytes that a sweep must have."""

from __future__ import annotations

import pytest

from attnscope.training.engine.workers import train_units
from sweeping import numbers


@pytest.fixture
def expect(tmp_path_factory):
    """Compare trained units with those of a run here, byte for byte."""

    def compare(trained, units) -> None:
        here = train_units(units, tmp_path_factory.mktemp("here"))
        for one, other in zip(trained, here, strict=True):
            assert numbers(one.folder.path) == numbers(other.folder.path), one.folder.name

    return compare
