"""When a run has learned its task: accuracy of at least .95 at the end of the stated budget.

The threshold is that of snell §3.3; accuracy is over all real positions, EOS included.
"""

from __future__ import annotations

from collections.abc import Sequence

LEARNED_AT = 0.95


def learned(accuracy_at_end: float, threshold: float = LEARNED_AT) -> bool:
    """Tell whether a run's last accuracy reaches the threshold.

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
