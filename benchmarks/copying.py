"""How long does a step of snell's copying model take for each of 80 seeds, and figure 3 in full?

Run ``python benchmarks/copying.py --device cuda``, with ``--precision tf32``. It trains 80 seeds as
one group and one of them by itself, and prints the milliseconds of a step and seed of both. With
``--full`` it takes the time of ``attnscope run snell/fig3``, start, evaluations, files and figure
included; with ``--shares`` it trains 100 seeds of each of figure 3's tasks in float32 and again in
TF32, and compares how many learn. It exits with 1 if a promise is broken. On a CPU recurrent
networks train one by one and nothing is promised: there it takes five seeds of 16 units, of which a
group is not faster either (0.6 to 1.1 times as fast on one core).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from gpu import demand_gpu

from attnscope.analysis.intervals import interval_difference, rate_interval
from attnscope.analysis.learning import learned
from attnscope.claims.decide import fisher_p
from attnscope.data.tasks import CopyTask, MixtureCopy, PermutationCopy, SampledCopy
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.training.engine.grouping import is_vmapped
from attnscope.training.engine.groups import train_group
from attnscope.training.engine.workers import Workers
from attnscope.training.loop import train_unit
from attnscope.training.unit import Training, Unit

PROMISED = {"float32": 1.2, "tf32": 0.5}  # milliseconds a step and seed, on a GPU
PROMISED_SECONDS = 25.0  # figure 3 in full, on a GPU
STEPS, SKIPPED = {"cpu": 8, "cuda": 60}, 20
WINDOW = {"cpu": 1, "cuda": 10}  # steps after which a GPU is waited for
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
    """Notes the time of steps, on a GPU of ten at a time.

    While a GPU works the CPU draws the next batches; waiting for it at every step would add the two
    up.
    """

    def __init__(self, device: str) -> None:
        self.device, self.window = device, WINDOW[device]
        self.seconds: list[float] = []  # a step and a seed, by window
        self.calls, self.made, self.last = 0, 0, time.perf_counter()

    def __call__(self, steps: int) -> None:
        """Count steps, summed over seeds, made since the last call."""
        self.calls, self.made = self.calls + 1, self.made + steps
        if self.calls % self.window:
            return
        if self.device == "cuda":
            torch.cuda.synchronize()
        now = time.perf_counter()
        self.seconds.append((now - self.last) / self.made)
        self.made, self.last = 0, now

    def milliseconds(self, most: int | None = None) -> float:
        """Return the median of a step and seed without the first steps, or of the last ones."""
        skipped = min(SKIPPED // self.window, len(self.seconds) // 2)
        late = self.seconds[skipped:] if most is None else self.seconds[-most // self.window :]
        return 1000 * statistics.median(late)


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
    found, promised = together.milliseconds(), PROMISED[options.precision]
    single = alone.milliseconds()
    told = f"at most {promised}" if options.device == "cuda" else "no promise"
    if options.device == "cuda":
        print(f"peak memory {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB")
    print(
        f"copying, {options.precision}: {options.seeds} seeds together {found:.3f} ms a step and "
        f"seed ({told}), one by itself {single:.2f}: {single / found:.1f}x"
    )
    return 0 if options.device == "cpu" or found <= promised else 1


def full(options: argparse.Namespace) -> int:
    """Time the command that makes figure 3 in full, from its start to its figure."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["run", "snell/fig3", "--precision", options.precision, "--json"]
        where = ["--device", options.device, "--out", folder]
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "attnscope", *command, *where],
            capture_output=True,
            text=True,
        )
        seconds = time.perf_counter() - started
    if done.returncode:
        print(f"figure 3 in full: {(done.stderr.splitlines() or ['no word'])[-1]}")
        return 2
    for row in json.loads(done.stdout)["result"]["measurements"]:
        if row["name"] == "seeds_learned":
            print(f"{row['axes']['role']}: {row['value']:.0f} of {row['n']} learn")
    told = f"at most {PROMISED_SECONDS:.0f}" if options.device == "cuda" else "no promise"
    print(f"figure 3 in full, {options.precision}: {seconds:.1f} s ({told})")
    return 0 if options.device == "cpu" or seconds <= PROMISED_SECONDS else 1


def shares(options: argparse.Namespace) -> int:
    """Compare how many seeds of each of figure 3's tasks learn in float32 and in TF32."""
    settings = {"steps": options.steps, "evaluate_at": (), "examples": 100, "stored": 1}
    count, lowest = options.seeds, 1.0
    for task in TASKS:
        found = {}
        for precision in PROMISED:
            given = argparse.Namespace(**vars(options) | {"precision": precision})
            units = [unit(task, seed, given, **settings) for seed in range(count)]
            with tempfile.TemporaryDirectory() as folder:
                with Workers(Path(folder)) as workers:
                    trained = workers.train(units)
                found[precision] = sum(learned(one.log[-1]["accuracy"]) for one in trained)
        plain, other = found["float32"], found["tf32"]
        apart = interval_difference(rate_interval(other, count), rate_interval(plain, count))
        p = fisher_p(plain, count, other, count)
        lowest = min(lowest, p)
        print(
            f"{task.dataset}: {plain} of {count} learn in float32, {other} in TF32; difference "
            f"{apart.value:+.2f} [{apart.low:+.2f}, {apart.high:+.2f}], Fisher p = {p:.3f}",
            flush=True,
        )
    # Four tests: one of them is below .05 / 4 by chance in one of twenty runs at most.
    bound = 0.05 / len(TASKS)
    print(f"shares that learn in float32 and TF32: smallest p {lowest:.3f} (at least {bound})")
    return 0 if lowest >= bound else 1


def main() -> int:
    """Print the numbers and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=list(PROMISED), default="float32")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--hidden", type=int)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--shares", action="store_true")
    parser.add_argument("--steps", type=int, default=200, help="of --shares")
    options = parser.parse_args()
    demand_gpu(parser, options.device)
    options.seeds = options.seeds or (100 if options.shares else SEEDS[options.device])
    options.hidden = options.hidden or HIDDEN[options.device]
    torch.set_num_threads(1)
    return (full if options.full else shares if options.shares else steps)(options)


if __name__ == "__main__":
    sys.exit(main())
