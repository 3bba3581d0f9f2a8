"""Tables 1 and 2: accuracy of four models over seven scaling factors, and how even attention is.

The paper reports one run of each cell; here several seeds are averaged, with an interval over seeds
and test texts. As in the paper the epoch with the highest accuracy on the development part is the
one that is tested; λ is called best by the same part, so that no test text chooses anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from attnscope.analysis.classification import metric_intervals
from attnscope.analysis.intervals import Interval, crossed_interval
from attnscope.claims.published import published_value
from attnscope.recipes.recipe import Lab
from attnscope.recipes.sunlu.answers import Answers, percent, rng
from attnscope.recipes.sunlu.corpora import (
    held_out,
    held_out_batch,
    printed_name,
    statistics_rows,
)
from attnscope.recipes.sunlu.table2_claims import CLAIMS
from attnscope.recipes.sunlu.table2_figures import draw
from attnscope.recipes.sunlu.units import (
    MODELS,
    SCALES,
    Models,
    Runs,
    Scales,
    SunluConfig,
    Variant,
    open_corpus,
    train,
)
from attnscope.runs.result import Measurement, measured

__all__ = ["CLAIMS", "HEADLINE", "QUICK", "Config", "draw", "measure", "plan"]


class Config(SunluConfig):
    """Settings of the grid."""

    models: Models = Field(MODELS, min_length=1)
    scales: Scales = Field(SCALES, min_length=2)  # the paper's; "best" needs two


QUICK = {
    "corpus": "grammar-sentiment",
    "seeds": 2,
    "scales": (0.001, 10.0, 10_000.0),
    "embedding": 20,
    "hidden": 20,
    "lstm_hidden": 10,
    "epochs": 3,
}
HEADLINE = (
    "accuracy",
    "drop",
    "entropy",
    "avg_length",
    "vocab_size",
    "train_size",
    "val_size",
    "group_size",
    "left_out",
)


def plan(config: Config) -> list[tuple[Variant, int]]:
    """Return the cells of the grid, with their seeds."""
    return [
        (Variant(model, scale), config.seeds) for model in config.models for scale in config.scales
    ]


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train the grid on every corpus and test every cell."""
    sources = [open_corpus(config, name) for name in config.corpus]
    rows: list[Measurement] = []
    for runs in train(config, plan(config), lab, sources):
        rows += statistics_rows(runs.source)
        for model in config.models:
            rows += _column(runs, model, config.scales, lab.device)
    return rows


def printed_accuracy(corpus: str | None, model: str, scale: float) -> float | None:
    """Return the paper's cell of Table 2, by its own name of the corpus."""
    if corpus is None:
        return None
    cell = {"model": model, "lambda": f"{scale:g}"}
    return published_value("sunlu", "table2", corpus, "accuracy", **cell)


def _column(runs: Runs, model: str, scales: Sequence[float], device: str) -> list[Measurement]:
    """Return a model's column of Table 2."""
    source = runs.source
    cells = {scale: Answers(runs.cells[Variant(model, scale)], source, device) for scale in scales}
    best = max(scales, key=lambda scale: cells[scale].dev)
    labels = held_out_batch(source).targets[:, 0].numpy()
    rows: list[Measurement] = []
    for scale, cell in cells.items():
        mine = metric_intervals(labels, cell.predicted, rng=rng())["accuracy"]
        # How much better the best λ is on the same seeds and texts.
        drop = metric_intervals(labels, cells[best].predicted, baseline=cell.predicted, rng=rng())[
            "accuracy"
        ]
        drop = Interval(0.0, 0.0, 0.0, drop.n) if scale == best else drop
        published = printed_accuracy(printed_name(source), model, scale)
        axes = Variant(model, scale).axes
        told: dict[str, str | int | float] = {"dev accuracy": 100 * cell.dev}
        spread = crossed_interval(cell.entropy, rng=rng())
        rows += [
            measured("accuracy", source.dataset, percent(mine), axes, cell.seeds, published, told),
            measured("drop", source.dataset, percent(drop), axes, cell.seeds, None, {"best": best}),
            measured("entropy", source.dataset, spread, axes, cell.seeds),
        ]
    split = held_out(source)[0]
    return [row.model_copy(update={"split": split}) for row in rows]
