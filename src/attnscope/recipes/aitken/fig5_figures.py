"""Figure 5 in the paper's arrangement, and what the paper says without drawing it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attnscope.figures.palette import ARCHITECTURES, NEUTRAL
from attnscope.recipes.aitken.escan_figures import (
    NAMES,
    dataset_name,
    readout_products,
    term_symbols,
)
from attnscope.recipes.aitken.fig5_measure import OFFSETS, SHADES
from attnscope.recipes.aitken.shared_claims import ESCAN, MU_MU, ONE_TO_ONE, THREE, USUAL, kind_of
from attnscope.recipes.recipe import Charts, Logged
from attnscope.runs.result import Measurement, Result

if TYPE_CHECKING:
    import altair as alt

# Dark, medium and light, as in the paper.
_SHADES = dict(zip(map(term_symbols, SHADES), ("#201681", "#8F90CF", "#CBCCEA"), strict=True))
# In the paper's order, then those that it does not show here.
_TASKS = ("one-to-one", "eSCAN", "English–French", "reversed", "sorting")


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw terms, offsets, variances and readouts; shares against similarity; shares by step."""
    from attnscope.figures.charts import beside

    if not result.select("term_share"):
        return {"accuracy": _accuracies(result)}
    panels = [_bars(result), _variances(result)]
    panels += [
        panel
        for dataset in (ONE_TO_ONE, ESCAN, *_texts(result))
        for model in NAMES
        if (panel := _profile(result, dataset, model)) is not None
    ]
    panels += [_maxima(result, model) for model in NAMES if _of(result, "offset_error", model)]
    panels += [
        readout_products(
            _of(result, "readout_product", model),
            f"d  eSCAN {NAMES[model]}: readouts",
            cell=34,
            value_format=".1f",
        )
        for model in NAMES
        if _of(result, "dictionary", model)
    ]
    forms = [_similarity(result, form) for form in ("raw", "centred")]
    charts: dict[str, Any] = {
        "fig5": beside(*panels, columns=2),
        "similarity": beside(*forms, columns=2),
        "shares": _shares(result),
        "accuracy": _accuracies(result),
    }
    steps = [_by_step(result, model) for model in NAMES if _of(result, "term_share_at", model)]
    if steps:
        charts["steps"] = beside(*steps)
    return charts


def _texts(result: Result) -> list[str]:
    """Return the corpora that were translated."""
    return list(dict.fromkeys(row.dataset for row in result.select("width_change")))


def _accuracies(result: Result) -> alt.LayerChart:
    """Draw the mean accuracy of every kind of network, accepted or not."""
    from attnscope.figures.charts import Axis, dots_with_intervals

    rows = _labelled(result.select("word_accuracy"))
    axis = Axis("word accuracy", domain=(0, 1))
    return dots_with_intervals(rows, axis, label="label", title="Accuracy of all runs")


def _of(
    result: Result, name: str, model: str, dataset: str = ESCAN, **axes: Any
) -> list[Measurement]:
    return result.select(name, dataset, model=model, cell="gru", attention="dot", **axes)


def _label(row: Measurement) -> str:
    """Return task and architecture in words, and the kind where it is not the usual one."""
    model, cell, attention = kind_of(row).split()
    others = [cell.upper()] * (cell != "gru") + [attention] * (attention != "dot")
    return " ".join([_task(row), NAMES[model], *others])


def _task(row: Measurement) -> str:
    name = dataset_name(row.dataset)
    return next((task for task in _TASKS if name.startswith(task)), name)


def _ordered(rows: Sequence[Measurement]) -> list[Measurement]:
    """Return rows by task; the usual networks of all tasks come before the other kinds."""

    def place(row: Measurement) -> tuple[bool, int]:
        task = _task(row)
        return kind_of(row) not in USUAL, _TASKS.index(task) if task in _TASKS else 2

    return sorted(rows, key=place)


def _labelled(rows: Sequence[Measurement]) -> list[dict[str, Any]]:
    return [{"label": _label(row), **row.model_dump()} for row in _ordered(rows)]


def _bars(result: Result) -> alt.LayerChart:
    """Draw the three shades of every task and architecture as a bar."""
    import altair as alt

    from attnscope.figures.panel import data

    sums: dict[tuple[str, str], float] = {}
    rows = [row for row in result.select("term_share", form="raw") if row.axes["term"] != THREE]
    for row in _ordered(rows):
        term = str(row.axes["term"])
        medium = term in ("muD.chiE", "muD.deltahE")
        shade = term if term == MU_MU else list(SHADES)[1 if medium else 2]
        place = _label(row), term_symbols(shade)
        sums[place] = sums.get(place, 0.0) + (row.value or 0.0)
    order = list(dict.fromkeys(label for label, _ in sums))
    values = [
        {"label": label, "shade": shade, "share": share, "order": list(_SHADES).index(shade)}
        for (label, shade), share in sums.items()
    ]
    chart = alt.Chart(data(values)).mark_bar(size=20)
    bars = chart.encode(
        y=alt.Y("label:N", sort=order, title=None, axis=alt.Axis(labelLimit=260, ticks=False)),
        x=alt.X("share:Q", title="share of the largest alignments", scale=alt.Scale(domain=[0, 1])),
        color=alt.Color(
            "shade:N",
            scale=alt.Scale(domain=list(_SHADES), range=list(_SHADES.values())),
            legend=alt.Legend(title=None, orient="bottom", columns=1, labelLimit=300),
        ),
        order="order:Q",
    )
    return alt.LayerChart(layer=[bars]).properties(
        width=260, height=alt.Step(26), title=alt.TitleParams("a  Terms of the alignment")
    )


def _profile(result: Result, dataset: str, model: str) -> alt.LayerChart | None:
    """Draw softmax(μ^D·μ^E), scaled in every row, against the offset."""
    from attnscope.figures.charts import heatmap

    cells = _of(result, "temporal_profile", model, dataset)
    if not cells:
        return None
    steps = max(int(row.axes["step"]) for row in cells)
    matrix: list[list[float | None]] = [[None] * len(OFFSETS) for _ in range(steps)]
    for row in cells:
        matrix[int(row.axes["step"]) - 1][int(row.axes["offset"]) - OFFSETS.start] = row.value
    return heatmap(
        matrix,
        columns=[str(offset) for offset in OFFSETS],
        rows=[str(step + 1) for step in range(steps)],
        x_title="offset t − s",
        y_title="decoder step s",
        value_title="scaled softmax μ·μ",
        title=f"b  {_label(cells[0])}",
        domain=(0.0, 1.0),
        cell=16,
    )


def _maxima(result: Result, model: str) -> alt.LayerChart:
    """Draw the maximum's offset on eSCAN beside the corpus' two lines."""
    from attnscope.figures.charts import Axis, Guide, Panel, band

    rows = _rows(_of(result, "peak_offset", model), "step", NAMES[model])
    last = max(int(row["x"]) for row in rows)
    guides = [
        Guide(
            [
                (float(row.axes["step"]), row.value or 0.0)
                for row in result.select("corpus_offset", ESCAN, line=line)
                if int(row.axes["step"]) <= last
            ],
            f"the corpus,\n{said}",
        )
        for line, said in (("code", "code's line"), ("exact", "exact"))
    ]
    panel = Panel(
        Axis("decoder step s", domain=(1, last)),
        Axis("offset t − s of the maximum"),
        {NAMES[model]: ARCHITECTURES[NAMES[model]]},
        f"b  eSCAN {NAMES[model]}: the maximum of μ·μ",
        guides=guides,
    )
    return band(rows, panel, x="x", group="group")


def _variances(result: Result) -> alt.LayerChart:
    from attnscope.figures.charts import Axis, dots_with_intervals

    rows = _labelled(result.select("variance_drop"))
    axis = Axis("share of a word's variance that μ takes away", domain=(0, 1))
    return dots_with_intervals(rows, axis, label="label", title="c  Word variance")


def _similarity(result: Result, form: str) -> alt.LayerChart:
    """Draw the share of μ^D·μ^E against the similarity of attention to its mean."""
    from attnscope.figures.charts import Axis, Panel, points

    shares = {
        (row.dataset, kind_of(row)): row
        for row in result.select("term_share", form=form, term=MU_MU)
    }
    rows, colours = [], {}
    for row in _ordered(result.select("attention_similarity")):
        share = shares[row.dataset, kind_of(row)]
        rows.append({"x": row.value, "group": _label(row), **share.model_dump()})
        pair = _COLOURS.get(_task(row), _COLOURS["English–French"])
        colours[_label(row)] = pair[list(NAMES).index(str(row.axes["model"]))]
    panel = Panel(
        Axis("overlap of a sequence's attention with the mean attention"),
        Axis("share of μ·μ", domain=(0, 1)),
        colours,
        {"raw": "Terms as they are", "centred": "Row-centred terms"}[form],
        labels="legend",
    )
    chart = points(rows, panel, x="x", y="value", group="group", low="low", high="high")
    for layer in chart.layer:
        layer.encoding.color["legend"]["columns"] = 2
    return chart


# Dark for AED, light for AO.
_COLOURS = {
    "one-to-one": ("#0072B2", "#56B4E9"),
    "reversed": ("#6B1A28", "#CC79A7"),
    "sorting": ("#603801", "#E69F00"),
    "eSCAN": ("#00563E", "#009E73"),
    "English–French": ("#201681", "#8F90CF"),
}


def _shares(result: Result) -> alt.LayerChart:
    from attnscope.figures.charts import Axis, dots_with_intervals

    names = {MU_MU: "μ·μ", THREE: "μ·μ + μ·χ + μ·Δh"}
    rows = [
        {"label": f"{_label(row)}, {form}: {name}", **row.model_dump()}
        for form in ("raw", "centred")
        for term, name in names.items()
        for row in _ordered(result.select("term_share", form=form, term=term))
    ]
    axis = Axis("share of the largest alignments", domain=(0, 1))
    return dots_with_intervals(rows, axis, label="label", title="Shares, raw and row-centred")


def _by_step(result: Result, model: str) -> alt.LayerChart:
    from attnscope.figures.charts import Axis, Panel, band

    colours = {**_SHADES, list(_SHADES)[2]: NEUTRAL}  # The light shade is too light for a line.
    rows = [
        row
        for shade, name in zip(SHADES, _SHADES, strict=True)
        for row in _rows(_of(result, "term_share_at", model, shade=shade), "step", name)
    ]
    panel = Panel(
        Axis("decoder step s"),
        Axis("share", domain=(0, 1)),
        colours,
        f"eSCAN {NAMES[model]}: shares by decoder step",
    )
    return band(rows, panel, x="x", group="group")


def _rows(rows: Sequence[Measurement], axis: str, group: str) -> list[dict[str, Any]]:
    """Return curves with their intervals; without one a band is as thin as its line."""
    return [
        {
            "x": row.axes[axis],
            "value": row.value,
            "low": row.value if row.low is None else row.low,
            "high": row.value if row.high is None else row.high,
            "group": group,
        }
        for row in rows
    ]
