"""How much faster are figure 6's candidate heads as one group than one after another?

Run ``python benchmarks/heads.py --device cuda``; it exits with 1 if the ratio falls below the
promised one. A wave of 48 candidates of one head, then 20 models of 8 heads, is trained for a few
steps with an evaluation every ten: as a group, and (six of them) each by itself as PyTorch's own
LSTM runs it. On a CPU such networks train one by one and nothing is promised.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import torch
from copying import HIDDEN, TASKS
from gpu import demand_gpu

from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.training.engine.groups import train_group
from attnscope.training.loop import train_unit
from attnscope.training.unit import Training, Unit, every

PROMISED = 8.0
STEPS, ALONE = 40, 6
MODELS = {"cpu": [(3, 1), (2, 3)], "cuda": [(48, 1), (20, 8)]}  # how many, and their heads


def units(count: int, heads: int, options: argparse.Namespace) -> list[Unit]:
    """Return models that differ in the draw of their heads."""
    training = Training(
        steps=STEPS, batch_size=128, evaluate_at=every(10, STEPS), examples=100, stored=2
    )
    found = []
    for number in range(count):
        seeds = tuple(range(number * heads, (number + 1) * heads))
        model = Seq2SeqSpec(
            embedding=options.hidden,
            hidden=options.hidden,
            base_seed=0,
            head_seeds=seeds,
            heads=heads,
        )
        found.append(Unit(source=TASKS[0], model=model, training=training, device=options.device))
    return found


def ratio(count: int, heads: int, options: argparse.Namespace) -> float:
    """Print what both ways take a unit, and return the ratio."""
    work = units(count, heads, options)
    with tempfile.TemporaryDirectory() as folder:
        train_unit(work[0], Path(folder, "warm"))
        started = time.perf_counter()
        for unit in work[:ALONE]:
            train_unit(unit, Path(folder, "alone"))
        alone = (time.perf_counter() - started) / len(work[:ALONE])
        started = time.perf_counter()
        train_group(work, Path(folder, "together"))
        together = (time.perf_counter() - started) / len(work)
    print(
        f"{count} models of {heads} heads, {STEPS} steps: {alone:.2f} s a unit by itself, "
        f"{together:.3f} s in a group",
        flush=True,
    )
    return alone / together


def main() -> int:
    """Print the ratio and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    options = parser.parse_args()
    demand_gpu(parser, options.device)
    options.hidden = HIDDEN[options.device]
    torch.set_num_threads(1)
    found = [ratio(count, heads, options) for count, heads in MODELS[options.device]]
    told = f"at least {PROMISED:.0f}" if options.device == "cuda" else "no promise"
    print(f"heads: {', '.join(f'{times:.1f}x' for times in found)} ({told})")
    return 0 if options.device == "cpu" or min(found) >= PROMISED else 1


if __name__ == "__main__":
    sys.exit(main())
