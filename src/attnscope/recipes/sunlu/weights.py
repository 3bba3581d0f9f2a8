"""Figure 5: the mean attention weight of each word over its held-out occurrences, by group.

A weight is a word's share of its text, so that a neutral word of a short text can have a large one:
such outliers are listed with the text where they have it, and the scores of its words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import altair as alt
import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field

from attnscope.analysis.separation import compute_separation, standardised_gap
from attnscope.claims.decide import SIGNIFICANT, all_of, verdict
from attnscope.claims.table import Cell, Cells, Claim, Finding, Needs
from attnscope.data.corpus import Corpus
from attnscope.data.token_groups import NEUTRAL
from attnscope.figures.charts import beside
from attnscope.figures.panel import data
from attnscope.recipes.kit import plots
from attnscope.recipes.kit.corpora import held_out
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.settings import Names
from attnscope.recipes.kit.sheet import Sheet
from attnscope.recipes.recipe import Charts
from attnscope.recipes.sunlu.corpora import (
    NEGATIVE,
    POSITIVE,
    batches,
    colours_of,
    groups_of,
    sheet_of,
)
from attnscope.recipes.sunlu.units import (
    SIZES,
    SST,
    Plan,
    SunluConfig,
    Variant,
    deviations,
    train,
)
from attnscope.runs.result import Measurement, Result
from attnscope.scores.polarity import mean_scores
from attnscope.training.trained_unit import TrainedUnit

Array = NDArray[np.float64]
# Minimum and maximum inside the whiskers, quartiles and median.
_POINTS = ("low whisker", "first quartile", "median", "third quartile", "high whisker")
_CIRCLES = 40  # outliers of a group that are drawn, the largest first
_LONGEST = 40  # words of a text that are shown


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


def plan(config: Config) -> Plan:
    """Return the one cell, with its seeds."""
    return {Variant("DP", config.scale): config.seeds}


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train the units and average the weights of every word."""
    rows: list[Measurement] = []
    for runs in train(config, plan(config), lab):
        ((variant, units),) = runs.cells.items()
        sheet = sheet_of(runs.source, [unit.unit.seed for unit in units])
        read = [_Words(unit, runs.source, lab.device) for unit in units]
        rows += _rows(config, runs.source, replace(sheet, axes=variant.axes), read)
    return rows


class _Words:
    """One seed's words that occur in the held-out part: mean α and a of each, by group."""

    def __init__(self, unit: TrainedUnit, source: Corpus, device: str) -> None:
        model: Any = unit.best_model.to(device)
        self.seed, self.model = (unit.unit.seed,), model
        texts = [part.to(device) for _, part in batches(source)]
        scores = mean_scores(model, texts, len(source.input_words))
        self.weights, self.attention = scores.weights.cpu().numpy(), scores.attention.cpu().numpy()
        self.groups = {}
        for name, members in groups_of(source).members.items():
            ids = members.numpy()
            self.groups[name] = ids[~np.isnan(self.weights[ids])]

    def of(self, table: Array, group: str) -> Array:
        return table[self.groups[group]]


def _rows(
    config: Config, source: Corpus, sheet: Sheet, read: Sequence[_Words]
) -> list[Measurement]:
    rows: list[Measurement] = []
    groups = groups_of(source)
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
    first, median, third = np.quantile(values, [0.25, 0.5, 0.75])
    reach = 1.5 * (third - first)
    outside = (values < first - reach) | (values > third + reach)
    inside = values[~outside]
    points = (inside.min(), first, median, third, inside.max())
    rows = [
        sheet.point("box", float(value), {"group": group, "point": name}, n)
        for name, value in zip(_POINTS, points, strict=True)
    ]
    beyond = np.sort(values[outside])[::-1][:_CIRCLES]
    for place, value in enumerate(beyond.tolist()):
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
def _where(model: Any, source: Corpus, types: torch.Tensor) -> list[tuple[int, float]]:
    """Return, for each word, the example where its weight is largest, and that weight."""
    device = next(model.parameters()).device
    best = torch.full((len(types),), -1.0)
    where = torch.zeros(len(types), dtype=torch.long)
    for places, part in batches(source):
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
    """Draw boxes with whiskers and outliers as circles, as the paper does."""
    rows = result.select("box", dataset)
    groups = plots.axis_values(rows, "group")
    boxes: dict[str, dict[str, Any]] = {group: {"group": group} for group in groups}
    for row in rows:
        boxes[str(row.axes["group"])][str(row.axes["point"]).replace(" ", "_")] = row.value
    circles = [
        {"group": row.axes["group"], "value": row.value} for row in result.select("circle", dataset)
    ]
    tints = colours_of(groups)
    colour = alt.Color(
        "group:N", scale=alt.Scale(domain=list(tints), range=list(tints.values())), legend=None
    )
    x = alt.X("group:N", sort=groups, title=None, axis=alt.Axis(labelAngle=0))
    base = alt.Chart(data(list(boxes.values()))).encode(x=x, color=colour)

    def y(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title="mean attention weight")

    quartiles = {"y": y("first_quartile"), "y2": "third_quartile:Q"}
    layers = [
        base.mark_rule().encode(y=y("low_whisker"), y2="high_whisker:Q"),
        # White first, so that the whiskers end at the box.
        base.mark_bar(size=34).encode(color=alt.value("white"), **quartiles),
        base.mark_bar(size=34, fillOpacity=0.25, strokeWidth=1.5).encode(
            stroke=colour, **quartiles
        ),
        base.mark_tick(size=34, thickness=2).encode(y=y("median")),
    ]
    if circles:
        points = alt.Chart(data(circles)).mark_point(size=22, strokeWidth=1)
        layers.append(points.encode(x=x, y=y("value"), color=colour))
    scale = rows[0].axes["lambda"]
    return alt.LayerChart(layer=layers).properties(
        width=90 * len(groups), height=240, title=alt.TitleParams(f"{dataset}, λ = {scale:g}")
    )
