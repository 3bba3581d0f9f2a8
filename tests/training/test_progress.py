"""Progress of long work that trains nothing."""

from __future__ import annotations

from attnscope.training.progress import Silent, counted


class Counts(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []

    def begin(self, title: str, units: int, steps: int, evaluations: int) -> None:
        self.told.append((title, steps))

    def advance(self, steps: int) -> None:
        self.told.append(("done", steps))

    def end(self) -> None:
        self.told.append(("end", 0))


def test_items_are_counted_when_the_loop_is_done_with_them():
    progress, seen = Counts(), []
    for item in counted(progress, "letters", iter("ab")):
        seen.append((item, progress.told.count(("done", 1))))
    assert seen == [("a", 0), ("b", 1)]
    assert progress.told == [("letters", 2), ("done", 1), ("done", 1), ("end", 0)]
