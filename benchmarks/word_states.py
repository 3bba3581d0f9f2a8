"""How much longer is a step of aitken's networks that run their cell at every position?

Run ``python benchmarks/word_states.py``; it exits with 1 if a ratio falls below the promised one.
In a group of units AO, which has no recurrence, computes the state of each word at each place once,
and the gradients of recurrent GRUs are written out. Five networks (128 units, batches of 128),
forward and backward on one thread.
"""

from __future__ import annotations

import sys
import time
from unittest.mock import patch

import torch
from classifier import keep_memory

from attnscope.data.escan import ExtendedScan
from attnscope.data.sequence_tasks import OneToOne
from attnscope.data.source import Source
from attnscope.models.architectures import AED, AO, Architecture
from attnscope.models.encoder_decoder import EncoderDecoder, EncoderDecoderSpec
from attnscope.training.engine import vmappable
from attnscope.training.engine.vmapped import Gradients, Stack, stack, stack_batches
from attnscope.training.objective import Likelihood

NETWORKS, BATCH = 5, 128
# Architecture, task, width of the one-hot vectors and the promised ratio.
CASES: dict[str, tuple[Architecture, Source, int | None, float]] = {
    "AO on one-to-one": (AO(), OneToOne(), 50, 2.0),
    "AO on eSCAN": (AO(), ExtendedScan(), 100, 2.0),
    "AED on one-to-one": (AED(), OneToOne(), None, 1.1),
}


def every_position(self, reader, words, ids, first, start, mask):
    """Return the states of words by the cell's own steps."""
    places = self.positions(first, ids.shape[1])
    return reader(words.drive(reader.cell, ids, places), start, mask)


def seconds(gradients: Gradients, columns: Stack) -> float:
    """Return the time of one step's gradients."""
    start = time.perf_counter()
    gradients(columns)
    return time.perf_counter() - start


def main() -> int:
    """Print the ratios and return the exit code."""
    torch.set_num_threads(1)
    keep_memory()
    kept = True
    for name, (architecture, task, width, promised) in CASES.items():
        spec = EncoderDecoderSpec(architecture=architecture, input_dimension=width)
        models = stack([spec.build(task, seed) for seed in range(NETWORKS)])
        gradients = Gradients(models, [Likelihood()])
        columns = stack_batches([task.training_batch(seed, 0, BATCH) for seed in range(NETWORKS)])
        once, each = [], []
        for _ in range(12):
            once.append(seconds(gradients, columns))
            with (
                patch.object(EncoderDecoder, "read", every_position),
                patch.object(vmappable, "GRU", None),
            ):
                each.append(seconds(gradients, columns))
        ratio = min(each) / min(once)
        print(f"{name}: {1000 * min(once):.0f} ms, every position {1000 * min(each):.0f} ms")
        print(f"word_states, {name}: {ratio:.1f}x (at least {promised})")
        kept &= ratio >= promised
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
