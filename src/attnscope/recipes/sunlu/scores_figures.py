"""Figures 2, 3 and 4 in the paper's arrangement, the penalty's, and the side of the gap by seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attnscope.recipes.recipe import Charts, Logged
from attnscope.runs.result import Measurement, Result

if TYPE_CHECKING:
    import altair as alt

_BINARY = {"negative", "positive", "neutral"}
_SCORES = {"polarity": "polarity score s", "attention": "attention score a"}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw every figure whose cells were measured."""
    from attnscope.figures.charts import beside

    words = result.select("word", penalty=0.0, reading="alone")
    first, last = _ends(words)
    datasets = list(dict.fromkeys(row.dataset for row in words))
    two = [name for name in datasets if _groups(words, name) <= _BINARY]
    more = [name for name in datasets if name not in two]
    plain = [row for row in words if row.axes["model"] == "DP"]
    charts: dict[str, Any] = {}
    if two:
        panels = [_panel(plain, name, score, first) for score in _SCORES for name in two]
        charts["fig2"] = beside(*panels, columns=len(two))
    third = [_panel(plain, name, score, last) for name in two for score in _SCORES]
    third += [_panel(plain, name, "attention", first) for name in more]
    charts["fig3"] = beside(*third, columns=3 if len(third) % 3 == 0 else 2)
    models = dict.fromkeys(str(row.axes["model"]) for row in words if row.axes["model"] != "DP")
    for model in models:
        mine = [row for row in words if row.axes["model"] == model]
        scores = [
            (name, s) for name in datasets for s in _SCORES if name in two or s == "attention"
        ]
        panels = [_panel(mine, name, score, first) for name, score in scores]
        charts[f"fig4-{model}"] = beside(*panels, columns=2, title=model)
    charts |= _penalty(result, plain, last, two)
    if two:
        charts["gap"] = beside(*(_gaps(result, name) for name in two), columns=min(2, len(two)))
    charts["auc"] = beside(
        *(_aucs(result, name) for name in datasets), columns=min(2, len(datasets))
    )
    return charts


def _ends(rows: Sequence[Measurement]) -> tuple[float, float]:
    scales = sorted({float(row.axes["lambda"]) for row in rows if row.axes["model"] == "DP"})
    return scales[0], scales[-1]


def _groups(rows: Sequence[Measurement], dataset: str) -> set[str]:
    return {str(row.axes["group"]) for row in rows if row.dataset == dataset}


def colours_of(groups: Sequence[str]) -> dict[str, str]:
    """Return a colour for each group of words; neutral is grey."""
    from attnscope.figures.palette import GROUPS, NEUTRAL, ROLES, SCORES

    others = iter((ROLES["control"], ROLES["hard"], SCORES["gold"], ROLES["mixed"]))
    # The most words of a corpus are neutral: they lie below the others.
    order = sorted(groups, key=lambda name: name != "neutral")
    return {name: GROUPS.get(name) or next(others, NEUTRAL) for name in order}


def _panel(
    rows: Sequence[Measurement], dataset: str, score: str, scale: float, title: str = ""
) -> alt.LayerChart:
    """Draw each word as a point: groups side by side, words in the order of their draw."""
    import altair as alt

    from attnscope.figures.charts import Axis, Guide, Panel, points

    mine = [row for row in rows if row.dataset == dataset and row.axes["lambda"] == scale]
    groups = list(dict.fromkeys(str(row.axes["group"]) for row in mine))
    count = max((int(row.axes["place"]) for row in mine), default=0) + 1
    dots = [
        {
            "x": groups.index(str(row.axes["group"])) + 0.1 + 0.8 * int(row.axes["place"]) / count,
            "y": row.found["polarity"] if score == "polarity" else row.value,
            "group": str(row.axes["group"]),
        }
        for row in mine
    ]
    end = float(max(len(groups), 1))
    panel = Panel(
        Axis("", domain=(0.0, end), ticks=[]),
        Axis(_SCORES[score]),
        colours_of(groups),
        title=title or f"{dataset}, λ = {scale:g}",
        labels="none",
        guides=[Guide([(0.0, 0.0), (end, 0.0)])],
        width=max(230, 110 * len(groups)) if len(groups) > 3 else 230,
    )
    chart = points(dots, panel, x="x", y="y", group="group")
    return alt.LayerChart(layer=[*chart.layer, *_names(panel, groups)]).properties(
        width=panel.width, height=panel.height, title=chart.title
    )


def _names(panel: Any, groups: Sequence[str]) -> list[Any]:
    """Return each group's name below its words."""
    import altair as alt

    from attnscope.figures.palette import ink
    from attnscope.figures.panel import data, x_channel

    return [
        alt.Chart(data([{"x": place + 0.5}]))
        .mark_text(text=name, color=ink(panel.colours[name]), fontSize=11, baseline="top")
        .encode(x=x_channel(panel.x), y=alt.value(panel.height + 8))
        for place, name in enumerate(groups)
    ]


def _penalty(
    result: Result, plain: Sequence[Measurement], scale: float, datasets: Sequence[str]
) -> dict[str, Any]:
    from attnscope.figures.charts import beside

    held = [row for row in result.select("word", model="DP") if row.axes["penalty"]]
    panels = []
    for name in datasets:
        for told, rows in (("without penalty", plain), ("with penalty", held)):
            title = f"{name}, λ = {scale:g}, {told}"
            panels.append(_panel(rows, name, "attention", scale, title))
    return {"penalty": beside(*panels, columns=2)} if held and panels else {}


def _gaps(result: Result, dataset: str) -> alt.LayerChart:
    """Draw each seed's gap over its VᵀW: the claim is about the two quadrants of like signs."""
    from attnscope.figures.charts import Axis, Guide, Panel, points
    from attnscope.figures.palette import NEUTRAL, ROLES

    rows = [r for r in result.select("gap", dataset, model="DP", penalty=0.0) if "VW" in r.found]
    first, last = _ends(rows)
    names = {first: f"λ = {first:g}", last: f"λ = {last:g}"}
    dots = [
        {"x": row.found["VW"], "y": row.value, "group": names[float(row.axes["lambda"])]}
        for row in rows
        if float(row.axes["lambda"]) in names
    ]
    xs, ys = ([float(dot[key] or 0.0) for dot in dots] for key in ("x", "y"))
    wide, high = (1.1 * max(map(abs, values)) or 1.0 for values in (xs, ys))
    panel = Panel(
        Axis("V·W after training", domain=(-wide, wide)),
        Axis("gap of a, positive over negative (s.d.)", domain=(-high, high)),
        {names[last]: ROLES["hard"], names[first]: NEUTRAL},
        title=dataset,
        guides=[Guide([(-wide, 0.0), (wide, 0.0)]), Guide([(0.0, -high), (0.0, high)])],
    )
    return points(dots, panel, x="x", y="y", group="group")


def _aucs(result: Result, dataset: str) -> alt.LayerChart:
    from attnscope.figures.charts import Axis, dots_with_intervals

    rows = result.select("AUC(attention)", dataset)
    groups = list(dict.fromkeys(str(row.axes["group"]) for row in rows))
    tints, lines, colours = colours_of(groups), [], {}
    for row in rows:
        penalised = ", penalty" if row.axes["penalty"] else ""
        context = ", in context" if row.axes["reading"] != "alone" else ""
        cell = f"{row.axes['model']}, λ = {row.axes['lambda']:g}{penalised}{context}"
        label = f"{cell}: {row.axes['group']}"
        colours[label] = tints[str(row.axes["group"])]
        lines.append({"label": label, **row.model_dump(include={"value", "low", "high"})})
    axis = Axis("AUC of a over neutral words", domain=(0, 1))
    return dots_with_intervals(
        [line | {"published": None} for line in lines],
        axis,
        label="label",
        colours=colours,
        title=dataset,
    )
