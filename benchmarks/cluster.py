"""How much does each way of training add to a unit: here, workers, Slurm (local), Ray?

Run ``python benchmarks/cluster.py`` (``--units 50`` for a shorter one); it exits with 1 if a way
adds more than promised. All of them train the same tiny units with two processes. The start of
processes, and of Ray, is measured by a unit that comes first and is not counted; the table gives
milliseconds a unit, and what each way adds to training here as a share of the time that a unit of
a minute takes.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from attnscope.data.tasks import PermutationCopy
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.training.engine.queued import QueuedWorkers
from attnscope.training.engine.slurm import SlurmWorkers
from attnscope.training.engine.trainer import Trainer
from attnscope.training.engine.workers import Workers
from attnscope.training.unit import Training, Unit

PROCESSES = 2
PROMISED = 0.01  # of a unit of a minute


def units(first: int, count: int) -> list[Unit]:
    """Return units that train in a moment, one by one."""
    training = Training(steps=2, batch_size=4, evaluate_at=(), examples=4, stored=2)
    model = Seq2SeqSpec(embedding=4, hidden=4)
    return [
        Unit(source=PermutationCopy(length=3), model=model, training=training, seed=seed)
        for seed in range(first, first + count)
    ]


def slurm(workspace: Path) -> Trainer:
    """Return submitit's local executor, with a worker per process."""
    parameters = {"timeout_min": 60}
    return SlurmWorkers(workspace, workers=PROCESSES, parameters=parameters, cluster="local")


def ray(workspace: Path) -> Trainer:
    """Return Ray on this host."""
    from attnscope.training.engine.ray_cluster import RayWorkers

    return RayWorkers(workspace, jobs=PROCESSES)


WAYS: dict[str, Callable[[Path], Trainer]] = {
    "here": lambda workspace: Workers(workspace, PROCESSES),
    "workers": lambda workspace: QueuedWorkers(workspace, here=PROCESSES),
    "slurm-local": slurm,
    "ray": ray,
}
_NEEDS = {"slurm-local": "submitit", "ray": "ray"}


def seconds_per_unit(way: str, count: int) -> tuple[float, float]:
    """Return the seconds of a unit, and of the start with the first unit of each process."""
    with tempfile.TemporaryDirectory() as folder, WAYS[way](Path(folder)) as trainer:
        begun = time.perf_counter()
        trainer.train(units(count, 2 * PROCESSES))
        started = time.perf_counter()
        trainer.train(units(0, count))
        return (time.perf_counter() - started) / count, started - begun


def main() -> int:
    """Print the table and return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--units", type=int, default=200)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    given = parser.parse_args()
    count = given.units
    ways = [way for way in given.ways if importlib.util.find_spec(_NEEDS.get(way, "attnscope"))]
    print(f"{count} units, {PROCESSES} processes")
    print("| way | start, s | a unit, ms | over here | added to a unit of a minute |")
    print("|---|---|---|---|---|")
    here, worst = 0.0, 0.0
    for way in ways:
        unit, start = seconds_per_unit(way, count)
        here = here or unit
        added = PROCESSES * (unit - here) / 60
        worst = max(worst, added)
        row = f"| {way} | {start:.1f} | {1000 * unit:.0f} | {unit / here:.2f} | {added:.2%} |"
        print(row, flush=True)
    print(f"cluster: {worst:.2%} (at most {PROMISED:.0%})")
    return 0 if worst <= PROMISED else 1


if __name__ == "__main__":
    sys.exit(main())
