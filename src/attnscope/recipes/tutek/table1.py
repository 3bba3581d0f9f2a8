"""Table 1: F1, and its loss under uniform and permuted attention; tables 4, 5 and the ablation.

The residual model, which the paper leaves out for space, is measured with the others.
``query=instance`` compares base models whose query is computed from the text with those whose query
is a parameter (footnote 8).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal

import altair as alt
import numpy as np
from scipy import stats

from attnscope.analysis.classification import usual_average
from attnscope.analysis.fragility import fragility_intervals
from attnscope.claims.decide import Verdict, about_equal, share_of, verdict
from attnscope.claims.pool import Pool
from attnscope.claims.table import Cell, Cells, Claim, Finding, Needs, Part
from attnscope.data.corpus import Corpus
from attnscope.data.reading import left_out
from attnscope.errors import UsageError
from attnscope.figures.charts import Axis, Panel, beside
from attnscope.figures.palette import CLASSIFIERS, NEUTRAL
from attnscope.recipes.kit import corpora, plots
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.settings import EachOnce, Several
from attnscope.recipes.kit.sheet import rng
from attnscope.recipes.recipe import Charts
from attnscope.recipes.tutek.evaluation import SIGNS, dot_tables, held_out, sheet_of
from attnscope.recipes.tutek.fragility import (
    COLUMNS,
    FRAGILITY,
    MODIFIED,
    FragilityConfig,
    fragility_rows,
    measure_fragility,
)
from attnscope.recipes.tutek.units import (
    CHOOSING_SEED,
    SIZES,
    SMALL,
    ModelVariant,
    TutekUnits,
    deviations,
    train_corpora,
    variants,
)
from attnscope.runs.result import Measurement, Result

_MODELS = {
    "learned": ("base", "concat", "residual", "tying", "mlm"),
    "instance": ("base", "instance"),
}
Models = Annotated[
    tuple[Literal["base", "concat", "residual", "tying", "mlm"], ...], Several, EachOnce
]


class Config(FragilityConfig):
    """Settings of table 1."""

    query: Literal["learned", "instance"] = "learned"
    """Query of attention: learned, or made from each instance, which has a result of its own."""
    models: Models = ()
    """Models of the table to train; none named are all of them."""

    @property
    def in_part(self) -> tuple[str, ...]:
        """Which queries are compared is a part of its own."""
        return (*super().in_part, "query")

    @property
    def parts(self) -> list[str]:
        """A run about queries has a folder next to the table's."""
        return super().parts + ["instance"] * (self.query == "instance")

    @property
    def columns(self) -> list[ModelVariant]:
        """The models to train."""
        every = _MODELS[self.query]
        if not set(self.models) <= {*every}:
            raise UsageError(f"models: query={self.query} trains {' and '.join(every)} alone.")
        return variants(self, [name for name in every if name in (self.models or every)])


QUICK = SMALL | {"permutations": 10}
HEADLINE = (
    *FRAGILITY,
    "f1_difference",
    # Table 5, table 4, and the ablation on the seed that chose.
    "avg_length",
    "vocab_size",
    "chosen_weight",
    "validation_f1",
    "ablation_drop_uniform",
    "ablation_drop_permuted",
)


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train every model on every corpus and run it under other attention."""
    rows: list[Measurement] = []
    for runs in train_corpora(config, lab, config.columns):
        sheet = sheet_of(runs.source, range(config.seeds), "table1", percent=True)
        rows += statistics_rows(runs.source)
        rows += fragility_rows(sheet, runs, config.permutations, lab.device)
        rows += _choice_rows(runs, config.permutations, lab.device)
    return rows


def statistics_rows(source: Corpus) -> list[Measurement]:
    """Return table 5: mean length in words and vocabulary; sizes, and texts that were left out."""
    sheet = sheet_of(source, table="table5")
    marks = len(source.encode(""))  # boundaries are not counted
    lengths = [len(example.inputs) - marks for example in source.training_examples]
    sizes = {
        "avg_length": float(np.mean(lengths)),
        "vocab_size": len(source.input_words),
        "train_size": len(lengths),
        "val_size": len(source.validation_examples),
        "measured_size": len(held_out(source).examples),
    }
    n = len(lengths)
    rows = [sheet.point(name, value, n=n, split="train") for name, value in sizes.items()]
    return rows + corpora.left_out_rows(sheet, left_out(source), n)


def _choice_rows(runs: TutekUnits, permutations: int, device: str) -> list[Measurement]:
    """Return table 4 and the ablation: each weight's validation F1 and effect, the chosen one.

    The effect of a weight is measured after the choice, and has no part in it.
    """
    sheet = sheet_of(runs.source, (CHOOSING_SEED,), percent=True)
    average = usual_average(runs.source.output_words)
    rows = []
    for variant, grid in runs.grids.items():
        chosen = runs.weight(variant)
        assert chosen is not None
        n = next(iter(grid.values())).unit.unit.training.examples
        tried = {f"F1 at {weight:g}": round(100 * one.f1, 2) for weight, one in grid.items()}
        rows.append(sheet.point("chosen_weight", chosen, variant.axes, n, found=tried, split="val"))
        for weight, one in grid.items():
            axes = {**variant.axes, "weight": weight}
            rows.append(sheet.point("validation_f1", one.f1, axes, n, share=True, split="val"))
            seeds = measure_fragility([one.unit], permutations, device)
            found = fragility_intervals(seeds, rng=rng(), average=average)
            rows.append(sheet.row("ablation_f1", found["trained"]["f1"], axes, share=True))
            for name in MODIFIED:
                change = found[f"{name}_change"]["f1"]
                rows.append(sheet.row(f"ablation_drop_{name}", change, axes, share=True))
    return rows


# Thresholds of the catalogue, fixed beforehand.
_SEEDS, _CORPORA = 5, 4
_FRAGILE_CELLS, _FRAGILE = 16, {"tying": 15, "mlm": 10}
_DIABETES = "mimic-diabetes"


def _counted(pool: Pool, name: str, *by: str, **given: str) -> dict[str, Measurement]:
    """Return the measurements of the cells that count, by their labels."""
    cells = Cells(name, by, given)
    found = [cell for cell in cells.find(pool) if cells.decides(cell, pool.needed(_SEEDS))]
    return {cell.label: cell.one(name) for cell in found}


def _extra_drops(pool: Pool, model: str) -> dict[str, Measurement]:
    return _counted(pool, "extra_drop", "dataset", "attention", "modification", model=model)


def _loses_more(cell: Cell) -> Finding:
    """Check that a model loses more than the base model in enough cells, and on average."""
    model = str(cell.given["model"])
    rows = _extra_drops(cell.pool, model)
    values = [row.number for row in rows.values()]
    more, mean = sum(value > 0 for value in values), sum(values) / max(1, len(values))
    # A quick run has fewer cells; it shows their share.
    needed = -(-_FRAGILE[model] * len(values) // _FRAGILE_CELLS)
    summary = f"more in {more} of {len(values)} cells, {mean:.2f} points on average"
    return Finding(verdict(more >= needed and mean > 0, True), {"in all": summary, **rows})


def _enough_cells(pool: Pool, cells: Sequence[Cell]) -> str:
    fewest = min(len(_extra_drops(pool, model)) for model in _FRAGILE)
    needs = f"{_FRAGILE_CELLS} cells of corpus, attention and modification with five seeds"
    return f"needs {needs}; there are {fewest}" if fewest < pool.needed(_FRAGILE_CELLS) else ""


def _losses(pool: Pool, attention: str) -> dict[str, tuple[float, float]]:
    """Return the base model's mean loss of F1 and the mean length of each corpus."""
    lengths = {row.dataset: row.number for row in pool.select("avg_length")}
    uniform, permuted = (
        _counted(pool, f"f1_drop_{name}", "dataset", attention=attention, model="base")
        for name in MODIFIED
    )
    return {
        name: (lengths[name], -(row.number + permuted[name].number) / 2)
        for name, row in uniform.items()
        if name in permuted and name in lengths
    }


def _grows_with_length(cell: Cell) -> Finding:
    """Check that the base model's mean drop grows with the corpus' mean length."""
    found = _losses(cell.pool, str(cell.given["attention"]))
    evidence: dict[str, Any] = {
        name: f"{words:.0f} words, {loss:.1f} points lost" for name, (words, loss) in found.items()
    }
    if len(found) < _CORPORA:
        return Finding(Verdict.UNDECIDED, evidence)
    trend = float(stats.spearmanr(*zip(*found.values(), strict=True)).statistic)
    return Finding(verdict(trend > 0, True), evidence | {"Spearman": trend})


def _four_corpora(pool: Pool, cells: Sequence[Cell]) -> str:
    fewest = min((len(_losses(pool, str(cell.given["attention"]))) for cell in cells), default=0)
    return f"needs four corpora with five seeds; there are {fewest}" if fewest < _CORPORA else ""


def _nothing_left(cell: Cell) -> Finding:
    """Check that F1 is 0 under every modification."""
    left = {name: cell.value("f1_trained") + cell.value(f"f1_drop_{name}") for name in MODIFIED}
    # Rounding of the two numbers that are added.
    return Finding(verdict(all(abs(f1) < 1e-6 for f1 in left.values()), True), left)


def _of_all_corpora(pool: Pool, datasets: Sequence[str]) -> str:
    return deviations(pool, pool.datasets("f1_drop_uniform"))


def _mimic(pool: Pool, cells: Sequence[Cell]) -> str:
    missing = "MIMIC may not be passed on; it is read from mimic_diabetes/ in the data folder"
    return "" if cells else missing


def _kept(points: float) -> tuple[Part]:
    return (Part("", "f1_difference", about_equal, points),)


CLAIMS = {
    "tutek.performance-kept": Claim(
        Cells(
            "f1_difference",
            ("dataset", "attention", "model"),
            {"model": ("tying", "mlm", "concat", "residual")},
        ),
        _kept(3.0),
        Needs(_SEEDS, SIZES, datasets=_CORPORA),
        over=partial(share_of, share=3 / 4),
        deviation=deviations,
    ),
    "tutek.fragile": Claim(
        Cells("extra_drop", ("model",), {"model": tuple(_FRAGILE)}),
        (_loses_more,),
        Needs(sizes=SIZES, also=_enough_cells),
        deviation=_of_all_corpora,
    ),
    "tutek.length": Claim(
        Cells("f1_drop_uniform", ("attention",), {"model": "base"}),
        (_grows_with_length,),
        Needs(sizes=SIZES, also=_four_corpora),
        deviation=_of_all_corpora,
    ),
    "tutek.instance-query": Claim(
        Cells("f1_difference", ("dataset", "attention"), {"model": "instance"}),
        _kept(2.0),
        Needs(_SEEDS, SIZES, datasets=2),
        deviation=deviations,
    ),
    "tutek.diabetes": Claim(
        Cells("f1_trained", ("attention", "model"), {"dataset": _DIABETES}),
        (_nothing_left,),
        Needs(_SEEDS, SIZES, also=_mimic),
    ),
}

_ABLATION = {
    "validation_f1": "validation F1 (%)",
    "ablation_drop_uniform": "change of F1, uniform attention",
    "ablation_drop_permuted": "change of F1, permuted attention",
}
_WEIGHTS = {"tying": "weight of tying, δ", "mlm": "weight of masked words, η"}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw table 1 as dots in the paper's order, and the effects of δ and η, for every corpus."""
    charts: dict[str, Any] = dot_tables(result, "table1", COLUMNS, alike=list(COLUMNS)[1:])
    for dataset in plots.datasets(result.select("validation_f1")):
        panels: list[alt.LayerChart] = []
        for model in _WEIGHTS:
            for name, title in _ABLATION.items():
                panels += _ablation(result.select(name, dataset, model=model), model, title)
        if panels:
            charts[f"ablation-{dataset}"] = beside(*panels, columns=len(_ABLATION), title=dataset)
    return charts


def _ablation(rows: Sequence[Measurement], model: str, title: str) -> list[alt.LayerChart]:
    """Draw a number over the weights of a grid, where there are several."""
    weights = sorted(plots.axis_values(rows, "weight"))
    if len(weights) < 2:
        return []
    ends = (weights[0] / 1.2, weights[-1] * 1.2)
    axis = Axis(_WEIGHTS[model], scale="log", domain=ends, ticks=weights, format="g")
    present = {_marked(row) for row in rows}
    tints = {"+ additive": CLASSIFIERS[model], "• dot": NEUTRAL}
    tints = {group: colour for group, colour in tints.items() if group in present}
    panel = Panel(axis, Axis(title), tints, width=190)
    return [plots.curves(rows, panel, x="weight", group=_marked)]


def _marked(row: Measurement) -> str:
    return f"{SIGNS[str(row.axes['attention'])]} {row.axes['attention']}"
