"""Does attention point at the words that decide? In parts of what leave-one-out finds.

(comprehensiveness of a score − of chance) / (of leave-one-out − of chance): 1 is as good as asking
the model about every word, 0 is chance. Sufficiency stands next to it.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from attnscope.analysis.faithfulness import Faithfulness, faithfulness, random_score
from attnscope.analysis.intervals import sentence_ratio_interval
from attnscope.audits.subject import Subject
from attnscope.runs.result import Record
from attnscope.scores.score import Score

_CHANCE = 3  # random rankings
Table = Float[np.ndarray, "example asked"]


def measure(subject: Subject) -> list[Record]:
    """Return comprehensiveness, sufficiency and the share found, of every score."""
    chance = [_read(subject, _random(subject, seed)) for seed in range(_CHANCE)]
    tables = {
        name: np.mean([each[name] for each in chance], 0)
        for name in ("comprehensiveness", "sufficiency")
    }
    best = _read(subject, subject.scores("leave_one_out"))
    records: list[Record] = []
    for score in [*subject.rules, "random"]:
        found = tables if score == "random" else _read(subject, subject.scores(score))
        for name in ("comprehensiveness", "sufficiency"):
            values = np.nanmean(found[name], 1)
            records.append(subject.mean(name, values, {"score": score}))
        if score != "random":
            above = found["comprehensiveness"] - tables["comprehensiveness"]
            below = best["comprehensiveness"] - tables["comprehensiveness"]
            real = ~np.isnan(above)
            ratio = sentence_ratio_interval(above, below, real, rng=subject.rng())
            records.append(subject.row("found_share", ratio, {"score": score}))
    return records


def _random(subject: Subject, seed: int) -> list[Score]:
    return [
        subject.of_words(random_score(part, 100 + subject.seed + seed)) for _, part in subject.parts
    ]


def _read(subject: Subject, scores: list[Score]) -> dict[str, Table]:
    """Return both numbers as [example, asked word], in the order of the batch."""
    count = len(subject.batch)
    parts: list[tuple[np.ndarray, Faithfulness, int]] = []
    for (rows, part), score in zip(subject.parts, scores, strict=True):
        parts.append((rows.numpy(), faithfulness(subject.model, score), len(part)))
    tables = {}
    for name in ("comprehensiveness", "sufficiency"):
        found = [(rows, each.per_example(name, size)) for rows, each, size in parts]
        width = max(values.shape[1] for _, values in found)
        table = np.full((count, width), np.nan)
        for places, values in found:
            table[places, : values.shape[1]] = values
        tables[name] = table
    return tables
