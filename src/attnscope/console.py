"""How the command line tells what goes on: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from typing import IO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

_LINE_EVERY = 30.0  # seconds between two plain lines


class _StepsPerSecond(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.0f} steps/s", style="progress.data.speed")


class Bars:
    """One bar per stretch of work, counted in training steps, with speed and time left."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[units]}"),
            _StepsPerSecond(),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = TaskID(0)
        self._done = self._units = 0

    def begin(self, title: str, units: int, steps: int) -> None:
        """Show a bar."""
        self._done, self._units = 0, units
        self._progress.start()
        self._task = self._progress.add_task(title, total=steps, units=f"0/{units} units")

    def advance(self, steps: int) -> None:
        """Move the bar."""
        self._progress.advance(self._task, steps)

    def finished(self, unit: str) -> None:
        """Count a unit."""
        self._done += 1
        self._progress.update(self._task, units=f"{self._done}/{self._units} units")

    def note(self, sentence: str) -> None:
        """Print above the bar."""
        self._progress.console.print(sentence, style="yellow", markup=False)

    def end(self) -> None:
        """Leave the bar as it is."""
        self._progress.stop()


class Lines:
    """A line now and then, for logs and pipes."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._title = ""
        self._steps = self._total = self._done = self._units = 0
        self._started = self._told = 0.0

    def begin(self, title: str, units: int, steps: int) -> None:
        """Say what begins."""
        self._title, self._units, self._total = title, units, steps
        self._steps = self._done = 0
        self._started = self._told = time.monotonic()
        self._say(f"{title}: {units} units, {steps} steps")

    def advance(self, steps: int) -> None:
        """Say now and then how far it is."""
        self._steps += steps
        now = time.monotonic()
        if now - self._told >= _LINE_EVERY and self._steps:
            self._told = now
            speed = self._steps / (now - self._started)
            left = (self._total - self._steps) / speed
            self._say(
                f"{self._title}: {self._steps}/{self._total} steps, {self._done}/{self._units} "
                f"units, {speed:.1f} steps/s, {left:.0f} s left"
            )

    def finished(self, unit: str) -> None:
        """Count a unit."""
        self._done += 1

    def note(self, sentence: str) -> None:
        """Print the sentence."""
        self._say(sentence)

    def end(self) -> None:
        """Say that it is done, and how long it took."""
        seconds = time.monotonic() - self._started
        self._say(f"{self._title}: {self._done}/{self._units} units in {seconds:.1f} s")

    def _say(self, sentence: str) -> None:
        print(sentence, file=self._stream, flush=True)
