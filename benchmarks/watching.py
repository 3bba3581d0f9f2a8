"""What does watching cost? A watched pass of a Transformer over the bare one, by width.

Run ``python benchmarks/watching.py``; it exits with 1 if the ratio rises above the promised one
from width 384 up. Needs transformers.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch
import transformers

from attnscope.data.batch import Batch, Example, collate
from attnscope.models.adapter import adapt

PROMISED = 1.25
RUNS = 7


def seconds(run: Callable[[], object]) -> float:
    """Return the time of a call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def batch_of(types: int) -> Batch:
    """Return 16 texts of 64 words."""
    rows = torch.randint(5, types, (16, 64), generator=torch.Generator().manual_seed(0)).tolist()
    return collate([Example(n, row, [0], [0]) for n, row in enumerate(rows)])


def ratio(width: int) -> float:
    """Return the median ratio of paired runs."""
    config = transformers.BertConfig(
        vocab_size=1000,
        hidden_size=width,
        num_hidden_layers=3,
        num_attention_heads=width // 32,
        intermediate_size=4 * width,
        max_position_embeddings=64,
    )
    model = adapt(transformers.BertForSequenceClassification(config).eval())
    batch = batch_of(1000)
    with torch.no_grad():
        pairs = [
            (
                seconds(lambda: model.outputs(batch)),
                seconds(lambda: model.call(model.module, batch)),
            )
            for _ in range(RUNS + 1)
        ]
    return statistics.median(watched / bare for watched, bare in pairs[1:])


def main() -> int:
    """Print the ratios and return the exit code."""
    torch.set_num_threads(1)
    ratios = {width: ratio(width) for width in (128, 384, 768)}
    for width, found in ratios.items():
        print(f"width {width}: {found:.2f}")
    worst = max(ratios[384], ratios[768])
    print(f"watching: {worst:.2f} (at most {PROMISED} from width 384)")
    return 0 if worst <= PROMISED else 1


if __name__ == "__main__":
    sys.exit(main())
