"""Models on the examples that choose and on those that are measured, which are never the same.

The validation part of a corpus chooses the best weights, δ and η, and its test part is measured.
Where a corpus has no test part (the package's own, or a user's folder), a quarter of the validation
part chooses and the rest is measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from functools import lru_cache

import numpy as np
import torch
from torch import nn

from attnscope.analysis.classification import Average, classification_metrics
from attnscope.analysis.replaced_attention import POSITIONS, positions_at_once
from attnscope.analysis.token_probabilities import TokenProbabilities, compute_token_probabilities
from attnscope.data.batch import Batch
from attnscope.data.corpus import Corpus
from attnscope.data.source import Source
from attnscope.models.base import ModelSpec
from attnscope.models.trace import AttentionModel
from attnscope.recipes.kit import corpora
from attnscope.recipes.kit.corpora import HeldOut, left_out, left_out_rows
from attnscope.recipes.kit.sheet import Sheet
from attnscope.runs.result import Measurement
from attnscope.training.trained_unit import TrainedUnit

# The names of the corpora in the published tables.
PRINTED = {
    "tutek-sst": "SST",
    "tutek-ag-news": "AG News",
    "tutek-20news": "20NG",
    "tutek-imdb": "IMDB",
    "mimic-anemia": "Anemia",
    "mimic-diabetes": "Diabetes",
}
# Validation examples that choose, at most: an evaluation must not take longer than its steps.
_CHOOSING = 2000


def choosing_count(source: Corpus) -> int:
    """Return how many validation examples choose."""
    count = len(source.validation_examples)
    return min(count, _CHOOSING) if "test" in corpora.parts(source) else max(1, count // 4)


def held_out(source: Source) -> HeldOut:
    """Return the examples that are measured."""
    assert isinstance(source, Corpus)
    return corpora.held_out(source, choosing_count(source))


def sheet_of(
    source: Corpus, seeds: Iterable[int] = (), table: str = "", *, percent: bool = False
) -> Sheet:
    """Return the sheet of a corpus for one of the paper's tables."""
    split, printed = held_out(source).split, PRINTED.get(source.dataset)
    return Sheet(source.dataset, split, tuple(seeds), "tutek", table, printed, percent)


def statistics_rows(source: Corpus) -> list[Measurement]:
    """Return table 5: mean length in words and vocabulary; sizes, and texts that were left out."""
    sheet = sheet_of(source, table="table5")
    marks = len(source.encode(""))  # boundaries are not counted
    lengths = [len(example.inputs) - marks for example in source.training_examples]
    sizes = {
        "avg_length": float(np.mean(lengths)),
        "vocab_size": len(source.input_words),
        "train_size": len(lengths),
        "val_size": len(source.validation_examples),
        "measured_size": len(held_out(source).examples),
    }
    n = len(lengths)
    rows = [sheet.point(name, value, n=n, split="train") for name, value in sizes.items()]
    return rows + left_out_rows(sheet, left_out(source), n)


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


def read_tokens(units: Sequence[TrainedUnit], device: str) -> list[TokenProbabilities]:
    """Read trained units word by word on the held-out texts (Eq. 9)."""
    batch = held_out(units[0].unit.source).batch.to(device)
    return [compute_token_probabilities(best_model(unit, device), batch) for unit in units]
