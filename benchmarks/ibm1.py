"""How many more steps of EM does IBM Model 1 make per second than nltk's, on one thread?

Run ``python benchmarks/ibm1.py``; it exits with 1 if the ratio falls below the promised one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import torch
from nltk.translate import AlignedSent, IBMModel1

from attnscope.theory.ibm1 import IbmModel1
from attnscope.theory.initial_derivative import PaddedPairs

PROMISED = 200
PAIRS, LENGTH, TYPES = 5000, 12, 5000
STEPS = 50


def seconds(work: Callable[[], object]) -> float:
    """Return the time that one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def zipf_sentences(generator: torch.Generator) -> torch.Tensor:
    """Draw word ids whose frequency falls as one over their rank."""
    frequency = 1 / torch.arange(1, TYPES + 1, dtype=torch.float64)
    drawn = torch.multinomial(frequency, PAIRS * LENGTH, replacement=True, generator=generator)
    return drawn.view(PAIRS, LENGTH)


def main() -> int:
    """Print the ratio and return the exit code."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    inputs, targets = zipf_sentences(generator), zipf_sentences(generator)
    full = torch.ones_like(inputs, dtype=torch.bool)
    pairs = PaddedPairs(inputs, full, targets, full)

    def steps(number: int) -> float:
        work = lambda: IbmModel1.fit(pairs, TYPES, TYPES, iterations=number)  # noqa: E731
        return min(seconds(work) for _ in range(5))

    # Both are timed without what comes before and after the steps.
    ours = (steps(STEPS) - steps(0)) / STEPS
    aligned = [
        AlignedSent([str(word) for word in target], [str(word) for word in source])
        for source, target in zip(inputs.tolist(), targets.tolist(), strict=True)
    ]
    reference = IBMModel1(aligned, 0)
    theirs = min(seconds(lambda: reference.train(aligned)) for _ in range(3))
    print(f"a step of EM: nltk {theirs:.2f} s, tensors {1000 * ours:.1f} ms")
    print(f"ibm1: {theirs / ours:.0f}x (at least {PROMISED})")
    return 0 if theirs / ours >= PROMISED else 1


if __name__ == "__main__":
    sys.exit(main())
