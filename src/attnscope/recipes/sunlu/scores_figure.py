"""Figures 2, 3 and 4 in the paper's arrangement, the penalty's, and the side of the gap by seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from attnscope.figures.charts import Axis, Guide, Panel, beside, points
from attnscope.figures.palette import NEUTRAL, ROLES, ink
from attnscope.figures.panel import data, x_channel
from attnscope.recipes.kit import plots
from attnscope.recipes.kit.lab import Logged
from attnscope.recipes.recipe import Charts
from attnscope.recipes.sunlu.corpora import colours_of
from attnscope.recipes.sunlu.word_scores import ALONE, TITLES
from attnscope.runs.result import Measurement, Plane, Result

_BINARY = {"negative", "positive", "neutral"}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw every figure whose cells were measured."""
    planes = result.select_pictures(Plane, "word", reading=ALONE)
    scales = sorted({float(p.axes["lambda"]) for p in planes if p.axes["model"] == "DP"})
    first, last = scales[0], scales[-1]
    datasets = list(dict.fromkeys(plane.dataset for plane in planes))
    two = [plane.dataset for plane in planes if set(_groups(plane)) <= _BINARY]
    two = [name for name in datasets if name in two]
    more = [name for name in datasets if name not in two]

    def panel(dataset: str, score: str, scale: float, model: str = "DP") -> alt.LayerChart:
        axes = {"reading": ALONE, "penalty": 0.0, "model": model, "lambda": scale}
        return _words(result.picture(Plane, "word", dataset, **axes), score)

    charts: dict[str, Any] = {}
    if two:
        second = [panel(name, score, first) for score in TITLES for name in two]
        charts["fig2"] = beside(*second, columns=len(two))
    third = [panel(name, score, last) for name in two for score in TITLES]
    third += [panel(name, "attention", first) for name in more]
    charts["fig3"] = beside(*third, columns=3 if len(third) % 3 == 0 else 2)
    for model in dict.fromkeys(str(plane.axes["model"]) for plane in planes):
        if model != "DP":
            fourth = []
            for name in datasets:
                shown = TITLES if name in two else ("attention",)
                fourth += [panel(name, score, first, model) for score in shown]
            charts[f"fig4-{model}"] = beside(*fourth, columns=2, title=model)
    charts |= _penalty(result, last, two)
    if two:
        charts["gap"] = beside(*(_gaps(result, name) for name in two), columns=min(2, len(two)))
    aucs = [_aucs(result, name) for name in datasets]
    charts["auc"] = beside(*aucs, columns=min(2, len(datasets)))
    return charts


def _groups(plane: Plane) -> list[str]:
    return list(dict.fromkeys(point.group for point in plane.points))


def _words(plane: Plane, score: str, title: str = "") -> alt.LayerChart:
    """Draw each word as a point: groups side by side, words in the order of their draw."""
    groups = _groups(plane)
    members = {group: [p for p in plane.points if p.group == group] for group in groups}
    count = max(map(len, members.values()), default=1)
    dots = []
    for column, (group, words) in enumerate(members.items()):
        for place, word in enumerate(words):
            x = column + 0.1 + 0.8 * place / count
            dots.append({"x": x, "y": word.x if score == "polarity" else word.y, "group": group})
    end = float(max(len(groups), 1))
    panel = Panel(
        Axis("", domain=(0.0, end), ticks=[]),
        Axis(TITLES[score]),
        colours_of(groups),
        title=title or f"{plane.dataset}, λ = {plane.axes['lambda']:g}",
        labels="none",
        guides=[Guide([(0.0, 0.0), (end, 0.0)])],
        width=max(230, 110 * len(groups)) if len(groups) > 3 else 230,
    )
    chart = points(dots, panel, x="x", y="y", group="group")
    return alt.LayerChart(layer=[*chart.layer, *_names(panel, groups)]).properties(
        width=panel.width, height=panel.height, title=chart.title
    )


def _names(panel: Panel, groups: Sequence[str]) -> list[alt.Chart]:
    """Return each group's name below its words."""
    return [
        alt.Chart(data([{"x": place + 0.5}]))
        .mark_text(text=name, color=ink(panel.colours[name]), fontSize=11, baseline="top")
        .encode(x=x_channel(panel.x), y=alt.value(panel.height + 8))
        for place, name in enumerate(groups)
    ]


def _penalty(result: Result, scale: float, datasets: Sequence[str]) -> dict[str, Any]:
    """Draw the attention scores at the larger λ without the penalty and with it."""
    panels = []
    for name in datasets:
        planes = result.select_pictures(Plane, "word", name, model="DP", **{"lambda": scale})
        for plane in planes if len(planes) > 1 else ():
            held = "with" if plane.axes["penalty"] else "without"
            title = f"{name}, λ = {scale:g}, {held} penalty"
            panels.append(_words(plane, "attention", title))
    return {"penalty": beside(*panels, columns=2)} if panels else {}


def _gaps(result: Result, dataset: str) -> alt.LayerChart:
    """Draw each seed's gap over its VᵀW: the claim is about the two quadrants of like signs."""
    every = result.select("gap", dataset, model="DP", penalty=0.0)
    rows = [row for row in every if "VW" in row.found]
    scales = sorted(plots.axis_values(rows, "lambda"))
    names = {scale: f"λ = {scale:g}" for scale in (scales[0], scales[-1])}
    dots = [
        {"x": row.found["VW"], "y": row.number, "group": names[row.axes["lambda"]]}
        for row in rows
        if row.axes["lambda"] in names
    ]
    wide, high = (1.1 * max(abs(float(dot[key])) for dot in dots) or 1.0 for key in ("x", "y"))
    panel = Panel(
        Axis("V·W after training", domain=(-wide, wide)),
        Axis("gap of a, positive over negative (s.d.)", domain=(-high, high)),
        {names[scales[-1]]: ROLES["hard"], names[scales[0]]: NEUTRAL},
        title=dataset,
        guides=[Guide([(-wide, 0.0), (wide, 0.0)]), Guide([(0.0, -high), (0.0, high)])],
    )
    return points(dots, panel, x="x", y="y", group="group")


def _aucs(result: Result, dataset: str) -> alt.LayerChart:
    rows = result.select("AUC(attention)", dataset)
    tints = colours_of(plots.axis_values(rows, "group"))

    def label(row: Measurement) -> str:
        penalised = ", penalty" if row.axes["penalty"] else ""
        context = ", in context" if row.axes["reading"] != ALONE else ""
        cell = f"{row.axes['model']}, λ = {row.axes['lambda']:g}{penalised}{context}"
        return f"{cell}: {row.axes['group']}"

    axis = Axis("AUC of a over neutral words", domain=(0, 1))
    return plots.dots(
        rows, axis, label=label, colour=lambda row: tints[str(row.axes["group"])], title=dataset
    )
