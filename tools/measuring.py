"""Time what every recipe does after training: writes ``running/cost/measuring.csv``.

    python tools/measuring.py [RECIPE …]

Each recipe runs with ``--quick`` in one process, about fifteen minutes in all. Only the ratio of
two times of one run is kept, and the seconds of drawing, so that the machine hardly matters.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from attnscope.recipes.kit.lab import Lab
from attnscope.recipes.registry import entries
from attnscope.running import run as running

TABLE = Path(__file__).parents[1] / "src" / "attnscope" / "running" / "cost" / "measuring.csv"
# Below so many seconds of evaluations a ratio is noise: all of measuring counts as constant.
_LEAST = 0.1


@contextmanager
def timed(owner: Any, name: str) -> Iterator[list[float]]:
    """Collect the seconds of every call of a function."""
    seconds: list[float] = []
    original: Callable[..., Any] = getattr(owner, name)

    def call(*args: Any, **settings: Any) -> Any:
        started = time.perf_counter()
        try:
            return original(*args, **settings)
        finally:
            seconds.append(time.perf_counter() - started)

    with patch.object(owner, name, call):
        yield seconds


def measure(recipe: str, workspace: str) -> tuple[float, float]:
    """Return the ratio and the constant seconds of a recipe."""
    with timed(Lab, "train") as training, timed(running, "draw") as drawing:
        done = running.run(recipe, quick=True, jobs=1, out=workspace)
    measuring = done.result.seconds - sum(training)
    evaluations = sum(row.get("seconds", 0.0) for unit in done.units for row in unit.folder.log)
    if evaluations < _LEAST:
        return 0.0, sum(drawing) + measuring
    return measuring / evaluations, sum(drawing)


def main(wanted: list[str]) -> None:
    """Write the table; rows of recipes that are not wanted stay."""
    with TABLE.open(encoding="utf-8") as lines:
        rows = {row["recipe"]: (row["ratio"], row["seconds"]) for row in csv.DictReader(lines)}
    with TemporaryDirectory() as workspace:
        for entry in entries():
            if not wanted or entry.name in wanted:
                ratio, seconds = measure(entry.name, workspace)
                rows[entry.name] = (f"{ratio:.2f}", f"{seconds:.1f}")
                print(entry.name, *rows[entry.name])
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("recipe", "ratio", "seconds"))
        writer.writerows((entry.name, *rows[entry.name]) for entry in entries())


if __name__ == "__main__":
    main(sys.argv[1:])
