"""How much time does the package's loop add to a bare forward, backward and update?

Run ``python benchmarks/loop.py``; it exits with 1 if the ratio rises above the promised one. The
paper's copying model (hidden 256, 40 of 60 words, batch 128) is trained on one thread by the
package and, between its steps, by a bare loop on the same batches, drawn beforehand. Evaluation is
off.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Protocol

import torch

from attnscope.data.tasks import SampledCopy
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.training.loop import train_unit
from attnscope.training.unit import Training, Unit

PROMISED = 1.10
STEPS, WARM_UP = 30, 4
UNIT = Unit(
    source=SampledCopy(length=40, vocabulary=60),
    model=Seq2SeqSpec(embedding=256, hidden=256),
    training=Training(steps=STEPS, batch_size=128, evaluate_at=(), examples=1, stored=1),
)


class Bare:
    """The least that a training step can be."""

    def __init__(self) -> None:
        self.model = UNIT.model.build(UNIT.source, UNIT.seed)
        self.optimizer = torch.optim.Adam(self.model.parameters())
        size = UNIT.training.batch_size
        self.batches = [UNIT.source.training_batch(UNIT.seed, step, size) for step in range(STEPS)]

    def step(self, step: int) -> None:
        """Make one update."""
        batch = self.batches[step]
        self.optimizer.zero_grad()
        logits = self.model.trace(batch).logits  # type: ignore[operator]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch.targets.flatten())
        loss.backward()
        self.optimizer.step()


class Steps(Protocol):
    """What makes one update at a time."""

    def step(self, step: int) -> None:
        """Make one update."""


class Interleaved:
    """Called by the package's loop after each of its steps, makes a bare one, and times both."""

    def __init__(self, bare: Steps) -> None:
        self.bare = bare
        self.package_seconds: list[float] = []
        self.bare_seconds: list[float] = []
        self.resumed = time.perf_counter()

    def __call__(self, steps: int) -> None:
        """Take the time of the package's step, then that of a bare one."""
        self.package_seconds.append(time.perf_counter() - self.resumed)
        mode = torch.get_deterministic_debug_mode()
        torch.set_deterministic_debug_mode("default")
        start = time.perf_counter()
        self.bare.step(len(self.bare_seconds))
        self.bare_seconds.append(time.perf_counter() - start)
        torch.set_deterministic_debug_mode(mode)
        self.resumed = time.perf_counter()


def ratio(name: str, unit: Unit, bare: Steps, warm_up: int, promised: float) -> int:
    """Train a unit beside a bare loop, print their ratio and return the exit code."""
    torch.set_num_threads(1)
    steps = Interleaved(bare)
    with tempfile.TemporaryDirectory() as workspace:
        train_unit(unit, Path(workspace), steps, checkpoint_seconds=float("inf"))
    package = statistics.median(steps.package_seconds[warm_up:])
    plain = statistics.median(steps.bare_seconds[warm_up:])
    print(f"package {1000 * package:.1f} ms a step, bare {1000 * plain:.1f} ms")
    print(f"{name}: {package / plain:.2f} (at most {promised:.2f})")
    return 0 if package / plain <= promised else 1


if __name__ == "__main__":
    sys.exit(ratio("loop", UNIT, Bare(), WARM_UP, PROMISED))
