"""How much longer does a packed LSTM take on a CPU than one that reads texts padded, in groups?

Run ``python benchmarks/padded_lstm.py``; it exits with 1 if a ratio falls below the promised one.
Batches of 32 texts, forward and backward on one thread, with the sizes of snell's and tutek's
classifiers: lengths as in SST, and lognormal ones as in newsgroups, where the longest text is
many times the median.
"""

from __future__ import annotations

import sys
import time
from unittest.mock import patch

import torch

from attnscope.models import recurrence
from attnscope.models.recurrence import Recurrence

TEXTS, WORDS = 32, 300
# Hidden size, lengths and the promised ratio.
CASES = {
    "short texts": (256, lambda stream: torch.randint(3, 38, (TEXTS,), generator=stream), 1.4),
    "long texts": (
        150,
        lambda stream: (torch.randn(TEXTS, generator=stream) + 4.6).exp().long().clamp(5, 4000),
        3.0,
    ),
}


def seconds(layer: Recurrence, texts: torch.Tensor, lengths: torch.Tensor) -> float:
    """Return the time of one pass forward and backward."""
    start = time.perf_counter()
    layer(texts, lengths)[0].sum().backward()
    return time.perf_counter() - start


def main() -> int:
    """Print the ratios and return the exit code."""
    torch.set_num_threads(1)
    kept = True
    for name, (hidden, draw, promised) in CASES.items():
        lengths = draw(torch.Generator().manual_seed(0))
        texts = torch.randn(TEXTS, int(lengths.max()), WORDS, requires_grad=True)
        layer = Recurrence("lstm", WORDS, hidden, directions=2)
        padded, packed = [], []
        for _ in range(12):
            padded.append(seconds(layer, texts, lengths))
            with patch.object(recurrence, "stays_padded", lambda layer, inputs: False):
                packed.append(seconds(layer, texts, lengths))
        ratio = min(packed) / min(padded)
        print(f"{name}: padded {1000 * min(padded):.0f} ms, packed {1000 * min(packed):.0f} ms")
        print(f"padded_lstm, {name}: {ratio:.1f}x (at least {promised})")
        kept &= ratio >= promised
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
