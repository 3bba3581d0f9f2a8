"""Table 1 as dots, one figure a corpus, in the paper's order; and what δ and η do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attnscope.recipes.recipe import Charts, Logged
from attnscope.recipes.tutek.colours import LABELS, MODELS, SIGNS
from attnscope.runs.result import Measurement, Result

if TYPE_CHECKING:
    import altair as alt

_COLUMNS = {
    "f1_trained": "trained (F1, %)",
    "f1_drop_uniform": "uniform (change of F1, points)",
    "f1_drop_permuted": "permuted (change of F1, points)",
}
_ABLATION = {
    "validation_f1": "validation F1 (%)",
    "ablation_drop_uniform": "uniform (points of F1)",
    "ablation_drop_permuted": "permuted (points of F1)",
}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw table 1 and the ablation of every corpus."""
    from attnscope.figures.charts import beside

    charts: dict[str, Any] = {}
    for dataset in dict.fromkeys(row.dataset for row in result.select("f1_trained")):
        charts[f"table1-{dataset}"] = dot_table(result, dataset, _COLUMNS, list(_COLUMNS)[1:])
        lines = [
            panel
            for model, symbol in (("tying", "δ of tying"), ("mlm", "η of masked words"))
            if _several_weights(result, dataset, model)
            for panel in _ablation(result, dataset, model, symbol)
        ]
        if lines:
            charts[f"ablation-{dataset}"] = beside(*lines, columns=len(_ABLATION), title=dataset)
    return charts


def dot_table(
    result: Result,
    dataset: str,
    columns: Mapping[str, str],
    alike: Sequence[str] = (),
    across: int | None = None,
) -> alt.ConcatChart:
    """Draw measurements of the models, attention by attention, one panel a name.

    Parameters
    ----------
    columns
        Names of measurements, and the titles of their axes.
    alike
        Names whose panels have the same axis, with 0 on it.
    across
        Panels in a row; all of them if not given.
    """
    from attnscope.figures.charts import Axis, beside, dots_with_intervals

    found = {name: in_order(result.select(name, dataset)) for name in columns}
    shared = span([row for name in alike for row in found[name]])
    panels = []
    for name, rows in found.items():
        lines = [row.model_dump() | {"label": label_of(row)} for row in rows]
        colours = {label_of(row): MODELS[str(row.axes["model"])] for row in rows}
        axis = Axis(columns[name], domain=shared if name in alike else None)
        panels.append(dots_with_intervals(lines, axis, label="label", colours=colours, width=190))
    title = heading(dataset, [row for rows in found.values() for row in rows])
    return beside(*panels, title=title, columns=across)


def heading(place: str, rows: Sequence[Measurement]) -> str:
    """Return a title that says what the marks beside the models' names mean."""
    present = {str(row.axes["attention"]) for row in rows}
    marks = ", ".join(f"{sign} {name}" for name, sign in SIGNS.items() if name in present)
    return f"{place} ({marks} attention)"


def span(rows: Sequence[Measurement]) -> tuple[float, float]:
    """Return a range that has 0, all intervals and all published values, with some room."""
    ends = [end for row in rows for end in (row.value, row.low, row.high, row.published)]
    known = [0.0, *(end for end in ends if end is not None)]
    room = 0.04 * (max(known) - min(known) or 1.0)
    return min(known) - room, max(known) + room


def in_order(rows: Sequence[Measurement]) -> list[Measurement]:
    """Sort measurements by attention and model, as the paper has them."""
    models, signs = list(MODELS), list(SIGNS)
    return sorted(
        rows,
        key=lambda row: (
            models.index(str(row.axes["model"])),
            signs.index(str(row.axes["attention"])),
        ),
    )


def label_of(row: Measurement) -> str:
    """Return a model and its attention's sign."""
    return f"{LABELS[str(row.axes['model'])]} {SIGNS[str(row.axes['attention'])]}"


def _several_weights(result: Result, dataset: str, model: str) -> bool:
    rows = result.select("validation_f1", dataset, model=model)
    return len({row.axes["weight"] for row in rows}) > 1


def _ablation(result: Result, dataset: str, model: str, symbol: str) -> list[alt.LayerChart]:
    from attnscope.figures.charts import Axis, Panel, curves
    from attnscope.figures.palette import NEUTRAL

    panels = []
    colours = {"+ additive": MODELS[model], "• dot": NEUTRAL}
    for name, title in _ABLATION.items():
        rows = result.select(name, dataset, model=model)
        lines: list[dict[str, Any]] = [
            {
                "x": row.axes["weight"],
                "y": row.value,
                "group": f"{SIGNS[str(row.axes['attention'])]} {row.axes['attention']}",
            }
            for row in rows
        ]
        ticks = sorted({float(line["x"]) for line in lines})
        spread = (ticks[0] / 1.2, ticks[-1] * 1.2)
        axis = Axis(symbol, scale="log", domain=spread, ticks=ticks, format="g")
        own = {group: colour for group, colour in colours.items() if _has(lines, group)}
        panel = Panel(axis, Axis(title), own, width=190)
        panels.append(curves(lines, panel, x="x", y="y", group="group", detail="group"))
    return panels


def _has(lines: Sequence[dict[str, Any]], group: str) -> bool:
    return any(line["group"] == group for line in lines)
