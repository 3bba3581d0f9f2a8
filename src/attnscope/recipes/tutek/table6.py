"""Table 6: one to three layers, each with the weight that was chosen for one layer (appendix B)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import altair as alt
from pydantic import Field

from attnscope.claims.decide import share_of, verdict
from attnscope.claims.table import Cell, Cells, Claim, Finding, Needs
from attnscope.figures.charts import Axis, Panel, beside
from attnscope.figures.palette import CLASSIFIERS
from attnscope.recipes.kit import plots
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.settings import Several
from attnscope.recipes.recipe import Charts
from attnscope.recipes.tutek.evaluation import LABELS, name_of, sheet_of
from attnscope.recipes.tutek.fragility import COLUMNS, FRAGILITY, FragilityConfig, fragility_rows
from attnscope.recipes.tutek.units import (
    SIZES,
    SMALL,
    Attentions,
    ModelVariant,
    TutekUnits,
    deviations,
    train_corpora,
    units_of,
    variants,
)
from attnscope.runs.result import Measurement, Result
from attnscope.training.unit import Unit

_MODELS = ("base", "concat", "tying", "mlm")


class Config(FragilityConfig):
    """Settings of table 6."""

    seeds: int = Field(3, ge=1)
    """Runs of each model. The paper has "a preliminary set of experiments", and these units take
    the longest of all."""
    attention: Attentions = Field(("additive",), min_length=1, max_length=1)
    """Attention to train; the rows of one layer are table 1's with additive attention."""
    layers: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Several] = (1, 2, 3)
    """Numbers of LSTM layers."""


QUICK = SMALL | {"layers": [1, 2], "permutations": 10}
HEADLINE = FRAGILITY


def deeper_units(config: Config, runs: TutekUnits) -> dict[ModelVariant, list[Unit]]:
    """Return the units with more layers, each weight as it was chosen for one."""
    planned = {}
    for variant in runs.units:
        for layers in config.layers:
            if layers > 1:
                deeper = replace(variant, layers=layers)
                planned[deeper] = units_of(config, runs.source, deeper, runs.weight(variant))
    return planned


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train models of every depth and run them under other attention."""
    corpora = train_corpora(config, lab, variants(config, _MODELS))
    trained = lab.train([deeper_units(config, runs) for runs in corpora], "layers")
    rows: list[Measurement] = []
    for runs, deeper in zip(corpora, trained, strict=True):
        sheet = sheet_of(runs.source, range(config.seeds), "table6", percent=True)
        every = replace(runs, units={**(runs.units if 1 in config.layers else {}), **deeper})
        rows += fragility_rows(sheet, every, config.permutations, lab.device, axes_of)
    return rows


def axes_of(variant: ModelVariant) -> dict[str, Any]:
    """Return the axes of a cell: the paper does not say which attention its rows have."""
    return {"model": variant.model, "layers": variant.layers}


def _loses_less_with_two(cell: Cell) -> Finding:
    """Check that the base model loses less with two layers than with one."""
    name = str(cell.given["name"])
    evidence = {f"base, layers: {row.axes['layers']}": row for row in cell.select(name)}
    others = {"name": None, "model": None, "modification": name.removeprefix("f1_drop_")}
    for row in cell.select("extra_drop", **others):
        evidence[f"{row.axes['model']} more than base, layers: {row.axes['layers']}"] = row
    one, two = (cell.value(name, layers=layers) for layers in (1, 2))
    return Finding(verdict(-one > -two, True), evidence)


CLAIMS = {
    "tutek.layers": Claim(
        Cells(("f1_drop_uniform", "f1_drop_permuted"), ("dataset", "name"), {"model": "base"}),
        (_loses_less_with_two,),
        # The catalogue gives no number of seeds.
        Needs(seeds=3, sizes=SIZES, datasets=2),
        over=partial(share_of, share=3 / 4),
        deviation=deviations,
    )
}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw the three columns of the table over the number of layers."""

    def table(dataset: str) -> alt.ConcatChart:
        panels = []
        for name, title in COLUMNS.items():
            rows = result.select(name, dataset)
            depths = sorted(plots.axis_values(rows, "layers"))
            x = Axis("layers", domain=(depths[0], depths[-1]), ticks=depths, format="d")
            y = Axis(title, domain=plots.span(rows, room=0.0, published=False))
            panel = Panel(x, y, {LABELS[model]: CLASSIFIERS[model] for model in _MODELS}, width=150)
            panels.append(plots.band(rows, panel, x="layers", group=name_of))
        return beside(*panels, title=dataset)

    return plots.per_dataset(result, "f1_trained", table, "table6")
