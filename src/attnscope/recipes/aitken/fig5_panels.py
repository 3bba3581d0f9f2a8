"""Figure 5 in the paper's arrangement, and what the paper says without drawing it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from attnscope.analysis.alignment_terms import MU_MU
from attnscope.analysis.measures.terms import THREE
from attnscope.claims.symbols import product_in_figures
from attnscope.figures.charts import Axis, Guide, Panel, beside, points
from attnscope.figures.palette import ARCHITECTURES, NEUTRAL
from attnscope.figures.panel import data
from attnscope.recipes.aitken.claims import ESCAN, ONE_TO_ONE, USUAL, kind_of
from attnscope.recipes.aitken.panels import (
    NAMES,
    dataset_name,
    matrix_panel,
    name_of,
    readout_panel,
)
from attnscope.recipes.kit.lab import Logged
from attnscope.recipes.kit.plots import band, datasets, dots, ends
from attnscope.recipes.recipe import Charts
from attnscope.runs.pictures import Matrix
from attnscope.runs.result import Measurement, Result

# Places of the nine terms in the three shades of Fig. 5a: dark, medium and light.
SHADES = {MU_MU: (0,), "muD.chiE+muD.deltahE": (1, 2), "the other six": tuple(range(3, 9))}
_SHADES = dict(zip(map(product_in_figures, SHADES), ("#201681", "#8F90CF", "#CBCCEA"), strict=True))
# In the paper's order, then those that it does not show here.
_TASKS = ("one-to-one", "eSCAN", "English–French", "reversed", "sorting")
# Dark for AED, light for AO.
_COLOURS = {
    "one-to-one": ("#0072B2", "#56B4E9"),
    "reversed": ("#6B1A28", "#CC79A7"),
    "sorting": ("#603801", "#E69F00"),
    "eSCAN": ("#00563E", "#009E73"),
    "English–French": ("#201681", "#8F90CF"),
}
_OF_LARGEST = Axis("share of the largest alignments", domain=(0, 1))


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw terms, offsets, variances and readouts; shares against similarity; shares by step."""
    if not result.select("term_share"):
        return {"accuracy": _accuracies(result)}
    panels = [_bars(result), _variances(result), *_profiles(result)]
    panels += [_maxima(result, model) for model in NAMES if _of(result, "offset_error", model)]
    for matrix in result.select_pictures(Matrix, "readout_product", ESCAN):
        title = f"d  eSCAN {name_of(matrix)}: readouts"
        panels.append(readout_panel(matrix, title, cell=34, value_format=".1f"))
    charts: dict[str, Any] = {
        "fig5": beside(*panels, columns=2),
        "shares": _shares(result),
        "accuracy": _accuracies(result),
    }
    # Of too few tasks there is no relation, and no picture of one.
    if result.select("share_similarity_spearman"):
        forms = [_similarity(result, form) for form in ("raw", "centred")]
        charts["similarity"] = beside(*forms, columns=2)
    steps = [_by_step(result, model) for model in NAMES if _of(result, "term_share_at", model)]
    if steps:
        charts["steps"] = beside(*steps)
    return charts


def _of(result: Result, name: str, model: str) -> list[Measurement]:
    """Return the measurements of the usual network on eSCAN."""
    return result.select(name, ESCAN, model=model, cell="gru", attention="dot")


def _label(row: Measurement | Matrix) -> str:
    """Return task and architecture in words, and the kind where it is not the usual one."""
    model, cell, attention = kind_of(row.axes).split()
    others = [cell.upper()] * (cell != "gru") + [attention] * (attention != "dot")
    return " ".join([_task(row), NAMES[model], *others])


def _task(row: Measurement | Matrix) -> str:
    name = dataset_name(row.dataset)
    return next((task for task in _TASKS if name.startswith(task)), name)


def _ordered(rows: Sequence[Measurement]) -> list[Measurement]:
    """Return rows by task; the usual networks of all tasks come before the other kinds."""

    def place(row: Measurement) -> tuple[bool, int]:
        task = _task(row)
        return kind_of(row.axes) not in USUAL, _TASKS.index(task) if task in _TASKS else 2

    return sorted(rows, key=place)


def _accuracies(result: Result) -> alt.LayerChart:
    """Draw the mean accuracy of every kind of network, accepted or not."""
    rows = _ordered(result.select("word_accuracy"))
    axis = Axis("word accuracy", domain=(0, 1))
    return dots(rows, axis, label=_label, title="Accuracy of all runs")


def _variances(result: Result) -> alt.LayerChart:
    rows = _ordered(result.select("variance_drop"))
    axis = Axis("share of a word's variance that the temporal component, μ, takes", domain=(0, 1))
    return dots(rows, axis, label=_label, title="c  Word variance")


def _shares(result: Result) -> alt.LayerChart:
    rows: list[Measurement] = []
    for form in ("raw", "centred"):
        for term in (MU_MU, THREE):
            rows += _ordered(result.select("term_share", form=form, term=term))

    def label(row: Measurement) -> str:
        return f"{_label(row)}, {row.axes['form']}: {product_in_figures(str(row.axes['term']))}"

    return dots(rows, _OF_LARGEST, label=label, title="Shares, raw and row-centred")


def _bars(result: Result) -> alt.LayerChart:
    """Draw the three shades of every task and architecture as a bar."""
    sums: dict[tuple[str, str], float] = {}
    rows = [row for row in result.select("term_share", form="raw") if row.axes["term"] != THREE]
    for row in _ordered(rows):
        term = str(row.axes["term"])
        medium = term in ("muD.chiE", "muD.deltahE")
        shade = term if term == MU_MU else list(SHADES)[1 if medium else 2]
        place = _label(row), product_in_figures(shade)
        sums[place] = sums.get(place, 0.0) + row.number
    values = [
        {"label": label, "shade": shade, "share": share, "order": list(_SHADES).index(shade)}
        for (label, shade), share in sums.items()
    ]
    order = list(dict.fromkeys(label for label, _ in sums))
    bars = (
        alt.Chart(data(values))
        .mark_bar(size=20)
        .encode(
            y=alt.Y("label:N", sort=order, title=None, axis=alt.Axis(labelLimit=260, ticks=False)),
            x=alt.X("share:Q", title=_OF_LARGEST.title, scale=alt.Scale(domain=[0, 1])),
            color=alt.Color(
                "shade:N",
                scale=alt.Scale(domain=list(_SHADES), range=list(_SHADES.values())),
                legend=alt.Legend(title=None, orient="bottom", columns=1, labelLimit=300),
            ),
            order="order:Q",
        )
    )
    return alt.LayerChart(layer=[bars]).properties(
        width=260, height=alt.Step(26), title=alt.TitleParams("a  Terms of the alignment")
    )


def _profiles(result: Result) -> Iterator[alt.LayerChart]:
    """Draw softmax(μ^D·μ^E), scaled in every row, against the offset."""
    texts = datasets(result.select("width_change"))
    for dataset in (ONE_TO_ONE, ESCAN, *texts):
        for matrix in result.select_pictures(Matrix, "temporal_profile", dataset):
            yield matrix_panel(
                matrix,
                f"b  {_label(matrix)}",
                x_title="offset t − s",
                y_title="decoder step s",
                value_title="scaled softmax(μ·μ)",
                cell=16,
            )


def _maxima(result: Result, model: str) -> alt.LayerChart:
    """Draw the maximum's offset on eSCAN with the corpus' two lines."""
    rows = _of(result, "peak_offset", model)
    last = max(int(row.axes["step"]) for row in rows)
    guides = []
    for line, said in (("code", "code's line"), ("exact", "exact")):
        found = result.select("corpus_offset", ESCAN, line=line)
        places = [(float(row.axes["step"]), row.number) for row in found]
        within = [place for place in places if place[0] <= last]
        guides.append(Guide(within, f"the corpus,\n{said}"))
    panel = Panel(
        Axis("decoder step s", domain=(1, last)),
        Axis("offset t − s of the maximum"),
        {NAMES[model]: ARCHITECTURES[NAMES[model]]},
        f"b  eSCAN {NAMES[model]}: the maximum of time·time, μ·μ",
        guides=guides,
    )
    return band(rows, panel, x="step", group=lambda row: NAMES[model])


def _similarity(result: Result, form: str) -> alt.LayerChart:
    """Draw the share of μ^D·μ^E against the similarity of attention to its mean."""
    found = result.select("term_share", form=form, term=MU_MU)
    shares = {(row.dataset, kind_of(row.axes)): row for row in found}
    rows, colours = [], {}
    for row in _ordered(result.select("attention_similarity")):
        share = shares[row.dataset, kind_of(row.axes)]
        rows.append({"x": row.value, "group": _label(row), **ends(share)})
        pair = _COLOURS.get(_task(row), _COLOURS["English–French"])
        colours[_label(row)] = pair[list(NAMES).index(str(row.axes["model"]))]
    panel = Panel(
        Axis("overlap of a sequence's attention with the mean attention"),
        Axis("share of time·time, μ·μ", domain=(0, 1)),
        colours,
        {"raw": "Terms as they are", "centred": "Row-centred terms"}[form],
        labels="legend",
    )
    return points(rows, panel, x="x", y="value", group="group", low="low", high="high")


def _by_step(result: Result, model: str) -> alt.LayerChart:
    names = dict(zip(SHADES, _SHADES, strict=True))
    panel = Panel(
        Axis("decoder step s"),
        Axis("share", domain=(0, 1)),
        # The light shade is too light for a line.
        {**_SHADES, list(_SHADES)[2]: NEUTRAL},
        f"eSCAN {NAMES[model]}: shares by decoder step",
    )
    rows = _of(result, "term_share_at", model)
    return band(rows, panel, x="step", group=lambda row: names[str(row.axes["shade"])])
