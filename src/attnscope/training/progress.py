"""Progress of long work."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class Progress(Protocol):
    """Callbacks of training; the command line shows them, a library user may ignore them."""

    def begin(self, title: str, units: int, steps: int) -> None:
        """Start a stretch of work of so many units and training steps."""

    def advance(self, steps: int) -> None:
        """Count steps."""

    def finished(self, unit: str) -> None:
        """Count a unit."""

    def note(self, sentence: str) -> None:
        """Report something that does not stop the work."""

    def end(self) -> None:
        """End the stretch of work."""


class Silent:
    """Reports nothing."""

    def begin(self, title: str, units: int, steps: int) -> None:
        """Do nothing."""

    def advance(self, steps: int) -> None:
        """Do nothing."""

    def finished(self, unit: str) -> None:
        """Do nothing."""

    def note(self, sentence: str) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Do nothing."""
