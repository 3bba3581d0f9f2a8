"""Could attention be another? A search for different weights that leave the output in place.

Two starts: equal weights with noise, and the model's own; the farther one found counts. That
nothing was found in so many steps is not a proof that there is nothing.
"""

from __future__ import annotations

import numpy as np
import torch

from attnscope.analysis.adversary import Search, find_adversaries
from attnscope.analysis.intervals import rate_interval
from attnscope.audits.subject import Subject
from attnscope.runs.measurement import Label
from attnscope.runs.result import Record

FAR, EPSILON = 0.35, 0.01
SEARCHED = {True: 48, False: 16}  # examples of a classifier, of any other model
STEPS = 80


def measure(subject: Subject) -> list[Record]:
    """Return the share of examples for which other attention was found, and how far it is."""
    count = min(len(subject.batch), SEARCHED[subject.labels])
    rows = torch.linspace(0, len(subject.batch) - 1, count).round().long()
    batch = subject.batch.rows(rows).trimmed()
    farthest = np.zeros(count)
    for own_start in (False, True):
        search = Search(
            epsilon=EPSILON,
            restarts=1,
            steps=STEPS,
            lr=0.1,
            spread=1.0 if own_start else 3.0,
            seed=subject.seed,
            own_start=own_start,
        )
        found = find_adversaries(
            subject.model, batch, search, site=subject.site, positions=subject.positions // 2
        )
        farthest = np.maximum(farthest, found.divergence.double().numpy())
    share = rate_interval(int((farthest >= FAR).sum()), count)
    axes: dict[str, Label] = {"site": subject.site, "steps": STEPS}
    return [
        subject.row("replaceable", share, axes),
        subject.mean("adversary_divergence", farthest, axes),
    ]
