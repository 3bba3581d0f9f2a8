"""How much faster are 100 permutations of attention from one encoding than 100 single passes?

Run ``python benchmarks/fragility.py [cuda]``; it exits with 1 if the ratio falls below the promised
one. The classifier is tutek's (300-d words, a biLSTM of 150 per direction) on as many sentences as
SST's development part has. Of the single passes ten are timed, and count for all.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import torch

from attnscope.analysis.fragility import compute_fragility
from attnscope.data.batch import Batch, Example, collate
from attnscope.data.tasks import KeywordTask
from attnscope.models.attentions import Additive
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent
from attnscope.models.intervention import Permuted

PROMISED = 5
EXAMPLES, SHORTEST, LONGEST, TYPES = 872, 4, 40, 5000
PERMUTATIONS, TIMED = 100, 10
SPEC = ClassifierSpec(
    embedding=300,
    encoder=Recurrent(hidden=150),
    attention=Additive(hidden=150, activation="tanh", output_bias="off"),
)


def sentences(count: int) -> Batch:
    """Return sentences of random words."""
    stream = torch.Generator().manual_seed(0)
    lengths = torch.randint(SHORTEST, LONGEST, (count,), generator=stream).tolist()
    words = [torch.randint(TYPES, (length,), generator=stream).numpy() for length in lengths]
    return collate([Example(n, part, [0], [n % 2]) for n, part in enumerate(words)])


def seconds(work: Callable[[], object], device: str) -> float:
    """Return the time that one call takes, to the end of what it put on a device."""
    start = time.perf_counter()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def single_passes(model: torch.nn.Module, batch: Batch, count: int) -> None:
    """Run the whole model once for every permutation, in batches of like length."""
    for seed in range(count):
        for _, part in batch.by_length(lambda inp, out: 2**15 // inp):
            model.trace(part, {"cross": Permuted(seed=seed)}).logits.softmax(-1).cpu()


def main() -> int:
    """Print the ratio and return the exit code."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    model = SPEC.build(KeywordTask(types=TYPES), 0).to(device)
    batch = sentences(EXAMPLES).to(device)
    single_passes(model, batch, 1)
    compute_fragility(model, batch, 2)
    once = seconds(lambda: compute_fragility(model, batch, PERMUTATIONS), device)
    timed = seconds(lambda: single_passes(model, batch, TIMED), device)
    single = timed * PERMUTATIONS / TIMED
    print(f"{device}: single passes {single:.2f} s, from one encoding {once:.2f} s")
    print(f"fragility: {single / once:.0f}x (at least {PROMISED})")
    return 0 if single / once >= PROMISED else 1


if __name__ == "__main__":
    sys.exit(main())
