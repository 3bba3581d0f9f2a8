"""A classifier's answers on labelled texts, model by model, and how even its attention is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from attnscope.analysis.agreement import attention_entropy
from attnscope.analysis.classification import (
    Average,
    classification_metrics,
    metric_intervals,
)
from attnscope.analysis.intervals import Interval
from attnscope.analysis.replaced_attention import POSITIONS, positions_at_once
from attnscope.data.batch import Batch
from attnscope.models.trace import AttentionModel
from attnscope.scores.attention import site_of


@dataclass(frozen=True)
class Answers:
    """The answers of several models, such as the seeds of one experiment, on the same texts.

    Attributes
    ----------
    labels
        The right label of each text.
    predicted
        The most probable label; the axis between models and texts is that of draws, of size 1.
    entropy
        Entropy of attention over log L; NaN where a text has one word.
    """

    labels: Int[np.ndarray, " text"]
    predicted: Int[np.ndarray, "model draw text"]
    entropy: Float[np.ndarray, "model text"]

    def metric(self, name: str, average: Average) -> Float[np.ndarray, " model"]:
        """Return a metric of each model, as in `classification_metrics`."""
        said = self.predicted[:, 0]
        return classification_metrics(self.labels, said, average=average)[name]

    def accuracy(self, *, rng: np.random.Generator, less: Answers | None = None) -> Interval:
        """Return the accuracy, or by how much it exceeds that of other models' answers."""
        other = None if less is None else less.predicted
        return metric_intervals(self.labels, self.predicted, baseline=other, rng=rng)["accuracy"]


@torch.no_grad()
def read_answers(
    models: Iterable[AttentionModel],
    batch: Batch,
    *,
    site: str = "cross",
    positions: int = POSITIONS,
) -> Answers:
    """Run classifiers on the same texts.

    Parameters
    ----------
    models
        Classifiers on the device of the batch; of an iterator, one at a time is held.
    batch
        Texts with a label each.
    positions
        How many input positions are run at once.
    """
    predicted, entropy = [], []
    for model in models:
        labels, spread = np.zeros(len(batch), np.int64), np.full(len(batch), np.nan)
        for rows, part in batch.by_length(positions_at_once(positions)):
            trace = model.trace(part)
            at = site_of(trace, site)
            labels[rows.numpy()] = trace.logits[:, 0].argmax(-1).cpu().numpy()
            evenness = attention_entropy(at.weights[:, 0].double(), at.mask)
            spread[rows.numpy()] = evenness[:, 0].cpu().numpy()
        predicted.append(labels)
        entropy.append(spread)
    return Answers(
        batch.targets[:, 0].cpu().numpy(), np.stack(predicted)[:, None], np.stack(entropy)
    )
