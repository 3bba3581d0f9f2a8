"""A sentence word by word: a curve for each model over the words, and its level as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt

from attnscope.figures.panel import data

_STEP, _HEIGHT = 30, 190  # pixels


def word_curves(
    words: Sequence[str],
    curves: Mapping[str, Sequence[float | None]],
    levels: Mapping[str, float],
    colours: Mapping[str, str],
    *,
    y_title: str,
    title: str = "",
    subtitle: str = "",
) -> alt.LayerChart:
    """Draw a probability for each word of a sentence, a curve a model; words stand below.

    Parameters
    ----------
    words
        Shown as they are, apart from characters that cannot be printed.
    curves
        For each model a number between 0 and 1 for each word; None is left out.
    levels
        For each model a number that is drawn as a dotted line.
    colours
        The colour of each model, in the order of the legend.
    """
    scale = alt.Scale(domain=[0, 1])
    x = alt.X("place:Q", scale=alt.Scale(domain=[-0.5, len(words) - 0.5], nice=False), axis=None)
    colour = alt.Color(
        "model:N",
        scale=alt.Scale(domain=list(colours), range=list(colours.values())),
        legend=alt.Legend(title=None, orient="right", symbolType="stroke", symbolStrokeWidth=2),
    )
    single = [
        {"place": place, "value": value, "model": model}
        for model, values in curves.items()
        for place, value in enumerate(values)
    ]
    whole = [{"value": value, "model": model} for model, value in levels.items()]
    # Words are data of a text mark, never part of an expression.
    texts = [{"place": place, "word": _printable(word)} for place, word in enumerate(words)]
    across = alt.Y("value:Q", scale=scale)
    lines = alt.Chart(data(single)).encode(
        x=x, y=alt.Y("value:Q", scale=scale, title=y_title), color=colour
    )
    half = alt.Chart(data([{"value": 0.5}])).mark_rule(color="#BBBBBB", strokeWidth=1)
    dotted = alt.Chart(data(whole)).mark_rule(strokeDash=[2, 3], strokeWidth=1.5)
    names = alt.Chart(data(texts)).mark_text(
        angle=315, align="right", baseline="top", fontSize=11, dy=6, dx=-2
    )
    layers = [
        half.encode(y=across),
        dotted.encode(y=across, color=colour),
        lines.mark_line(strokeWidth=1.6, opacity=0.8),
        lines.mark_circle(size=36, opacity=1),
        names.encode(x=x, y=alt.value(_HEIGHT), text="word:N"),
    ]
    return alt.LayerChart(layer=layers).properties(
        width=_STEP * len(words), height=_HEIGHT, title=alt.TitleParams(title, subtitle=subtitle)
    )


def _printable(word: str) -> str:
    return "".join(mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}" for mark in word)
