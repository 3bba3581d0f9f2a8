"""Polarity and attention scores of words by group: how far apart, on which side, and of which size.

Scores are those of the best epoch's weights, without dropout. Intervals are over seeds; one seed
has none. With two labels the polarity is towards the second, ``positive``; with more, each label's
words are judged by that label's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attnscope.analysis.separation import compute_separation, standardised_gap
from attnscope.data.corpus import Corpus, training_batches
from attnscope.data.randomness import generator
from attnscope.data.token_groups import NEUTRAL, corpus_counts
from attnscope.errors import MissingCapability
from attnscope.recipes.kit.sheet import Sheet
from attnscope.recipes.sunlu.corpora import NEGATIVE, POSITIVE, Grouped, groups_of
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
    polarity: Array
    attention: Array

    def towards(self, group: str, groups: Grouped) -> Array:
        """Return the polarity that a group is judged by."""
        column = 0 if self.polarity.shape[1] == 1 else groups.polar.index(group)
        return self.polarity[:, column]


def read_scores(unit: TrainedUnit, reading: str, device: str) -> SeedScores:
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
    return SeedScores(unit, polarity.cpu().numpy(), scores.attention.cpu().numpy())


class CellScores:
    """The seeds of one model, λ and penalty on one corpus, in one reading."""

    def __init__(
        self,
        source: Corpus,
        variant: Variant,
        reading: str,
        units: Sequence[TrainedUnit],
        device: str,
    ) -> None:
        self.source, self.groups = source, groups_of(source)
        self.seeds = [read_scores(unit, reading, device) for unit in units]
        axes = variant.axes | {"reading": reading}
        self.sheet = Sheet(source.dataset, seeds=[u.unit.seed for u in units], axes=axes)

    @property
    def first(self) -> Sheet:
        """The sheet of the first seed, which figures show."""
        return replace(self.sheet, seeds=self.sheet.seeds[:1])

    def attention(self, seed: SeedScores, group: str) -> Array:
        """Return a of a group's words."""
        return seed.attention[self.groups.members[group].numpy()]

    def polarity(self, seed: SeedScores, group: str, towards: str | None = None) -> Array:
        """Return s of a group's words."""
        return seed.towards(towards or group, self.groups)[self.groups.members[group].numpy()]

    def rows(self) -> list[Measurement]:
        """Return everything that is one number a cell."""
        rows = [*self._separations(), *self._means()]
        for name, values in self.sizes().items():
            rows.append(self.sheet.mean(f"size({name})", values))
        return [*rows, *self._sides(), *self._gaps()] if self.groups.binary else rows

    def _separations(self) -> list[Measurement]:
        """Return how well scores separate each label's words from neutral ones."""
        rows = []
        for group in self.groups.polar:
            attention, polarity = [], []
            for seed in self.seeds:
                a, neutral = self.attention(seed, group), self.attention(seed, NEUTRAL)
                attention.append(compute_separation(a, neutral).auc.value)
                s, neutral = self.polarity(seed, group), self.polarity(seed, NEUTRAL, group)
                polarity.append(compute_separation(s, neutral).auc.value)
            rows.append(self.sheet.mean("AUC(attention)", attention, {"group": group}))
            rows.append(self.sheet.mean("AUC(polarity)", polarity, {"group": group}))
        return rows

    def _means(self) -> list[Measurement]:
        rows = []
        for group in self.groups.members:
            means = [float(self.attention(seed, group).mean()) for seed in self.seeds]
            rows.append(self.sheet.mean("mean(attention)", means, {"group": group}))
            if group != NEUTRAL or self.groups.binary:
                own = self._judged_by(group)
                towards = [float(self.polarity(seed, group, own).mean()) for seed in self.seeds]
                rows.append(self.sheet.mean("mean(polarity)", towards, {"group": group}))
        return rows

    def _judged_by(self, group: str) -> str:
        """Return the group whose polarity a group's words are shown with."""
        return group if group != NEUTRAL else self.groups.polar[-1]

    def sizes(self) -> dict[str, list[float]]:
        """Return the mean of |s| and of |a| over polar words, seed by seed."""
        return {
            "polarity": [self._size(seed, self.polarity) for seed in self.seeds],
            "attention": [self._size(seed, self.attention) for seed in self.seeds],
        }

    def _size(self, seed: SeedScores, of: Callable[[SeedScores, str], Array]) -> float:
        return float(np.abs(np.concatenate([of(seed, g) for g in self.groups.polar])).mean())

    def _sides(self) -> list[Measurement]:
        """Return how well s parts positive from negative, and how far neutral words are from 0."""
        aucs, shares = [], []
        for seed in self.seeds:
            s = {group: self.polarity(seed, group) for group in self.groups.polar}
            s[NEUTRAL] = self.polarity(seed, NEUTRAL, POSITIVE)
            aucs.append(compute_separation(s[POSITIVE], s[NEGATIVE]).auc.value)
            means = {group: abs(float(values.mean())) for group, values in s.items()}
            shares.append(means[NEUTRAL] / min(means[POSITIVE], means[NEGATIVE]))
        return [
            self.sheet.mean("AUC(polarity)", aucs, {"group": AGAINST}),
            self.sheet.mean("neutral_share", shares),
        ]

    def _gaps(self) -> list[Measurement]:
        """Return the standardised gap of a, positive over negative words: its size, and by seed."""
        gaps = [
            standardised_gap(self.attention(seed, POSITIVE), self.attention(seed, NEGATIVE))
            for seed in self.seeds
        ]
        rows = [self.sheet.mean("gap_size", [abs(gap) for gap in gaps])]
        n = min(len(self.groups.members[group]) for group in self.groups.polar)
        for seed, gap in zip(self.seeds, gaps, strict=True):
            found, own = _products(seed.unit), (seed.unit.unit.seed,)
            rows.append(self.sheet.point("gap", gap, n=n, seeds=own, found=found))
        return rows

    def words(self, count: int) -> Plane:
        """Return a fixed random part of each group's words, with the first seed's scores."""
        seed, points = self.seeds[0], []
        for group, members in self.groups.members.items():
            order = torch.randperm(len(members), generator=generator("shown words", group))
            polarity = seed.towards(self._judged_by(group), self.groups)
            for index in members[order[:count]].tolist():
                x, y = float(polarity[index]), float(seed.attention[index])
                points.append(Point(self._word(index), group, x, y))
        return self.first.plane("word", points, x=TITLES["polarity"], y=TITLES["attention"])

    def lists(self, count: int) -> list[Measurement]:
        """Return the most polar words of each label and the most attended, by the first seed."""
        seed, rows = self.seeds[0], []
        counts = corpus_counts(self.source).sum(1).numpy()
        seen = counts > self.groups.rule.minimum
        columns = {("most_attended", "words"): seed.attention}
        for group in self.groups.polar:
            sign = -1.0 if group == NEGATIVE and self.groups.binary else 1.0
            columns["most_polar", group] = sign * seed.towards(group, self.groups)
        for (name, group), values in columns.items():
            ranked = np.where(seen, values, -np.inf).argsort()[::-1][: min(count, int(seen.sum()))]
            for place, index in enumerate(ranked.tolist()):
                found = {"word": self._word(index), "occurrences": int(counts[index])}
                axes = {"group": group, "place": place}
                rows.append(self.first.point(name, float(values[index]), axes, found=found))
        return rows

    def _word(self, index: int) -> str:
        return self.source.input_words.words[index]

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
    for name, values in large.sizes().items():
        pairs = zip(values, small.sizes()[name], strict=True)
        rows.append(large.sheet.mean(f"ratio({name})", [a / b for a, b in pairs]))
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
