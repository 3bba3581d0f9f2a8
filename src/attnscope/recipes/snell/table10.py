"""Table 10: attention alone cannot be learned while the rest is frozen at random (A.6).

Embeddings, encoder and output layer of a random model stay as they are; only the attention layer
trains. Its attention α^fr is compared with the reference's at the checkpoint that agrees most.
"""

from __future__ import annotations

from collections.abc import Sequence

from attnscope.analysis.stored_agreement import StoredScore
from attnscope.claims.decide import below
from attnscope.claims.table import Part
from attnscope.data.corpus import Corpus
from attnscope.figures.palette import SCORES
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.recipe import Charts
from attnscope.recipes.snell.agreement import (
    CODE,
    MODEL,
    TEXT,
    AgreementTable,
    agreement_dots,
    chance,
    difference_claim,
    model_rows,
)
from attnscope.recipes.snell.units import (
    QUICK_LABELLED as QUICK,
    LabelledConfig,
    model_of,
    train_corpora,
    training_of,
)
from attnscope.runs.result import Measurement, Result
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Unit

__all__ = ["CLAIMS", "EXAMPLES", "HEADLINE", "QUICK", "SHOWN", "Config", "draw", "measure"]


class Config(LabelledConfig):
    """Settings of the frozen probe."""

    frozen_seed: int = 18
    """Seed of the frozen model, none of the other runs'; the paper does not give it."""


SHOWN = {"way": "text"}
EXAMPLES = "moved"
AGREEMENTS = {
    "A(alpha,alpha_fr)": SCORES["attention"],
    "A(alpha,beta_uf)": SCORES["uniform_probe"],
}
HEADLINE = (*MODEL, *AGREEMENTS, "difference")


def frozen_unit(config: Config, source: Corpus) -> Unit:
    """Return the unit whose attention layer alone is trained."""
    training = training_of(config, source, frozen=("embedding", "encoder", "output"))
    return Unit(
        source=source, model=model_of(config, source), training=training, seed=config.frozen_seed
    )


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train the frozen models next to the units of the agreement tables."""
    config.demand_labels("snell/table10")
    corpora = train_corpora(config, lab)
    frozen = lab.train([frozen_unit(config, runs.source) for runs in corpora], "frozen")
    rows: list[Measurement] = []
    for runs, unit in zip(corpora, frozen, strict=True):
        rows += compared(AgreementTable(runs, "val", lab.device), unit)
    return rows


def compared(table: AgreementTable, frozen: TrainedUnit) -> list[Measurement]:
    """Measure how far α agrees with frozen features' attention, and with β^uf."""
    rows: list[Measurement] = []
    for way in (TEXT, CODE):
        curve = {}
        for step in frozen.evaluated_steps:
            fixed = StoredScore(frozen, "attention", step)
            curve[step] = table.paired((table.alpha(way, run), fixed) for run in table.references)
        uniform = table.grid("alpha,beta_uf", way)
        curves = dict(zip(AGREEMENTS, (curve, uniform), strict=True))
        rows += table.at_highest(table.sheet(way, "table10"), curves)
    return [*rows, chance(table.sheet(TEXT, "table5"), table), *model_rows(table)]


CLAIMS = {
    "snell.frozen-probe": difference_claim(
        *(Part(name, name) for name in AGREEMENTS), Part("difference", "difference", below)
    )
}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw both agreements of each corpus, with the published ones."""
    title = "Attention over frozen states, and the uniform probe"
    return {"table10": agreement_dots(result, AGREEMENTS, title)}
