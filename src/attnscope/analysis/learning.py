"""When a run has learned its task: accuracy of at least .95 at the end of the stated budget.

The threshold is that of snell §3.3; accuracy is over all real positions, EOS included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LEARNED_AT = 0.95


def learned(accuracy_at_end: float, threshold: float = LEARNED_AT) -> bool:
    """Return whether a run's last accuracy reaches the threshold.

    Parameters
    ----------
    accuracy_at_end
        Accuracy in [0, 1] at the end of the budget.
    threshold
        The accuracy that counts as learned.
    """
    return accuracy_at_end >= threshold


def steps_to(
    accuracies: Sequence[float], steps: Sequence[int], threshold: float = LEARNED_AT
) -> int | None:
    """Return the first step at which accuracy reaches the threshold, or None.

    Parameters
    ----------
    accuracies
        Accuracy at each evaluation.
    steps
        The step of each evaluation.
    threshold
        The accuracy that counts as learned.
    """
    evaluations = zip(accuracies, steps, strict=True)
    return min((step for accuracy, step in evaluations if accuracy >= threshold), default=None)


def learned_at(log: Sequence[Mapping[str, Any]], budget: int | None = None) -> int | None:
    """Return the first step of a unit's log at which it had learned, or None.

    Parameters
    ----------
    log
        One row per evaluation, with ``step`` and ``accuracy``.
    budget
        The last step that counts; all of them if not given.
    """
    rows = [row for row in log if budget is None or row["step"] <= budget]
    return steps_to([row["accuracy"] for row in rows], [row["step"] for row in rows])
