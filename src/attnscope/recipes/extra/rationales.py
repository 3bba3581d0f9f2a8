"""How well attention, β and Δ find the words that people marked as reasons.

None of the papers has this; tutek's conclusion asks for it. Two readings of each document, the area
under its precision–recall curve and F1 when as many words are picked as were marked, are compared
with the expectation of a random order. Validation and test documents are not pooled: annotators of
the latter marked four times as much. Labels are learned from the training part; its validation part
chooses.

The package's own corpus has no annotators. So that the recipe runs without any download, its words
of praise and blame count as marked (`attnscope.data.rationales.label_words`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import altair as alt
import numpy as np
from pydantic import Field

from attnscope.analysis.answers import read_answers
from attnscope.analysis.classification import usual_average
from attnscope.analysis.rationales import RationaleAgreement, rationale_agreement
from attnscope.claims.symbols import score_in_figures
from attnscope.data.corpus import Corpus
from attnscope.data.known import locate
from attnscope.data.rationales import Annotated as Marked, annotated, label_words
from attnscope.data.text import LabelledText
from attnscope.errors import UsageError
from attnscope.figures.charts import Axis, beside
from attnscope.figures.palette import NEUTRAL, SCORES
from attnscope.recipes.kit import plots
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.settings import Names, Several
from attnscope.recipes.kit.sheet import Sheet, rng
from attnscope.recipes.recipe import Charts
from attnscope.recipes.registry import paper_measures
from attnscope.recipes.tutek.evaluation import heading, label_of, place_of, sheet_of
from attnscope.recipes.tutek.units import (
    SMALL,
    TutekConfig,
    TutekUnits,
    open_corpus,
    train_corpora,
    variants,
)
from attnscope.runs.result import Measurement, Result
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.scores.saliency import Saliency
from attnscope.training.loaded import loaded_model

_SCORES = (Attention(), LexicalProbe(), Saliency())
# The two readings: their names, their columns and their titles.
_READINGS = {
    "average_precision": ("average_precision", "area under precision–recall"),
    "rationale_f1": ("f1", "F1 at the rationale's length"),
}


class Config(TutekConfig):
    """Settings of the comparison with rationales."""

    corpus: Names = Field(("movies_rationales",), min_length=1)
    """Labelled corpora with rationales, by name or folder; the default one has words marked by
    people."""
    split: Annotated[tuple[Literal["val", "test"], ...], Several] = Field(
        ("val", "test"), min_length=1
    )
    """Splits whose marked words are compared."""
    edges: Literal["bare", "marked"] = "marked"
    """Boundary marks around a text; marked words are searched between them."""


QUICK = SMALL
HEADLINE = (
    "average_precision",
    "chance_average_precision",
    "rationale_f1",
    "chance_rationale_f1",
    "f1_trained",
)
CLAIMS: dict[str, Any] = {}
MEASURES = paper_measures("attnscope.recipes.tutek")


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train base, tying and masked-word models and read three scores off each."""
    # A corpus without marks is refused before training.
    marked = [marked_texts(open_corpus(config, name), config.split) for name in config.corpus]
    corpora = train_corpora(config, lab, variants(config, ("base", "tying", "mlm")))
    rows: list[Measurement] = []
    for runs, by_split in zip(corpora, marked, strict=True):
        for split, texts in by_split.items():
            rows += _split_rows(config, runs, split, texts, lab.device)
    return rows


def marked_texts(source: Corpus, splits: Sequence[str]) -> dict[str, Marked]:
    """Return held-out texts with their marks, split by split."""
    if not isinstance(source, LabelledText):
        return {"val": label_words(source)}
    here = locate(source.definition).splits
    found = {split: annotated(source, split) for split in splits if split in here}
    if not found:
        raise UsageError(
            f"{source.dataset} has none of the splits {', '.join(splits)}; it has "
            f"{', '.join(here)}."
        )
    return found


def _split_rows(
    config: Config, runs: TutekUnits, split: str, texts: Marked, device: str
) -> list[Measurement]:
    sheet = replace(sheet_of(runs.source, range(config.seeds), percent=True), split=split)
    rows = [
        sheet.point("left_out", count, {"reason": why}, len(texts.batch), seeds=())
        for why, count in texts.left_out.items()
    ]
    here = texts.to(device)
    for variant, units in runs.units.items():
        models = [loaded_model(unit, device) for unit in units]
        f1 = read_answers(models, here.batch).metric("f1", usual_average(runs.source.output_words))
        rows.append(sheet.mean("f1_trained", f1, variant.axes, share=True))
        seeds = [rationale_agreement(model, here, _SCORES) for model in models]
        for score in seeds[0]:
            axes = {**variant.axes, "score": score}
            rows += _score_rows(sheet, [found[score] for found in seeds], axes)
    # The expectation of a random order depends on the texts alone.
    chance = next(iter(seeds[0].values()))
    for name, (column, _) in _READINGS.items():
        interval = chance.interval(f"chance_{column}", rng=rng())
        rows.append(sheet.row(f"chance_{name}", interval, seeds=()))
    return rows


def _score_rows(
    sheet: Sheet, each: Sequence[RationaleAgreement], axes: dict[str, str]
) -> list[Measurement]:
    rows = []
    for name, (column, _) in _READINGS.items():
        values, chance = (
            np.stack([getattr(one, key).numpy() for one in each])
            for key in (column, f"chance_{column}")
        )
        rows.append(sheet.crossed(name, values, axes))
        rows.append(sheet.crossed(f"{name}_above_chance", values - chance, axes))
    return rows


_LETTERS = {"attention": "alpha", "lexical_probe": "beta", "saliency": "delta"}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw both readings of every split, with the expectation of a random order."""
    places = dict.fromkeys((r.dataset, r.split) for r in result.select("average_precision"))
    charts = {}
    for dataset, split in places:
        panels = [_panel(result, name, dataset, split) for name in _READINGS]
        title = heading(f"{dataset}, {split}", result.select("average_precision", dataset))
        charts[f"rationales-{dataset}-{split}"] = beside(*panels, title=title)
    return charts


def _panel(result: Result, name: str, dataset: str, split: str) -> alt.LayerChart:
    found = sorted(result.select(name, dataset), key=place_of)
    own = [r for r in (*found, *result.select(f"chance_{name}", dataset)) if r.split == split]
    return plots.dots(own, Axis(_READINGS[name][1]), label=_label, colour=_colour, width=220)


def _label(row: Measurement) -> str:
    score = row.axes.get("score")
    if score is None:
        return "chance"
    return f"{score_in_figures(_LETTERS[str(score)])}, of {label_of(row)}"


def _colour(row: Measurement) -> str:
    score = row.axes.get("score")
    return NEUTRAL if score is None else SCORES[str(score)]
