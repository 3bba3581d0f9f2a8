"""Table 3: how probable the predicted label would be if all attention were on one word.

The mean over the words of a text, then over the texts that are classified correctly (Eq. 9).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnscope.claims.decide import below
from attnscope.claims.table import Cells, Claim, Needs, Part
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.recipe import Charts
from attnscope.recipes.tutek.evaluation import dot_tables, read_tokens, sheet_of
from attnscope.recipes.tutek.units import (
    SIZES,
    SMALL,
    ModelVariant,
    TutekConfig,
    deviations,
    train_corpora,
    variants,
)
from attnscope.runs.result import Measurement, Result


class Config(TutekConfig):
    """Settings of table 3."""


QUICK = SMALL
HEADLINE = ("token_probability", "token_probability_difference")


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Read every model word by word."""
    rows: list[Measurement] = []
    for runs in train_corpora(config, lab, variants(config, ("base", "residual", "tying", "mlm"))):
        sheet = sheet_of(runs.source, range(config.seeds), "table3")
        means = {}
        for variant, units in runs.units.items():
            # Seeds × texts, NaN where a text is classified wrongly.
            read = read_tokens(units, lab.device)
            means[variant] = np.stack([one.of_correct("token_mean") for one in read])
            rows.append(sheet.crossed("token_probability", means[variant], variant.axes))
        for variant, own in means.items():
            if variant.model != "base":
                # Texts that either model gets wrong are left out.
                less = own - means[ModelVariant("base", variant.attention)]
                rows.append(sheet.crossed("token_probability_difference", less, variant.axes))
    return rows


CLAIMS = {
    "tutek.token-probability": Claim(
        Cells("token_probability_difference", ("dataset", "attention")),
        (
            Part(
                "less base:",
                "token_probability_difference",
                below,
                given={"model": ("tying", "mlm")},
                each="model",
            ),
            Part("", "token_probability", each="model"),
        ),
        Needs(seeds=5, sizes=SIZES, datasets=4),
        deviation=deviations,
    )
}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw the table, and the differences from the base model."""
    columns = {
        "token_probability": "mean probability of single words",
        "token_probability_difference": "less the base model's",
    }
    return dot_tables(result, "table3", columns)
