"""What chooses and what is measured: no number of a table was seen when a model was chosen.

The validation part of a corpus chooses the best weights, δ and η, and its test part is measured.
Where a corpus has no test part (the package's own, or a folder of one's own), a quarter of the
validation part chooses and the rest is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import nn

from attnscope.analysis.classification import Average, classification_metrics
from attnscope.analysis.replaced_attention import POSITIONS, positions_at_once
from attnscope.data.batch import Batch, Example, collate
from attnscope.data.corpus import Corpus
from attnscope.data.source import Source
from attnscope.data.text import Text
from attnscope.errors import UsageError
from attnscope.models.base import ModelSpec
from attnscope.models.trace import AttentionModel
from attnscope.training.trained_unit import TrainedUnit

# Validation examples that choose, at most: an evaluation must not take longer than its steps.
_CHOOSING = 2000


@dataclass(frozen=True)
class HeldOut:
    """Examples that are measured, and the split that they are from."""

    batch: Batch
    split: str


def choosing_count(source: Corpus) -> int:
    """Return how many validation examples choose."""
    count = len(source.validation_examples)
    return min(count, _CHOOSING) if _test(source) else max(1, count // 4)


@lru_cache(maxsize=4)
def held_out(source: Source) -> HeldOut:
    """Return the examples that are measured."""
    assert isinstance(source, Corpus)
    test = _test(source)
    if test:
        return HeldOut(collate(test), "test")
    seen = set(source.evaluation_batch(choosing_count(source)).ids.tolist())
    rest = [example for example in source.validation_examples if example.id not in seen]
    if not rest:
        raise UsageError(f"{source.dataset} has one validation example; at least two are needed.")
    return HeldOut(collate(rest), "val")


def _test(source: Corpus) -> Sequence[Example]:
    return source.test_examples if isinstance(source, Text) else ()


def average_of(source: Corpus) -> Average:
    """Return how F1 is averaged: the positive class of two, else the mean over classes."""
    return "positive" if len(source.output_words) == 2 else "macro"


def best_model(unit: TrainedUnit, device: str) -> AttentionModel:
    """Return a unit's model with its best weights on a device; nothing is kept of it."""
    return _loaded(unit, "best", device)


def last_model(unit: TrainedUnit, device: str) -> AttentionModel:
    """Return a unit's model with its last weights on a device."""
    return _loaded(unit, "last", device)


def _loaded(unit: TrainedUnit, which: str, device: str) -> AttentionModel:
    model = deepcopy(_built(unit.unit.source, unit.unit.model))
    arrays = unit.folder.load_weights(which)[1]
    for name, parameter in model.named_parameters():
        parameter.copy_(torch.from_numpy(arrays[name]))
    return model.to(device)  # type: ignore[return-value]


@lru_cache(maxsize=4)
def _built(source: Source, spec: ModelSpec) -> nn.Module:
    """Build a model once for all its seeds: reading word vectors takes longer than measuring."""
    return spec.build(source, 0).eval().requires_grad_(False)


def validation_f1(unit: TrainedUnit, device: str = "cpu") -> float:
    """Return a unit's F1, under its own attention, on the examples that choose."""
    source = unit.unit.source
    assert isinstance(source, Corpus)
    batch = source.evaluation_batch(unit.unit.training.examples).to(device)
    said = predicted(best_model(unit, device), batch)
    labels = batch.targets[:, 0].cpu().numpy()
    return float(classification_metrics(labels, said, average=average_of(source))["f1"])


@torch.no_grad()
def predicted(model: AttentionModel, batch: Batch) -> np.ndarray:
    """Return the label that a model gives each example."""
    said = np.zeros(len(batch), dtype=np.int64)
    for rows, part in batch.by_length(positions_at_once(POSITIONS)):
        said[rows.numpy()] = model.trace(part).logits[:, 0].argmax(-1).cpu().numpy()
    return said


def part_of(batch: Batch, most: int) -> Batch:
    """Return at most so many examples, evenly spread over a batch."""
    if len(batch) <= most:
        return batch
    return batch.rows(torch.linspace(0, len(batch) - 1, most).round().long()).trimmed()
