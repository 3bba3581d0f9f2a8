"""Table 6: one to three layers, each with what was chosen for one layer (appendix B)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from attnscope.claims.decide import share_of, verdict
from attnscope.claims.pool import Decision, Pool
from attnscope.recipes.options import Names, Several
from attnscope.recipes.recipe import Charts, Lab, Logged
from attnscope.recipes.tutek.colours import LABELS, MODELS
from attnscope.recipes.tutek.judging import (
    against,
    cells,
    deviations,
    evidence_of,
    full_size,
    too_few,
)
from attnscope.recipes.tutek.rows import Rows
from attnscope.recipes.tutek.table1_rows import (
    comparison_rows,
    fragility_rows,
    measure_fragility,
)
from attnscope.recipes.tutek.units import (
    SMALL,
    VARIANTS,
    Attentions,
    Runs,
    TutekConfig,
    Which,
    train_corpora,
    unit_of,
)
from attnscope.runs.result import Measurement, Result
from attnscope.training.unit import Unit

_MODELS = ("base", "concat", "tying", "mlm")
# Fixed beforehand: thresholds of the catalogue; it names no number of seeds.
_SHARE, _CORPORA, _SEEDS = 3 / 4, 2, 3


class Config(TutekConfig):
    """Settings of table 6."""

    corpus: Names = Field(
        ("tutek-sst", "tutek-20news"), min_length=1
    )  # the paper's extremes in length
    seeds: int = Field(3, ge=1)  # "a preliminary set of experiments", the dearest of all units
    # Its rows of one layer are table 1's with additive attention.
    attention: Attentions = Field(("additive",), min_length=1, max_length=1)
    layers: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Several] = (1, 2, 3)
    permutations: int = Field(100, ge=1)


QUICK = SMALL | {"layers": [1, 2], "permutations": 10}
HEADLINE = ("f1_trained", "f1_drop_uniform", "f1_drop_permuted")


def deeper_units(config: Config, runs: Runs) -> dict[Which, list[Unit]]:
    """Return the units with more layers, each weight as it was chosen for one."""
    return {
        Which(which.model, which.attention, layers): [
            unit_of(
                config,
                runs.source,
                Which(which.model, which.attention, layers),
                seed,
                runs.weight(which) if VARIANTS[which.model].grid else None,
            )
            for seed in range(config.seeds)
        ]
        for which in runs.units
        for layers in config.layers
        if layers > 1
    }


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train models of every depth and read them under other attention."""
    models = [Which(name, attention) for attention in config.attention for name in _MODELS]
    corpora = train_corpora(config, lab, models)
    planned = [deeper_units(config, runs) for runs in corpora]
    trained = lab.train(planned, "layers")
    made: list[Measurement] = []
    for runs, deeper in zip(corpora, trained, strict=True):
        rows = Rows(runs.source, range(config.seeds), "table6")
        units = {which: list(runs.units[which]) for which in runs.units if 1 in config.layers}
        units |= deeper
        found = {
            which: measure_fragility(each, config.permutations, lab.device)
            for which, each in units.items()
        }
        for which, each in found.items():
            made += fragility_rows(rows, each, _axes(which))
        made += comparison_rows(rows, found, _axes)
    return made


def _axes(which: Which) -> dict[str, Any]:
    # The paper does not say which attention; the rows of one layer are those of the additive one.
    return {"model": which.model, "layers": which.layers}


def layers(pool: Pool) -> Decision:
    """Decide tutek.layers: the base model loses less with two layers than with one."""
    pool = full_size(pool)
    drops = {
        (*key, name): row
        for name in ("uniform", "permuted")
        for key, row in cells(pool, f"f1_drop_{name}", "layers", seeds=_SEEDS, model="base").items()
    }
    pairs = [
        (dataset, name)
        for dataset, depth, name in drops
        if depth == 1 and (dataset, 2, name) in drops
    ]
    evidence = {f"base, layers: {key}": shown for key, shown in evidence_of(drops).items()}
    deep = cells(pool, "extra_drop", "layers", "model", "modification", seeds=_SEEDS)
    evidence |= {
        f"more than base, layers: {key}": shown for key, shown in evidence_of(deep).items()
    }
    corpora = {dataset for dataset, _ in pairs}
    if len(corpora) < pool.needed(_CORPORA):
        return too_few("two corpora with three seeds", len(corpora), evidence)

    def lost(dataset: str, depth: int, name: str) -> float:
        return -(drops[dataset, depth, name].value or 0.0)

    parts = [
        verdict(lost(dataset, 1, name) > lost(dataset, 2, name), True) for dataset, name in pairs
    ]
    decided = share_of(parts, _SHARE)
    return Decision(decided, evidence, deviations(pool, corpora), against(pairs, parts))


CLAIMS = {"tutek.layers": layers}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw the three columns of the table over the number of layers."""
    from attnscope.figures.charts import Axis, Panel, band, beside

    columns = {
        "f1_trained": "trained (F1, %)",
        "f1_drop_uniform": "uniform (change, points)",
        "f1_drop_permuted": "permuted (change, points)",
    }
    charts = {}
    for dataset in dict.fromkeys(row.dataset for row in result.select("f1_trained")):
        panels = []
        for name, title in columns.items():
            rows = result.select(name, dataset)
            lines = [
                row.model_dump()
                | {"layers": row.axes["layers"], "group": LABELS[str(row.axes["model"])]}
                for row in rows
            ]
            depths = sorted({int(row.axes["layers"]) for row in rows})
            axis = Axis("layers", domain=(depths[0], depths[-1]), ticks=depths, format="d")
            colours = {LABELS[model]: MODELS[model] for model in _MODELS}
            scale = Axis(title, domain=_heights(rows))
            panel = Panel(axis, scale, colours, width=150)
            panels.append(band(lines, panel, x="layers", group="group"))
        charts[f"table6-{dataset}"] = beside(*panels, title=dataset)
    return charts


def _heights(rows: Sequence[Measurement]) -> tuple[float, float]:
    ends = [end for row in rows for end in (row.value, row.low, row.high) if end is not None]
    return min(ends), max(ends)
