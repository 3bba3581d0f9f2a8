"""Measurements of one corpus as rows, beside the paper's cells; and the corpus itself (table 5)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnscope.analysis.intervals import Interval
from attnscope.claims.published import published_value
from attnscope.data.corpus import Corpus
from attnscope.data.text import Text
from attnscope.recipes.tutek.held_out import held_out
from attnscope.recipes.tutek.units import Which
from attnscope.runs.result import Measurement, measured

# How the published tables spell the corpora.
PRINTED = {
    "tutek-sst": "SST",
    "tutek-ag-news": "AG News",
    "tutek-20news": "20NG",
    "tutek-imdb": "IMDB",
    "mimic-anemia": "Anemia",
    "mimic-diabetes": "Diabetes",
}


@dataclass(frozen=True)
class Rows:
    """Makes the measurements of one corpus; ``table`` is where the paper prints them."""

    source: Corpus
    seeds: Sequence[int]
    table: str = ""

    def row(
        self,
        name: str,
        interval: Interval,
        axes: Mapping[str, Any],
        *,
        scale: float = 1.0,
        seeds: Sequence[int] | None = None,
        found: Mapping[str, Any] | None = None,
        split: str | None = None,
    ) -> Measurement:
        """Return a measurement, its printed value looked up by all its axes."""
        value, low, high = (scale * end for end in (interval.value, interval.low, interval.high))
        made = measured(
            name,
            self.source.dataset,
            Interval(value, low, high, interval.n),
            axes,
            self.seeds if seeds is None else seeds,
            self._published(name, axes),
            found,
        )
        return made.model_copy(update={"split": split or held_out(self.source).split})

    def _published(self, name: str, axes: Mapping[str, Any]) -> float | None:
        printed = PRINTED.get(self.source.dataset)
        if printed is None or not self.table:
            return None
        return published_value("tutek", self.table, printed, name, **axes)


def axes_of(which: Which) -> dict[str, str]:
    """Return how a cell of the tables is named."""
    return {"attention": which.attention, "model": which.model}


def point(value: float, n: int = 1) -> Interval:
    """Return a number without an interval."""
    return Interval(value, math.nan, math.nan, n)


def rng() -> np.random.Generator:
    """Return the bootstrap's randomness."""
    return np.random.default_rng(0)


def statistics_rows(source: Corpus) -> list[Measurement]:
    """Return table 5: mean length in words and vocabulary; sizes, and what was left out."""
    rows = Rows(source, (), "table5")
    marks = len(source.encode(""))  # boundaries are not counted
    lengths = [len(example.inputs) - marks for example in source.training_examples]
    held = held_out(source)
    sizes = {
        "avg_length": float(np.mean(lengths)),
        "vocab_size": len(source.input_words),
        "train_size": len(lengths),
        "val_size": len(source.validation_examples),
        "measured_size": len(held.batch),
    }
    made = [
        rows.row(name, point(value, len(lengths)), {}, split="train")
        for name, value in sizes.items()
    ]
    left_out = dict(source.loaded.left_out) if isinstance(source, Text) else {}
    for reason, count in left_out.items():
        split, _, why = reason.partition(": ")
        made.append(rows.row("left_out", point(count, len(lengths)), {"reason": why}, split=split))
    return made
