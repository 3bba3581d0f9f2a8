"""Figure 6 in the paper's arrangement: the context of 'twice', and how words hide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attnscope.figures.palette import NEUTRAL, SCORES, WORDS
from attnscope.recipes.aitken.escan_figures import NAMES, plane_panel
from attnscope.recipes.recipe import Charts, Logged
from attnscope.runs.result import Measurement, Result

if TYPE_CHECKING:
    import altair as alt

# As in the paper: black, gold, pink and grey.
_PARTS = {
    "alignment": ("the alignment", "#000000"),
    "temporal": ("μ·μ", SCORES["gold"]),
    "input-delta": ("μ·χ + μ·Δh", SCORES["proxy"]),
    "rest": ("the rest", NEUTRAL),
}
# The verb's colour, lighter.
_CONTEXTS = {
    **{word: colour for word, colour in WORDS.items() if word not in ("twice", "<eos>")},
    "run twice": "#6FB7E4",
    "walk twice": "#6CD0B0",
    "jump twice": "#C77F8D",
}
_CURVES = ("run", "left", "and", "twice")


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw the clusters of 'twice', the alignment at it, and the products by word and offset."""
    from attnscope.figures.charts import beside

    models = [model for model in NAMES if result.select("offset_product", model=model)]
    panels: list[Any] = [
        plane_panel(
            result.select("context_plane", model=model),
            f"a  {NAMES[model]}: input-delta components",
            _CONTEXTS,
        )
        for model in models
    ]
    panels += [_alignment(result, model) for model in models]
    panels += [_products(result, model) for model in models]
    panels += [_by_offset(result, model) for model in models]
    charts: dict[str, Any] = {"context": _context(result)}
    if panels:
        charts["fig6"] = beside(*panels, columns=len(models))
    return charts


def _alignment(result: Result, model: str) -> alt.LayerChart:
    from attnscope.figures.charts import Axis, Panel, band

    rows = [
        row
        for part, (name, _) in _PARTS.items()
        for row in _rows(result.select("twice_alignment", model=model, part=part), name)
    ]
    panel = Panel(
        Axis("t − s"),
        Axis("alignment at 'twice'"),
        dict(_PARTS.values()),
        f"b  {NAMES[model]}: s is the step of 'twice', T = S",
        labels="legend",
    )
    return band(rows, panel, x="x", group="group")


def _products(result: Result, model: str) -> alt.LayerChart:
    from attnscope.figures.charts import Axis, dots_with_intervals

    rows = [
        {"label": str(row.axes["word"]), **row.model_dump()}
        for row in result.select("offset_product", model=model, offset=0)
    ]
    title = f"c  {NAMES[model]}: at t = s"
    axis = Axis("(χ + Δh)·μ of the decoder")
    return dots_with_intervals(rows, axis, label="label", colours=WORDS, title=title)


def _by_offset(result: Result, model: str) -> alt.LayerChart:
    from attnscope.figures.charts import Axis, Panel, band

    rows = [
        row
        for word in _CURVES
        for row in _rows(result.select("offset_product", model=model, word=word), word)
    ]
    panel = Panel(
        Axis("offset t − s"),
        Axis("(χ + Δh)·μ of the decoder"),
        {word: WORDS[word] for word in _CURVES},
        f"d  {NAMES[model]}: by offset",
        labels="legend",
    )
    return band(rows, panel, x="x", group="group")


def _context(result: Result) -> alt.LayerChart:
    from attnscope.figures.charts import Axis, dots_with_intervals

    said = {
        "preceding_verb": "nearest verb is the one before 'twice'",
        "silhouette": "silhouette by the verb before 'twice'",
        "twice_previous": "'twice' attends to the word before it",
    }
    rows = []
    for name, text in said.items():
        for row in result.select(name):
            where = f", {row.axes['sequences']}" if "sequences" in row.axes else ""
            label = f"{NAMES[str(row.axes['model'])]}: {text}{where}"
            rows.append({"label": label, **row.model_dump()})
    return dots_with_intervals(
        rows,
        Axis("share or silhouette"),
        label="label",
        title="What is read and attended to at 'twice'",
    )


def _rows(rows: Sequence[Measurement], group: str) -> list[dict[str, Any]]:
    return [
        {
            "x": row.axes["offset"],
            "value": row.value,
            "low": row.value if row.low is None else row.low,
            "high": row.value if row.high is None else row.high,
            "group": group,
        }
        for row in rows
        if row.value is not None
    ]
