"""What does a streamed decomposition cost beside the forward pass, in time and in memory?

Run ``python benchmarks/decomposition.py``; it exits with 1 if a ratio rises above the promised one.
Time: a pass over the copying model (hidden 128, length 20) that decomposes its states, and the
queries and keys of its attention, over the bare forward pass of the same batches, taken in turns on
one thread. Memory: the peak of a process that decomposes 100 000 examples of a small model, drawn
batch by batch, over that of one that decomposes 1 000.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from attnscope.analysis.alignment_terms import CROSS
from attnscope.analysis.decomposition import decompose_views, states_of
from attnscope.data.tasks import PermutationCopy
from attnscope.models.seq2seq import Seq2SeqSpec
from attnscope.models.trace import Trace

PROMISED_TIME, PROMISED_MEMORY = 1.3, 1.2
ROUNDS, BATCHES, SIZE = 9, 4, 128
FEW, MANY, SMALL_SIZE = 1_000, 100_000, 500
TASK, SMALL_TASK = PermutationCopy(length=20), PermutationCopy(length=5)
MODEL, SMALL_MODEL = Seq2SeqSpec(embedding=128, hidden=128), Seq2SeqSpec(embedding=8, hidden=24)
VIEWS = {"states": states_of, "cross": CROSS}


def time_ratio() -> float:
    """Return the time of a decomposing pass over that of a bare one."""
    model = MODEL.build(TASK, 0)
    batches = [TASK.training_batch(0, step, SIZE) for step in range(BATCHES)]
    spent: dict[str, list[float]] = {"bare": [], "decomposing": []}
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for batch in batches:
            model.trace(batch)
        middle = time.perf_counter()
        decompose_views((model.trace(batch) for batch in batches), VIEWS)
        spent["decomposing"].append(time.perf_counter() - middle)
        spent["bare"].append(middle - start)
    bare, decomposing = (statistics.median(spent[name][1:]) for name in ("bare", "decomposing"))
    print(f"bare pass {1000 * bare:.0f} ms, decomposing pass {1000 * decomposing:.0f} ms")
    return decomposing / bare


def peak() -> float:
    """Return the peak memory of this process in MiB; Linux alone tells it.

    Not `getrusage`: its number of a process is never below what the one that started it had.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def peak_of(examples: int) -> float:
    """Return the peak memory of a process of its own."""
    command = [sys.executable, __file__, str(examples)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def decompose_drawn(examples: int) -> float:
    """Decompose so many examples, and return the peak memory of this process."""
    model = SMALL_MODEL.build(SMALL_TASK, 0)

    def traces() -> Iterator[Trace]:
        for step in range(examples // SMALL_SIZE):
            yield model.trace(SMALL_TASK.training_batch(0, step, SMALL_SIZE))

    decompose_views(traces(), VIEWS)
    return peak()


def main() -> int:
    """Print both ratios and return the exit code."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    if len(sys.argv) > 1:
        print(decompose_drawn(int(sys.argv[1])))
        return 0
    few, many = peak_of(FEW), peak_of(MANY)
    print(f"peak of {FEW} examples {few:.0f} MiB, of {MANY} examples {many:.0f} MiB")
    slower, larger = time_ratio(), many / few
    print(
        f"decomposition: time {slower:.2f} (at most {PROMISED_TIME:.2f}), "
        f"memory {larger:.2f} (at most {PROMISED_MEMORY:.2f})"
    )
    return 0 if slower <= PROMISED_TIME and larger <= PROMISED_MEMORY else 1


if __name__ == "__main__":
    sys.exit(main())
