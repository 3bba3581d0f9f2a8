"""Stored scores of a unit's first examples, each file read once.

A unit on text stores thousands of examples at every step; a report shows a few and compares some
hundreds, so only these are unpacked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from attnscope.analysis.comparison import per_word
from attnscope.data.batch import Batch
from attnscope.errors import AttnscopeError
from attnscope.runs.tensors import Arrays
from attnscope.scores.score import Score
from attnscope.training.evaluation import padded_score, right_share
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import score_file

COMPARED = 200
"""Examples of which agreement is computed."""


@dataclass(frozen=True)
class StoredAttention:
    """Attention of a unit's first stored examples at both ends of training.

    Attributes
    ----------
    before, after
        At the first and at the last stored step, of the same examples.
    right
        Share of right output words after training; None if the model cannot be run.
    """

    before: Score
    after: Score
    right: Float[np.ndarray, " batch"] | None = None


class StoredScores:
    """Scores of a unit's first examples.

    Parameters
    ----------
    unit
        Finished or in training.
    count
        How many examples, at most.
    """

    def __init__(self, unit: TrainedUnit, count: int) -> None:
        self._unit = unit
        self._all = unit.examples
        self._first = self._all.rows(slice(count)).trimmed()
        self._kept: dict[int | str, dict[str, Score]] = {}

    def score(self, name: str, step: int | str) -> Score | None:
        """Return a score at a step, or None if it is not stored (yet)."""
        if step not in self._kept:
            self._kept[step] = self._read(step)
        return self._kept[step].get(name)

    def last(self, name: str) -> Score | None:
        """Return a score at the last step that is stored."""
        steps = self._unit.folder.score_steps
        return self.score(name, steps[-1]) if steps else None

    def _read(self, step: int | str) -> dict[str, Score]:
        split = self._unit.unit.training.splits[0]
        try:
            arrays = self._unit.folder.load_scores(score_file(split, step))
        except AttnscopeError:
            return {}
        names = [name for name in arrays if f"{name}.mask" in arrays]
        return {
            name: padded_score(name, _prefix(name, arrays, self._first), self._first)
            for name in names
        }


def stored_attention(unit: TrainedUnit) -> StoredAttention | None:
    """Return what a recipe chooses examples by, or None if no attention is stored."""
    steps = unit.folder.score_steps
    first = StoredScores(unit, COMPARED)
    before, after = (first.score("attention", step) for step in (steps[0], steps[-1]))
    if before is None or after is None:
        return None
    return StoredAttention(before, after, _right(unit, after))


def _right(unit: TrainedUnit, score: Score) -> np.ndarray | None:
    """Return the share of right output words, or None if there are no weights yet."""
    try:
        model = unit.model
        return right_share(model, score.batch, unit.unit.source, unit.unit.training).numpy()
    except (AttnscopeError, FileNotFoundError):
        return None


def _prefix(name: str, arrays: Arrays, batch: Batch) -> Arrays:
    """Return the part of a score's flat arrays that belongs to the first examples."""
    lengths = batch.input_lengths.numpy()
    mask = arrays[f"{name}.mask"][: lengths.sum()]
    spoken_of = np.add.reduceat(mask.astype(np.int64), np.r_[0, lengths.cumsum()[:-1]])
    count = int((spoken_of * batch.target_lengths.numpy()).sum())
    return {name: arrays[name][:count], f"{name}.mask": mask}


def agreement(attention: Score, other: Score | None) -> float | None:
    """Return the top-share agreement of the first examples in percent."""
    if other is None:
        return None
    count = min(len(attention.batch), len(other.batch), COMPARED)
    first, second = (_first(score, count) for score in (attention, other))
    if not first.batch.ids.equal(second.batch.ids) or first.values.shape != second.values.shape:
        return None
    words = per_word(first, second)
    real = np.isfinite(words)
    return round(100 * float(words[real].mean()), 2) if real.any() else None


def _first(score: Score, count: int) -> Score:
    batch = score.batch.rows(slice(count)).trimmed()
    out, inp = batch.targets.shape[1], batch.inputs.shape[1]
    return Score(
        score.name, score.values[:count, :out, :inp], score.input_mask[:count, :inp], batch
    )
