"""At which share of the rate of its matrix products does the lexical probe run on a GPU?

Run ``python benchmarks/probe_rate.py --device cuda``; it exits with 1 if the share falls below the
promised one. β is read at all pairs of positions of 256 sentence pairs of 25 words off a translator
with 8 000 output words (snell Eq. 4), as `benchmarks/probe.py` has it; beside it run the products
of its readout alone, on as many rows. On a CPU nothing is promised.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import torch
from gpu import demand_gpu
from probe import HIDDEN, STATE, TYPES, Translator

from attnscope.data.batch import Example, collate
from attnscope.models.trace import Trace, attend
from attnscope.scores.lexical_probe import LexicalProbe

PROMISED = 0.6
LENGTH, ROWS = 25, 16_384  # rows of a product: as many as make it efficient
EXAMPLES = {"cpu": 4, "cuda": 256}


def seconds(work: Callable[[], object], device: str) -> float:
    """Return the shortest time of a call."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times)


@torch.no_grad()
def main() -> int:
    """Print the share and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=list(EXAMPLES), default="cpu")
    device = parser.parse_args().device
    demand_gpu(parser, device)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    count, model = EXAMPLES[device], Translator().to(device)
    words = list(range(LENGTH))
    batch = collate([Example(n, words, words, words) for n in range(count)]).to(device)
    states = torch.randn(count, LENGTH, STATE, device=device)
    query = torch.randn(count, LENGTH, HIDDEN, device=device)
    flat = torch.zeros(count, 1, LENGTH, LENGTH, device=device)
    site = attend(batch, flat, states[:, None])
    logits = torch.zeros(count, LENGTH, TYPES, device=device)
    trace = Trace(batch, states, states, query, query, logits, {"cross": site})
    cells = count * LENGTH**2

    def products() -> None:
        for start in range(0, cells, ROWS):
            rows = min(ROWS, cells - start)
            context, joined = contexts[:rows], both[:rows]
            model.project(context)
            model.output(model.hidden(joined))

    contexts = torch.randn(min(ROWS, cells), STATE, device=device)
    both = torch.randn(min(ROWS, cells), 2 * HIDDEN, device=device)
    probe = seconds(lambda: LexicalProbe().read(model, trace), device)
    bare = seconds(products, device)
    work = 2 * cells * (STATE * HIDDEN + 2 * HIDDEN * HIDDEN + HIDDEN * TYPES) / 1e12
    told = f"at least {PROMISED}" if device == "cuda" else "no promise"
    print(f"{cells} pairs: {work / probe:.2f} TFLOP/s, the products alone {work / bare:.2f}")
    print(f"probe_rate: {bare / probe:.2f} of the products' rate ({told})")
    return 0 if device == "cpu" or bare / probe >= PROMISED else 1


if __name__ == "__main__":
    sys.exit(main())
