"""A score as a picture: output words down, input words across."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnscope.errors import AttnscopeError, UsageError
from attnscope.figures.save import figures_available
from attnscope.scores.score import Score

if TYPE_CHECKING:
    import altair


def heatmap(score: Score, example: int = 0, title: str | None = None) -> altair.LayerChart:
    """Draw one example of a score.

    Parameters
    ----------
    score
        Any score, for example ``load("demo").score("attention", "…")``.
    example
        Which example of its batch.
    title
        Over the picture; by default the score's name.

    Returns
    -------
    altair.LayerChart
        Shown by a notebook; ``.save("attention.svg")`` (or .png, .html) writes it.
    """
    notice = figures_available()
    if notice:
        raise AttnscopeError(notice)
    if not 0 <= example < len(score.batch):
        raise UsageError(f"example={example}: the score has {len(score.batch)} examples.")
    from attnscope.figures import charts

    inputs, outputs = score.words(example)
    values = score.array()[example, : len(outputs), : len(inputs)]
    drawn = charts.heatmap(
        values,
        columns=inputs,
        rows=outputs,
        x_title="input",
        y_title="output",
        value_title=score.name.replace("_", " "),
        title=score.name.replace("_", " ") if title is None else title,
    )
    return charts.themed(drawn)
