"""Groups of words by the labels of the texts they occur in (sunlu Eq. 28 and footnote 9).

A word belongs to a label if its association with it, γ = (f − f') / (f + f') with f counted in the
label's texts and f' in all others, is high and it is not rare; it is neutral if the labels share it
evenly. With two labels this is the paper's rule; γ = 1 is included, as in the authors' code. Every
occurrence in the training part counts. Nothing here knows of a model, so that groups cannot be
chosen by what they are to show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor

from attnscope.data.batch import Example
from attnscope.data.corpus import Corpus
from attnscope.data.tokens import SPECIALS
from attnscope.errors import UsageError
from attnscope.runs.spec import Settings

NEUTRAL, NEGATIVE, POSITIVE = "neutral", "negative", "positive"
Counts = Int[Tensor, "type label"]
Groups = dict[str, Int[Tensor, " _"]]

# What `nearest_rule` tries for `GroupRule.polar`, and for `GroupRule.neutral`.
POLAR = tuple(n / 100 for n in range(100))
EVEN = tuple(n / 100 for n in range(1, 100))


class GroupRule(Settings):
    """Which words belong to a label, and which are neutral; the defaults are the paper's."""

    polar: float = Field(0.5, ge=-1, lt=1, description="a label's words have γ above this")
    minimum: int = Field(5, ge=0, description="and more occurrences in its texts than this")
    neutral: float = Field(
        0.1, gt=0, description="neutral words: share of occurrences by which labels may differ"
    )
    difference: int = Field(5, ge=1, description="and number of occurrences, both exclusive")

    def members(self, counts: Counts) -> Bool[Tensor, "type group"]:
        """Return which words are in the group of each label, and in the last one, the neutral."""
        polar = (association(counts) > self.polar) & (counts > self.minimum)
        apart = counts.amax(1) - counts.amin(1)
        even = (apart / counts.sum(1) < self.neutral) & (apart < self.difference)
        return torch.cat([polar, even[:, None]], 1)

    def groups(self, counts: Counts, labels: Sequence[str]) -> Groups:
        """Return the word ids of each group: of the labels, in their order, and ``neutral``."""
        names = [f"{NEUTRAL} (label)" if name == NEUTRAL else name for name in labels]
        columns = self.members(counts).unbind(1)
        return {
            name: column.nonzero()[:, 0]
            for name, column in zip((*names, NEUTRAL), columns, strict=True)
        }


@dataclass(frozen=True)
class Grouped:
    """A corpus' groups of words: of each label, in its order, and the neutral ones.

    With two labels the groups are called ``negative`` (the first label's) and ``positive``.
    """

    rule: GroupRule
    members: Groups

    @classmethod
    def of(cls, rule: GroupRule, counts: Counts, labels: Sequence[str]) -> Grouped:
        """Return the groups that a rule gives."""
        names = (NEGATIVE, POSITIVE) if len(labels) == 2 else labels
        return cls(rule, rule.groups(counts, names))

    @property
    def polar(self) -> tuple[str, ...]:
        """The labels' groups."""
        return tuple(name for name in self.members if name != NEUTRAL)

    @property
    def binary(self) -> bool:
        """Whether there are two labels, and so one polarity."""
        return set(self.polar) == {NEGATIVE, POSITIVE}


def association(counts: Counts) -> Float[Tensor, "type label"]:
    """Return γ of each word with each label against the others; NaN for a word that never occurs.

    With two labels the second column is the paper's γ_e (Eq. 28), the first its negative.
    """
    total = counts.sum(1, keepdim=True)
    return (2 * counts - total) / total


def label_counts(examples: Sequence[Example], types: int, labels: int) -> Counts:
    """Count every occurrence of each word in the texts of each label.

    Parameters
    ----------
    examples
        Texts whose one target is their label.
    types, labels
        How many there are.
    """
    if not examples:
        raise UsageError("There are no words to count: give at least one example.")
    words = np.concatenate([np.asarray(example.inputs, np.int64) for example in examples])
    lengths = np.array([len(example.inputs) for example in examples])
    label = np.array([int(example.targets[0]) for example in examples]).repeat(lengths)
    cells = np.bincount(words * labels + label, minlength=types * labels)
    return torch.from_numpy(cells.reshape(types, labels))


def corpus_counts(source: Corpus) -> Counts:
    """Return the counts of a labelled corpus' training part; those of its special words are 0."""
    if source.boundaries is not None:
        raise UsageError(f"{source.dataset} has no labels to group its words by.")
    words, labels = source.input_words, source.output_words
    counts = label_counts(source.training_examples, len(words), len(labels))
    counts[[index for index, word in enumerate(words.words) if word in SPECIALS]] = 0
    return counts


class NearestRule(NamedTuple):
    """The rule that `nearest_rule` found, and how many words its groups have."""

    rule: GroupRule
    sizes: tuple[int, ...]


def nearest_rule(
    counts: Counts,
    sizes: Sequence[int],
    polar: Sequence[float] = POLAR,
    minimum: Sequence[int] = (5,),
    neutral: Sequence[float] = EVEN,
    difference: Sequence[int] = (5,),
) -> NearestRule:
    """Return the rule whose groups come nearest to given sizes.

    A paper may say how many words its groups had and not by which threshold. Only counts enter.

    Parameters
    ----------
    counts
        From `corpus_counts`.
    sizes
        The wanted number of words of each label and, last, of neutral ones.
    polar, minimum, neutral, difference
        The values to try; the first among equals is taken.

    Returns
    -------
    NearestRule
        The least Σ |n − wanted| / wanted, over the labels for ``polar`` and ``minimum`` and over
        the neutral words for the other two, which do not touch each other.
    """
    if len(sizes) != counts.shape[1] + 1:
        raise UsageError(
            f"nearest_rule needs {counts.shape[1] + 1} sizes, one a label and one of neutral "
            f"words: there are {len(sizes)}."
        )
    wanted = torch.tensor(sizes, dtype=torch.float64)
    *labels, rest = wanted
    of_labels = _polar_sizes(counts, polar, minimum)
    missed = ((of_labels - torch.stack(labels)).abs() / torch.stack(labels)).sum(-1)
    best = list(product(polar, minimum))[int(missed.flatten().argmin())]
    of_rest = _even_sizes(counts, neutral, difference)
    even = list(product(neutral, difference))[int((of_rest - rest).abs().flatten().argmin())]
    rule = GroupRule(polar=best[0], minimum=best[1], neutral=even[0], difference=even[1])
    return NearestRule(rule, tuple(rule.members(counts).sum(0).tolist()))


# Words of each group that `wider_rule` looks for, in turn.
_LEAST_MEMBERS = (10, 3, 1)
_WIDER = {
    "polar": (0.4, 0.3, 0.2, 0.1, 0.0, -0.2, -0.4, -0.6, -0.8, -0.9, -0.95),
    "minimum": (3, 2, 1, 0),
    "neutral": (0.2, 0.3, 0.5, 0.8, 1.01),
    "difference": (10, 20, 50, 100, 500, 10**6),
}


def wider_rule(rule: GroupRule, counts: Counts) -> NearestRule | None:
    """Return the rule nearest to a given one whose groups all have some words, and their sizes.

    Ten words a group are looked for, then three, then one. Thresholds of labels are lowered before
    counts, and shares of neutral words before their number of occurrences; None if no rule gives
    every group a word.
    """
    for least in _LEAST_MEMBERS:
        found = _wider(rule, counts, least)
        if found is not None:
            return NearestRule(found, tuple(found.members(counts).sum(0).tolist()))
    return None


def _wider(rule: GroupRule, counts: Counts, least: int) -> GroupRule | None:
    for first, second, columns in (
        ("minimum", "polar", slice(0, -1)),
        ("difference", "neutral", slice(-1, None)),
    ):
        outer, inner = ((getattr(rule, name), *_WIDER[name]) for name in (first, second))
        for values in product(outer, inner):
            tried = rule.model_copy(update=dict(zip((first, second), values, strict=True)))
            if bool((tried.members(counts).sum(0)[columns] >= least).all()):
                rule = tried
                break
        else:
            return None
    return rule


def _polar_sizes(
    counts: Counts, polar: Sequence[float], minimum: Sequence[int]
) -> Int[Tensor, "polar minimum label"]:
    """Count each label's words under every pair of thresholds, a pass for each of the first."""
    gamma, top = association(counts), max(minimum) + 1
    clipped = counts.clamp(max=top)
    columns = list(zip(gamma.unbind(1), clipped.unbind(1), strict=True))
    beyond = [
        torch.stack([_at_least(of[share > least], top) for share, of in columns], 1)
        for least in polar
    ]
    return torch.stack(beyond)[:, [least + 1 for least in minimum]]


def _even_sizes(
    counts: Counts, neutral: Sequence[float], difference: Sequence[int]
) -> Int[Tensor, "neutral difference"]:
    """Count neutral words under every pair of thresholds."""
    apart, top = counts.amax(1) - counts.amin(1), max(difference)
    share, clipped = apart / counts.sum(1), apart.clamp(max=top)
    beyond = torch.stack([_at_least(clipped[share < most], top) for most in neutral])
    return beyond[:, :1] - beyond[:, list(difference)]


def _at_least(values: Int[Tensor, " word"], top: int) -> Int[Tensor, " value"]:
    """Return how many values are at least 0, 1, … up to the largest there can be."""
    return values.bincount(minlength=top + 1).flip(0).cumsum(0).flip(0)


def demand_members(groups: Grouped, source: Corpus, prefix: str = "") -> None:
    """Raise an error if a group of a corpus has no word; it says which rule would give it some.

    Parameters
    ----------
    prefix
        The beginning of the settings' names by which a user changes the rule.
    """
    empty = [name for name, members in groups.members.items() if not len(members)]
    if not empty:
        return
    own = groups.rule.model_dump()
    told = ", ".join(_spelled(prefix, own))
    found = (
        f"{source.dataset}: no word is in the group {empty[0]!r} by the rule {told}, so that there "
        "is nothing to compare"
    )
    wider = wider_rule(groups.rule, corpus_counts(source))
    if wider is None:
        raise UsageError(f"{found}: the corpus has too few words that tell its labels apart.")
    changed = {key: to for key, to in wider.rule.model_dump().items() if to != own[key]}
    fewest = f"{min(wider.sizes)} word{'s' * (min(wider.sizes) > 1)}"
    changes = " ".join(_spelled(prefix, changed))
    raise UsageError(f"{found}; {changes} gives every group {fewest} or more.")


def _spelled(prefix: str, thresholds: Mapping[str, float]) -> list[str]:
    return [f"{prefix}{key}={value:g}" for key, value in thresholds.items()]
