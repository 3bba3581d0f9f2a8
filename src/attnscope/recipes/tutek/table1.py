"""Table 1: F1, and what uniform and permuted attention cost it; tables 4, 5 and the ablation.

The residual model, which the paper leaves out for space, is measured with the others.
``query=instance`` compares base models whose query is computed from the text with those whose query
is a parameter (footnote 8).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from attnscope.recipes.recipe import Lab
from attnscope.recipes.tutek.rows import Rows, axes_of, statistics_rows
from attnscope.recipes.tutek.table1_claims import CLAIMS
from attnscope.recipes.tutek.table1_figures import draw
from attnscope.recipes.tutek.table1_rows import (
    choice_rows,
    comparison_rows,
    fragility_rows,
    measure_fragility,
)
from attnscope.recipes.tutek.units import SMALL, TABLE1, TutekConfig, Which, train_corpora
from attnscope.runs.result import Measurement

__all__ = ["CLAIMS", "HEADLINE", "QUICK", "Config", "draw", "measure"]

_MODELS = {"learned": TABLE1, "instance": ("base", "instance")}


class Config(TutekConfig):
    """Settings of table 1."""

    query: Literal["learned", "instance"] = "learned"
    permutations: int = Field(100, ge=1)  # as in Jain and Wallace's test

    @property
    def parts(self) -> list[str]:
        """A run about queries stands beside the table."""
        return super().parts + ["instance"] * (self.query == "instance")

    @property
    def models(self) -> list[Which]:
        """The models to train."""
        names = _MODELS[self.query]
        return [Which(name, attention) for attention in self.attention for name in names]


QUICK = SMALL | {"permutations": 10}
HEADLINE = (
    "f1_trained",
    "f1_drop_uniform",
    "f1_drop_permuted",
    "f1_difference",
    # Table 5, table 4, and the ablation on the seed that chose.
    "avg_length",
    "vocab_size",
    "chosen_weight",
    "validation_f1",
    "ablation_drop_uniform",
    "ablation_drop_permuted",
)


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train every model on every corpus and read it under other attention."""
    made: list[Measurement] = []
    for runs in train_corpora(config, lab, config.models):
        rows = Rows(runs.source, range(config.seeds), "table1")
        made += statistics_rows(runs.source)
        found = {
            which: measure_fragility(units, config.permutations, lab.device)
            for which, units in runs.units.items()
        }
        for which, each in found.items():
            made += fragility_rows(rows, each, axes_of(which))
        made += comparison_rows(rows, found)
        made += choice_rows(runs, config.permutations, lab.device)
    return made
