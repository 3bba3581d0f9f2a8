"""Does the output depend on attention? The share of outputs that change when it is replaced.

The scale is what one random word does when it is taken out: attention whose permutation changes
fewer outputs than that is idle.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attnscope.audits.subject import Subject
from attnscope.audits.uniform import matrix_of_heads
from attnscope.data.batch import Batch
from attnscope.data.randomness import counter_uniform
from attnscope.data.removal import word_groups
from attnscope.models.intervention import AttentionRule, Only, Permuted, Uniform
from attnscope.models.places import Place
from attnscope.models.rerun import without_words
from attnscope.runs.result import Record

PerExample = Float[np.ndarray, " example"]
_HEADS = 48  # with more of them in all, only the heads of the main site are permuted apart
ELSEWHERE = 2  # permutations of a site that is not the judged one


def measure(subject: Subject) -> list[Record]:
    """Return how many outputs change under replaced attention, and without a word."""
    draws = range(subject.seed, subject.seed + subject.draws)
    word = np.mean([_words_out(subject, draw) for draw in draws], 0)
    records: list[Record] = [subject.mean("changed", word, {"rule": "word"})]
    heads_of = {place.name: place.heads for place in _mapped(subject)}
    apart: dict[str, list[float]] = {}
    for site in [*subject.model.places.names, "*"]:
        axes = {"site": site, "head": "all", "role": "main" if site == subject.site else "other"}
        heads = [Only(Permuted(seed=subject.seed), heads=[n]) for n in range(heads_of.get(site, 0))]
        all_heads = [Permuted(seed=draw) for draw in draws]
        if site not in (subject.site, "*"):
            all_heads = all_heads[:ELSEWHERE]
        rules: list[AttentionRule] = [Uniform(), *all_heads, *heads]
        even, *others = _changed(subject, site, rules)
        permuted = np.mean(others[: len(all_heads)], 0)
        records.append(subject.mean("changed", permuted, {**axes, "rule": "permuted"}))
        records.append(subject.mean("changed", even, {**axes, "rule": "uniform"}))
        records.append(subject.mean("dependence", permuted - word, axes))
        if heads:
            apart[site] = [float(np.nanmean(each)) for each in others[len(all_heads) :]]
    records.append(matrix_of_heads(subject, "dependence_map", apart))
    return records


def _mapped(subject: Subject) -> list[Place]:
    """Return the places whose heads are permuted one by one."""
    places = list(subject.model.places)
    if sum(place.heads for place in places) <= _HEADS:
        return places
    return [place for place in places if place.name == subject.site]


def _changed(
    subject: Subject, site: str, rules: Sequence[AttentionRule]
) -> Float[np.ndarray, "rule example"]:
    """Return each example's share of outputs that are not what they were, under each rule."""

    def changed(part: Batch) -> Tensor:
        with torch.no_grad(), subject.model.resuming(part, site):
            said = (subject.model.outputs(part, {site: rule}).argmax(-1) for rule in rules)
            return torch.stack([_share(each != subject.own(part), part) for each in said], 1)

    return subject.each(changed).T


def _words_out(subject: Subject, draw: int) -> PerExample:
    return subject.each(lambda part: _without_word(subject, part, draw))


def _without_word(subject: Subject, part: Batch, draw: int) -> Tensor:
    """Return the share of outputs that change without one random word."""
    groups = word_groups(part)
    count = groups.amax(1) + 1
    drawn = counter_uniform(draw, part.ids, torch.full_like(part.ids, 7))
    chosen = (drawn * count).long().clamp(max=(count - 1).clamp(min=0))
    left = without_words(subject.model, part, groups == chosen[:, None])
    with torch.no_grad():
        said = subject.model.outputs(left).argmax(-1)
    return _share(said != subject.own(part), part)


def _share(changed: Tensor, part: Batch) -> Float[Tensor, " batch"]:
    real = part.target_mask
    return (changed & real).sum(1) / real.sum(1)
