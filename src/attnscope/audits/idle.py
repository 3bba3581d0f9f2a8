"""Does the output depend on attention? The share of outputs that change when it is replaced.

The scale is what one random word does when it is taken out: attention whose permutation changes
fewer outputs than that is idle.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnscope.audits.subject import Subject
from attnscope.data.batch import Batch
from attnscope.data.randomness import counter_uniform
from attnscope.data.removal import without, word_groups
from attnscope.models.intervention import AttentionRule, Only, Permuted, Uniform
from attnscope.runs.result import Matrix, Record

PerExample = Float[np.ndarray, " example"]
_HEADS = 48  # with more of them in all, only the heads of the main site are permuted apart


def measure(subject: Subject) -> list[Record]:
    """Return how many outputs change under replaced attention, and without a word."""
    word = np.mean([_words_out(subject, draw) for draw in _draws(subject)], 0)
    records: list[Record] = [subject.mean("changed", word, {"rule": "word"})]
    for site in [*subject.model.places.names, "*"]:
        axes = {"site": site, "head": "all", "role": "main" if site == subject.site else "other"}
        permuted = _permuted(subject, site)
        records.append(subject.mean("changed", permuted, {**axes, "rule": "permuted"}))
        even = _changed(subject, {site: Uniform()})
        records.append(subject.mean("changed", even, {**axes, "rule": "uniform"}))
        records.append(subject.mean("dependence", permuted - word, axes))
    records.append(_head_map(subject))
    return records


def _draws(subject: Subject) -> range:
    return range(subject.seed, subject.seed + subject.draws)


def _permuted(subject: Subject, site: str) -> PerExample:
    runs = [_changed(subject, {site: Permuted(seed=seed)}) for seed in _draws(subject)]
    return np.mean(runs, 0)


def _changed(subject: Subject, rules: Mapping[str, AttentionRule]) -> PerExample:
    """Return each example's share of outputs that are not what they were."""

    def changed(part: Batch) -> Tensor:
        with torch.no_grad():
            return _share(said(subject, part, rules) != said(subject, part), part)

    return subject.each(changed)


def said(
    subject: Subject, part: Batch, rules: Mapping[str, AttentionRule] | None = None
) -> Int[Tensor, "batch out"]:
    """Return the model's outputs under some rules."""
    with torch.no_grad():
        return subject.model.outputs(part, rules).argmax(-1)


def _words_out(subject: Subject, draw: int) -> PerExample:
    return subject.each(lambda part: _without_word(subject, part, draw))


def _without_word(subject: Subject, part: Batch, draw: int) -> Tensor:
    """Return the share of outputs that change without one random word."""
    groups = word_groups(part)
    count = groups.amax(1) + 1
    drawn = counter_uniform(draw, part.ids, torch.full_like(part.ids, 7))
    chosen = (drawn * count).long().clamp(max=(count - 1).clamp(min=0))
    left = without(part, groups == chosen[:, None], subject.model.filler)
    return _share(said(subject, left) != said(subject, part), part)


def _share(changed: Tensor, part: Batch) -> Float[Tensor, " batch"]:
    real = part.target_mask
    return (changed & real).sum(1) / real.sum(1)


def _head_map(subject: Subject) -> Matrix:
    """Return the share of outputs that change when one head is permuted."""
    places = list(subject.model.places)
    if sum(place.heads for place in places) > _HEADS:
        places = [place for place in places if place.name == subject.site]
    width = max(place.heads for place in places)
    cells: list[list[float | None]] = []
    for place in places:
        row: list[float | None] = [None] * width
        for head in range(place.heads):
            rule = Only(Permuted(seed=subject.seed), heads=[head])
            row[head] = float(np.nanmean(_changed(subject, {place.name: rule})))
        cells.append(row)
    return Matrix.of(
        "dependence_map",
        subject.texts.name,
        cells,
        rows=[place.name for place in places],
        row_axis="site",
        column_axis="head",
        digits=4,
        n=len(subject.batch),
        split=subject.texts.split,
    )
