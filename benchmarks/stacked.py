"""How many more seeds an hour do ten seeds trained as one program make than ten one after another?

Run ``python benchmarks/stacked.py``, with ``--device cuda`` on a GPU, where it exits with 1 if the
ratio falls below the promised one. Both train aitken's AED (GRU, 128 units) on one-to-one, and then
sunlu's DP with dropout on a made-up corpus of SST's size, for a few steps, in turns, in this
process and on one thread; what is counted are the steps. On a CPU core, matrix products and tables
of this size take most of the time either way: the ratio is 1.4 for AED, whose group has written-out
gradients, and 1 for DP, and nothing is promised. On an H200 it is 39 for AED and 3.7 for DP.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

import torch
from classifier import CELL, keep_memory
from gpu import demand_gpu

from attnscope.data.sequence_tasks import OneToOne
from attnscope.models.encoder_decoder import EncoderDecoderSpec
from attnscope.training.engine.groups import train_group
from attnscope.training.loop import train_unit
from attnscope.training.objective import Likelihood
from attnscope.training.optimizer import AitkenAdam
from attnscope.training.penalties import SquaredNorm
from attnscope.training.unit import Training, Unit

SEEDS = 10
Device = Literal["cpu", "cuda"]
PROMISED: dict[Device, float] = {"cuda": 2.0}
STEPS: dict[Device, int] = {"cpu": 5, "cuda": 50}
ROUNDS: dict[Device, int] = {"cpu": 4, "cuda": 2}  # there, recording a step takes long


def encoder_decoder() -> Unit:
    """Return aitken's AED."""
    training = Training(
        steps=6000,
        batch_size=128,
        evaluate_at=(),
        optimizer=AitkenAdam(),
        objective=(Likelihood(), SquaredNorm(weight=1e-3)),
        examples=1,
        stored=1,
    )
    model = EncoderDecoderSpec(hidden=128, input_dimension=50)
    return Unit(source=OneToOne(), model=model, training=training, seed=0)


CASES: dict[str, Unit] = {"AED": encoder_decoder(), "DP with dropout": CELL}


def units(case: Unit, device: Device) -> list[Unit]:
    """Return a few steps of a case, for ten seeds."""
    few = {"steps": STEPS[device], "evaluate_at": (), "examples": 1}
    training = case.training.model_copy(update=few)
    return [
        case.model_copy(update={"training": training, "seed": seed, "device": device})
        for seed in range(SEEDS)
    ]


class Clock:
    """Told of steps by a loop, takes the time that each of them took."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.seconds: list[float] = []  # a step and a seed
        self.last = time.perf_counter()

    def __call__(self, steps: int) -> None:
        """Count steps, summed over seeds, made since the last call."""
        if self.device == "cuda":
            torch.cuda.synchronize()
        now = time.perf_counter()
        self.seconds.append((now - self.last) / steps)
        self.last = now


def one_by_one(work: list[Unit], workspace: Path) -> list[float]:
    """Train units one after another; return the times of their steps, the first ones aside."""
    times = []
    for unit in work:
        clock = Clock(unit.device)
        train_unit(unit, workspace, clock, checkpoint_seconds=float("inf"))
        times += clock.seconds[1:]
    return times


def as_one(work: list[Unit], workspace: Path) -> list[float]:
    """Train units as one program; return the same."""
    clock = Clock(work[0].device)
    train_group(work, workspace, clock, checkpoint_seconds=float("inf"))
    return clock.seconds[1:]


def ratio(name: str, case: Unit, device: Device) -> float:
    """Print what both ways take, and return how much faster the seeds are as one program."""
    work = units(case, device)
    alone, together = [], []
    for _ in range(ROUNDS[device]):
        with tempfile.TemporaryDirectory() as folder:
            alone += one_by_one(work, Path(folder, "alone"))
            together += as_one(work, Path(folder, "together"))
    # The fastest steps: other work on the machine slows down one way more than the other.
    one, many = min(alone), min(together)
    hourly = [3600 / (case.training.steps * each) for each in (one, many)]
    print(
        f"{name}, {SEEDS} seeds on {device}, {1000 * one:.1f} and {1000 * many:.1f} ms a step and "
        f"seed: one after another {hourly[0]:.1f} an hour, as one program {hourly[1]:.1f}",
        flush=True,
    )
    return one / many


def main() -> int:
    """Print the ratios and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=list(STEPS), default="cpu")
    device: Device = parser.parse_args().device
    demand_gpu(parser, device)
    keep_memory()
    found = {name: ratio(name, case, device) for name, case in CASES.items()}
    promised = PROMISED.get(device)
    told = "no promise" if promised is None else f"at least {promised}"
    each = ", ".join(f"{name} {times:.2f}x" for name, times in found.items())
    print(f"stacked: {each} ({told})")
    return 0 if promised is None or min(found.values()) >= promised else 1


if __name__ == "__main__":
    sys.exit(main())
