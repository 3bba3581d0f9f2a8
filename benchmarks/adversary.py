"""How much faster is one search for the adversaries of 1000 sentences than a loop over them?

Run ``python benchmarks/adversary.py [cuda]``; it exits with 1 if the ratio falls below the promised
one. Model and sentences are those of the benchmark of fragility, the search is the published one
(5 restarts); of its 500 steps 100 are made on both sides. Of the loop ten sentences are timed, and
count for all.
"""

from __future__ import annotations

import sys

import torch
from fragility import SPEC, TYPES, seconds, sentences

from attnscope.analysis.adversary import Search, find_adversaries
from attnscope.data.tasks import KeywordTask

PROMISED = 20
EXAMPLES, TIMED = 1000, 10
SEARCH = Search(steps=100)


def main() -> int:
    """Print the ratio and return the exit code."""
    torch.set_num_threads(1)
    device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    model = SPEC.build(KeywordTask(types=TYPES), 0).to(device).requires_grad_(False)
    batch = sentences(EXAMPLES).to(device)
    rows = [batch.rows(slice(n, n + 1)).trimmed() for n in range(TIMED)]
    find_adversaries(model, rows[0], SEARCH)
    together = seconds(lambda: find_adversaries(model, batch, SEARCH), device)
    timed = seconds(lambda: [find_adversaries(model, row, SEARCH) for row in rows], device)
    loop = timed * EXAMPLES / TIMED
    print(f"{device}: loop {loop:.1f} s, together {together:.2f} s")
    print(f"adversary: {loop / together:.0f}x (at least {PROMISED})")
    return 0 if loop / together >= PROMISED else 1


if __name__ == "__main__":
    sys.exit(main())
