"""Names and colours of tutek's models in all its figures, and its tables as dots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt

from attnscope.figures.charts import Axis, beside
from attnscope.figures.palette import NEUTRAL, POSITIONS, ROLES, SCORES
from attnscope.recipes.kit import plots
from attnscope.runs.result import Measurement, Result

LABELS = {
    "base": "base",
    "concat": "concat",
    "residual": "residual",
    "tying": "tying",
    "mlm": "masked words",
    "instance": "own query",
}
# The base model is red, as in the paper's figures.
MODELS = {
    "base": ROLES["hard"],
    "concat": SCORES["gold"],
    "residual": NEUTRAL,
    "tying": ROLES["mixed"],
    "mlm": ROLES["control"],
    "instance": POSITIONS["next"],
}
# The paper's marks of attention.
SIGNS = {"additive": "+", "dot": "•"}


def dot_tables(
    result: Result,
    name: str,
    columns: Mapping[str, str],
    alike: Sequence[str] = (),
    across: int | None = None,
) -> dict[str, alt.ConcatChart]:
    """Draw measurements of the models, a figure for each data set and a panel for each name.

    Parameters
    ----------
    name
        Of the figures, before their data set's.
    columns
        Names of measurements, and the titles of their axes.
    alike
        Names whose panels have the same axis, with 0 on it.
    across
        Panels in a row; all of them if not given.
    """

    def table(dataset: str) -> alt.ConcatChart:
        found = {column: in_order(result.select(column, dataset)) for column in columns}
        every = [row for rows in found.values() for row in rows]
        shared = plots.span([row for row in every if row.name in alike], room=0.04, zero=True)
        panels = []
        for column, rows in found.items():
            axis = Axis(columns[column], domain=shared if column in alike else None)
            panels.append(plots.dots(rows, axis, label=label_of, colour=colour_of, width=190))
        return beside(*panels, title=heading(dataset, every), columns=across)

    return plots.per_dataset(result, next(iter(columns)), table, name)


def heading(place: str, rows: Sequence[Measurement]) -> str:
    """Return a title that explains the marks next to the models' names."""
    present = {str(row.axes["attention"]) for row in rows}
    marks = ", ".join(f"{sign} {name}" for name, sign in SIGNS.items() if name in present)
    return f"{place} ({marks} attention)"


def in_order(rows: Sequence[Measurement]) -> list[Measurement]:
    """Sort measurements by model and attention, as the paper has them."""
    models, signs = list(MODELS), list(SIGNS)
    return sorted(
        rows,
        key=lambda row: (
            models.index(str(row.axes["model"])),
            signs.index(str(row.axes["attention"])),
        ),
    )


def label_of(row: Measurement) -> str:
    """Return a model and its attention's sign."""
    return f"{name_of(row)} {SIGNS[str(row.axes['attention'])]}"


def name_of(row: Measurement) -> str:
    """Return the name of a measurement's model."""
    return LABELS[str(row.axes["model"])]


def colour_of(row: Measurement) -> str:
    """Return the colour of a measurement's model."""
    return MODELS[str(row.axes["model"])]
