"""Which of its stored examples a recipe names for the report: a few, and always the same ones.

A recipe's module says how it chooses (``EXAMPLES``); the report hands it what was stored. Whoever
reads the report may ask for others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from jaxtyping import Float

from attnscope.scores.score import Score

READABLE = range(4, 31)
"""Input lengths at which a map is read at a glance."""


@dataclass(frozen=True)
class Stored:
    """What a choice is made on: some stored examples of a unit.

    Attributes
    ----------
    before, after
        Attention at the first and at the last stored step, of the same examples.
    right
        Share of right output words after training; None where the model cannot be run any more.
    """

    before: Score
    after: Score
    right: Float[np.ndarray, " batch"] | None = None


@dataclass(frozen=True)
class Named:
    """An example by its id, and why it is shown."""

    id: int
    why: str


Choice = Callable[[Stored, int], list[Named]]


def right_and_wrong(stored: Stored, count: int) -> list[Named]:
    """Return examples whose attention moved most, right and wrong answers by turns.

    Parameters
    ----------
    stored
        Examples of a readable length are preferred while there are enough.
    count
        How many at most.
    """
    batch, moved = stored.after.batch, movement(stored.before, stored.after)
    order = np.argsort(-moved, kind="stable").tolist()
    lengths = batch.input_lengths.tolist()
    readable = [row for row in order if lengths[row] in READABLE]
    rows = readable if len(readable) >= count else order
    if stored.right is not None:
        # Few translations have every word right: the better half counts as right.
        better = ((stored.right > 0) & (stored.right >= np.median(stored.right))).tolist()
        right, wrong = ([row for row in rows if better[row] is turn] for turn in (True, False))
        rows = [row for pair in zip_longest(right, wrong) for row in pair if row is not None]
    outputs = batch.target_lengths.tolist()
    return [
        Named(
            int(batch.ids[row]),
            f"Attention moved by {100 * moved[row]:.0f} % in training"
            + ("." if stored.right is None else f"; {_answer(stored.right[row], outputs[row])}."),
        )
        for row in rows[:count]
    ]


def movement(before: Score, after: Score) -> Float[np.ndarray, " batch"]:
    """Return how much of an output word's attention has moved to other input words, on average."""
    moved = (after.values.double() - before.values.double()).abs().sum(-1) / 2
    words = after.target_mask
    return ((moved * words).sum(-1) / words.sum(-1)).cpu().numpy()


def _answer(right: float, words: int) -> str:
    if words == 1:
        return "the answer is right" if right == 1 else "the answer is wrong"
    wrong = round((1 - right) * words)
    return f"{wrong} of {words} output words are wrong" if wrong else "every output word is right"
