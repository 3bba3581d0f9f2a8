"""Progress of long work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar, runtime_checkable

T = TypeVar("T")


@runtime_checkable
class Progress(Protocol):
    """Callbacks of training; the command line shows them, a library user may ignore them."""

    def begin(self, title: str, units: int, steps: int, evaluations: int) -> None:
        """Start a stretch of work of so many units, training steps and evaluations."""

    def advance(self, steps: int) -> None:
        """Count steps."""

    def evaluated(self, evaluations: int) -> None:
        """Count evaluations."""

    def finished(self, unit: str) -> None:
        """Count a unit."""

    def note(self, sentence: str) -> None:
        """Report something that does not stop the work."""

    def end(self) -> None:
        """End the stretch of work."""


class Silent:
    """Reports nothing."""

    def begin(self, title: str, units: int, steps: int, evaluations: int) -> None:
        """Do nothing."""

    def advance(self, steps: int) -> None:
        """Do nothing."""

    def evaluated(self, evaluations: int) -> None:
        """Do nothing."""

    def finished(self, unit: str) -> None:
        """Do nothing."""

    def note(self, sentence: str) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Do nothing."""


@contextmanager
def counting(progress: Progress, title: str, steps: int) -> Iterator[Callable[[int], None]]:
    """Show long work that trains nothing; give the function that counts its steps."""
    progress.begin(title, 0, steps, 0)
    try:
        yield progress.advance
    finally:
        progress.end()


def counted(progress: Progress, title: str, items: Iterable[T]) -> Iterator[T]:
    """Yield items, each counted when the loop is done with it."""
    waiting = list(items)
    with counting(progress, title, len(waiting)) as count:
        for item in waiting:
            yield item
            count(1)
