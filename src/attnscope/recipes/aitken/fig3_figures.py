"""Figure 3 in the paper's arrangement: AED above, AO below; and the accuracies of all seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attnscope.figures.palette import ARCHITECTURES
from attnscope.recipes.aitken.escan_figures import (
    NAMES,
    example_panel,
    path_panel,
    plane_panel,
    temporal_panel,
)
from attnscope.recipes.recipe import Charts, Logged
from attnscope.runs.result import Result


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw an example, the temporal paths with their attention, and the input plane."""
    from attnscope.figures.charts import beside

    panels = []
    for model, name in NAMES.items():
        if not result.select("example", model=model):
            continue
        panels += [
            example_panel(result, model, f"{name}: attention on a sequence"),
            path_panel(result.select("temporal_path", model=model), f"{name}: temporal components"),
            temporal_panel(result, model, f"{name}: attention of temporal components"),
            plane_panel(
                result.select("input_plane", model=model), f"{name}: input-delta components"
            ),
        ]
    charts: dict[str, Any] = {"accuracy": beside(_accuracies(result), _shares(result))}
    if panels:
        charts["fig3"] = beside(*panels, columns=4)
    return charts


def _accuracies(result: Result) -> Any:
    from attnscope.figures.charts import Axis, Guide, Panel, points

    rows: list[dict[str, Any]] = [
        {"seed": row.axes["seed"], "value": row.value, "group": NAMES[str(row.axes["model"])]}
        for row in result.select("seed_accuracy")
    ]
    last = max(int(row["seed"]) for row in rows)
    threshold = float(result.config["accepted"])
    panel = Panel(
        Axis("seed", domain=(-0.5, last + 0.5), ticks=range(last + 1)),
        Axis("word accuracy"),
        ARCHITECTURES,
        "Accuracy of all runs on eSCAN",
        labels="legend",
        guides=[Guide([(-0.5, threshold), (last + 0.5, threshold)], "analysed from here")],
    )
    # Intervals without length, which the legend takes its lines from.
    return points(rows, panel, x="seed", y="value", group="group", low="value", high="value")


# Of the most attended position.
_ATTENDED = {
    "end": "maximum at its subphrase's end",
    "end, another sequence's": "at another sequence's end (chance)",
    "end, two words": "at its end, subphrases of two words",
    "end, uniform": "at its end, if drawn at random",
    "the same as the output before": "where the output before has it",
}


def _shares(result: Result) -> Any:
    from attnscope.figures.charts import Axis, dots_with_intervals

    rows = [
        {
            "label": f"{NAMES[str(row.axes['model'])]}: Δh of ‖h − μ‖², {row.axes['side']}",
            **row.model_dump(),
        }
        for row in result.select("delta_share")
    ] + [
        {
            "label": f"{NAMES[str(row.axes['model'])]}: {_ATTENDED[str(row.axes['attended'])]}",
            **row.model_dump(),
        }
        for row in result.select("subphrase")
    ]
    axis = Axis("share", domain=(0, 1))
    return dots_with_intervals(rows, axis, label="label", title="Share of Δh; subphrases")
