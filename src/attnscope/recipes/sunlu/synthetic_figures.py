"""The supplement's figures of the terms through training, and the terms' weights over λ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attnscope.figures.palette import FLOW_TERMS
from attnscope.recipes.recipe import Charts, Logged
from attnscope.runs.result import Result

if TYPE_CHECKING:
    import altair as alt


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw the shares of predicted signs, each term's mean by group, and the ratios over λ."""
    from attnscope.figures.charts import beside
    from attnscope.recipes.sunlu.gradient_flow import ratio_panels

    datasets = list(dict.fromkeys(row.dataset for row in result.select("sign_curve")))
    scale = result.select("sign_curve")[0].axes["lambda"]
    charts: dict[str, Any] = {
        "signs": beside(*(_signs(result, name) for name in datasets)),
        "lambda": beside(*ratio_panels(result)),
    }
    for name in datasets:
        logs = [
            unit
            for unit in units
            if unit.dataset == name and unit.config["model"]["attention"]["scale"] == scale
        ]
        panels = [_term(logs, term) for term in FLOW_TERMS]
        charts[f"terms-{name}"] = beside(*panels, columns=2, title=f"{name}, λ = {scale:g}")
    return charts


def _signs(result: Result, dataset: str) -> alt.LayerChart:
    from attnscope.figures.charts import Axis, Guide, Panel, band

    rows = result.select("sign_curve", dataset)
    last = max(float(row.axes["epoch"]) for row in rows)
    lines = [
        {
            "epoch": row.axes["epoch"],
            "term": row.axes["term"],
            **row.model_dump(include={"value", "low", "high"}),
        }
        for row in rows
    ]
    panel = Panel(
        Axis("epochs", domain=(0.0, last)),
        Axis("polar words with the predicted sign", domain=(0.0, 1.0)),
        FLOW_TERMS,
        title=dataset,
        guides=[Guide([(0.0, 0.5), (last, 0.5)])],
    )
    return band(lines, panel, x="epoch", group="term")


def _term(logs: Sequence[Logged], term: str) -> alt.LayerChart:
    """Draw a term's mean over each group through training, a line a seed."""
    from attnscope.figures.charts import Axis, Guide, Panel, curves
    from attnscope.recipes.sunlu.scores_figures import colours_of

    groups = ("positive", "negative", "neutral")
    lines = [
        {
            "step": row["step"],
            "value": row[f"flow.{term}.{group}"],
            "group": group,
            "seed": unit.config["seed"],
        }
        for unit in logs
        for row in unit.rows
        for group in groups
    ]
    last = max(line["step"] for line in lines)
    panel = Panel(
        Axis("training steps", domain=(0, last), format="~s"),
        Axis(f"mean of term {term}", format="~e"),
        colours_of(groups),
        title=f"Term {term}",
        guides=[Guide([(0, 0.0), (last, 0.0)])],
    )
    return curves(lines, panel, x="step", y="value", group="group", detail="seed")
