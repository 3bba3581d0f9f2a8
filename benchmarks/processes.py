"""How many more seeds an hour do two processes of one thread train than one process of two threads?

Run ``python benchmarks/processes.py``; it exits with 1 if the ratio falls below the promised one.
Both train seeds of the same unit in turns; the start of processes and their first unit, which loads
what is loaded only once, are not counted.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import patch

import torch

from attnscope.data.tasks import SampledCopy
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.training.engine.workers import Workers
from attnscope.training.loop import train_unit
from attnscope.training.unit import Training, Unit

PROMISED = 1.5
ROUNDS = 5


def unit(seed: int) -> Unit:
    """Return a unit of the size of ``snell/fig3 --quick``, of fewer steps."""
    return Unit(
        source=SampledCopy(length=12, vocabulary=18),
        model=Seq2SeqSpec(embedding=64, hidden=64),
        training=Training(steps=150, batch_size=64, evaluate_at=()),
        seed=seed,
    )


def seconds(work: Callable[[], object]) -> float:
    """Return the time that one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def two_threads(seed: int, workspace: Path) -> None:
    """Train a seed in this process with two threads; a unit would set one for itself."""
    torch.set_num_threads(2)
    with patch("torch.set_num_threads"):
        train_unit(unit(seed), workspace)


def main() -> int:
    """Print the ratio and return the exit code."""
    one_process, two_processes = [], []
    with tempfile.TemporaryDirectory() as folder:
        alone, together = Path(folder, "alone"), Path(folder, "together")
        with Workers(together, 2) as workers:
            for turn in range(ROUNDS + 1):
                pair = [unit(2 * turn), unit(2 * turn + 1)]
                one_process.append(2 * seconds(partial(two_threads, turn, alone)))
                two_processes.append(seconds(partial(workers.train, pair)))
    # The fastest rounds: other work on the machine slows two threads down far more than one.
    one, two = min(one_process[1:]), min(two_processes[1:])
    print(f"two seeds: {one:.2f} s in one process, {two:.2f} s in two")
    print(f"processes: {one / two:.1f}x (at least {PROMISED})")
    return 0 if one / two >= PROMISED else 1


if __name__ == "__main__":
    sys.exit(main())
