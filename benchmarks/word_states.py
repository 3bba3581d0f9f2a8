"""How much longer is a step of attention-only networks that compute every position by itself?

Run ``python benchmarks/word_states.py``; it exits with 1 if a ratio falls below the promised one.
Without recurrence a state is that of its word at its place, and a group of units computes each of
these once. Five of aitken's AO networks (GRU, 128 units, batches of 128) on one-to-one and on
eSCAN, forward and backward on one thread.
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
from attnscope.models.architectures import AO
from attnscope.models.encoder_decoder import EncoderDecoder, EncoderDecoderSpec
from attnscope.training.engine.vmapped import Gradients, Stack, stack, stack_batches
from attnscope.training.objective import Likelihood

NETWORKS, BATCH, PROMISED = 5, 128, 2.0
TASKS: dict[str, tuple[Source, int]] = {
    "one-to-one": (OneToOne(), 50),
    "eSCAN": (ExtendedScan(), 100),
}


def every_position(self, reader, words, ids, first, start, mask):
    """Return the states of words, each position computed by itself."""
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
    for name, (task, width) in TASKS.items():
        spec = EncoderDecoderSpec(architecture=AO(), input_dimension=width)
        models = stack([spec.build(task, seed) for seed in range(NETWORKS)])
        gradients = Gradients(models, [Likelihood()])
        columns = stack_batches([task.training_batch(seed, 0, BATCH) for seed in range(NETWORKS)])
        once, each = [], []
        for _ in range(12):
            once.append(seconds(gradients, columns))
            with patch.object(EncoderDecoder, "read", every_position):
                each.append(seconds(gradients, columns))
        ratio = min(each) / min(once)
        print(f"{name}: once {1000 * min(once):.0f} ms, every position {1000 * min(each):.0f} ms")
        print(f"word_states, {name}: {ratio:.1f}x (at least {PROMISED})")
        kept &= ratio >= PROMISED
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
