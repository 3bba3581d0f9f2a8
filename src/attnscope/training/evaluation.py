"""Evaluation of a unit: loss and accuracy on held-out examples, and the scores that are kept."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from attnscope.data.batch import Batch
from attnscope.models.trace import AttentionModel, Trace
from attnscope.runs.tensors import Arrays
from attnscope.training.objective import negative_log_likelihood
from attnscope.training.unit import Training

_EXAMPLE_COLUMNS = tuple(Batch.__dataclass_fields__)


@torch.no_grad()
def evaluate(
    model: AttentionModel, batch: Batch, training: Training
) -> tuple[dict[str, float], Arrays]:
    """Return loss and accuracy over all real output positions, and the scores of the first ones."""
    assert isinstance(model, nn.Module)
    model.eval()
    size = training.batch_size
    traces = [
        model.trace(batch.rows(slice(start, start + size)), training.attention)
        for start in range(0, len(batch), size)
    ]
    row = {
        "loss": _mean([negative_log_likelihood(trace) for trace in traces], batch),
        "accuracy": _mean([_right(trace) for trace in traces], batch),
    }
    scores = _scores(model, batch.rows(slice(training.stored)), training)
    model.train()
    return row, scores


def _right(trace: Trace) -> torch.Tensor:
    right = trace.logits.argmax(-1) == trace.batch.targets
    return (right & trace.batch.target_mask).double()


def _mean(parts: Sequence[torch.Tensor], batch: Batch) -> float:
    total = torch.stack([part.double().sum() for part in parts]).sum()
    return float(total / batch.target_lengths.sum())


def _scores(model: AttentionModel, batch: Batch, training: Training) -> Arrays:
    if not len(batch):
        return {}
    trace = model.trace(batch, training.attention)
    arrays = {}
    for rule in training.scores:
        score = rule.read(model, trace)
        arrays[rule.name] = score.values.cpu().numpy()
        arrays[f"{rule.name}.mask"] = score.input_mask.cpu().numpy()
    return arrays


def example_arrays(batch: Batch) -> Arrays:
    """Return the stored examples as arrays."""
    return {name: getattr(batch, name).cpu().numpy() for name in _EXAMPLE_COLUMNS}


def example_batch(arrays: Arrays) -> Batch:
    """Return what `example_arrays` took apart."""
    return Batch(**{name: torch.from_numpy(arrays[name].copy()) for name in _EXAMPLE_COLUMNS})
