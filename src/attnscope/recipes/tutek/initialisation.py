"""Appendix C: with PyTorch's own start of the query, dot attention stays uniform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field

from attnscope.analysis.agreement import attention_entropy
from attnscope.analysis.intervals import mean_interval
from attnscope.analysis.replaced_attention import labelled_traces
from attnscope.claims.decide import Verdict, all_of, verdict
from attnscope.claims.pool import Decision, Pool
from attnscope.models.trace import AttentionModel
from attnscope.recipes.options import Names, Several
from attnscope.recipes.recipe import Charts, Lab, Logged
from attnscope.recipes.tutek.held_out import best_model, held_out
from attnscope.recipes.tutek.judging import (
    counting,
    deviations,
    full_size,
    told,
    too_few,
)
from attnscope.recipes.tutek.rows import Rows, rng
from attnscope.recipes.tutek.table1_rows import fragility_rows, measure_fragility
from attnscope.recipes.tutek.units import SMALL, TutekConfig, Which, train_corpora
from attnscope.runs.result import Measurement, Result
from attnscope.training.trained_unit import TrainedUnit

_STARTS = ("default", "normal")
# Fixed beforehand: thresholds of the catalogue.
_UNIFORM, _NOT_UNIFORM, _DROP, _SEEDS = 0.98, 0.95, 0.5, 5


class Config(TutekConfig):
    """Settings of the comparison."""

    corpus: Names = Field(("tutek-sst",), min_length=1)
    # The one that the appendix is about.
    attention: Annotated[tuple[Literal["dot"]], Several] = ("dot",)
    permutations: int = Field(100, ge=1)


QUICK = SMALL | {"attention": ["dot"], "permutations": 10}
HEADLINE = ("entropy", "f1_trained", "f1_drop_uniform", "f1_drop_permuted")


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train base models from both starts, and read their attention."""
    models = [Which("base", "dot", initial=start) for start in _STARTS]  # type: ignore[arg-type]
    made: list[Measurement] = []
    for runs in train_corpora(config, lab, models):
        rows = Rows(runs.source, range(config.seeds))
        for which, units in runs.units.items():
            axes: dict[str, str] = {"initial": which.initial}
            found = measure_fragility(units, config.permutations, lab.device)
            made += fragility_rows(rows, found, axes)
            made += [_entropy_row(rows, unit, axes, lab.device) for unit in units]
    return made


def _entropy_row(rows: Rows, unit: TrainedUnit, axes: dict[str, str], device: str) -> Measurement:
    seed = unit.unit.seed
    interval = mean_interval(entropies(best_model(unit, device), rows), rng=rng())
    return rows.row("entropy", interval, axes | {"seed": seed}, seeds=(seed,))


@torch.no_grad()
def entropies(model: AttentionModel, rows: Rows) -> np.ndarray:
    """Return the entropy of attention of each held-out text, in units of log L."""
    device = next(iter(model.parameters())).device  # type: ignore[attr-defined]
    parts = []
    for _, trace in labelled_traces(model, held_out(rows.source).batch.to(device)):
        site = trace.sites["cross"]
        parts.append(attention_entropy(site.weights[:, 0].double(), site.mask)[:, 0].cpu())
    return torch.cat(parts).numpy()


def initialisation(pool: Pool) -> Decision:
    """Decide tutek.initialisation: uniform from the default start, not from N(0, 1)."""
    pool = full_size(pool)
    parts: list[Verdict] = []
    evidence = {}
    drops = counting(pool.select("f1_drop_uniform", initial="default"), pool)
    for drop in drops:
        found = {
            start: [row.value or 0.0 for row in pool.select("entropy", drop.dataset, initial=start)]
            for start in _STARTS
        }
        if min(map(len, found.values())) < pool.needed(_SEEDS):
            continue
        stays = all(value >= _UNIFORM for value in found["default"])
        leaves = all(value <= _NOT_UNIFORM for value in found["normal"])
        small = -(drop.value or 0.0) < _DROP
        parts.append(verdict(stays and leaves and small, True))
        evidence[drop.dataset] = {
            "entropy from the default": found["default"],
            "entropy from N(0, 1)": found["normal"],
            "the default's change under uniform attention": told(drop),
        }
    if not parts:
        return too_few("a corpus with five seeds", 0, evidence)
    return Decision(all_of(parts), evidence, deviations(pool, evidence))


CLAIMS = {"tutek.initialisation": initialisation}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw how uniform attention is, seed by seed, and what uniform attention costs."""
    from attnscope.figures.charts import Axis, beside, dots_with_intervals
    from attnscope.figures.palette import ROLES

    tints = {"default": ROLES["hard"], "normal": ROLES["control"]}
    names = {"default": "default", "normal": "N(0, 1)"}
    charts = {}
    for dataset in dict.fromkeys(row.dataset for row in result.select("entropy")):
        panels = []
        for name, axis in (
            ("entropy", Axis("entropy of attention / log L", domain=(0, 1.02))),
            ("f1_drop_uniform", Axis("uniform (change of F1, points)")),
            ("f1_drop_permuted", Axis("permuted (change of F1, points)")),
        ):
            rows = result.select(name, dataset)
            lines = [
                row.model_dump() | {"label": names[str(row.axes["initial"])] + _seed(row)}
                for row in rows
            ]
            colours = {
                line["label"]: tints[str(row.axes["initial"])]
                for line, row in zip(lines, rows, strict=True)
            }
            panels.append(
                dots_with_intervals(lines, axis, label="label", colours=colours, width=200)
            )
        charts[f"initialisation-{dataset}"] = beside(*panels, title=dataset)
    return charts


def _seed(row: Measurement) -> str:
    return f", seed {row.axes['seed']}" if "seed" in row.axes else ""
