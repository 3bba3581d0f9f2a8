"""Outputs of a trained unit for examples of a report: labels with probabilities, translations."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from attnscope.data.batch import Batch
from attnscope.errors import AttnscopeError
from attnscope.models.decoding import greedy
from attnscope.training.trained_unit import TrainedUnit

_MOST_WORDS = 96


def model_answers(unit: TrainedUnit, batch: Batch) -> list[str]:
    """Return what a unit says to each example; empty where it has no weights or words yet."""
    try:
        return list(_answers(unit, batch))
    except (AttnscopeError, FileNotFoundError):
        return [""] * len(batch)


@torch.no_grad()
def _answers(unit: TrainedUnit, batch: Batch) -> Iterable[str]:
    model, source, attention = unit.model, unit.source, unit.unit.training.attention
    if source.boundaries is not None:
        written = greedy(model, batch, source.boundaries, _MOST_WORDS, attention)
        return [source.sentence(words) for words in written.words]
    shares = model.trace(batch, attention).logits[:, 0].softmax(-1)
    chances, labels = shares.max(-1)
    names = source.output_words.decode(labels.tolist())
    return [
        f"{name} ({100 * chance:.0f} %)"
        for name, chance in zip(names, chances.tolist(), strict=True)
    ]
