"""Appendix C: with PyTorch's own initial query, dot attention stays uniform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import altair as alt
import numpy as np
import torch
from pydantic import Field

from attnscope.analysis.agreement import attention_entropy
from attnscope.analysis.replaced_attention import labelled_traces
from attnscope.claims.decide import verdict
from attnscope.claims.table import Cell, Cells, Claim, Finding, Needs
from attnscope.figures.charts import Axis, beside
from attnscope.figures.palette import ROLES
from attnscope.recipes.kit import plots
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.settings import Names, Several
from attnscope.recipes.recipe import Charts
from attnscope.recipes.tutek.evaluation import best_model, held_out, sheet_of
from attnscope.recipes.tutek.fragility import fragility_rows, measure_fragility
from attnscope.recipes.tutek.units import (
    SIZES,
    SMALL,
    ModelVariant,
    TutekConfig,
    deviations,
    train_corpora,
)
from attnscope.runs.result import Measurement, Result
from attnscope.training.trained_unit import TrainedUnit

_STARTS: tuple[Literal["default", "normal"], ...] = ("default", "normal")


class Config(TutekConfig):
    """Settings of the comparison."""

    corpus: Names = Field(("tutek-sst",), min_length=1)
    # The one that the appendix is about.
    attention: Annotated[tuple[Literal["dot"]], Several] = ("dot",)
    permutations: int = Field(100, ge=1)


QUICK = SMALL | {"attention": ["dot"], "permutations": 10}
HEADLINE = ("entropy", "f1_trained", "f1_drop_uniform", "f1_drop_permuted")


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train base models from both initial queries, and measure their attention."""
    models = [ModelVariant("base", "dot", initial=start) for start in _STARTS]
    rows: list[Measurement] = []
    for runs in train_corpora(config, lab, models):
        sheet = sheet_of(runs.source, range(config.seeds), percent=True)
        for variant, units in runs.units.items():
            axes = {"initial": variant.initial}
            found = measure_fragility(units, config.permutations, lab.device)
            rows += fragility_rows(sheet, runs.source, found, axes)
            for unit in units:
                seed = unit.unit.seed
                values = entropies(unit, lab.device)
                rows.append(sheet.mean("entropy", values, {**axes, "seed": seed}, seeds=(seed,)))
    return rows


@torch.no_grad()
def entropies(unit: TrainedUnit, device: str) -> np.ndarray:
    """Return the entropy of attention of each held-out text, in units of log L."""
    parts = []
    batch = held_out(unit.unit.source).batch.to(device)
    for _, trace in labelled_traces(best_model(unit, device), batch):
        site = trace.sites["cross"]
        parts.append(attention_entropy(site.weights[:, 0].double(), site.mask)[:, 0].cpu())
    return torch.cat(parts).numpy()


# Thresholds of the catalogue, fixed beforehand.
_UNIFORM, _NOT_UNIFORM, _DROP, _SEEDS = 0.98, 0.95, 0.5, 5


def _uniform_from_the_default(cell: Cell) -> Finding:
    """Check that every seed stays uniform from the default start, and leaves it from N(0, 1)."""
    found = {
        start: [row.number for row in cell.select("entropy", initial=start)] for start in _STARTS
    }
    stays = all(value >= _UNIFORM for value in found["default"])
    leaves = all(value <= _NOT_UNIFORM for value in found["normal"])
    drop = cell.one("f1_drop_uniform", initial="default")
    evidence = {
        "entropy from the default": found["default"],
        "entropy from N(0, 1)": found["normal"],
        "the default's change under uniform attention": drop,
    }
    # A mean over seeds below the bound; the seeds must have been measured one by one.
    if min(map(len, found.values())) < cell.pool.needed(_SEEDS):
        return Finding(None, evidence)
    return Finding(verdict(stays and leaves and -drop.number < _DROP, True), evidence)


CLAIMS = {
    "tutek.initialisation": Claim(
        Cells("f1_drop_uniform", given={"initial": "default"}),
        (_uniform_from_the_default,),
        Needs(_SEEDS, SIZES),
        deviation=deviations,
    )
}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw how uniform attention is, seed by seed, and the cost of uniform attention."""
    tints = {"default": ROLES["hard"], "normal": ROLES["control"]}
    names = {"default": "default", "normal": "N(0, 1)"}
    panels = {
        "entropy": Axis("entropy of attention / log L", domain=(0, 1.02)),
        "f1_drop_uniform": Axis("uniform (change of F1, points)"),
        "f1_drop_permuted": Axis("permuted (change of F1, points)"),
    }

    def label(row: Measurement) -> str:
        seed = f", seed {row.axes['seed']}" if "seed" in row.axes else ""
        return names[str(row.axes["initial"])] + seed

    def colour(row: Measurement) -> str:
        return tints[str(row.axes["initial"])]

    def table(dataset: str) -> alt.ConcatChart:
        drawn = [
            plots.dots(result.select(name, dataset), axis, label=label, colour=colour, width=200)
            for name, axis in panels.items()
        ]
        return beside(*drawn, title=dataset)

    return plots.per_dataset(result, "entropy", table, "initialisation")
