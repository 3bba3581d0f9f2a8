"""Appendix C: with PyTorch's own initial query, dot attention stays uniform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from attnscope.analysis.answers import read_answers
from attnscope.claims.decide import verdict
from attnscope.claims.table import Cell, Cells, Claim, Finding, Needs
from attnscope.figures.charts import Axis
from attnscope.figures.palette import ROLES
from attnscope.recipes.kit import plots
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.settings import Names, Several
from attnscope.recipes.recipe import Charts
from attnscope.recipes.tutek.evaluation import held_out, sheet_of
from attnscope.recipes.tutek.fragility import COLUMNS, FragilityConfig, fragility_rows
from attnscope.recipes.tutek.units import SIZES, SMALL, ModelVariant, deviations, train_corpora
from attnscope.runs.result import Measurement, Result
from attnscope.training.loaded import loaded_model

_STARTS: tuple[Literal["default", "normal"], ...] = ("default", "normal")


class Config(FragilityConfig):
    """Settings of the comparison."""

    corpus: Names = Field(("tutek-sst",), min_length=1)
    """Labelled corpora, known ones by name and your own by folder."""
    attention: Annotated[tuple[Literal["dot"]], Several] = ("dot",)
    """Attention to train, the one that appendix C is about."""


QUICK = SMALL | {"attention": ["dot"], "permutations": 10}
HEADLINE = ("entropy", *COLUMNS)


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train base models from both initial queries, and measure their attention."""
    models = [ModelVariant("base", "dot", initial=start) for start in _STARTS]
    rows: list[Measurement] = []
    for runs in train_corpora(config, lab, models):
        sheet = sheet_of(runs.source, range(config.seeds), percent=True)
        rows += fragility_rows(sheet, runs, config.permutations, lab.device, axes_of)
        batch = held_out(runs.source).batch.to(lab.device)
        # The order decides which texts a bootstrap draws: by length, as in the committed results.
        order = batch.input_lengths.argsort(stable=True, descending=True)
        for variant, units in runs.units.items():
            loaded = (loaded_model(unit, lab.device) for unit in units)
            for seed, texts in enumerate(read_answers(loaded, batch).entropy):
                axes = axes_of(variant) | {"seed": seed}
                rows.append(sheet.crossed("entropy", texts[order][None], axes, seeds=(seed,)))
    return rows


def axes_of(variant: ModelVariant) -> dict[str, Any]:
    """Return the axes of a cell: the initial query."""
    return {"initial": variant.initial}


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
        "entropy": Axis("entropy of attention, α, over log L", domain=(0, 1.02)),
        "f1_drop_uniform": Axis("change of F1, uniform attention"),
        "f1_drop_permuted": Axis("change of F1, permuted attention"),
    }

    def label(row: Measurement) -> str:
        seed = f", seed {row.axes['seed']}" if "seed" in row.axes else ""
        return names[str(row.axes["initial"])] + seed

    return plots.dot_tables(
        result,
        "initialisation",
        panels,
        label=label,
        colour=lambda row: tints[str(row.axes["initial"])],
        width=200,
    )
