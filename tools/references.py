"""List the reference runs of ``results/references.csv`` with their state, or make what is due.

    python tools/references.py                                      # the list
    python tools/references.py run --minutes 60 [--only tutek/] [--device cuda] [--out runs]

On a GPU ``--precision tf32`` is faster; results name it.

A run is *made* if its result in ``results/`` has today's settings and Student's intervals, *old*
if it has not, and *missing* if there is none. ``run`` makes what is not made, in the order of the
list, and begins no further run when the minutes are over; a run that was stopped is resumed.
Finished results and figures are copied into ``results/``; ``make reproduction`` renews the pages.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import attnscope
from attnscope.recipes.registry import find
from attnscope.running.naming import naming_of
from attnscope.running.run import read_config
from attnscope.runs.result import place_of, read_result
from attnscope.runs.spec import Settings
from attnscope.terminal import Lines

RESULTS = Path(__file__).parent.parent / "results"


@dataclass(frozen=True)
class Reference:
    """A run whose result is committed, as a line of the list names it."""

    recipe: str
    settings: str
    name: str

    def __str__(self) -> str:
        return f"{self.recipe} {self.settings}".strip()

    @property
    def given(self) -> dict[str, str]:
        """The settings by name."""
        return dict(pair.split("=", 1) for pair in self.settings.split())

    @cached_property
    def config(self) -> Settings:
        """All settings, as they are today."""
        return read_config(find(self.recipe), self.given)

    @property
    def place(self) -> str:
        """Where its result lies in a workspace."""
        named = naming_of(self.config, None, self.name or None)
        return place_of(self.recipe, named.part, named.variant)

    def state(self, results: Path = RESULTS) -> str:
        """Return ``made``, ``old`` or ``missing``."""
        path = results / self.place / "result.json"
        if not path.is_file():
            return "missing"
        result = read_result(path)
        current = result.config == self.config.model_dump(mode="json")
        return "made" if current and result.intervals == "student" else "old"


def references(results: Path = RESULTS) -> list[Reference]:
    """Return the reference runs, those that decide most first."""
    with (results / "references.csv").open(newline="") as file:
        return [Reference(**row) for row in csv.DictReader(file)]


def make(reference: Reference, out: Path, device: str, precision: str, jobs: int | None) -> None:
    """Make one reference run, and copy its result and figures into ``results/``."""
    made = attnscope.run(
        reference.recipe,
        reference.given,
        name=reference.name or None,
        out=out,
        device=device,
        precision=precision,
        jobs=jobs,
        progress=Lines(sys.stdout),
    )
    keep(made.folder, RESULTS / reference.place)


def keep(folder: Path, target: Path) -> None:
    """Copy a result with its figures, as SVG; figures that are not drawn there stay as they are."""
    target.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder / "result.json", target / "result.json")
    if (folder / "figures").is_dir():
        shutil.rmtree(target / "figures", ignore_errors=True)
        shutil.copytree(
            folder / "figures", target / "figures", ignore=shutil.ignore_patterns("*.png")
        )


def main() -> None:
    """Print the list, or make what is due."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("verb", nargs="?", choices=["list", "run"], default="list")
    parser.add_argument("--only", default="", help="recipes and settings that contain this text")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    given = parser.parse_args()
    chosen = [reference for reference in references() if given.only in str(reference)]
    if given.verb == "list":
        states = {reference: reference.state() for reference in chosen}
        for reference, state in states.items():
            print(f"{state:8} {reference}")
        print(", ".join(f"{count} {state}" for state, count in Counter(states.values()).items()))
        return
    started = time.monotonic()
    for reference in chosen:
        if reference.state() == "made":
            continue
        if time.monotonic() - started > 60 * given.minutes:
            break
        print(reference, flush=True)
        try:
            make(reference, given.out, given.device, given.precision, given.jobs)
        except Exception:
            traceback.print_exc()  # the other runs go on


if __name__ == "__main__":
    main()
