"""Does attention point at the words that decide? In parts of what leave-one-out finds.

(comprehensiveness of a score − of chance) / (of leave-one-out − of chance): 1 is as good as asking
the model about every word, 0 is chance. Where leave-one-out itself is not above chance, there is
nothing to find, and no share. Sufficiency stands next to it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from attnscope.analysis.faithfulness import Faithfulness, faithfulness_of_all, random_score
from attnscope.analysis.intervals import sentence_ratio_interval
from attnscope.audits.subject import Subject
from attnscope.runs.result import Record
from attnscope.scores.score import Score

_CHANCE = 3  # random rankings
Table = Float[np.ndarray, "example asked"]


NUMBERS = ("comprehensiveness", "sufficiency")


def measure(subject: Subject) -> list[Record]:
    """Return comprehensiveness, sufficiency and the share found, of every score."""
    scores = subject.all_scores(subject.rules)
    draws = {f"random {number}": _random(subject, number) for number in range(_CHANCE)}
    tables = _read(subject, {**scores, **draws})
    chance = {name: np.mean([tables[draw][name] for draw in draws], 0) for name in NUMBERS}
    best = tables["leave_one_out"]["comprehensiveness"] - chance["comprehensiveness"]
    if not subject.interval(np.nanmean(best, 1)).low > 0:
        best = np.full_like(best, np.nan)
    records: list[Record] = []
    for score in [*scores, "random"]:
        found = chance if score == "random" else tables[score]
        for name in NUMBERS:
            values = np.nanmean(found[name], 1)
            records.append(subject.mean(name, values, {"score": score}))
        if score != "random":
            above = found["comprehensiveness"] - chance["comprehensiveness"]
            ratio = sentence_ratio_interval(above, best, ~np.isnan(above), rng=subject.rng())
            records.append(subject.row("found_share", ratio, {"score": score}))
    return records


def _random(subject: Subject, seed: int) -> list[Score]:
    return [
        subject.of_words(random_score(part, 100 + subject.seed + seed)) for _, part in subject.parts
    ]


def _read(subject: Subject, scores: Mapping[str, list[Score]]) -> dict[str, dict[str, Table]]:
    """Return both numbers of each score as [example, asked word], in the order of the batch."""
    parts: list[list[Faithfulness]] = []
    for number in range(len(subject.parts)):
        ranked = [each[number] for each in scores.values()]
        found = faithfulness_of_all(subject.model, ranked, positions=subject.positions)
        parts.append(found)
    return {
        score: {name: _table(subject, [part[place] for part in parts], name) for name in NUMBERS}
        for place, score in enumerate(scores)
    }


def _table(subject: Subject, parts: list[Faithfulness], name: str) -> Table:
    found = [
        (rows.numpy(), each.per_example(name, len(part)))
        for (rows, part), each in zip(subject.parts, parts, strict=True)
    ]
    width = max(values.shape[1] for _, values in found)
    table = np.full((len(subject.batch), width), np.nan)
    for rows, values in found:
        table[rows, : values.shape[1]] = values
    return table
