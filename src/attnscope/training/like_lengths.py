"""Training batches of labelled texts in parts of like length, on a CPU, where lengths differ much.

A batch is as wide as its longest text: a hundred newsgroup messages, one of them of 8,573 words,
are a fifteenth words and the rest padding. Read in parts, each as wide as its own longest text,
their gradients add up to that of the batch. Dropout draws part by part. A GPU reads batches whole:
it would wait for the many small kernels of further parts.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from jaxtyping import Int

from attnscope.data.batch import Batch
from attnscope.data.corpus import Corpus
from attnscope.data.source import Source
from attnscope.training.unit import Unit

# What a part costs besides its positions, in positions.
_COST = 1024
# By how much parts must make the batches cheaper: several seeds of one vmapped model, which read
# batches whole, gain as much.
_WORTH = 2.0
# Batches that are looked at, at most.
_LOOKED = 1000


def reads_parts(unit: Unit) -> bool:
    """Whether a unit reads its batches in parts: a function of its settings, but for the seed.

    All terms must be means over examples, and attention the model's own.
    """
    training = unit.training
    if unit.device != "cpu" or training.attention:
        return False
    by_example = all(term.per_example for term in training.objective)
    return by_example and _are_unlike(unit.source, training.batch_size)


@lru_cache(maxsize=64)
def _are_unlike(source: Source, size: int) -> bool:
    if not isinstance(source, Corpus) or source.training_batch(0, 0, size).targets.shape[1] > 1:
        return False
    # Whole buckets: the longest texts may come first or last in one.
    steps = math.ceil(source.epoch(size) / source.bucket) * source.bucket
    batches = [source.training_batch(0, step, size) for step in range(min(steps, _LOOKED))]
    whole = sum(_COST + batch.inputs.numel() for batch in batches)
    return whole >= _WORTH * sum(_cheapest(_falling(batch))[0] for batch in batches)


def parts(batch: Batch) -> list[tuple[float, Batch]]:
    """Return the parts of a batch that cost least, the longest texts first, with their shares."""
    order = batch.input_lengths.argsort(descending=True, stable=True)
    sizes = _cheapest(_falling(batch))[1]
    return [(len(rows) / len(batch), batch.rows(rows).trimmed()) for rows in order.split(sizes)]


def _falling(batch: Batch) -> Int[np.ndarray, " text"]:
    return np.sort(batch.input_lengths.numpy())[::-1]


def _cheapest(lengths: Int[np.ndarray, " text"]) -> tuple[int, list[int]]:
    """Return the least cost of texts whose lengths fall, and the sizes of its parts."""
    count = len(lengths)
    costs, starts = np.zeros(count + 1, dtype=np.int64), np.zeros(count + 1, dtype=np.int64)
    for stop in range(1, count + 1):
        # The last part may begin anywhere; its first text is its longest.
        begun = costs[:stop] + _COST + np.arange(stop, 0, -1) * lengths[:stop]
        starts[stop] = begun.argmin()
        costs[stop] = begun[starts[stop]]
    sizes, stop = [], count
    while stop:
        sizes.append(int(stop - starts[stop]))
        stop = int(starts[stop])
    return int(costs[-1]), sizes[::-1]
