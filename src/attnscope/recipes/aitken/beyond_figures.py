"""Figures of `aitken/beyond`: the nine terms by architecture and head, and temporal paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attnscope.recipes.aitken.escan_figures import dataset_name, path_panel, term_symbols
from attnscope.recipes.recipe import Charts, Logged
from attnscope.runs.result import Measurement, Result

if TYPE_CHECKING:
    import altair as alt

NAMES = {"translator": "bidirectional", "transformer": "Transformer"}
FORMS = {"raw": "raw", "centred": "row-centred"}
_MU_MU = "muD.muE"


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Return the shares of all terms, those of μ^D·μ^E with intervals, and the paths."""
    from attnscope.figures.charts import beside

    datasets = list(dict.fromkeys(row.dataset for row in result.select("word_accuracy")))
    shown = [name for name in datasets if result.select("term_share", name)]
    shares = [
        _terms(result, dataset, form, title) for dataset in shown for form, title in FORMS.items()
    ]
    temporal = [_temporal(result, dataset) for dataset in shown]
    lines = [_paths(result, dataset) for dataset in shown]
    paths = [panel for line in lines for panel in line]
    # Without a network that solved its task, its accuracies are all there is to see.
    accuracies = _accuracies(result)
    return {
        "beyond": beside(*(temporal or [accuracies]), columns=3),
        "beyond-terms": beside(*(shares or [accuracies]), columns=2),
        "beyond-paths": beside(*(paths or [accuracies]), columns=max(map(len, lines), default=1)),
    }


def _label(row: Measurement) -> str:
    model = NAMES[str(row.axes["model"])]
    return f"{model}, head {row.axes['head']}" if "head" in row.axes else model


def _terms(result: Result, dataset: str, form: str, title: str) -> alt.LayerChart:
    from attnscope.figures.charts import heatmap

    lines: dict[str, dict[str, float | None]] = {}
    for row in result.select("term_share", dataset, form=form):
        lines.setdefault(_label(row), {})[str(row.axes["term"])] = row.value
    terms = [term for term in next(iter(lines.values())) if "+" not in term]
    return heatmap(
        [[line[term] for term in terms] for line in lines.values()],
        columns=[term_symbols(term) for term in terms],
        rows=list(lines),
        x_title="term, decoder·encoder",
        y_title="",
        value_title="share",
        title=f"{dataset_name(dataset)}: shares of the terms, {title}",
        domain=(0.0, 1.0),
        value_format=".2f",
        cell=30,
    )


def _temporal(result: Result, dataset: str) -> alt.LayerChart:
    rows = result.select("term_share", dataset, form="raw", term=_MU_MU)
    return _dots(rows, "share of absolute contributions", f"{dataset_name(dataset)}: μ·μ")


def _accuracies(result: Result) -> alt.LayerChart:
    rows = result.select("word_accuracy")
    labels = [f"{dataset_name(row.dataset)}, {_label(row)}" for row in rows]
    return _dots(rows, "word accuracy", "no network was accepted", labels)


def _dots(
    rows: Sequence[Measurement], axis: str, title: str, labels: Sequence[str] = ()
) -> alt.LayerChart:
    from attnscope.figures.charts import Axis, dots_with_intervals

    named: list[dict[str, Any]] = [
        {"label": label, **row.model_dump()}
        for label, row in zip(labels or [_label(row) for row in rows], rows, strict=True)
    ]
    return dots_with_intervals(named, Axis(axis, domain=(0, 1)), label="label", title=title)


def _paths(result: Result, dataset: str) -> list[alt.LayerChart]:
    """Draw the path of every head's keys and queries, of one network of each architecture."""
    rows = result.select("temporal_path", dataset)
    labels = dict.fromkeys(_label(row) for row in rows)
    return [
        path_panel(
            [row for row in rows if _label(row) == label], f"{dataset_name(dataset)}: {label}"
        )
        for label in labels
    ]
