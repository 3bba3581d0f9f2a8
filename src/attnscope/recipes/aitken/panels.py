"""Names as aitken has them, and how matrices of its networks are drawn."""

from __future__ import annotations

from typing import Any

import altair as alt

from attnscope.recipes.aitken.units import TRANSLATION
from attnscope.recipes.kit import plots
from attnscope.runs.pictures import Matrix, Plane
from attnscope.runs.result import Measurement

NAMES = {"aed": "AED", "ao": "AO"}
_DATASETS = {"one-to-one-3": "one-to-one", "escan": "eSCAN"}


def name_of(record: Measurement | Matrix | Plane) -> str:
    """Return the name of a record's architecture."""
    return NAMES[str(record.axes["model"])]


def dataset_name(dataset: str) -> str:
    """Return a data set's name as the paper has it."""
    if dataset.endswith(TRANSLATION):
        return "English–French"
    return _DATASETS.get(dataset, dataset)


def matrix_panel(
    picture: Matrix,
    title: str,
    *,
    value_title: str = "attention",
    domain: tuple[float, float] = (0.0, 1.0),
    **options: Any,
) -> alt.LayerChart:
    """Draw a matrix with its labels, by default one of weights."""
    return plots.matrix(picture, title=title, value_title=value_title, domain=domain, **options)


def readout_panel(matrix: Matrix, title: str, **options: Any) -> alt.LayerChart:
    """Draw the products of readouts with input components, the least one lightest."""
    known = [value for line in matrix.values for value in line if value is not None]
    return matrix_panel(
        matrix,
        title,
        value_title="product",
        x_title="input component",
        y_title="readout",
        domain=(min(known), max(known)),
        **options,
    )
