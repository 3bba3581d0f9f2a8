"""One pass over everything that a corpus is trained on, in batches of like length."""

from __future__ import annotations

from functools import lru_cache

from attnscope.data.batch import Batch, collate
from attnscope.data.corpus import Corpus

# Input positions of a batch, padding included.
_POSITIONS = 2**15


@lru_cache(maxsize=2)
def training_batches(source: Corpus, positions: int = _POSITIONS) -> tuple[Batch, ...]:
    """Return all training examples, the longest first; kept, as each evaluation may ask again.

    Parameters
    ----------
    source
        The corpus.
    positions
        How many input positions a batch may have, padding included; it has at least one example.
    """
    examples = sorted(source.training_examples, key=lambda e: len(e.inputs), reverse=True)
    batches, start = [], 0
    while start < len(examples):
        size = max(1, positions // max(len(examples[start].inputs), 1))
        batches.append(collate(examples[start : start + size]))
        start += size
    return tuple(batches)
