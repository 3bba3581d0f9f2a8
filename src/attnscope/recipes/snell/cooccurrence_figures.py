"""Figures 1, 4, 5 and 8, drawn from the counts in the result."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any

import altair as alt

from attnscope.figures.charts import Axis, beside, dots_with_intervals, heatmap
from attnscope.figures.palette import GROUPS, NEUTRAL
from attnscope.runs.result import Measurement, Result


def fig1(result: Result) -> Any:
    """Draw what becomes of the counts in one sentence pair: C, Trans, alignment."""
    panels = {
        "count": ("Count table C (Eq. 16)", "C", ".1f"),
        "translation": ("Trans(output | input) (Eq. 17)", "Trans", ".2f"),
        "alignment": ("Alignment of each output (Eq. 19)", "alignment", ".2f"),
    }
    return beside(
        *(
            _words(
                result.select(name, "grammar-translation"),
                x_title="English output word",
                y_title="German input word",
                title=title,
                value_title=value_title,
                value_format=value_format,
            )
            for name, (title, value_title, value_format) in panels.items()
        )
    )


def _words(rows: Sequence[Measurement], **options: Any) -> Any:
    """Draw an example's table, input words down and output words across."""
    inputs = {int(row.axes["place"]): str(row.axes["input"]) for row in rows}
    outputs = {int(row.axes["slot"]): str(row.axes["output"]) for row in rows}
    cells = {(row.axes["place"], row.axes["slot"]): row.value for row in rows}
    table = [[cells[place, slot] for slot in outputs] for place in inputs]
    return heatmap(
        table, columns=list(outputs.values()), rows=list(inputs.values()), cell=38, **options
    )


def fig4(result: Result) -> Any:
    """Draw the table under permutations beside the control's, in the same colours."""
    length, types = result.config["letters"], result.config["control_letters"]
    return beside(
        _letters(result, "permutations", f"Permutations of {length} words", 1 / length),
        _letters(result, "control", f"Control: {length} of {types} words", 1 / length),
    )


def fig8(result: Result) -> Any:
    """Draw the table under the mixture of permutations of two sets."""
    length = result.config["letters"]
    title = f"Permutations of one of two sets of {length} words"
    return _letters(result, "mixture", title, 1 / (2 * length))


def _letters(result: Result, role: str, title: str, highest: float) -> Any:
    rows = result.select("count_per_sentence", role=role)
    size = 1 + max(int(row.axes["input"]) for row in rows)
    cells = {(row.axes["input"], row.axes["output"]): row.value for row in rows}
    table = heatmap(
        [[cells[i, o] for o in range(size)] for i in range(size)],
        columns=[f"{name}′" for name in ascii_uppercase[:size]],
        rows=list(ascii_uppercase[:size]),
        x_title="output word",
        y_title="input word",
        value_title="C per sentence",
        domain=(0, highest),
        value_format=".3f",
        cell=40,
    )
    subtitle = f"a sample of {rows[0].n:,} sentences".replace(",", "\N{NO-BREAK SPACE}")
    return table.properties(title=alt.TitleParams(title, subtitle=subtitle))


def fig5(result: Result) -> Any:
    """Draw the polarity of words, and below it the alignment of one review's label."""
    groups = GROUPS | {"frequent": NEUTRAL}
    rows = result.select("polarity")
    colours = {str(row.axes["word"]): groups[str(row.axes["group"])] for row in rows}
    words = dots_with_intervals(
        [
            {"word": row.axes["word"], "value": row.value, "low": row.low, "high": row.high}
            for row in rows
        ],
        Axis("Trans(positive | word)", domain=(-0.03, 1.03), ticks=(0, 0.2, 0.4, 0.6, 0.8, 1)),
        label="word",
        colours=colours,
    )
    shown = result.config["shown_words"]
    subtitle = f"{shown} most positive, frequent and negative words; 95 % intervals"
    words = words.properties(title=alt.TitleParams("Word polarity (Eq. 17)", subtitle=subtitle))
    return beside(words, _review(result), columns=1)


def _review(result: Result) -> Any:
    rows = result.select("alignment", "grammar-sentiment")
    return heatmap(
        [[row.value for row in rows]],
        columns=[str(row.axes["input"]) for row in rows],
        rows=[str(rows[0].axes["output"])],
        x_title="word of a review",
        y_title="label",
        value_title="alignment",
        title="Alignment of a review's label (Eq. 19)",
        value_format=".2f",
        cell=35,
    )
