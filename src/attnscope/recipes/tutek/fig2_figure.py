"""Figure 2 for each sentence: the probability that each word alone would give, model by model."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from attnscope.figures.charts import beside
from attnscope.figures.panel import data
from attnscope.recipes.kit import plots
from attnscope.recipes.kit.lab import Logged
from attnscope.recipes.recipe import Charts
from attnscope.recipes.tutek.figures import LABELS, MODELS
from attnscope.runs.result import Matrix, Measurement, Result

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

    def sentences(dataset: str) -> alt.ConcatChart:
        titles = plots.axis_values(result.select("confidence", dataset), "sentence")
        panels = [_sentence(result, dataset, title) for title in titles]
        return beside(*panels, columns=1, title=dataset)

    return plots.per_dataset(result, "confidence", sentences, "fig2")


def _sentence(result: Result, dataset: str, title: str) -> alt.LayerChart:
    own = result.select("confidence", dataset, sentence=title)
    words = result.select_pictures(Matrix, "word_probability", dataset, sentence=title)
    names = {str(row.axes["model"]): _name(row, own) for row in own}
    spelled = [_printable(str(word)) for word in words[0].columns]
    scale = alt.Scale(domain=[0, 1])
    x = alt.X("place:Q", scale=alt.Scale(domain=[-0.5, len(spelled) - 0.5], nice=False), axis=None)
    y = alt.Y("value:Q", scale=scale, title="probability of the predicted label")
    colour = alt.Color(
        "model:N",
        scale=alt.Scale(domain=list(names.values()), range=[MODELS[model] for model in names]),
        legend=alt.Legend(title=None, orient="right", symbolType="stroke", symbolStrokeWidth=2),
    )
    single = [
        {"place": place, "value": value, "model": names[str(matrix.axes["model"])]}
        for matrix in words
        for place, value in enumerate(matrix.values[0])
    ]
    whole = [{"value": row.value, "model": names[str(row.axes["model"])]} for row in own]
    # Words are data of a text mark, never part of an expression.
    texts = [{"place": place, "word": word} for place, word in enumerate(spelled)]
    lines = alt.Chart(data(single)).encode(x=x, y=y, color=colour)
    layers = [
        alt.Chart(data([{"value": 0.5}]))
        .mark_rule(color="#BBBBBB", strokeWidth=1)
        .encode(y=alt.Y("value:Q", scale=scale)),
        alt.Chart(data(whole))
        .mark_rule(strokeDash=[2, 3], strokeWidth=1.5)
        .encode(y=alt.Y("value:Q", scale=scale), color=colour),
        lines.mark_line(strokeWidth=1.6, opacity=0.8),
        lines.mark_circle(size=36, opacity=1),
        alt.Chart(data(texts))
        .mark_text(angle=315, align="right", baseline="top", fontSize=11, dy=6, dx=-2)
        .encode(x=x, y=alt.value(_HEIGHT), text="word:N"),
    ]
    heading = alt.TitleParams(_TITLES[title], subtitle="dotted: the whole model")
    return alt.LayerChart(layer=layers).properties(
        width=_STEP * len(spelled), height=_HEIGHT, title=heading
    )


def _name(row: Measurement, own: Sequence[Measurement]) -> str:
    """Return a model's name, with the label it predicts where they differ."""
    name = LABELS[str(row.axes["model"])]
    labels = {str(other.found["label"]) for other in own}
    return f"{name} ({row.found['label']})" if len(labels) > 1 else name


def _printable(word: str) -> str:
    return "".join(mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}" for mark in word)
