"""Figure 2 for each sentence: the probability that each word alone would give, model by model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attnscope.recipes.recipe import Charts, Logged
from attnscope.recipes.tutek.colours import LABELS, MODELS
from attnscope.runs.result import Measurement, Result

if TYPE_CHECKING:
    import altair as alt

_TITLES = {
    "sure": "a sentence that the base model is sure of",
    "long": "a long sentence",
    "unsure": "a sentence that the base model is not sure of",
    "regularised surer": "a sentence that the tied model is surer of",
    "given": "the sentence given",
}
_STEP, _HEIGHT = 30, 190  # pixels


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw a corpus' sentences one below the other; dotted lines are the models' probabilities."""
    from attnscope.figures.charts import beside

    charts: dict[str, Any] = {}
    for dataset in dict.fromkeys(row.dataset for row in result.select("confidence")):
        titles = dict.fromkeys(
            str(row.axes["sentence"]) for row in result.select("confidence", dataset)
        )
        panels = [_sentence(result, dataset, title) for title in titles]
        charts[f"fig2-{dataset}"] = beside(*panels, columns=1, title=dataset)
    return charts


def _sentence(result: Result, dataset: str, title: str) -> alt.LayerChart:
    import altair as alt

    from attnscope.figures.panel import data

    rows = result.select("word_probability", dataset, sentence=title)
    own = result.select("confidence", dataset, sentence=title)
    labels = [_name(row, own) for row in own]
    tints = [MODELS[str(row.axes["model"])] for row in own]
    count = 1 + max(int(row.axes["place"]) for row in rows)
    colour = alt.Color(
        "model:N",
        scale=alt.Scale(domain=labels, range=tints),
        legend=alt.Legend(title=None, orient="right", symbolType="stroke", symbolStrokeWidth=2),
    )
    x = alt.X(
        "place:Q",
        scale=alt.Scale(domain=[-0.5, count - 0.5], nice=False),
        axis=None,
    )
    scale = alt.Scale(domain=[0, 1])
    y = alt.Y("value:Q", scale=scale, title="probability of the predicted label")
    by_model = {str(row.axes["model"]): label for row, label in zip(own, labels, strict=True)}
    words = [
        {"place": row.axes["place"], "value": row.value, "model": by_model[str(row.axes["model"])]}
        for row in rows
    ]
    whole = [{"value": row.value, "model": label} for row, label in zip(own, labels, strict=True)]
    first = own[0].axes["model"]
    # Words are data of a text mark, never part of an expression.
    spelled = [
        {"place": row.axes["place"], "word": _printable(str(row.found["word"]))}
        for row in rows
        if row.axes["model"] == first
    ]
    lines = alt.Chart(data(words)).encode(x=x, y=y, color=colour)
    layers = [
        alt.Chart(data([{"value": 0.5}]))
        .mark_rule(color="#BBBBBB", strokeWidth=1)
        .encode(y=alt.Y("value:Q", scale=scale)),
        alt.Chart(data(whole))
        .mark_rule(strokeDash=[2, 3], strokeWidth=1.5)
        .encode(y=alt.Y("value:Q", scale=scale), color=colour),
        lines.mark_line(strokeWidth=1.6, opacity=0.8),
        lines.mark_circle(size=36, opacity=1),
        alt.Chart(data(spelled))
        .mark_text(angle=315, align="right", baseline="top", fontSize=11, dy=6, dx=-2)
        .encode(x=x, y=alt.value(_HEIGHT), text="word:N"),
    ]
    heading = alt.TitleParams(_TITLES[title], subtitle="dotted: the whole model")
    return alt.LayerChart(layer=layers).properties(
        width=_STEP * count, height=_HEIGHT, title=heading
    )


def _name(row: Measurement, own: Sequence[Measurement]) -> str:
    """Return a model's name, with what it predicts where they differ."""
    name = LABELS[str(row.axes["model"])]
    said = {str(other.found["label"]) for other in own}
    return f"{name} ({row.found['label']})" if len(said) > 1 else name


def _printable(word: str) -> str:
    return "".join(mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}" for mark in word)
