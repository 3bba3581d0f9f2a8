"""Stored scores of some of a unit's examples, each file read once.

A unit on text stores thousands of examples at every step; a report shows a few and compares some
hundreds, evenly chosen, so only these are unpacked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from attnscope.analysis.comparison import per_word
from attnscope.errors import AttnscopeError
from attnscope.runs.tensors import Arrays
from attnscope.scores.score import Score
from attnscope.training.evaluation import padded_score, right_share
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import score_file

COMPARED = 500
"""Examples of which agreement is computed, evenly chosen where more are stored."""


@dataclass(frozen=True)
class StoredAttention:
    """Attention of some of a unit's stored examples at both ends of training.

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
    """Scores of some of a unit's examples.

    Parameters
    ----------
    unit
        Finished or in training.
    rows
        Places of the examples among the stored ones, in ascending order.
    """

    def __init__(self, unit: TrainedUnit, rows: Sequence[int]) -> None:
        self._unit, self._rows = unit, np.asarray(rows, np.int64)
        self._all = unit.examples
        self._chosen = self._all.rows(torch.from_numpy(self._rows)).trimmed()
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
        return {name: padded_score(name, self._part(name, arrays), self._chosen) for name in names}

    def _part(self, name: str, arrays: Arrays) -> Arrays:
        """Return the part of a score's flat arrays that belongs to the chosen examples."""
        lengths = self._all.input_lengths.numpy().astype(np.int64)
        marks, values = arrays[f"{name}.mask"], arrays[name]
        starts = np.r_[0, lengths.cumsum()]
        spoken_of = np.add.reduceat(marks.astype(np.int64), starts[:-1])
        ends = np.r_[0, (spoken_of * self._all.target_lengths.numpy()).cumsum()]
        return {
            name: _segments(values, ends, self._rows),
            f"{name}.mask": _segments(marks, starts, self._rows),
        }


def _segments(flat: np.ndarray, ends: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.concatenate([flat[ends[row] : ends[row + 1]] for row in rows.tolist()])


def compared_rows(count: int) -> list[int]:
    """Return the places of the examples that are compared: all, or evenly chosen ones."""
    places = np.linspace(0, count - 1, min(count, COMPARED)).round().astype(int)
    return sorted(set(places.tolist()))


def stored_attention(unit: TrainedUnit) -> StoredAttention | None:
    """Return what a recipe chooses examples by, or None if no attention is stored."""
    steps = unit.folder.score_steps
    some = StoredScores(unit, compared_rows(len(unit.examples)))
    before, after = (some.score("attention", step) for step in (steps[0], steps[-1]))
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


def agreement(attention: Score, other: Score | None, ids: Sequence[int]) -> float | None:
    """Return the top-share agreement of the examples of some ids in percent."""
    if other is None:
        return None
    first, second = (_of_ids(score, ids) for score in (attention, other))
    if first is None or second is None:
        return None
    if not first.batch.ids.equal(second.batch.ids) or first.values.shape != second.values.shape:
        return None
    words = per_word(first, second)
    real = np.isfinite(words)
    return round(100 * float(words[real].mean()), 2) if real.any() else None


def _of_ids(score: Score, ids: Sequence[int]) -> Score | None:
    """Return a score of the examples of some ids; None where one of them is missing."""
    places = {int(key): row for row, key in enumerate(score.batch.ids.tolist())}
    if not all(key in places for key in ids):
        return None
    rows = torch.tensor([places[key] for key in ids])
    batch = score.batch.rows(rows).trimmed()
    out, inp = batch.targets.shape[1], batch.inputs.shape[1]
    return Score(score.name, score.values[rows, :out, :inp], score.input_mask[rows, :inp], batch)
