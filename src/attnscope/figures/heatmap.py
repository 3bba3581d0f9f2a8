"""A score as a picture: output words down, input words across."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from attnscope.errors import AttnscopeError, UsageError
from attnscope.figures.save import figures_available

if TYPE_CHECKING:
    import altair


@runtime_checkable
class WordMap(Protocol):
    """Values for pairs of output and input words, as every `attnscope.scores.Score` has them."""

    @property
    def name(self) -> str:
        """Printed over the picture."""
        ...

    def array(self) -> np.ndarray:
        """Return the values: example, output word, input word."""
        ...

    def words(self, example: int) -> tuple[list[str], list[str]]:
        """Return input and output words of an example."""
        ...


def heatmap(score: WordMap, example: int = 0, title: str | None = None) -> altair.LayerChart:
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
    values = score.array()
    if not 0 <= example < len(values):
        raise UsageError(f"example={example}: the score has {len(values)} examples.")
    from attnscope.figures import charts

    inputs, outputs = score.words(example)
    name = score.name.replace("_", " ")
    drawn = charts.heatmap(
        values[example, : len(outputs), : len(inputs)],
        columns=inputs,
        rows=outputs,
        x_title="input",
        y_title="output",
        value_title=name,
        title=name if title is None else title,
    )
    return charts.themed(drawn)
