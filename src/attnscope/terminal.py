"""Terminal output: progress of a run, and tables of recipes, measurements and verdicts.

Progress is a bar where standard output is a terminal, and plain lines elsewhere. Names and labels
come from corpora and results of others: their control characters are printed as escapes, and
nothing in them is read as markup.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
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
from rich.table import Table
from rich.text import Text

from attnscope.claims.symbols import in_words
from attnscope.claims.wording import axis_text, number, plain_setting, sentence
from attnscope.clean import CleanStream, clean
from attnscope.running.duration import about as about_time

if TYPE_CHECKING:
    from attnscope.claims.readings import Reading
    from attnscope.claims.verdicts import Judged
    from attnscope.own_text.about import About
    from attnscope.recipes.registry import Entry
    from attnscope.runs.measures import Measures
    from attnscope.runs.result import Measurement, Result

_LINE_EVERY = 30.0  # seconds between two plain lines
_TOLD = 0.02  # share of the steps after which the time left is estimated
_STYLES = {"holds": "green", "fails": "red", "undecided": "yellow"}


class CleanConsole(Console):
    """A console that prints strings as they are: clean, without markup and emoji codes."""

    def __init__(self) -> None:
        super().__init__(file=getattr(sys.stdout, "stream", sys.stdout), markup=False, emoji=False)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return clean text."""
        return super().render_str(clean(text), **options)


class _StepsPerSecond(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.0f} steps/s", style="progress.data.speed")


@dataclass
class _Counts:
    """Units and evaluations of a stretch of work, all of them and those that are done."""

    units: int = 0
    evaluations: int = 0
    finished: int = 0
    evaluated: int = 0

    def __str__(self) -> str:
        parts = [f"{self.finished}/{self.units} units"] * bool(self.units)
        parts += [f"{self.evaluated}/{self.evaluations} evaluations"] * bool(self.evaluations)
        return ", ".join(parts)


class Bars:
    """A progress bar for each stretch of work: steps, units, evaluations, speed and time left."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[counts]}"),
            _StepsPerSecond(),
            TimeRemainingColumn(),
            console=console,
        )
        self._task = TaskID(0)
        self._counts = _Counts()

    def begin(self, title: str, units: int, steps: int, evaluations: int) -> None:
        """Start a bar."""
        self._counts = _Counts(units, evaluations)
        self._progress.start()
        self._task = self._progress.add_task(clean(title), total=steps, counts=str(self._counts))

    def advance(self, steps: int) -> None:
        """Move the bar."""
        self._progress.advance(self._task, steps)

    def evaluated(self, evaluations: int) -> None:
        """Count evaluations."""
        self._counts.evaluated += evaluations
        self._progress.update(self._task, counts=str(self._counts))

    def finished(self, unit: str) -> None:
        """Count a unit."""
        self._counts.finished += 1
        self._progress.update(self._task, counts=str(self._counts))

    def note(self, sentence: str) -> None:
        """Print a sentence above the bar."""
        self._progress.console.print(sentence, style="yellow", markup=False)

    def end(self) -> None:
        """Leave the bar as it is."""
        self._progress.stop()


class Lines:
    """Progress as plain lines, one every 30 seconds, for logs and pipes."""

    def __init__(self, stream: IO[str] | CleanStream) -> None:
        self._stream = stream
        self._title = ""
        self._counts = _Counts()
        self._steps = self._total = 0
        self._started = self._printed = 0.0
        self._measured_from: tuple[float, int] | None = None

    def begin(self, title: str, units: int, steps: int, evaluations: int) -> None:
        """Print the title and the number of units, steps and evaluations."""
        self._title, self._total, self._steps = title, steps, 0
        self._counts = _Counts(units, evaluations)
        self._started = self._printed = time.monotonic()
        self._measured_from = None
        counts = [f"{units} units"] * bool(units) + [f"{steps} steps"]
        counts += [f"{evaluations} evaluations"] * bool(evaluations)
        self._print(f"{title}: {', '.join(counts)}")

    def advance(self, steps: int) -> None:
        """Count steps; print progress if the last line is old."""
        self._steps += steps
        self._report()

    def evaluated(self, evaluations: int) -> None:
        """Count evaluations; print progress if the last line is old."""
        self._counts.evaluated += evaluations
        self._report()

    def _report(self) -> None:
        now = time.monotonic()
        if now - self._printed >= _LINE_EVERY and self._steps:
            self._printed = now
            counts = f"{self._steps}/{self._total} steps, {self._counts}".removesuffix(", ")
            self._print(f"{self._title}: {counts}{self._speed(now)}")

    def _speed(self, now: float) -> str:
        """Return speed and time left, both from the first line on.

        Before it the steps of resumed units are counted, and the first steps of others wait for
        evaluations at the start.
        """
        if self._measured_from is None:
            self._measured_from = now, self._steps
            return ""
        since, before = self._measured_from
        speed = (self._steps - before) / (now - since)
        told = speed > 0 and self._steps >= _TOLD * self._total
        left = f", {about_time((self._total - self._steps) / speed)} left" if told else ""
        return f", {speed:.1f} steps/s{left}"

    def finished(self, unit: str) -> None:
        """Count a unit."""
        self._counts.finished += 1

    def note(self, sentence: str) -> None:
        """Print the sentence."""
        self._print(sentence)

    def end(self) -> None:
        """Print how long it took."""
        seconds = time.monotonic() - self._started
        done = f"{self._counts}" if self._counts.units else f"{self._steps}/{self._total} steps"
        self._print(f"{self._title}: {done} in {seconds:.1f} s")

    def _print(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


def shown_progress() -> Bars | None:
    """Return bars where standard output is a terminal, nothing elsewhere."""
    console = CleanConsole()
    return Bars(console) if console.is_terminal else None


def recipe_table(recipes: Iterable[Entry]) -> Table:
    """Return the table of recipes that `attnscope list` prints."""
    table = Table(title="Recipes", title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("recipe", no_wrap=True)
    for column in ("what it shows", "needs"):
        table.add_column(column)
    for column in ("CPU min", "GPU min"):
        table.add_column(column, justify="right")
    for recipe in recipes:
        minutes = (recipe.cpu_minutes, recipe.gpu_minutes)
        times = ["–" if time is None else f"{time:g}" for time in minutes]
        table.add_row(recipe.name, recipe.title, recipe.needs, *times)
    return table


def headline_table(
    rows: Sequence[Measurement],
    title: str,
    hidden: Iterable[str] = (),
    measures: Measures | None = None,
) -> Table:
    """Return a recipe's headline measurements as a table for 80 columns.

    Parameters
    ----------
    hidden
        Axes that all rows share.
    measures
        The recipe's measures: names are printed in words, with their symbols.
    """
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    printed = any(row.published is not None for row in rows)
    table.add_column("measured", min_width=20)
    short = all(len(row.dataset) <= 14 for row in rows)
    table.add_column("data set", overflow="fold", no_wrap=short)
    table.add_column("of", overflow="fold")
    for column in ("value", "95 % interval", "n", *(["paper"] if printed else [])):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        interval = "" if row.low is None else f"{number(row.low)} … {number(row.high)}"
        name = in_words(row.name, measures or {})
        cells = [name, row.dataset, _axes(row, hidden), number(row.value), interval, str(row.n)]
        table.add_row(*cells, *([number(row.published)] if printed else []))
    return table


def _axes(row: Measurement, hidden: Iterable[str]) -> str:
    split = {} if row.split == "val" else {"split": row.split}
    known = split | row.axes | row.found
    parts = {key: value for key, value in known.items() if key not in hidden}
    return ", ".join(axis_text(key, value, named=False) for key, value in parts.items())


def print_about(console: Console, about: Iterable[About]) -> None:
    """Print one block per corpus of the user's: warnings, numbers in words, what they mean."""
    for each in about:
        console.print(Text.assemble("About ", (clean(each.dataset), "bold")))
        lines = [(f"Warning: {text}", "yellow") for text in each.warnings]
        lines += [(text, "") for text in (*each.found, *each.means)]
        lines += [(f"Next: {text}", "dim") for text in each.next]
        for text, style in lines:
            console.print(Padding(Text(clean(text), style), (0, 0, 0, 4)))
        console.print()


def papers_claims(judged: Sequence[Judged]) -> str:
    """Return a line on claims that a run on the user's corpus measures and does not decide."""
    count = f"{len(judged)} claims of the papers are" if len(judged) > 1 else "One claim is"
    return (
        f"{count} about the papers' corpora and not shown; `attnscope claims` decides them on all "
        "runs."
    )


def scale_line(result: Result) -> str:
    """Return the scale of a run, and which settings are not the defaults."""
    changed = [f"{name}={plain_setting(value)}" for name, value in result.changed.items()]
    return f"Scale: {result.scale}{f' ({chr(32).join(changed)})' if changed else ''}"


def print_verdicts(console: Console, judged: Iterable[Judged]) -> None:
    """Print one paragraph per claim: verdict, statement, evidence, deviation, note."""
    for claim in judged:
        shown = claim.quick or claim.verdict
        label = f"quick, would say: {shown}" if claim.quick else str(shown)
        where = f" ({claim.where})" if claim.where else ""
        console.print(Text.assemble((label, _STYLES[shown]), " ", (claim.id, "bold"), clean(where)))
        first, *stricter = claim.readings or (None,)
        for text in (
            claim.statement,
            first and f"(a) The paper's words ({first.fixed}) {first.verdict}: {first.says}.",
            sentence(claim.evidence),
            *(_stricter(reading) for reading in stricter),
            claim.deviation and f"Deviation: {claim.deviation}.",
            claim.note and f"Note: {claim.note}",
        ):
            if text:
                console.print(f"    {text}", markup=False, highlight=False, soft_wrap=True)


def _stricter(reading: Reading) -> str:
    """Return the reading that does not give the verdict, with its own."""
    found = sentence(reading.evidence) or reading.note
    return f"(b) The stricter rule ({reading.fixed}) {reading.verdict}: {reading.says}. {found}"
