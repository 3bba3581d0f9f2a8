"""How long does a step of snell's copying model take for each of 80 seeds, and figure 3 in full?

Run ``python benchmarks/copying.py --device cuda``, with ``--precision tf32``, or with ``--full``
for figure 3's 80 units of 200 steps, evaluations and files included. It exits with 1 if a promise
is broken. Without ``--full`` it trains 80 seeds as one group and one of them by itself, and prints
the milliseconds of a step and seed of both. On a CPU recurrent networks train one by one and
nothing is promised: there it takes five seeds of 16 units, of which a group is not faster
either (0.6 to 1.1 times as fast on one core).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from attnscope.data.tasks import CopyTask, MixtureCopy, PermutationCopy, SampledCopy
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.training.engine.grouping import groups, is_vmapped
from attnscope.training.engine.groups import train_group
from attnscope.training.loop import train_unit
from attnscope.training.unit import Training, Unit, every

PROMISED = {"float32": 1.2, "tf32": 0.5}  # milliseconds a step and seed, on a GPU
PROMISED_SECONDS = 25.0  # figure 3 in full, on a GPU
STEPS, SKIPPED = {"cpu": 8, "cuda": 40}, 10
SEEDS, HIDDEN = {"cpu": 5, "cuda": 80}, {"cpu": 16, "cuda": 256}
# Figure 3's distributions: types 42, 62, 82 and 82, so that two of them share a group.
TASKS: list[CopyTask] = [
    PermutationCopy(length=40),
    SampledCopy(length=40, vocabulary=60),
    MixtureCopy(length=40),
    SampledCopy(length=40, vocabulary=80),
]


def unit(task: CopyTask, seed: int, options: argparse.Namespace, **training: Any) -> Unit:
    """Return one copying network."""
    settings = {"batch_size": 128, "precision": options.precision} | training
    return Unit(
        source=task,
        model=Seq2SeqSpec(embedding=options.hidden, hidden=options.hidden),
        training=Training(**settings),
        seed=seed,
        device=options.device,
    )


class Clock:
    """Notes the time of every step."""

    def __init__(self, device: str) -> None:
        self.device, self.seconds, self.last = device, list[float](), time.perf_counter()

    def __call__(self, steps: int) -> None:
        """Count steps, summed over seeds, made since the last call."""
        if self.device == "cuda":
            torch.cuda.synchronize()
        now = time.perf_counter()
        self.seconds.append((now - self.last) / steps)
        self.last = now

    @property
    def milliseconds(self) -> float:
        """The median of a step and seed, the first ones left out."""
        late = sorted(self.seconds[min(SKIPPED, len(self.seconds) // 2) :])
        return 1000 * late[len(late) // 2]


def steps(options: argparse.Namespace) -> int:
    """Time the steps of a group, and of a unit by itself."""
    few = {"steps": STEPS[options.device], "evaluate_at": (), "examples": 1, "stored": 1}
    units = [unit(TASKS[2], seed, options, **few) for seed in range(options.seeds)]
    together, alone = Clock(options.device), Clock(options.device)
    with tempfile.TemporaryDirectory() as folder:
        train_group(units, Path(folder, "together"), together, checkpoint_seconds=1e9)
        # By itself a unit of a GPU is a group of one, in a CUDA graph as well.
        if is_vmapped(units[:1]):
            train_group(units[:1], Path(folder, "alone"), alone, checkpoint_seconds=1e9)
        else:
            train_unit(units[0], Path(folder, "alone"), alone, checkpoint_seconds=1e9)
    found, promised = together.milliseconds, PROMISED[options.precision]
    told = f"at most {promised}" if options.device == "cuda" else "no promise"
    if options.device == "cuda":
        print(f"peak memory {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
    print(
        f"copying, {options.precision}: {options.seeds} seeds together {found:.3f} ms a step and "
        f"seed ({told}), one by itself {alone.milliseconds:.2f}: {alone.milliseconds / found:.1f}x"
    )
    return 0 if options.device == "cpu" or found <= promised else 1


def full(options: argparse.Namespace) -> int:
    """Time figure 3's units in full, all files written, in one process."""
    settings = {"steps": 200, "evaluate_at": every(10, 200), "examples": 100}
    units = [unit(task, seed, options, **settings) for task in TASKS for seed in range(20)]
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for group in groups(units):
            began = time.perf_counter()
            assert train_group(group, Path(folder)) == [None] * len(group)
            print(f"{len(group)} units: {time.perf_counter() - began:.1f} s", flush=True)
        learned = [one.folder(Path(folder)).log[-1]["accuracy"] > 0.95 for one in units]
    seconds = time.perf_counter() - started
    rates = [sum(learned[start : start + 20]) for start in range(0, 80, 20)]
    print(f"learned of 20: {rates}")
    print(
        f"figure 3 in full, {options.precision}: {seconds:.1f} s (at most {PROMISED_SECONDS:.0f})"
    )
    return 0 if seconds <= PROMISED_SECONDS else 1


def main() -> int:
    """Print the numbers and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=list(PROMISED), default="float32")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--hidden", type=int)
    parser.add_argument("--full", action="store_true")
    options = parser.parse_args()
    options.seeds = options.seeds or SEEDS[options.device]
    options.hidden = options.hidden or HIDDEN[options.device]
    torch.set_num_threads(1)
    return full(options) if options.full else steps(options)


if __name__ == "__main__":
    sys.exit(main())
