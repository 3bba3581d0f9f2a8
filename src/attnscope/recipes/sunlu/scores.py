"""Figures 2, 3 and 4: polarity and attention scores of positive, negative and neutral words.

At λ = 10 and 100, with and without the penalty on VᵀW; with an affine map, an LSTM or additive
attention at λ = 10. Words are grouped by counts alone; the groups take no part in training.
"""

from __future__ import annotations

from pydantic import Field

from attnscope.analysis.classification import metric_intervals
from attnscope.recipes.recipe import Lab
from attnscope.recipes.sunlu.answers import Answers, percent, rng
from attnscope.recipes.sunlu.corpora import held_out, held_out_batch, statistics_rows
from attnscope.recipes.sunlu.scores_claims import CLAIMS
from attnscope.recipes.sunlu.scores_figures import draw
from attnscope.recipes.sunlu.scores_measure import (
    ALONE,
    READINGS,
    Cell,
    dot_rows,
    ratio_rows,
    read_all,
)
from attnscope.recipes.sunlu.units import (
    Models,
    Runs,
    Scales,
    SunluConfig,
    Variant,
    open_corpus,
    train,
)
from attnscope.runs.result import Measurement, measured

__all__ = ["CLAIMS", "HEADLINE", "QUICK", "SHOWN", "Config", "draw", "measure", "plan"]


class Config(SunluConfig):
    """Settings of the figures."""

    # Seeds of the plain model: the side of the gap depends on the draw, and ten decide it. `seeds`
    # are those of the other models, which Table 2's grid has too.
    dot_seeds: int = Field(10, ge=1)
    scales: Scales = Field((10.0, 100.0), min_length=1)  # √d, as in Fig. 2 and 4, and Fig. 3's
    # Weight of |VᵀW|, as in the authors' code for SST; 0 leaves it out.
    penalty: float = Field(1e-4, ge=0)
    others: Models = ("AD", "DP-A", "DP-L")  # at the first λ
    shown: int = Field(60, ge=1)  # words of each group in a panel
    listed: int = Field(15, ge=1)  # most polar and most attended words


QUICK = {
    "corpus": "grammar-sentiment",
    "seeds": 1,
    "dot_seeds": 2,
    "embedding": 20,
    "hidden": 20,
    "lstm_hidden": 10,
    "epochs": 4,
    "others": ("AD", "DP-L"),
}
SHOWN = {"reading": ALONE, "penalty": 0.0}
HEADLINE = ("AUC(attention)", "AUC(polarity)", "gap_size", "accuracy", "group_size")


def plan(config: Config) -> list[tuple[Variant, int]]:
    """Return the cells, with their seeds."""
    penalties = dict.fromkeys((0.0, config.penalty))
    dots = [
        (Variant("DP", scale, penalty), config.dot_seeds)
        for penalty in penalties
        for scale in config.scales
    ]
    others = [m for m in config.others if m != "DP"]
    return [*dots, *((Variant(model, config.scales[0]), config.seeds) for model in others)]


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train the units and read every word's scores off them."""
    sources = [open_corpus(config, name) for name in config.corpus]
    rows: list[Measurement] = []
    for runs in train(config, plan(config), lab, sources):
        rows += statistics_rows(runs.source)
        rows += _corpus_rows(config, runs, lab.device)
    return rows


def _corpus_rows(config: Config, runs: Runs, device: str) -> list[Measurement]:
    rows: list[Measurement] = []
    plain: dict[float, Cell] = {}
    for variant, units in runs.cells.items():
        for reading in READINGS.get(variant.model, (ALONE,)):
            cell = Cell(runs.source, variant, reading, read_all(units, reading, device))
            rows += cell.rows()
            rows += cell.words(config.shown)
            if variant.model == "DP" and not variant.penalty:
                plain[variant.scale] = cell
                rows += [*cell.lists(config.listed), *dot_rows(cell)]
    first, last = plain[config.scales[0]], plain[config.scales[-1]]
    if first is not last:
        rows += ratio_rows(first, last)
    return [*rows, *_accuracies(config, runs, device)]


def _accuracies(config: Config, runs: Runs, device: str) -> list[Measurement]:
    """Return the plain model's accuracy, and how the penalty changes it."""
    source = runs.source
    labels = held_out_batch(source).targets[:, 0].numpy()
    rows = []
    for scale in config.scales:
        tested = {
            penalty: Answers(runs.cells[Variant("DP", scale, penalty)], source, device)
            for penalty in dict.fromkeys((0.0, config.penalty))
        }
        for penalty, cell in tested.items():
            axes = Variant("DP", scale, penalty).axes
            mine = metric_intervals(labels, cell.predicted, rng=rng())["accuracy"]
            rows.append(measured("accuracy", source.dataset, percent(mine), axes, cell.seeds))
            if penalty:
                base = tested[0.0].predicted
                change = metric_intervals(labels, cell.predicted, baseline=base, rng=rng())
                told = percent(change["accuracy"])
                rows.append(measured("accuracy_change", source.dataset, told, axes, cell.seeds))
    split = held_out(source)[0]
    return [row.model_copy(update={"split": split}) for row in rows]
