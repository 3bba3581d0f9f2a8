"""Trained models on held-out texts: fragility, single words, and tables of models as dots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from attnscope.analysis.classification import usual_average
from attnscope.analysis.fragility import (
    Fragility,
    compute_fragility,
    difference_intervals,
    extra_drops,
    fragility_intervals,
)
from attnscope.analysis.token_probabilities import TokenProbabilities, compute_token_probabilities
from attnscope.data.corpus import Corpus
from attnscope.data.source import Source
from attnscope.figures.palette import CLASSIFIERS
from attnscope.recipes.kit import corpora, plots
from attnscope.recipes.kit.baselines import baseline_rows
from attnscope.recipes.kit.sheet import Sheet, rng
from attnscope.recipes.tutek.units import ModelVariant, TutekUnits, choosing_count
from attnscope.runs.result import Measurement
from attnscope.training.loaded import loaded_model
from attnscope.training.trained_unit import TrainedUnit

# The names of the corpora in the published tables.
PRINTED = {
    "tutek-sst": "SST",
    "tutek-ag-news": "AG News",
    "tutek-20news": "20NG",
    "tutek-20news-uncut": "20NG",
    "tutek-imdb": "IMDB",
    "tutek-imdb-uncut": "IMDB",
    "mimic-anemia": "Anemia",
    "mimic-diabetes": "Diabetes",
}
MODIFIED = ("uniform", "permuted")
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
    split, printed = held_out(source).split, PRINTED.get(source.dataset)
    return Sheet(source.dataset, split, tuple(seeds), "tutek", table, printed, percent)


def read_tokens(units: Sequence[TrainedUnit], device: str) -> list[TokenProbabilities]:
    """Read trained units word by word on the held-out texts (Eq. 9)."""
    batch = held_out(units[0].unit.source).batch.to(device)
    return [compute_token_probabilities(loaded_model(unit, device), batch) for unit in units]


def measure_fragility(
    units: Sequence[TrainedUnit], permutations: int, device: str
) -> list[Fragility]:
    """Run trained units, one by one, under trained, uniform and permuted attention."""
    batch = held_out(units[0].unit.source).batch.to(device)
    return [compute_fragility(loaded_model(unit, device), batch, permutations) for unit in units]


def fragility_rows(
    sheet: Sheet,
    runs: TutekUnits,
    permutations: int,
    device: str,
    axes_of: Callable[[ModelVariant], Mapping[str, Any]] = lambda variant: variant.axes,
) -> list[Measurement]:
    """Return the metrics of every model, their changes, and how they compare with the base's."""
    names = {"trained": "trained"} | {f"{m}_change": f"drop_{m}" for m in MODIFIED}
    found = {key: measure_fragility(runs.units[key], permutations, device) for key in runs.units}
    rows = baseline_rows(sheet, runs.source, held_out(runs.source).examples)
    average = usual_average(runs.source.output_words)
    for variant, own in found.items():
        axes, intervals = axes_of(variant), fragility_intervals(own, rng=rng(), average=average)
        for condition, name in names.items():
            for metric, interval in intervals[condition].items():
                rows.append(sheet.row(f"{metric}_{name}", interval, axes, share=True))
        base = found.get(replace(variant, model="base"))
        if base is None or variant.model == "base":
            continue
        less = difference_intervals(own, base, rng=rng(), average=average)["f1"]
        rows.append(sheet.row("f1_difference", less, axes, share=True))
        for name in MODIFIED:
            more, of = extra_drops(own, base, name, average=average), {"modification": name}
            rows.append(sheet.mean("extra_drop", more, {**axes, **of}, share=True))
    return rows


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


def colour_of(row: Measurement) -> str:
    """Return the colour of a measurement's model."""
    return CLASSIFIERS[str(row.axes["model"])]


# Measurements of the models as dots, in the paper's order.
dot_tables = partial(
    plots.dot_tables, label=label_of, colour=colour_of, order=place_of, title=heading
)
