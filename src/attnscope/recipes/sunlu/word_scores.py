"""Polarity and attention scores of words by group: how far apart, on which side, and of which size.

Scores are those of the best epoch's weights, without dropout. Intervals are over seeds; one seed
has none. With two labels the polarity is towards the second, ``positive``; with more, each label's
words are judged by that label's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attnscope.analysis.measures.numbers import Number, number
from attnscope.analysis.separation import auc_interval, standardised_gap
from attnscope.data.corpus import Corpus, training_batches
from attnscope.data.randomness import generator
from attnscope.data.token_groups import NEGATIVE, NEUTRAL, POSITIVE, Grouped, corpus_counts
from attnscope.errors import MissingCapability
from attnscope.recipes.kit.sheet import Sheet
from attnscope.recipes.sunlu.units import Variant
from attnscope.runs.result import Measurement, Plane, Point
from attnscope.scores.polarity import WordTypeScores, mean_scores, scores_alone
from attnscope.theory.gradient_flow.groups import similarity_signs
from attnscope.training.loop import build_model
from attnscope.training.trained_unit import TrainedUnit

Array = NDArray[np.float64]
ALONE, OCCURRENCES = "alone", "occurrences"
AGAINST = "positive against negative"
TITLES = {"polarity": "polarity score s", "attention": "attention score a"}


@dataclass(frozen=True)
class SeedScores:
    """One seed's scores: s of each word and label (with two labels one column), a of each word."""

    unit: TrainedUnit
    groups: Grouped
    polarity: Array
    attention: Array

    def towards(self, group: str) -> Array:
        """Return the polarity that a group is judged by; neutral words have the last label's."""
        polar = self.groups.polar
        own = polar.index(group) if group in polar else len(polar) - 1
        return self.polarity[:, 0 if self.polarity.shape[1] == 1 else own]

    def s(self, group: str, towards: str | None = None) -> Array:
        """Return the polarity of a group's words."""
        return self.towards(towards or group)[self.groups.members[group].numpy()]

    def a(self, group: str) -> Array:
        """Return the attention scores of a group's words."""
        return self.attention[self.groups.members[group].numpy()]

    def numbers(self) -> dict[Number, float]:
        """Return everything that is one number a seed."""
        found: dict[Number, float] = {}
        polar, binary = self.groups.polar, self.groups.binary
        for group in polar:
            attention = auc_interval(self.a(group), self.a(NEUTRAL))
            polarity = auc_interval(self.s(group), self.s(NEUTRAL, group))
            found[number("AUC(attention)", group=group)] = attention.value
            found[number("AUC(polarity)", group=group)] = polarity.value
        for group in self.groups.members:
            found[number("mean(attention)", group=group)] = float(self.a(group).mean())
            if group != NEUTRAL or binary:
                found[number("mean(polarity)", group=group)] = float(self.s(group).mean())
        for name, of in (("polarity", self.s), ("attention", self.a)):
            size = np.abs(np.concatenate([of(group) for group in polar])).mean()
            found[number(f"size({name})")] = float(size)
        return found | self._sides() if binary else found

    def _sides(self) -> dict[Number, float]:
        """Return how positive and negative words part, and how far neutral ones are from 0."""
        means = {group: abs(float(self.s(group).mean())) for group in self.groups.members}
        apart = auc_interval(self.s(POSITIVE), self.s(NEGATIVE)).value
        return {
            number("AUC(polarity)", group=AGAINST): apart,
            number("neutral_share"): means[NEUTRAL] / min(means[POSITIVE], means[NEGATIVE]),
            number("gap_size"): abs(self.gap),
        }

    @property
    def gap(self) -> float:
        """The standardised gap of a, positive over negative words."""
        return standardised_gap(self.a(POSITIVE), self.a(NEGATIVE))


def read_scores(unit: TrainedUnit, groups: Grouped, reading: str, device: str) -> SeedScores:
    """Read the scores of each word type off a unit.

    Parameters
    ----------
    reading
        ``alone``: each word fed by itself, the supplement's global scores; ``occurrences``: their
        mean over training occurrences, its local ones. Without context the two are the same.
    """
    model: Any = unit.best_model.to(device)
    source: Any = unit.unit.source
    types = len(source.input_words)
    scores: WordTypeScores
    if reading == ALONE:
        scores = scores_alone(model, types, device=device)
    else:
        batches = (batch.to(device) for batch in training_batches(source))
        scores = mean_scores(model, batches, types)
    two = scores.logits.shape[1] == 2
    polarity = scores.polarity[:, None] if two else scores.logits
    return SeedScores(unit, groups, polarity.cpu().numpy(), scores.attention.cpu().numpy())


class CellScores:
    """The seeds of one model, λ and penalty on one corpus, in one reading."""

    def __init__(
        self,
        source: Corpus,
        groups: Grouped,
        variant: Variant,
        reading: str,
        units: Sequence[TrainedUnit],
        device: str,
    ) -> None:
        self.source, self.groups = source, groups
        self.seeds = [read_scores(unit, self.groups, reading, device) for unit in units]
        self.numbers = [seed.numbers() for seed in self.seeds]
        axes = variant.axes | {"reading": reading}
        self.sheet = Sheet(source.dataset, seeds=[u.unit.seed for u in units], axes=axes)
        # Figures show the first seed.
        self.first = replace(self.sheet, seeds=self.sheet.seeds[:1])

    def rows(self) -> list[Measurement]:
        """Return what is one number a cell, and the gap of attention scores seed by seed."""
        rows = self.sheet.over_seeds(self.numbers)
        if self.groups.binary:
            n = min(len(self.groups.members[group]) for group in self.groups.polar)
            for seed in self.seeds:
                found, own = _products(seed.unit), (seed.unit.unit.seed,)
                rows.append(self.sheet.point("gap", seed.gap, n=n, seeds=own, found=found))
        return rows

    def words(self, count: int) -> Plane:
        """Return a fixed random part of each group's words, with the first seed's scores."""
        seed, names, points = self.seeds[0], self.source.input_words.words, []
        for group, members in self.groups.members.items():
            order = torch.randperm(len(members), generator=generator("shown words", group))
            polarity = seed.towards(group)
            for index in members[order[:count]].tolist():
                x, y = float(polarity[index]), float(seed.attention[index])
                points.append(Point(names[index], group, x, y))
        return self.first.plane("word", points, x=TITLES["polarity"], y=TITLES["attention"])

    def lists(self, count: int) -> list[Measurement]:
        """Return the most polar words of each label and the most attended, by the first seed."""
        seed, names, rows = self.seeds[0], self.source.input_words.words, []
        counts = corpus_counts(self.source).sum(1).numpy()
        seen = counts > self.groups.rule.minimum
        columns = {("most_attended", "words"): seed.attention}
        for group in self.groups.polar:
            sign = -1.0 if group == NEGATIVE and self.groups.binary else 1.0
            columns["most_polar", group] = sign * seed.towards(group)
        for (name, group), values in columns.items():
            ranked = np.where(seen, values, -np.inf).argsort()[::-1][: min(count, int(seen.sum()))]
            for place, index in enumerate(ranked.tolist()):
                found = {"word": names[index], "occurrences": int(counts[index])}
                axes = {"group": group, "place": place}
                rows.append(self.first.point(name, float(values[index]), axes, found=found))
        return rows

    def dot_signs(self) -> list[Measurement]:
        """Return the share of polar words' dot products with the predicted sign, at the end."""
        groups = {name: self.groups.members[name] for name in self.groups.polar}
        within, across = [], []
        for seed in self.seeds:
            model: Any = seed.unit.model
            signs = similarity_signs(model.embedding.weight, groups)
            alike = [float(share) for pair, share in signs.items() if pair[0] == pair[1]]
            apart = [1 - float(share) for pair, share in signs.items() if pair[0] != pair[1]]
            within.append(float(np.mean(alike)))
            across.append(float(np.mean(apart)))
        return [
            self.sheet.mean("dot_sign", within, {"pair": "within"}),
            self.sheet.mean("dot_sign", across, {"pair": "across"}),
        ]


def ratio_rows(small: CellScores, large: CellScores) -> list[Measurement]:
    """Return mean |s| and |a| of polar words at the larger λ over those at the smaller one."""
    rows = []
    for name in TITLES:
        key, pairs = number(f"size({name})"), zip(large.numbers, small.numbers, strict=True)
        rows.append(large.sheet.mean(f"ratio({name})", [a[key] / b[key] for a, b in pairs]))
    return rows


def _products(unit: TrainedUnit) -> dict[str, float]:
    """Return VᵀW of the best weights and at the start, where the model has a direction V."""
    ends: dict[str, Any] = {"VW": unit.best_model, "VW at the start": build_model(unit.unit)}
    products = {}
    for name, model in ends.items():
        try:
            both = model.cpu().directions()
        except MissingCapability:
            return {}
        products[name] = float((both.output @ both.attention).detach().sum())
    return products
