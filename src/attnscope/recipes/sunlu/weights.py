"""Figure 5: the mean attention weight of each word over its held-out occurrences, by group.

A weight is a word's share of its text, so that a neutral word of a short text can have a large one:
such outliers are listed with the text where they have it, and the scores of its words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field

from attnscope.analysis.intervals import Interval, mean_interval
from attnscope.analysis.separation import separation, standardised_gap
from attnscope.data.batch import Batch
from attnscope.data.corpus import Corpus
from attnscope.data.token_groups import NEUTRAL
from attnscope.recipes.options import Names
from attnscope.recipes.recipe import Lab
from attnscope.recipes.sunlu.answers import rng
from attnscope.recipes.sunlu.corpora import (
    NEGATIVE,
    POSITIVE,
    groups_of,
    held_out,
    held_out_batch,
)
from attnscope.recipes.sunlu.shared_claims import SST
from attnscope.recipes.sunlu.units import SunluConfig, Variant, open_corpus, train
from attnscope.recipes.sunlu.weights_claims import CLAIMS
from attnscope.recipes.sunlu.weights_figures import draw
from attnscope.runs.result import Measurement, measured
from attnscope.scores.polarity import mean_scores
from attnscope.training.trained_unit import TrainedUnit

__all__ = ["CLAIMS", "HEADLINE", "QUICK", "Config", "draw", "measure", "plan"]

Array = NDArray[np.float64]
# Minimum and maximum of what is inside the whiskers, quartiles and median.
_POINTS = ("low whisker", "first quartile", "median", "third quartile", "high whisker")
_POSITIONS = 2**16


class Config(SunluConfig):
    """Settings of the figure."""

    corpus: Names = Field((SST,), min_length=1)  # the paper's; names or folders
    seeds: int = Field(10, ge=1)  # those of the scores, whose side the weights are to have
    scale: float = Field(10.0, gt=0)
    outliers: int = Field(5, ge=1)  # neutral words that are listed, and drawn


QUICK = {
    "corpus": ("grammar-sentiment",),
    "seeds": 2,
    "embedding": 20,
    "epochs": 4,
}
HEADLINE = ("AUC(weight)", "mean(weight)", "outlier")


def plan(config: Config) -> list[tuple[Variant, int]]:
    """Return the one cell, with its seeds."""
    return [(Variant("DP", config.scale), config.seeds)]


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train the units and average the weights of every word."""
    sources = [open_corpus(config, name) for name in config.corpus]
    rows: list[Measurement] = []
    for runs in train(config, plan(config), lab, sources):
        ((_, units),) = runs.cells.items()
        rows += _corpus_rows(config, runs.source, units, lab.device)
    return rows


class _Words:
    """One seed's words that occur in the held-out part: mean α and a of each, by group."""

    def __init__(self, unit: TrainedUnit, source: Corpus, device: str) -> None:
        self.unit, self.model = unit, unit.best_model.to(device)
        batch = held_out_batch(source)
        parts = [part.to(device) for _, part in _parts(batch)]
        model: Any = self.model
        scores = mean_scores(model, parts, len(source.input_words))
        self.weights, self.attention = scores.weights.cpu().numpy(), scores.attention.cpu().numpy()
        self.groups = {
            name: ids[~np.isnan(self.weights[ids])]
            for name, ids in ((n, m.numpy()) for n, m in groups_of(source).members.items())
        }

    def of(self, table: Array, group: str) -> Array:
        return table[self.groups[group]]


def _parts(batch: Batch) -> Any:
    return batch.by_length(lambda inp, out: max(1, _POSITIONS // inp))


def _corpus_rows(
    config: Config, source: Corpus, units: Sequence[TrainedUnit], device: str
) -> list[Measurement]:
    read = [_Words(unit, source, device) for unit in units]
    rows: list[Measurement] = []
    seeds = tuple(unit.unit.seed for unit in units)
    axes = Variant("DP", config.scale).axes
    polar = groups_of(source).polar
    for group in polar:
        aucs = []
        for words in read:
            apart = separation(words.of(words.weights, group), words.of(words.weights, NEUTRAL))
            aucs.append(apart.auc.value)
            found = {"p": apart.p_value}
            own = axes | {"group": group}
            seed = (words.unit.unit.seed,)
            rows.append(measured("AUC(weight)", source.dataset, apart.auc, own, seed, None, found))
        mean = mean_interval(aucs, rng=rng())
        rows.append(
            measured("mean AUC(weight)", source.dataset, mean, axes | {"group": group}, seeds)
        )
    for group in (*polar, NEUTRAL):
        means = [_mean(words.of(words.weights, group)) for words in read]
        mean = mean_interval(means, rng=rng())
        rows.append(measured("mean(weight)", source.dataset, mean, axes | {"group": group}, seeds))
        rows += _box(source, read[0], group, axes)
    if set(polar) == {NEGATIVE, POSITIVE}:
        rows += [_gap(source, words, axes) for words in read]
    rows += _outliers(config, source, read[0], axes, device)
    split = held_out(source)[0]
    return [row.model_copy(update={"split": split}) for row in rows]


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _gap(source: Corpus, words: _Words, axes: dict[str, Any]) -> Measurement:
    """Return the standardised gap of weights, with that of scores beside it."""
    weights, scores = (
        standardised_gap(words.of(table, POSITIVE), words.of(table, NEGATIVE))
        for table in (words.weights, words.attention)
    )
    point = Interval(weights, np.nan, np.nan, min(map(len, words.groups.values())) or 1)
    found = {"gap of scores": scores}
    seed = (words.unit.unit.seed,)
    return measured("gap(weight)", source.dataset, point, axes, seed, None, found)


def _box(source: Corpus, words: _Words, group: str, axes: dict[str, Any]) -> list[Measurement]:
    """Return what a box plot shows of the first seed's weights."""
    values = words.of(words.weights, group)
    if not len(values):
        return []
    first, median, third = np.quantile(values, [0.25, 0.5, 0.75])
    reach = 1.5 * (third - first)
    inside = values[(values >= first - reach) & (values <= third + reach)]
    points = (inside.min(), first, median, third, inside.max())
    rows = []
    for name, value in zip(_POINTS, points, strict=True):
        point = Interval(float(value), np.nan, np.nan, len(values))
        given = axes | {"group": group, "point": name}
        rows.append(measured("box", source.dataset, point, given, (words.unit.unit.seed,)))
    beyond = np.sort(values[(values < first - reach) | (values > third + reach)])[::-1]
    for place, value in enumerate(beyond[:_CIRCLES].tolist()):
        point = Interval(value, np.nan, np.nan, len(values))
        given = axes | {"group": group, "place": place}
        rows.append(measured("circle", source.dataset, point, given, (words.unit.unit.seed,)))
    return rows


_CIRCLES = 40  # outliers of a group that are drawn, the largest first


def _outliers(
    config: Config, source: Corpus, words: _Words, axes: dict[str, Any], device: str
) -> list[Measurement]:
    """Return the neutral words of the largest mean weights, each with the text of its largest α."""
    ids = words.groups[NEUTRAL]
    chosen = ids[np.argsort(-words.weights[ids], kind="stable")][: config.outliers]
    if not len(chosen):
        return []
    best = _where(words.model, held_out_batch(source), torch.from_numpy(chosen), device)
    examples, names = held_out(source)[1], source.input_words.words
    rows = []
    for place, (index, (example, alpha)) in enumerate(zip(chosen.tolist(), best, strict=True)):
        text = [int(word) for word in examples[example].inputs]
        shown = " ".join(f"{names[word]} ({words.attention[word]:.2f})" for word in text[:_LONGEST])
        found = {
            "word": names[index],
            "attention score": float(words.attention[index]),
            "largest weight": alpha,
            "words of the text": len(text),
            "text, with attention scores": shown,
        }
        point = Interval(float(words.weights[index]), np.nan, np.nan, 1)
        given = axes | {"group": NEUTRAL, "place": place}
        seed = (words.unit.unit.seed,)
        rows.append(measured("outlier", source.dataset, point, given, seed, None, found))
    return rows


_LONGEST = 40  # words of a text that are shown


@torch.no_grad()
def _where(model: Any, batch: Batch, types: torch.Tensor, device: str) -> list[tuple[int, float]]:
    """Return, for each word, the example where its weight is largest, and that weight."""
    best = torch.full((len(types),), -1.0)
    where = torch.zeros(len(types), dtype=torch.long)
    for places, part in _parts(batch):
        weights = model.trace(part.to(device)).sites["cross"].weights[:, 0, 0].cpu()
        here = part.inputs[None] == types[:, None, None]
        largest, row = (
            weights.masked_fill(~part.input_mask, -1.0)
            .expand_as(here)
            .masked_fill(~here, -1.0)
            .amax(-1)
            .max(1)
        )
        better = largest > best
        best, where = torch.where(better, largest, best), torch.where(better, places[row], where)
    return list(zip(where.tolist(), best.tolist(), strict=True))
