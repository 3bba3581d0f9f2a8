"""How much faster are batches of very unlike texts in parts of like length, on a CPU?

Run ``python benchmarks/like_lengths.py``; it exits with 1 if a ratio falls below the promised one.
sunlu's AD and DP-L train on 1,350 made-up texts whose lengths are spread as those of newsgroup
messages (median 100 words, and one of 8,500), whole batches and parts in turns, on one thread.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from classifier import keep_memory

import attnscope
from attnscope.data.text import LabelledText, open_text
from attnscope.models.attentions import Additive, DotProduct
from attnscope.models.classifier import ClassifierSpec
from attnscope.models.encoders import Recurrent, WordStates
from attnscope.training import loop
from attnscope.training.unit import Training, Unit

MODELS = {
    "AD": ClassifierSpec(embedding=100, encoder=WordStates(), attention=Additive(hidden=100)),
    "DP-L": ClassifierSpec(embedding=100, encoder=Recurrent(hidden=50), attention=DotProduct()),
}
PROMISED = {"AD": 3.0, "DP-L": 1.5}
ROUNDS = 2


def corpus(folder: Path) -> LabelledText:
    """Write and open the texts."""
    stream = np.random.default_rng(0)
    lengths = np.clip(np.exp(stream.normal(np.log(100), 1.1, 1500)), 3, 4000).astype(int)
    lengths[2] = 8500
    words = np.array([f"w{number}" for number in range(5000)])
    texts = (" ".join(stream.choice(words, length)) for length in lengths)
    attnscope.write_corpus(folder, ((text, str(i % 2)) for i, text in enumerate(texts)))
    return open_text(folder, classification={"max_length": None})


def seconds(unit: Unit, parts: bool) -> float:
    """Return how long the steps take."""
    known = loop.reads_parts
    loop.reads_parts = lambda unit: parts
    try:
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            loop.train_unit(unit, Path(folder), checkpoint_seconds=1e9)
            return time.perf_counter() - start
    finally:
        loop.reads_parts = known


def main() -> int:
    """Print the ratios and return the exit code."""
    torch.set_num_threads(1)
    keep_memory()
    kept = True
    with tempfile.TemporaryDirectory() as folder:
        source = corpus(Path(folder) / "messages")
        for name, model in MODELS.items():
            some = Training(
                steps=source.bucket, batch_size=100, evaluate_at=(), examples=1, stored=0
            )
            none = some.model_copy(update={"steps": 0})
            unit, start = (
                Unit(source=source, model=model, training=training) for training in (some, none)
            )
            assert loop.reads_parts(unit)
            seconds(start, True)
            apart = min(seconds(start, True) for _ in range(ROUNDS))
            both = {
                parts: min(seconds(unit, parts) for _ in range(ROUNDS)) - apart
                for parts in (False, True)
            }
            ratio = both[False] / both[True]
            print(f"{name}: whole batches {both[False]:.2f} s, in parts {both[True]:.2f} s")
            print(f"{name}: {ratio:.1f}x (at least {PROMISED[name]})")
            kept = kept and ratio >= PROMISED[name]
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
