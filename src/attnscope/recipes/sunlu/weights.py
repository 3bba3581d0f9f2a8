"""Figure 5: the mean attention weight of each word over its held-out occurrences, by group.

A weight is a word's share of its text, so that a neutral word of a short text can have a large one:
such outliers are listed with the text where they have it, and the scores of its words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import altair as alt
import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from attnscope.analysis.replaced_attention import positions_at_once
from attnscope.analysis.separation import compute_box, compute_separation, standardised_gap
from attnscope.claims.decide import SIGNIFICANT, all_of, verdict
from attnscope.claims.table import Cell, Cells, Claim, Finding, Needs
from attnscope.data.batch import Batch
from attnscope.data.corpus import Corpus
from attnscope.data.token_groups import NEGATIVE, NEUTRAL, POSITIVE, Grouped
from attnscope.figures import distributions
from attnscope.figures.charts import beside
from attnscope.figures.palette import group_colours
from attnscope.recipes.kit import plots
from attnscope.recipes.kit.corpora import held_out
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.settings import Names
from attnscope.recipes.kit.sheet import Sheet
from attnscope.recipes.recipe import Charts
from attnscope.recipes.sunlu.corpora import POSITIONS, demand_groups, groups_of, sheet_of
from attnscope.recipes.sunlu.units import SIZES, SST, Plan, SunluConfig, Variant, deviations, train
from attnscope.runs.result import Measurement, Result
from attnscope.scores.polarity import mean_scores
from attnscope.training.trained_unit import TrainedUnit

Array = NDArray[np.float64]
_CIRCLES = 40  # outliers of a group that are drawn, the largest first
_LONGEST = 40  # words of a text that are shown


class Config(SunluConfig):
    """Settings of the figure."""

    corpus: Names = Field((SST,), min_length=1)
    """Labelled corpora, known ones by name and your own by folder; the default is the paper's."""
    seeds: int = Field(10, ge=1)
    """Runs of the plain model, those of sunlu/scores, whose side the weights are compared with."""
    scale: float = Field(10.0, gt=0)
    """Scaling factor λ of the attention logits; 10 is √d."""
    outliers: int = Field(5, ge=1)
    """Neutral words that are listed and drawn."""


QUICK = {"corpus": ("grammar-sentiment",), "seeds": 2, "embedding": 20, "epochs": 4}
HEADLINE = ("AUC(weight)", "mean(weight)", "outlier")


def plan(config: Config) -> Plan:
    """Return the one cell, with its seeds."""
    return {Variant("DP", config.scale): config.seeds}


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train the units and average the weights of every word."""
    demand_groups(config)
    rows: list[Measurement] = []
    for runs in train(config, plan(config), lab):
        ((variant, units),) = runs.cells.items()
        sheet = sheet_of(runs.source, [unit.unit.seed for unit in units])
        groups = groups_of(runs.source, config.rule)
        read = [_Words(unit, runs.source, groups, lab.device) for unit in units]
        rows += _rows(config, runs.source, groups, replace(sheet, axes=variant.axes), read)
    return rows


def _batches(source: Corpus) -> Iterator[tuple[Tensor, Batch]]:
    """Yield the held-out texts in batches of like length, with their places."""
    yield from held_out(source).batch.by_length(positions_at_once(POSITIONS))


class _Words:
    """One seed's words that occur in the held-out part: mean α and a of each, by group."""

    def __init__(self, unit: TrainedUnit, source: Corpus, groups: Grouped, device: str) -> None:
        model: Any = unit.best_model.to(device)
        self.seed, self.model = (unit.unit.seed,), model
        texts = [part.to(device) for _, part in _batches(source)]
        scores = mean_scores(model, texts, len(source.input_words))
        self.weights, self.attention = scores.weights.cpu().numpy(), scores.attention.cpu().numpy()
        self.groups = {}
        for name, members in groups.members.items():
            ids = members.numpy()
            self.groups[name] = ids[~np.isnan(self.weights[ids])]

    def of(self, table: Array, group: str) -> Array:
        return table[self.groups[group]]


def _rows(
    config: Config, source: Corpus, groups: Grouped, sheet: Sheet, read: Sequence[_Words]
) -> list[Measurement]:
    rows: list[Measurement] = []
    for group in groups.polar:
        axes, aucs = {"group": group}, []
        for words in read:
            apart = compute_separation(
                words.of(words.weights, group), words.of(words.weights, NEUTRAL)
            )
            aucs.append(apart.auc.value)
            found = {"p": apart.p_value}
            rows.append(sheet.row("AUC(weight)", apart.auc, axes, seeds=words.seed, found=found))
        rows.append(sheet.mean("mean AUC(weight)", aucs, axes))
    for group in (*groups.polar, NEUTRAL):
        means = [_mean(words.of(words.weights, group)) for words in read]
        rows.append(sheet.mean("mean(weight)", means, {"group": group}))
        rows += _box(replace(sheet, seeds=read[0].seed), read[0], group)
    if groups.binary:
        rows += [_gap(sheet, words) for words in read]
    return rows + _outliers(config, source, replace(sheet, seeds=read[0].seed), read[0])


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _gap(sheet: Sheet, words: _Words) -> Measurement:
    """Return the standardised gap of weights, and that of scores with it."""
    weights, scores = (
        standardised_gap(words.of(table, POSITIVE), words.of(table, NEGATIVE))
        for table in (words.weights, words.attention)
    )
    n = min(map(len, words.groups.values())) or 1
    found = {"gap of scores": scores}
    return sheet.point("gap(weight)", weights, n=n, seeds=words.seed, found=found)


def _box(sheet: Sheet, words: _Words, group: str) -> list[Measurement]:
    """Return the numbers of a box plot of the first seed's weights."""
    values = words.of(words.weights, group)
    n = len(values)
    if not n:
        return []
    found, beyond = compute_box(values)
    rows = []
    for name, value in found._asdict().items():
        axes = {"group": group, "point": name.replace("_", " ")}
        rows.append(sheet.point("box", value, axes, n))
    for place, value in enumerate(beyond[:_CIRCLES].tolist()):
        rows.append(sheet.point("circle", value, {"group": group, "place": place}, n))
    return rows


def _outliers(config: Config, source: Corpus, sheet: Sheet, words: _Words) -> list[Measurement]:
    """Return the neutral words of the largest mean weights, each with the text of its largest α."""
    ids = words.groups[NEUTRAL]
    chosen = ids[np.argsort(-words.weights[ids], kind="stable")][: config.outliers]
    if not len(chosen):
        return []
    best = _where(words.model, source, torch.from_numpy(chosen))
    examples, names = held_out(source).examples, source.input_words.words
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
        axes = {"group": NEUTRAL, "place": place}
        rows.append(sheet.point("outlier", float(words.weights[index]), axes, found=found))
    return rows


@torch.no_grad()
def _where(model: Any, source: Corpus, types: Tensor) -> list[tuple[int, float]]:
    """Return, for each word, the example where its weight is largest, and that weight."""
    device = next(model.parameters()).device
    best = torch.full((len(types),), -1.0)
    where = torch.zeros(len(types), dtype=torch.long)
    for places, part in _batches(source):
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


def _above_neutral(cell: Cell) -> Finding:
    """Check that each label's words are above neutral ones in every seed (Mann–Whitney)."""
    evidence, parts = {}, []
    rows = cell.select("AUC(weight)")
    for group in plots.axis_values(rows, "group"):
        mine = [row for row in rows if row.axes["group"] == group]
        sure = [row for row in mine if float(row.found["p"]) < SIGNIFICANT]
        held, failed = sum(row.number > 0.5 for row in sure), sum(row.number <= 0.5 for row in sure)
        evidence[str(group)] = (
            f"above neutral in {held} of {len(mine)} seeds (p < .05), below in {failed}"
        )
        parts.append(verdict(held == len(mine), failed > 0 or 2 * held < len(mine)))
    return Finding(all_of(parts), evidence)


def _on_the_side_of_the_scores(cell: Cell) -> Finding:
    """Check that the gap of weights has the sign of that of scores in every seed."""
    gaps = cell.select("gap(weight)")
    agree = sum(row.number * float(row.found["gap of scores"]) > 0 for row in gaps)
    agreeing = f"as that of the scores in {agree} of {len(gaps)} seeds"
    return Finding(verdict(agree == len(gaps) > 0, True), {"side of the gap": agreeing})


def _outlier_texts(cell: Cell) -> Finding:
    """Show neutral words of large weights with their texts."""
    texts = {
        str(row.found["word"]): str(row.found["text, with attention scores"])
        for row in cell.select("outlier")
    }
    return Finding(None, {"outliers": texts} if texts else {})


CLAIMS = {
    "sunlu.weights": Claim(
        Cells("AUC(weight)", decide=(SST,)),
        (_above_neutral, _on_the_side_of_the_scores, _outlier_texts),
        Needs(3, SIZES),
        deviation=deviations,
    )
}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw Figure 5 for every corpus."""
    panels = [_boxes(result, name) for name in plots.datasets(result.select("box"))]
    return {"fig5": beside(*panels)}


def _boxes(result: Result, dataset: str) -> alt.LayerChart:
    rows, circles = result.select("box", dataset), result.select("circle", dataset)
    groups = plots.axis_values(rows, "group")
    boxes: dict[str, dict[str, float]] = {group: {} for group in groups}
    outliers: dict[str, list[float]] = {group: [] for group in groups}
    for row in rows:
        boxes[str(row.axes["group"])][str(row.axes["point"]).replace(" ", "_")] = row.number
    for row in circles:
        outliers[str(row.axes["group"])].append(row.number)
    title = f"{dataset}, λ = {rows[0].axes['lambda']:g}"
    tints = group_colours(groups)
    return distributions.boxes(boxes, outliers, tints, y_title="mean attention weight", title=title)
