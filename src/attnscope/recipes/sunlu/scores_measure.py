"""Polarity and attention scores of words by group: how far apart, on which side, and of which size.

Scores are those of the best epoch's weights, without dropout. Intervals are over seeds; one seed
has none. With two labels the polarity is towards the second, ``positive``; with more, each label's
words are judged by that label's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attnscope.analysis.intervals import mean_interval
from attnscope.analysis.separation import separation, standardised_gap
from attnscope.data.corpus import Corpus, training_batches
from attnscope.data.randomness import generator
from attnscope.data.token_groups import NEUTRAL, corpus_counts
from attnscope.errors import MissingCapability
from attnscope.recipes.sunlu.answers import rng
from attnscope.recipes.sunlu.corpora import NEGATIVE, POSITIVE, Grouped, groups_of
from attnscope.recipes.sunlu.units import Variant
from attnscope.runs.result import Measurement, measured
from attnscope.scores.polarity import WordTypeScores, mean_scores, scores_alone
from attnscope.theory.gradient_flow.groups import similarity_signs
from attnscope.training.loop import build_model
from attnscope.training.trained_unit import TrainedUnit

Array = NDArray[np.float64]
ALONE, OCCURRENCES = "alone", "occurrences"


@dataclass(frozen=True)
class Read:
    """One seed's scores: s of each word and label, a of each word."""

    unit: TrainedUnit
    polarity: Array  # type, label; with two labels one column
    attention: Array

    @classmethod
    def of(cls, unit: TrainedUnit, scores: WordTypeScores) -> Read:
        """Take the numbers out of the scores of word types."""
        two = scores.logits.shape[1] == 2
        polarity = scores.polarity[:, None] if two else scores.logits
        return cls(unit, polarity.cpu().numpy(), scores.attention.cpu().numpy())

    def towards(self, group: str, groups: Grouped) -> Array:
        """Return the polarity that a group is judged by."""
        column = 0 if self.polarity.shape[1] == 1 else groups.polar.index(group)
        return self.polarity[:, column]


def read_alone(unit: TrainedUnit, device: str) -> Read:
    """Read the scores of each word fed alone, the supplement's global ones."""
    model: Any = unit.best_model.to(device)
    types = len(unit.unit.source.input_words)
    return Read.of(unit, scores_alone(model, types, device=device))


def read_occurrences(unit: TrainedUnit, device: str) -> Read:
    """Read the mean scores over training occurrences, the supplement's local ones."""
    model: Any = unit.best_model.to(device)
    source: Any = unit.unit.source
    batches = (batch.to(device) for batch in training_batches(source))
    return Read.of(unit, mean_scores(model, batches, len(source.input_words)))


# How a model's words are read: with context the two readings differ.
READINGS: dict[str, tuple[str, ...]] = {"DP-L": (ALONE, OCCURRENCES)}
READERS: dict[str, Callable[[TrainedUnit, str], Read]] = {
    ALONE: read_alone,
    OCCURRENCES: read_occurrences,
}


def read_all(units: Sequence[TrainedUnit], reading: str, device: str) -> list[Read]:
    """Read every seed of a cell."""
    return [READERS[reading](unit, device) for unit in units]


class Cell:
    """The seeds of one model, λ and penalty on one corpus, in one reading."""

    def __init__(self, source: Corpus, variant: Variant, reading: str, reads: list[Read]) -> None:
        self.source, self.variant, self.reads = source, variant, reads
        self.axes = variant.axes | {"reading": reading}
        self.groups = groups_of(source)
        self.seeds = tuple(read.unit.unit.seed for read in reads)

    def _ids(self, group: str) -> NDArray[np.int64]:
        return self.groups.members[group].numpy()

    def attention(self, read: Read, group: str) -> Array:
        """Return a of a group's words."""
        return read.attention[self._ids(group)]

    def polarity(self, read: Read, group: str, towards: str | None = None) -> Array:
        """Return s of a group's words."""
        return read.towards(towards or group, self.groups)[self._ids(group)]

    def row(self, name: str, values: Sequence[float], **axes: str) -> Measurement:
        """Return a mean over seeds with its interval."""
        interval = mean_interval(values, rng=rng())
        return measured(name, self.source.dataset, interval, self.axes | axes, self.seeds)

    def rows(self) -> list[Measurement]:
        """Return everything that is one number a cell."""
        found = [*self._separations(), *self._sizes()]
        if set(self.groups.polar) == {NEGATIVE, POSITIVE}:
            found += [*self._sides(), *self._gaps()]
        return found

    def _separations(self) -> list[Measurement]:
        rows = []
        for group in self.groups.polar:
            apart = [
                separation(self.attention(read, group), self.attention(read, NEUTRAL))
                for read in self.reads
            ]
            rows.append(self.row("AUC(attention)", [s.auc.value for s in apart], group=group))
            beyond = [
                separation(self.polarity(read, group), self.polarity(read, NEUTRAL, group))
                for read in self.reads
            ]
            rows.append(self.row("AUC(polarity)", [s.auc.value for s in beyond], group=group))
        return rows

    def _sizes(self) -> list[Measurement]:
        rows = []
        for group in self.groups.members:
            means = [float(self.attention(read, group).mean()) for read in self.reads]
            rows.append(self.row("mean(attention)", means, group=group))
            if group != NEUTRAL or read_is_binary(self.reads):
                own = group if group != NEUTRAL else self.groups.polar[-1]
                towards = [float(self.polarity(read, group, own).mean()) for read in self.reads]
                rows.append(self.row("mean(polarity)", towards, group=group))
        sizes = self.sizes()
        return [*rows, *(self.row(f"size({name})", values) for name, values in sizes.items())]

    def sizes(self) -> dict[str, list[float]]:
        """Return the mean of |s| and of |a| over polar words, seed by seed."""
        return {
            "polarity": [self._size(read, self.polarity) for read in self.reads],
            "attention": [self._size(read, self.attention) for read in self.reads],
        }

    def _size(self, read: Read, of: Callable[[Read, str], Array]) -> float:
        return float(np.abs(np.concatenate([of(read, g) for g in self.groups.polar])).mean())

    def _sides(self) -> list[Measurement]:
        """Return how well s parts positive from negative, and how far neutral words are from 0."""
        aucs, shares = [], []
        for read in self.reads:
            s = {group: self.polarity(read, group) for group in self.groups.polar}
            s[NEUTRAL] = self.polarity(read, NEUTRAL, POSITIVE)
            aucs.append(separation(s[POSITIVE], s[NEGATIVE]).auc.value)
            means = {group: abs(float(values.mean())) for group, values in s.items()}
            shares.append(means[NEUTRAL] / min(means[POSITIVE], means[NEGATIVE]))
        return [
            self.row("AUC(polarity)", aucs, group="positive against negative"),
            self.row("neutral_share", shares),
        ]

    def gaps(self) -> list[float]:
        """Return the standardised gap of a, positive over negative words, seed by seed."""
        return [
            standardised_gap(self.attention(read, POSITIVE), self.attention(read, NEGATIVE))
            for read in self.reads
        ]

    def _gaps(self) -> list[Measurement]:
        gaps = self.gaps()
        rows = [self.row("gap_size", [abs(gap) for gap in gaps])]
        for read, gap in zip(self.reads, gaps, strict=True):
            rows.append(
                Measurement(
                    name="gap",
                    dataset=self.source.dataset,
                    axes=self.axes,
                    found=_products(read.unit),
                    value=gap,
                    n=min(len(self._ids(group)) for group in self.groups.polar),
                    seeds=(read.unit.unit.seed,),
                )
            )
        return rows

    def words(self, count: int) -> list[Measurement]:
        """Return a fixed random part of each group's words, with the first seed's scores."""
        read, rows = self.reads[0], []
        for group, members in self.groups.members.items():
            order = torch.randperm(len(members), generator=generator("shown words", group))
            chosen = members[order[:count]].tolist()
            own = group if group != NEUTRAL else self.groups.polar[-1]
            polarity = read.towards(own, self.groups)
            for place, index in enumerate(chosen):
                found = {"polarity": float(polarity[index]), "word": self._word(index)}
                axes: dict[str, Any] = {"group": group, "place": place}
                rows.append(self._one("word", float(read.attention[index]), axes, found))
        return rows

    def lists(self, count: int) -> list[Measurement]:
        """Return the most polar words of each label and the most attended, by the first seed."""
        read, rows = self.reads[0], []
        counts = corpus_counts(self.source).sum(1).numpy()
        seen = counts > self.groups.rule.minimum
        columns = {f"most_attended {group}": (read.attention, group) for group in ("words",)}
        for group in self.groups.polar:
            sign = -1.0 if group == NEGATIVE and read.polarity.shape[1] == 1 else 1.0
            columns[f"most_polar {group}"] = (sign * read.towards(group, self.groups), group)
        for name, (values, group) in columns.items():
            ranked = np.where(seen, values, -np.inf).argsort()[::-1][: min(count, int(seen.sum()))]
            for place, index in enumerate(ranked.tolist()):
                found = {"word": self._word(index), "occurrences": int(counts[index])}
                axes: dict[str, Any] = {"group": group, "place": place}
                rows.append(self._one(name.split()[0], float(values[index]), axes, found))
        return rows

    def _word(self, index: int) -> str:
        return self.source.input_words.words[index]

    def _one(
        self, name: str, value: float, axes: dict[str, Any], found: dict[str, Any]
    ) -> Measurement:
        return Measurement(
            name=name,
            dataset=self.source.dataset,
            axes=self.axes | axes,
            found=found,
            value=value,
            n=1,
            seeds=self.seeds[:1],
        )


def read_is_binary(reads: Sequence[Read]) -> bool:
    """Tell whether there are two labels."""
    return reads[0].polarity.shape[1] == 1


def _products(unit: TrainedUnit) -> dict[str, str | int | float]:
    """Return VᵀW of the best weights and at the start, where the model has a direction V."""
    try:
        ends = {"VW": unit.best_model, "VW at the start": build_model(unit.unit).cpu()}
        return {
            name: float((both.output @ both.attention).detach().sum())
            for name, model in ends.items()
            for both in [model.cpu().directions()]  # type: ignore[operator]
        }
    except MissingCapability:
        return {}


def ratio_rows(small: Cell, large: Cell) -> list[Measurement]:
    """Return mean |s| and |a| of polar words at the larger λ over those at the smaller one."""
    rows = []
    for name, values in large.sizes().items():
        pairs = zip(values, small.sizes()[name], strict=True)
        rows.append(large.row(f"ratio({name})", [a / b for a, b in pairs]))
    return rows


def dot_rows(cell: Cell) -> list[Measurement]:
    """Return the share of polar words' dot products with the predicted sign, at the end."""
    groups = {name: cell.groups.members[name] for name in cell.groups.polar}
    within, across = [], []
    for read in cell.reads:
        weights: Any = read.unit.model.embedding.weight  # type: ignore[union-attr]
        signs = similarity_signs(weights, groups)
        within.append(float(np.mean([float(v) for pair, v in signs.items() if pair[0] == pair[1]])))
        across.append(
            float(np.mean([1 - float(v) for pair, v in signs.items() if pair[0] != pair[1]]))
        )
    return [
        cell.row("dot_sign", within, pair="within"),
        cell.row("dot_sign", across, pair="across"),
    ]
