"""Progress of long work that trains nothing."""

from __future__ import annotations

from attnscope.training.progress import counted
from counted import Counted


def test_items_are_counted_when_the_loop_is_done_with_them():
    progress = Counted()
    seen = [(item, progress.steps) for item in counted(progress, "letters", iter("ab"))]
    assert seen == [("a", 0), ("b", 1)]
    assert (progress.told, progress.steps) == ([("letters", 0, 2, 0), "end"], 2)
