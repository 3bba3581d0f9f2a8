"""The table of an attack: how many cases were tried, and how they ended.

It is written to a file as it grows, so that an attack that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attnscope.errors import AttnscopeError

OUTCOMES = ("sentence", "accepted rightly", "traceback", "hang", "wrong")
_DEFECTS = OUTCOMES[2:]
_PATIENCE = 60  # seconds; reading takes milliseconds
_PRINTED_EVERY = 250  # cases


@dataclass
class Table:
    """The outcomes of each kind of case, and the cases that ended in a defect.

    One of several processes tries every ``processes``-th case, from the ``process``-th on.
    """

    path: Path | None = None
    process: int = 0
    processes: int = 1
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    tried: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path, process: int = 0, processes: int = 1) -> Table:
        """Read a table to go on with, or return an empty one."""
        if not path.exists():
            return cls(path, process, processes)
        kept = json.loads(path.read_text())
        counts = {kind: Counter(outcomes) for kind, outcomes in kept["counts"].items()}
        return cls(path, process, processes, counts, Counter(kept["tried"]), kept["failures"])

    def include(self, other: Table) -> None:
        """Add the outcomes of another process."""
        for kind, outcomes in other.counts.items():
            self.counts.setdefault(kind, Counter()).update(outcomes)
        self.failures += other.failures

    def left(self, part: str, count: int) -> Iterator[int]:
        """Yield the numbers of the cases of a part that are still to be tried."""
        try:
            for number in range(self.process, count, self.processes)[self.tried[part] :]:
                yield number
                self.tried[part] += 1
                if self.tried[part] % _PRINTED_EVERY == 0:
                    self.save()
                    print("\n".join(self.lines()), flush=True)
        finally:  # Also when it is interrupted.
            self.save()

    def add(self, kind: str, outcome: str, about: str) -> None:
        """Count a case; ``about`` identifies one that ended in a defect."""
        self.counts.setdefault(kind, Counter())[outcome] += 1
        if outcome in _DEFECTS:
            self.failures.append(f"{kind}: {about}: {outcome}")

    def save(self) -> None:
        """Write the table to its file, if it has one."""
        if self.path is not None:
            kept = {"counts": self.counts, "tried": self.tried, "failures": self.failures}
            self.path.write_text(json.dumps(kept, indent=1))

    def lines(self) -> list[str]:
        """Format the table as Markdown."""
        rows = ["| | tried | " + " | ".join(OUTCOMES) + " |", "|---|" + "---:|" * 6]
        total: Counter[str] = Counter()
        for kind, counts in self.counts.items():
            total.update(counts)
            rows.append(_line(kind, counts))
        return [*rows, _line("**all**", total)]


def _line(name: str, counts: Counter[str]) -> str:
    numbers = [counts.total(), *(counts[outcome] for outcome in OUTCOMES)]
    return f"| {name} | " + " | ".join(f"{number:,}" for number in numbers) + " |"


class Hang(BaseException):
    """A case that took longer than anybody waits."""


@contextmanager
def _alarm() -> Iterator[None]:
    def ring(number: int, frame: Any) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    # Of this process's own time: the machine may be busy with other things.
    before_prof = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, _PATIENCE)
    signal.alarm(20 * _PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGALRM, before)
        signal.signal(signal.SIGPROF, before_prof)


def outcome_of(read: Callable[[], Any]) -> tuple[str, Any]:
    """Return how reading ended, and the value that was read or the error's text."""
    try:
        with _alarm(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return "accepted rightly", read()
    except AttnscopeError as error:
        said = str(error)
        return ("sentence", said) if "\n" not in said and said else ("wrong", said)
    except Hang:
        return "hang", ""
    except Exception as error:
        return "traceback", f"{type(error).__name__}: {error}"
