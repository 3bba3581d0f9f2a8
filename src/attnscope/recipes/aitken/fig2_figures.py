"""Figure 2: one line of panels a network, and what the attention of sorting is made of.

Where the paper sets the attention of temporal components into a corner of their path, it stands
beside it here, with the mean attention next to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attnscope.figures.palette import WORDS
from attnscope.recipes.aitken.escan_figures import path_panel, plane_panel, term_symbols
from attnscope.recipes.aitken.fig2_pictures import BOUNDARY
from attnscope.runs.result import Measurement, Result

if TYPE_CHECKING:
    import altair as alt

NETWORKS = {
    ("one-to-one-3", "aed"): "AED",
    ("one-to-one-3", "ao"): "AO",
    ("reversed-3", "aed"): "AED, reversed",
    ("reversed-3", "ao"): "AO, reversed",
    # Last, since it has no attention to show.
    ("one-to-one-3", "ved"): "VED",
}
# Clockwise from the top left, as in Fig. 2h.
EXAMPLES = {
    "attention": "full attention, h·h",
    "temporal": "μ·μ alone",
    "deltahD.chiE": "Δh·χ alone",
    "chiD.deltahE": "χ·Δh alone",
}


def charts(result: Result) -> dict[str, Any]:
    """Return both figures."""
    from attnscope.figures.charts import beside

    panels = [
        panel
        for (dataset, model), name in NETWORKS.items()
        for panel in _network(result, dataset, model, name)
    ]
    return {
        "fig2": beside(*panels, columns=4),
        "fig2-sorting": beside(*_sorting(result), columns=2),
    }


def _network(result: Result, dataset: str, model: str, name: str) -> list[alt.LayerChart]:
    usual = {"model": model, "cell": "gru"}
    path = result.select("temporal_path", dataset, **usual)
    plane = result.select("input_plane", dataset, **usual)
    panels = [path_panel(path, f"{name}: temporal components"), _plane(plane, name)]
    titles = {"temporal": "softmax(μ·μ)", "attention": "mean attention"}
    for of, title in titles.items():
        lines = result.select("mean_attention", dataset, of=of, **usual)
        if lines:
            panels.append(_matrix(lines, f"{name}: {title}"))
    return panels


def _plane(rows: Sequence[Measurement], name: str) -> alt.LayerChart:
    """Draw the words' plane, the decoder's input-delta components dark over the encoder's."""
    from attnscope.figures.panel import Axis, Panel, grouped, y_channel

    words = dict.fromkeys(str(row.axes["word"]) for row in rows if row.axes["point"] == "component")
    colours = dict(zip(words, WORDS.values(), strict=False)) | {BOUNDARY: WORDS["<eos>"]}
    light = [row for row in rows if row.axes["point"] != "decoder state"]
    chart = plane_panel(light, f"{name}: input components", colours)
    dark: dict[Any, dict[str, Any]] = {}
    for row in rows:
        if row.axes["point"] == "decoder state":
            point = dark.setdefault(row.axes["number"], {"group": row.axes["word"]})
            point["xy"[int(row.axes["pc"]) - 1]] = row.value
    panel = Panel(Axis("PC 1"), Axis("PC 2"), colours, labels="legend")
    dots = grouped(list(dark.values()), panel).mark_circle(size=26, opacity=0.9)
    chart.layer = [*chart.layer, dots.encode(y=y_channel(panel.y))]
    return chart


def _matrix(lines: Sequence[Measurement], title: str) -> alt.LayerChart:
    from attnscope.figures.charts import heatmap

    lines = sorted(lines, key=lambda row: int(row.axes["step"]))
    columns = max((list(row.found) for row in lines), key=len)
    return heatmap(
        [[row.found.get(column) for column in columns] for row in lines],
        columns=[column.split(" ", 1)[1] for column in columns],
        rows=[str(row.axes["output"]) for row in lines],
        x_title="input",
        y_title="output",
        value_title="weight",
        title=title,
        domain=(0.0, 1.0),
    )


def _sorting(result: Result) -> list[alt.LayerChart]:
    from attnscope.figures.charts import Axis, dots_with_intervals

    examples = result.select("example_attention", model="aed")
    panels = [
        _matrix([row for row in examples if row.axes["of"] == of], f"AED, sorting: {title}")
        for of, title in EXAMPLES.items()
    ]
    for form, title in (("centred", "row-centred"), ("raw", "raw")):
        rows = [
            {"label": term_symbols(str(row.axes["term"])), **row.model_dump()}
            for row in result.select("term_share", examples[0].dataset, model="aed", form=form)
        ]
        axis = Axis("share of absolute contributions", domain=(0, 1))
        panels.append(
            dots_with_intervals(rows, axis, label="label", title=f"AED, sorting: terms, {title}")
        )
    return panels
