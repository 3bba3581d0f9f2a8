"""Figure 5: boxes of mean attention weights by group of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attnscope.recipes.recipe import Charts, Logged
from attnscope.runs.result import Result

if TYPE_CHECKING:
    import altair as alt


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw Figure 5 for every corpus."""
    from attnscope.figures.charts import beside

    datasets = dict.fromkeys(row.dataset for row in result.select("box"))
    return {"fig5": beside(*(_boxes(result, name) for name in datasets))}


def _boxes(result: Result, dataset: str) -> alt.LayerChart:
    """Draw boxes with whiskers and outliers as circles, as the paper does."""
    import altair as alt

    from attnscope.figures.panel import data
    from attnscope.recipes.sunlu.scores_figures import colours_of

    rows = result.select("box", dataset)
    groups = list(dict.fromkeys(str(row.axes["group"]) for row in rows))
    values = [
        {"group": group}
        | {
            str(row.axes["point"]).replace(" ", "_"): row.value
            for row in rows
            if row.axes["group"] == group
        }
        for group in groups
    ]
    circles = [
        {"group": str(row.axes["group"]), "value": row.value}
        for row in result.select("circle", dataset)
    ]
    tints = colours_of(groups)
    colour = alt.Color(
        "group:N", scale=alt.Scale(domain=list(tints), range=list(tints.values())), legend=None
    )
    x = alt.X("group:N", sort=groups, title=None, axis=alt.Axis(labelAngle=0))
    base = alt.Chart(data(values)).encode(x=x, color=colour)

    def y(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", title="mean attention weight")

    layers: list[Any] = [
        base.mark_rule().encode(y=y("low_whisker"), y2="high_whisker:Q"),
        # White first, so that the whiskers end at the box.
        base.mark_bar(size=34).encode(
            y=y("first_quartile"), y2="third_quartile:Q", color=alt.value("white")
        ),
        base.mark_bar(size=34, fillOpacity=0.25, strokeWidth=1.5).encode(
            y=y("first_quartile"), y2="third_quartile:Q", stroke=colour
        ),
        base.mark_tick(size=34, thickness=2).encode(y=y("median")),
    ]
    if circles:
        layers.append(
            alt.Chart(data(circles))
            .mark_point(size=22, strokeWidth=1)
            .encode(x=x, y=y("value"), color=colour)
        )
    scale = rows[0].axes["lambda"]
    return alt.LayerChart(layer=layers).properties(
        width=90 * len(groups), height=240, title=alt.TitleParams(f"{dataset}, λ = {scale:g}")
    )
