"""How much longer is a step of the translator with five seeds as one group than with one?

Run ``python benchmarks/translator_seeds.py --device cuda``; it exits with 1 if the ratio is above
the promised one. The paper's translator (two layers, two directions, dropout, 8 000 types) reads
made-up sentence pairs of Multi30k's lengths in batches of 64. Both run as groups, in CUDA graphs.
On a CPU recurrent models train one by one and nothing is promised.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from copying import Clock
from gpu import demand_gpu
from translator import UNIT

from attnscope.training.engine.groups import train_group
from attnscope.training.unit import Training, Unit

PROMISED = 1.5
SEEDS = 5
# On a GPU, most shapes of a batch are recorded in the first steps.
STEPS, LAST, BATCH = {"cpu": 3, "cuda": 400}, {"cpu": 2, "cuda": 100}, {"cpu": 4, "cuda": 64}


def seeds(count: int, options: argparse.Namespace) -> list[Unit]:
    """Return translators of several seeds."""
    training = Training(
        steps=STEPS[options.device],
        batch_size=BATCH[options.device],
        evaluate_at=(),
        examples=1,
        stored=1,
        precision=options.precision,
    )
    changed = {"training": training, "device": options.device}
    return [UNIT.model_copy(update=changed | {"seed": seed}) for seed in range(count)]


def main() -> int:
    """Print the ratio and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["float32", "tf32"], default="float32")
    options = parser.parse_args()
    demand_gpu(parser, options.device)
    milliseconds = {}
    for count in (1, SEEDS):
        clock = Clock(options.device)
        with tempfile.TemporaryDirectory() as folder:
            train_group(seeds(count, options), Path(folder), clock, checkpoint_seconds=1e9)
        milliseconds[count] = clock.milliseconds(LAST[options.device]) * count
    ratio = milliseconds[SEEDS] / milliseconds[1]
    told = f"at most {PROMISED}" if options.device == "cuda" else "no promise"
    print(f"a step: {milliseconds[1]:.1f} ms with one seed, {milliseconds[SEEDS]:.1f} with {SEEDS}")
    print(f"translator_seeds, {options.precision}: {ratio:.2f}x ({told})")
    return 0 if options.device == "cpu" or ratio <= PROMISED else 1


if __name__ == "__main__":
    sys.exit(main())
