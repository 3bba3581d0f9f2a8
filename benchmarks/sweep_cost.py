"""What does a sweep cost on 1, 8 and 64 GPUs, computed from a measured rate?

Run ``python benchmarks/sweep_cost.py --units 10000 --steps 200 --group 80 --rate 1.4``. The rate is
in milliseconds a seed and step, as ``benchmarks/copying.py`` and ``benchmarks/stacked.py`` print
them on the GPU at hand; nothing is measured here.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence

GPUS = (1, 8, 64)


def sweep_seconds(
    units: int,
    steps: int,
    group: int,
    rate: float,
    gpus: int,
    *,
    overhead: float = 1.0,
    start: float = 30.0,
) -> float:
    """Return the seconds of a sweep.

    Groups are the atoms: the last ones of a sweep leave GPUs idle.

    Parameters
    ----------
    units, steps
        Number of units, and of steps of each.
    group
        Units that train as one program.
    rate
        Milliseconds of a seed and step, with groups of that size.
    gpus
        Number of GPUs, with one worker each.
    overhead
        Seconds that a group takes besides its steps: queue, files, recording of graphs.
    start
        Seconds until a worker trains: its job, its imports.
    """
    groups = math.ceil(units / group)
    rounds = math.ceil(groups / gpus)
    return start + rounds * (group * steps * rate / 1000 + overhead)


def table(units: int, steps: int, group: int, rate: float, **further: float) -> list[str]:
    """Return the rows of a table: wall time, GPU hours, and the share of time that GPUs train."""
    rows = ["| GPUs | wall time | GPU hours | of which training |", "|---|---|---|---|"]
    training = units * steps * rate / 1000
    for gpus in GPUS:
        seconds = sweep_seconds(units, steps, group, rate, gpus, **further)
        hours = gpus * seconds / 3600
        wall = f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
        rows.append(f"| {gpus} | {wall} | {hours:.2f} | {training / (gpus * seconds):.0%} |")
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--group", type=int, default=80)
    parser.add_argument("--rate", type=float, default=1.4, help="ms a seed and step")
    parser.add_argument("--overhead", type=float, default=1.0, help="seconds a group")
    parser.add_argument("--start", type=float, default=30.0, help="seconds of a worker's start")
    given = vars(parser.parse_args(arguments))
    print("\n".join(table(**given)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
