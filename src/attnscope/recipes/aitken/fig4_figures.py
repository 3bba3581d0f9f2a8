"""Figure 4 in the paper's arrangement, AED above and AO below, and the numbers that go with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attnscope.figures.palette import ARCHITECTURES
from attnscope.recipes.aitken.escan_figures import (
    NAMES,
    path_panel,
    readout_products,
    temporal_panel,
    term_symbols,
)
from attnscope.recipes.aitken.fig5_measure import TERM_NAMES
from attnscope.recipes.recipe import Charts, Logged
from attnscope.runs.result import Measurement, Result

if TYPE_CHECKING:
    import altair as alt

# A hue for each of the decoder's parts, lighter from the encoder's temporal to its delta part.
_TERM_COLOURS = (
    *("#201681", "#5B5BB5", "#9C9DD6"),
    *("#8F3B00", "#D5722E", "#EBAF84"),
    *("#00563E", "#009E73", "#74C9AF"),
)


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw an example, temporal paths with their attention, readouts; terms; offsets; numbers."""
    from attnscope.figures.charts import beside

    panels: list[Any] = []
    for model, name in NAMES.items():
        panels += [
            _example(result, model, f"a  {name}: attention on a sentence"),
            path_panel(
                result.select("temporal_path", model=model), f"b  {name}: temporal components"
            ),
            temporal_panel(result, model, f"b  {name}: attention of temporal components"),
            readout_products(
                result.select("readout_product", model=model),
                f"c  {name}: readouts and input components",
                cell=14,
            ),
        ]
    return {
        "fig4": beside(*panels, columns=4),
        "terms": beside(*(_terms(result, model) for model in NAMES), columns=2),
        "offsets": beside(
            _by_step(result, "peak_offset", "offset t − s of the maximum", "where it is"),
            _by_step(result, "offset_width", "width (standard deviation of t)", "how wide it is"),
            _by_step(result, "diagonal_mass", "attention at t = s", "how diagonal it is"),
            columns=3,
        ),
        "numbers": beside(_numbers(result), _shares(result)),
    }


def _example(result: Result, model: str, title: str) -> alt.LayerChart:
    """Draw the attention on one sentence and what the network writes."""
    from attnscope.figures.charts import heatmap

    inputs, outputs = (
        [str(row.axes["word"]) for row in result.select("example", model=model, side=side)]
        for side in ("input", "output")
    )
    matrix = [[0.0] * len(inputs) for _ in outputs]
    for row in result.select("attention", model=model):
        matrix[int(row.axes["out"])][int(row.axes["inp"])] = row.value or 0.0
    return heatmap(
        matrix,
        columns=inputs,
        rows=outputs,
        x_title="input",
        y_title="output",
        value_title="attention",
        title=title,
        domain=(0.0, 1.0),
        cell=18,
    )


def _terms(result: Result, model: str) -> alt.LayerChart:
    """Draw the nine shares at each decoder step, of terms as they are."""
    from attnscope.figures.charts import Axis, Panel, band

    rows = [
        row
        for term, name in zip(TERM_NAMES, map(term_symbols, TERM_NAMES), strict=True)
        for row in _curve(result.select("term_share_at", model=model, term=term), name)
    ]
    panel = Panel(
        Axis("decoder step s"),
        Axis("share of the largest alignments", domain=(0, 1)),
        dict(zip(map(term_symbols, TERM_NAMES), _TERM_COLOURS, strict=True)),
        f"{NAMES[model]}: the nine terms (decoder·encoder)",
        labels="legend",
        height=240,
    )
    return band(rows, panel, x="x", group="group")


def _by_step(result: Result, name: str, title: str, what: str) -> alt.LayerChart:
    """Draw a number of the attention that temporal components alone give, step by step."""
    from attnscope.figures.charts import Axis, Panel, band

    rows = [
        row
        for model, label in NAMES.items()
        for row in _curve(result.select(name, model=model), label)
    ]
    heading = f"softmax(μ·μ): {what}"
    panel = Panel(Axis("decoder step s"), Axis(title), ARCHITECTURES, heading)
    return band(rows, panel, x="x", group="group")


def _numbers(result: Result) -> alt.LayerChart:
    from attnscope.figures.charts import Axis, dots_with_intervals

    said = {
        "token_accuracy": "accuracy",
        "dictionary": "readouts that align with their translation",
        "variance_drop": "word variance that μ takes away",
        "attention_similarity": "overlap with the mean attention",
        "delta_share": "share of Δh in h − μ",
    }
    rows = [
        {"label": _label(row, label), **row.model_dump()}
        for name, label in said.items()
        for row in result.select(name)
    ]
    axis = Axis("share", domain=(0, 1))
    return dots_with_intervals(rows, axis, label="label", title="Translators")


def _label(row: Measurement, label: str) -> str:
    more = [str(row.axes[axis]) for axis in ("reads", "side") if axis in row.axes]
    return ", ".join([f"{NAMES[str(row.axes['model'])]}: {label}", *more])


def _shares(result: Result) -> alt.LayerChart:
    from attnscope.figures.charts import Axis, dots_with_intervals

    rows = [
        {"label": f"{label} {term_symbols(term)}, {form}", **row.model_dump()}
        for model, label in NAMES.items()
        for form in ("raw", "centred")
        for term in TERM_NAMES
        for row in result.select("term_share", model=model, form=form, term=term)
    ]
    axis = Axis("share of the largest alignments", domain=(0, 1))
    return dots_with_intervals(rows, axis, label="label", title="Terms, raw and row-centred")


def _curve(rows: Sequence[Measurement], group: str) -> list[dict[str, Any]]:
    """Return a curve with its intervals; without one a band is as thin as its line."""
    return [
        {
            "x": row.axes["step"],
            "value": row.value,
            "low": row.value if row.low is None else row.low,
            "high": row.value if row.high is None else row.high,
            "group": group,
        }
        for row in rows
    ]
