"""How much faster is a corpus's agreement table than a loop over its output positions?

Run ``python benchmarks/agreement.py``; it exits with 1 if a ratio falls below the promised one.
Top-share agreement (snell Eq. 10) in both orders and τ-b of two scores are taken on 1000 documents
of 100 to 200 words and on 500 sentences of 5 to 15 words on either side, on one thread. The loop
takes the definition of Eq. 10 and scipy's τ-b, position by position, and must give the same. On
sentences it spends its time on the way into scipy; on long documents scipy's own sorting weighs
more, and what can be gained is less.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from scipy.stats import kendalltau

from attnscope.analysis.agreement import top_share_agreement
from attnscope.analysis.kendall import kendall_tau_b
from attnscope.data.batch import prefix_mask

PROMISED = {"classification": 5, "translation": 100}
# Examples, output positions, input positions; the shortest of the latter two.
SHAPES = {"classification": (1000, (1, 1), (100, 200)), "translation": (500, (5, 15), (5, 15))}
Scores = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
Table = tuple[float, float, float]


def scores(rows: int, out: tuple[int, int], inp: tuple[int, int]) -> Scores:
    """Return two related scores with the masks of their input and output positions."""
    stream = torch.Generator().manual_seed(0)
    masks = [
        prefix_mask(torch.randint(short, long + 1, (rows,), generator=stream), long)
        for short, long in (inp, out)
    ]
    u, noise = torch.randn(2, rows, out[1], inp[1], generator=stream)
    return u, u + noise, masks[0], masks[1]


def batched(u: torch.Tensor, v: torch.Tensor, inp: torch.Tensor, out: torch.Tensor) -> Table:
    """Return the table as the package makes it."""
    values = (
        top_share_agreement(u, v, inp),
        top_share_agreement(v, u, inp),
        kendall_tau_b(u, v, inp),
    )
    one, other, tau = (value[out].nanmean().item() for value in values)
    return one, other, tau


def agree(u: np.ndarray, v: np.ndarray) -> bool:
    """Return whether u's highest position is among the top 5 % of v."""
    return int((v > v[u.argmax()]).sum()) < math.ceil(0.05 * len(v))


def loop(u: torch.Tensor, v: torch.Tensor, inp: torch.Tensor, out: torch.Tensor) -> Table:
    """Return the table position by position."""
    first, second = u.numpy(), v.numpy()
    lengths, words = inp.sum(1).tolist(), out.sum(1).tolist()
    found = []
    for row, (length, count) in enumerate(zip(lengths, words, strict=True)):
        for t in range(count):
            a, b = first[row, t, :length], second[row, t, :length]
            found.append((agree(a, b), agree(b, a), kendalltau(a, b).statistic))
    one, other, tau = np.nanmean(np.array(found, dtype=float), axis=0).tolist()
    return one, other, tau


def timed(work: Callable[..., Table], data: Scores) -> tuple[float, Table]:
    """Return how long a table takes, and the table."""
    start = time.perf_counter()
    table = work(*data)
    return time.perf_counter() - start, table


def main() -> int:
    """Print the ratios and return the exit code."""
    torch.set_num_threads(1)
    kept = True
    for name, shape in SHAPES.items():
        data = scores(*shape)
        batched(*(part[:50] for part in data))
        slow, expected = timed(loop, data)
        quick, table = min(timed(batched, data) for _ in range(5))
        if not np.allclose(table, expected, rtol=0, atol=1e-12):
            raise SystemExit(f"{name}: the tables differ: {table} and {expected}.")
        print(f"{name}: loop {slow:.2f} s, batched {1000 * quick:.1f} ms")
        print(f"{name}: {slow / quick:.0f}x (at least {PROMISED[name]})")
        kept = kept and slow / quick >= PROMISED[name]
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
