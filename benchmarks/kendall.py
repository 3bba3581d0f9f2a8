"""How much faster is batched τ-b than a loop over scipy's, on one thread or on a GPU?

Run ``python benchmarks/kendall.py``, with ``--device cuda`` on a GPU; it exits with 1 if the ratio
falls below the promised one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial

import torch
from gpu import demand_gpu
from scipy.stats import kendalltau

from attnscope.analysis.kendall import kendall_tau_b

PROMISED = {"cpu": 50, "cuda": 1000}
ROWS, LENGTH, LEVELS = 10_000, 50, 12  # Twelve levels on fifty positions: ties in every row.


def seconds(work: Callable[[], object]) -> float:
    """Return the time that one call takes."""
    start = time.perf_counter()
    work()
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.perf_counter() - start


def main() -> int:
    """Print the ratio and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=list(PROMISED), default="cpu")
    device = parser.parse_args().device
    demand_gpu(parser, device)
    promised = PROMISED[device]
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    levels = torch.randint(LEVELS, (2, ROWS, 1, LENGTH), generator=generator)
    mask = torch.ones(ROWS, LENGTH, dtype=torch.bool, device=device)
    pairs = list(zip(*levels.squeeze(2).numpy(), strict=True))
    loop = seconds(lambda: [kendalltau(a, b).statistic for a, b in pairs])
    ratios = []
    for dtype in (torch.float32, torch.float64):
        u, v = levels.to(device, dtype)
        kendall_tau_b(u[:100], v[:100], mask[:100])
        batched = min(seconds(partial(kendall_tau_b, u, v, mask)) for _ in range(5))
        print(f"{dtype}: scipy loop {loop:.2f} s, batched {1000 * batched:.1f} ms")
        ratios.append(loop / batched)
    print(f"kendall: {min(ratios):.0f}x (at least {promised})")
    return 0 if min(ratios) >= promised else 1


if __name__ == "__main__":
    sys.exit(main())
