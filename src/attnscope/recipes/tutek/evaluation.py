"""Trained models on held-out texts: read word by word, and in tables of models as dots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from attnscope.analysis.token_probabilities import TokenProbabilities, compute_token_probabilities
from attnscope.claims.printed_cells import printed_as
from attnscope.data.corpus import Corpus
from attnscope.data.source import Source
from attnscope.figures.palette import CLASSIFIERS
from attnscope.recipes.kit import corpora, plots
from attnscope.recipes.kit.sheet import Sheet
from attnscope.recipes.tutek.units import choosing_count
from attnscope.runs.result import Measurement
from attnscope.training.loaded import loaded_model
from attnscope.training.trained_unit import TrainedUnit

# Names in figures of table 1's columns, and of base models whose query is computed from the text
# (footnote 8).
LABELS = {
    "base": "base",
    "concat": "concat",
    "residual": "residual",
    "tying": "tying",
    "mlm": "masked words",
    "instance": "own query",
}
# The paper's marks of attention.
SIGNS = {"additive": "+", "dot": "•"}


def held_out(source: Source) -> corpora.HeldOut:
    """Return the examples that are measured."""
    assert isinstance(source, Corpus)
    return corpora.held_out(source, choosing_count(source))


def sheet_of(
    source: Corpus, seeds: Iterable[int] = (), table: str = "", *, percent: bool = False
) -> Sheet:
    """Return the sheet of a corpus for one of the paper's tables."""
    split, printed = held_out(source).split, printed_as("tutek", source.dataset)
    return Sheet(source.dataset, split, tuple(seeds), "tutek", table, printed, percent)


def read_tokens(units: Sequence[TrainedUnit], device: str) -> list[TokenProbabilities]:
    """Read trained units word by word on the held-out texts (Eq. 9)."""
    batch = held_out(units[0].unit.source).batch.to(device)
    return [compute_token_probabilities(loaded_model(unit, device), batch) for unit in units]


def heading(place: str, rows: Sequence[Measurement]) -> str:
    """Return a title that explains the marks next to the models' names."""
    present = {str(row.axes["attention"]) for row in rows}
    marks = ", ".join(f"{sign} {name}" for name, sign in SIGNS.items() if name in present)
    return f"{place} ({marks} attention)"


def place_of(row: Measurement) -> tuple[int, int]:
    """Return where a measurement stands in the paper's tables: by model, then by attention."""
    model, attention = str(row.axes["model"]), str(row.axes["attention"])
    return list(LABELS).index(model), list(SIGNS).index(attention)


def label_of(row: Measurement) -> str:
    """Return a model and its attention's sign."""
    return f"{name_of(row)} {SIGNS[str(row.axes['attention'])]}"


def name_of(row: Measurement) -> str:
    """Return the name of a measurement's model."""
    return LABELS[str(row.axes["model"])]


# Measurements of the models as dots, in the paper's order.
dot_tables = partial(
    plots.dot_tables,
    label=label_of,
    colour=lambda row: CLASSIFIERS[str(row.axes["model"])],
    order=place_of,
    title=heading,
)
