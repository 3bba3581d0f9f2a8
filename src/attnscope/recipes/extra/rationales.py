"""How well attention, β and Δ find the words that people marked as reasons.

None of the papers has this; tutek's conclusion asks for it. Two readings of each document, the area
under its precision–recall curve and F1 when as many words are picked as were marked, are compared
with the expectation of a random order. Validation and test documents are not pooled: annotators of
the latter marked four times as much. Labels are learned from the training part; its validation part
chooses.

The package's own corpus has no annotators. So that the recipe runs without any download, a word of
it counts as marked if it occurs nearly always with its text's label in the training part: its
grammar's words of praise and blame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import altair as alt
import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from attnscope.analysis.classification import classification_metrics
from attnscope.analysis.rationales import RationaleAgreement, rationale_agreement
from attnscope.data.batch import Example, collate
from attnscope.data.corpus import Corpus
from attnscope.data.known import locate
from attnscope.data.rationales import Annotated as Marked, annotated
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
from attnscope.recipes.tutek.evaluation import average_of, best_model, predicted, sheet_of
from attnscope.recipes.tutek.figures import heading, in_order, label_of
from attnscope.recipes.tutek.units import (
    SMALL,
    Runs,
    TutekConfig,
    open_corpus,
    train_corpora,
    variants,
)
from attnscope.runs.result import Measurement, Result
from attnscope.scores.attention import Attention
from attnscope.scores.lexical_probe import LexicalProbe
from attnscope.scores.saliency import Saliency

_SCORES = (Attention(), LexicalProbe(), Saliency())
# The two readings: their columns, and their names.
_READINGS = {"average_precision": "average_precision", "f1": "rationale_f1"}
_SHARE, _COUNT = 0.8, 10  # of a word's occurrences that have one label; rarer words are not marked


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
        return {"val": stand_in(source)}
    here = locate(source.definition).splits
    found = {split: annotated(source, split) for split in splits if split in here}
    if not found:
        raise UsageError(
            f"{source.dataset} has none of the splits {', '.join(splits)}; it has "
            f"{', '.join(here)}."
        )
    return found


def stand_in(source: Corpus) -> Marked:
    """Return the validation texts of a corpus with words that nearly always have one label."""
    batch = collate(source.validation_examples)
    words = batch.input_mask & (batch.inputs != batch.inputs[0, batch.input_lengths[0] - 1])
    share = _label_share(source.training_examples, len(source.input_words))
    marked = (share[batch.inputs, batch.targets] >= _SHARE) & words
    some = marked.any(1)
    left_out = {"no rationale": int((~some).sum())} if not bool(some.all()) else {}
    return Marked(batch.rows(some), words[some], marked[some], left_out)


def _label_share(examples: Sequence[Example], types: int) -> Float[Tensor, "input_type label"]:
    """Return for each word the share of its occurrences that each label has; 0 for rare words."""
    batch = collate(examples)
    labels = int(batch.targets.max()) + 1
    cells = (batch.inputs * labels + batch.targets)[batch.input_mask]
    counts = torch.bincount(cells, minlength=types * labels).view(types, labels).double()
    total = counts.sum(1, keepdim=True)
    return torch.where(total >= _COUNT, counts / total.clamp(min=1), 0.0)


def _split_rows(
    config: Config, runs: Runs, split: str, texts: Marked, device: str
) -> list[Measurement]:
    sheet = sheet_of(runs.source, range(config.seeds), percent=True)
    rows = [
        sheet.point("left_out", count, {"reason": why}, len(texts.batch), split=split, seeds=())
        for why, count in texts.left_out.items()
    ]
    here, labels = texts.to(device), texts.batch.targets[:, 0].numpy()
    chance: RationaleAgreement | None = None
    for variant, units in runs.units.items():
        models = [best_model(unit, device) for unit in units]
        answers = np.stack([predicted(model, here.batch) for model in models])
        f1 = classification_metrics(labels, answers, average=average_of(runs.source))["f1"]
        rows.append(sheet.mean("f1_trained", f1, variant.axes, share=True, split=split))
        seeds = [rationale_agreement(model, here, _SCORES) for model in models]
        for score in seeds[0]:
            axes = {**variant.axes, "score": score}
            rows += _score_rows(sheet, [found[score] for found in seeds], axes, split)
        chance = chance or next(iter(seeds[0].values()))
    assert chance is not None
    # The expectation of a random order depends on the texts alone.
    for column, name in _READINGS.items():
        interval = chance.interval(f"chance_{column}", rng=rng())
        rows.append(sheet.row(f"chance_{name}", interval, split=split, seeds=()))
    return rows


def _score_rows(
    sheet: Sheet, each: Sequence[RationaleAgreement], axes: dict[str, str], split: str
) -> list[Measurement]:
    rows = []
    for column, name in _READINGS.items():
        values, chance = (
            np.stack([getattr(one, key).numpy() for one in each])
            for key in (column, f"chance_{column}")
        )
        rows.append(sheet.crossed(name, values, axes, split=split))
        rows.append(sheet.crossed(f"{name}_above_chance", values - chance, axes, split=split))
    return rows


_TITLES = {
    "average_precision": "area under precision–recall",
    "rationale_f1": "F1 at the rationale's length",
}
_SYMBOLS = {"attention": "α", "lexical_probe": "β", "saliency": "Δ"}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw both readings of every split, with the expectation of a random order."""
    places = dict.fromkeys((r.dataset, r.split) for r in result.select("average_precision"))
    charts = {}
    for dataset, split in places:
        panels = [_panel(result, name, dataset, split) for name in _TITLES]
        title = heading(f"{dataset}, {split}", result.select("average_precision", dataset))
        charts[f"rationales-{dataset}-{split}"] = beside(*panels, title=title)
    return charts


def _panel(result: Result, name: str, dataset: str, split: str) -> alt.LayerChart:
    rows = [*in_order(result.select(name, dataset)), *result.select(f"chance_{name}", dataset)]
    own = [row for row in rows if row.split == split]
    return plots.dots(own, Axis(_TITLES[name]), label=_label, colour=_colour, width=220)


def _label(row: Measurement) -> str:
    score = row.axes.get("score")
    return "chance" if score is None else f"{_SYMBOLS[str(score)]} of {label_of(row)}"


def _colour(row: Measurement) -> str:
    score = row.axes.get("score")
    return NEUTRAL if score is None else SCORES[str(score)]
