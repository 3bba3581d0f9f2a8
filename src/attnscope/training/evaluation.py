"""Evaluation of a unit: loss and accuracy on held-out examples, and the scores that are kept.

Examples are run in batches of like length and put back in order. Scores are kept without padding:
a corpus of reviews would be four fifths padding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attnscope.data.batch import Batch, Example, collate
from attnscope.data.source import Source
from attnscope.errors import DamagedFile
from attnscope.models.trace import AttentionModel, Trace
from attnscope.runs.tensors import Arrays
from attnscope.scores.score import Score, ScoreRule, read_scores
from attnscope.training.objective import negative_log_likelihood
from attnscope.training.unit import Training

# Input positions run at once, and the numbers assumed for each: its states, or its part of the
# output logits.
POSITIONS = 2**15
_WIDTH = 512

Evaluated = tuple[dict[str, float], Arrays]  # a row of the log, and scores


@torch.no_grad()
def evaluate(
    model: AttentionModel,
    batch: Batch,
    source: Source,
    training: Training,
    split: str = "val",
    *,
    positions: int = POSITIONS,
) -> Evaluated:
    """Return loss, accuracy and metrics over all examples, and the scores of the first ones.

    ``positions`` bounds how many are run at once.
    """
    assert isinstance(model, nn.Module)
    model.eval()
    losses, right, read = [], [], []
    keeps_all = training.stored >= len(batch)  # scores of all examples share the pass with the loss
    for rows, chunk in batch.by_length(chunk_rows(source, positions)):
        trace = model.trace(chunk, training.attention)
        losses.append(negative_log_likelihood(trace).double().sum())
        right.append(right_words(trace).sum())
        if keeps_all:
            noted = replace(trace, attention=training.attention)
            scores = read_scores(training.scores, model, chunk, training.attention, trace=noted)
            read.append((rows, scores))
    sums = float(torch.stack(losses).sum()), float(torch.stack(right).sum())
    row = measured_row(*sums, model, batch, source, training, split)
    if keeps_all:
        kept = without_padding(read)
    else:
        first = batch.rows(slice(training.stored))
        kept = kept_scores(model, first, source, training, training.scores, positions=positions)
    model.train()
    return row, kept


def measured_row(
    loss: float,
    right: float,
    model: AttentionModel,
    batch: Batch,
    source: Source,
    training: Training,
    split: str,
) -> dict[str, float]:
    """Return a row of the log: loss and accuracy from their sums over all words, and metrics."""
    words = int(batch.target_lengths.sum())
    row = {"loss": loss / words, "accuracy": right / words}
    for metric in training.metrics:
        value = metric(model, batch, source, split, training.attention)
        row |= value if isinstance(value, dict) else {metric.name: value}
    return row


@torch.no_grad()
def right_share(
    model: AttentionModel,
    batch: Batch,
    source: Source,
    training: Training,
    *,
    positions: int = POSITIONS,
) -> Float[Tensor, " batch"]:
    """Return the share of right output words of each example."""
    assert isinstance(model, nn.Module)
    model.eval()
    shares = torch.zeros(len(batch), dtype=torch.float64)
    for rows, chunk in batch.by_length(chunk_rows(source, positions)):
        right = right_words(model.trace(chunk, training.attention)).sum(1)
        shares[rows.cpu()] = (right / chunk.target_lengths.to(right.device)).cpu()
    model.train()
    return shares


def kept_scores(
    model: AttentionModel,
    batch: Batch,
    source: Source,
    training: Training,
    rules: Sequence[ScoreRule],
    *,
    positions: int = POSITIONS,
) -> Arrays:
    """Read scores off a model, under the unit's own attention, as arrays without padding."""
    return without_padding(
        [
            (rows, read_scores(rules, model, chunk, training.attention))
            for rows, chunk in batch.by_length(chunk_rows(source, positions))
        ]
    )


def without_padding(
    chunks: Sequence[tuple[Int[Tensor, " _"], Sequence[Score]]],
) -> Arrays:
    """Return the scores of all chunks of a batch as arrays without padding, in its order."""
    kept: dict[str, list[tuple[int, np.ndarray]]] = defaultdict(list)
    for rows, scores in chunks:
        for score in scores:
            for name, pieces in _unpadded(score).items():
                kept[name] += zip(rows.tolist(), pieces, strict=True)
    return {name: _in_order(pieces) for name, pieces in kept.items()}


def chunk_rows(source: Source, positions: int) -> Callable[[int, int], int]:
    """Return how many examples of a length are run at once."""
    types = len(source.output_words)
    return lambda inp, out: min(positions // max(inp, out), positions * _WIDTH // (out * types))


def right_words(trace: Trace) -> Float[Tensor, "batch out"]:
    """Return 1 where the most probable word is right, 0 elsewhere and at padding."""
    right = trace.logits.argmax(-1) == trace.batch.targets
    return (right & trace.batch.target_mask).double()


def _unpadded(score: Score) -> dict[str, list[np.ndarray]]:
    """Return one array an example: the real values, and which input positions they are at."""
    batch = score.batch
    real = batch.input_mask
    return {
        score.name: _split(score.values[score.mask], score.mask.sum((1, 2))),
        f"{score.name}.mask": _split(score.input_mask[real], real.sum(1)),
    }


def _split(flat: Tensor, counts: Tensor) -> list[np.ndarray]:
    return np.split(flat.cpu().numpy(), counts.cumsum(0)[:-1].cpu().numpy())


def _in_order(pieces: Sequence[tuple[int, np.ndarray]]) -> np.ndarray:
    return np.concatenate([piece for _, piece in sorted(pieces, key=lambda pair: pair[0])])


def padded_score(name: str, arrays: Arrays, batch: Batch) -> Score:
    """Return a kept score of the examples that it was kept of."""
    marks, kept = arrays[f"{name}.mask"], arrays[name]
    if marks.dtype != np.bool_ or kept.dtype.kind != "f" or (marks.ndim, kept.ndim) != (1, 1):
        raise DamagedFile(f"The stored {name} is not a list of numbers with its mask.")
    mask = torch.zeros_like(batch.inputs, dtype=torch.bool)
    mask[batch.input_mask] = torch.from_numpy(marks.copy())
    flat = torch.from_numpy(kept.copy())
    real = batch.target_mask[:, :, None] & mask[:, None]
    values = torch.zeros(real.shape, dtype=flat.dtype)
    values[real] = flat
    return Score(name, values, mask, batch)


def example_arrays(batch: Batch) -> Arrays:
    """Return examples as arrays without padding."""
    inputs, outputs = batch.input_mask, batch.target_mask
    flat = {
        "ids": batch.ids,
        "input_lengths": batch.input_lengths,
        "target_lengths": batch.target_lengths,
        "inputs": batch.inputs[inputs],
        "decoder_inputs": batch.decoder_inputs[outputs],
        "targets": batch.targets[outputs],
        "gold": batch.gold[outputs],
    }
    return {name: part.cpu().numpy().astype(np.int32) for name, part in flat.items()}


_LENGTHS = {
    "input_lengths": ("inputs",),
    "target_lengths": ("decoder_inputs", "targets", "gold"),
}


def example_batch(arrays: Arrays) -> Batch:
    """Return what `example_arrays` took apart."""
    for lengths, names in _LENGTHS.items():
        counts = arrays[lengths]
        sound = all(arrays[name].dtype.kind == "i" for name in (lengths, "ids", *names))
        sizes = {arrays[name].shape for name in names}
        if not sound or counts.shape != arrays["ids"].shape or not (counts > 0).all():
            raise DamagedFile(f"The stored examples are not whole numbers with {lengths}.")
        if counts.ndim != 1 or sizes != {(int(counts.astype(np.int64).sum()),)}:
            raise DamagedFile(f"The stored examples do not have the lengths in {lengths}.")

    def rows(name: str, lengths: str) -> list[np.ndarray]:
        return np.split(arrays[name], arrays[lengths].cumsum()[:-1])

    columns = (
        arrays["ids"].tolist(),
        rows("inputs", "input_lengths"),
        *(rows(name, "target_lengths") for name in ("decoder_inputs", "targets", "gold")),
    )
    return collate([Example(*cells) for cells in zip(*columns, strict=True)])
