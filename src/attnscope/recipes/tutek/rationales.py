"""How well attention, β and Δ find the words that people marked as reasons.

None of the papers has this; tutek's conclusion asks for it. Two readings of each document, the area
under its precision–recall curve and F1 when as many words are picked as were marked, stand against
what a random order gives. Validation and test documents are not pooled: annotators of the latter
marked four times as much. Labels are learned from the training part; its validation part chooses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from attnscope.analysis.classification import classification_metrics
from attnscope.analysis.intervals import crossed_interval, mean_interval
from attnscope.analysis.rationales import RationaleAgreement, rationale_agreement
from attnscope.data.rationales import Annotated as Marked
from attnscope.recipes.options import Names, Several
from attnscope.recipes.recipe import Charts, Lab, Logged
from attnscope.recipes.tutek.held_out import average_of, best_model, predicted
from attnscope.recipes.tutek.marked_words import marked_texts
from attnscope.recipes.tutek.rows import Rows, axes_of, point, rng
from attnscope.recipes.tutek.table1_figures import heading, in_order, label_of
from attnscope.recipes.tutek.units import (
    SMALL,
    Runs,
    TutekConfig,
    Which,
    open_corpus,
    train_corpora,
)
from attnscope.runs.result import Measurement, Result
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.scores.saliency import Saliency

_MODELS = ("base", "tying", "mlm")
_SCORES = (Attention(), LexicalProbe(), Saliency())
# The two readings, and what a random order gives of each.
_READINGS = {
    "average_precision": "chance_average_precision",
    "f1": "chance_f1",
}
_NAMES = {"average_precision": "average_precision", "f1": "rationale_f1"}


class Config(TutekConfig):
    """Settings of the comparison with rationales."""

    corpus: Names = Field(("movies_rationales",), min_length=1)  # the one with people's marks
    split: Annotated[tuple[Literal["val", "test"], ...], Several] = Field(
        ("val", "test"), min_length=1
    )
    edges: Literal["bare", "marked"] = "marked"  # marked words are found between boundaries


QUICK = SMALL
HEADLINE = (
    "average_precision",
    "chance_average_precision",
    "rationale_f1",
    "chance_rationale_f1",
    "f1_trained",
)
CLAIMS: dict[str, Any] = {}


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train base, tying and masked-word models and read three scores off each."""
    models = [Which(name, attention) for attention in config.attention for name in _MODELS]
    # A corpus without marks is told before anything is trained.
    marked = [marked_texts(open_corpus(config, name), config.split) for name in config.corpus]
    made: list[Measurement] = []
    for runs, by_split in zip(train_corpora(config, lab, models), marked, strict=True):
        for split, texts in by_split.items():
            made += _split_rows(config, runs, split, texts, lab.device)
    return made


def _split_rows(
    config: Config, runs: Runs, split: str, texts: Marked, device: str
) -> list[Measurement]:
    rows = Rows(runs.source, range(config.seeds))
    made = [
        rows.row("left_out", point(count, len(texts.batch)), {"reason": why}, split=split, seeds=())
        for why, count in texts.left_out.items()
    ]
    here = texts.to(device)
    labels = texts.batch.targets[:, 0].numpy()
    chance: dict[str, RationaleAgreement] = {}
    for which, units in runs.units.items():
        seeds, scores = [], []
        for unit in units:
            model = best_model(unit, device)
            seeds.append(rationale_agreement(model, here, _SCORES))
            scores.append(predicted(model, here.batch))
        f1 = classification_metrics(labels, np.stack(scores), average=average_of(runs.source))["f1"]
        interval = mean_interval(f1, rng=rng())
        made.append(rows.row("f1_trained", interval, axes_of(which), scale=100, split=split))
        for score in seeds[0]:
            each = [found[score] for found in seeds]
            made += _score_rows(rows, each, axes_of(which) | {"score": score}, split)
        chance = chance or seeds[0]
    # What chance gives depends on the texts alone.
    first = next(iter(chance.values()))
    for name, column in _READINGS.items():
        interval = first.interval(column, rng=rng())
        made.append(rows.row(f"chance_{_NAMES[name]}", interval, {}, split=split, seeds=()))
    return made


def _score_rows(
    rows: Rows, each: Sequence[RationaleAgreement], axes: dict[str, str], split: str
) -> list[Measurement]:
    made = []
    for name, chance in _READINGS.items():
        values = np.stack([getattr(one, name).numpy() for one in each])
        above = values - np.stack([getattr(one, chance).numpy() for one in each])
        for label, numbers in ((_NAMES[name], values), (f"{_NAMES[name]}_above_chance", above)):
            interval = crossed_interval(numbers, rng=rng())
            made.append(rows.row(label, interval, axes, split=split))
    return made


_SHOWN = {"attention": "α", "lexical_probe": "β", "saliency": "Δ"}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw both readings of every split, against chance."""
    from attnscope.figures.charts import Axis, beside, dots_with_intervals
    from attnscope.figures.palette import SCORES

    titles = {
        "average_precision": "area under precision–recall",
        "rationale_f1": "F1 at the rationale's length",
    }
    charts = {}
    places = dict.fromkeys((r.dataset, r.split) for r in result.select("average_precision"))
    for dataset, split in places:
        panels = []
        for name, title in titles.items():
            rows = [r for r in in_order(result.select(name, dataset)) if r.split == split]
            chance = [r for r in result.select(f"chance_{name}", dataset) if r.split == split]
            lines = [r.model_dump() | {"label": _label(r)} for r in rows]
            lines += [r.model_dump() | {"label": "chance"} for r in chance]
            tints = {_label(r): SCORES[str(r.axes["score"])] for r in rows}
            panels.append(
                dots_with_intervals(lines, Axis(title), label="label", colours=tints, width=220)
            )
        shown = heading(f"{dataset}, {split}", result.select("average_precision", dataset))
        charts[f"rationales-{dataset}-{split}"] = beside(*panels, title=shown)
    return charts


def _label(row: Measurement) -> str:
    return f"{_SHOWN[str(row.axes['score'])]} of {label_of(row)}"
