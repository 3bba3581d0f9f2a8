"""Table 10: attention alone cannot be learned while the rest is frozen at random (A.6).

Embeddings, encoder and output layer of a random model stay as they are; only the attention layer
trains. Its attention α^fr is compared with the reference's at the checkpoint that agrees most.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from attnscope.claims.decide import below
from attnscope.claims.table import Cells, Claim, Needs, Part
from attnscope.data.corpus import Corpus
from attnscope.figures.palette import SCORES
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.settings import Names
from attnscope.recipes.recipe import Charts
from attnscope.recipes.snell.agreement import (
    CODE,
    TEXT,
    AgreementTable,
    ScoreKey,
    agreement_dots,
    highest,
    steps_of,
)
from attnscope.recipes.snell.units import (
    CLASSIFICATION,
    OUTLIER,
    QUICK_LABELLED as QUICK,
    TextConfig,
    demand_labels,
    model_of,
    text_deviations,
    train_corpora,
    training_of,
)
from attnscope.runs.result import Measurement, Result
from attnscope.training.trained_unit import TrainedUnit
from attnscope.training.unit import Unit

__all__ = ["CLAIMS", "EXAMPLES", "HEADLINE", "QUICK", "SHOWN", "Config", "draw", "measure"]


class Config(TextConfig):
    """Settings of the frozen probe."""

    corpus: Names = Field(CLASSIFICATION, min_length=1)  # the paper's table has no translation
    frozen_seed: int = 18  # none of the other runs'; the paper does not give it


SHOWN = {"way": "text"}
EXAMPLES = "moved"
HEADLINE = ("A(alpha,alpha_fr)", "A(alpha,beta_uf)", "difference")


def frozen_unit(config: Config, source: Corpus) -> Unit:
    """Return the unit whose attention layer alone is trained."""
    training = training_of(config, source, frozen=("embedding", "encoder", "output"))
    return Unit(
        source=source, model=model_of(config, source), training=training, seed=config.frozen_seed
    )


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train the frozen models next to the units of the agreement tables."""
    demand_labels(config, "snell/table10")
    corpora = train_corpora(config, lab)
    frozen = lab.train([frozen_unit(config, runs.source) for runs in corpora], "frozen")
    rows: list[Measurement] = []
    for runs, unit in zip(corpora, frozen, strict=True):
        rows += compared(AgreementTable(runs, "val"), unit)
    return rows


def compared(table: AgreementTable, frozen: TrainedUnit) -> list[Measurement]:
    """Measure how far α agrees with frozen features' attention, and with β^uf."""
    rows = []
    for way in (TEXT, CODE):
        sheet, alpha = table.sheet(way, "table10"), table.alpha(way)
        keys = {step: ScoreKey(frozen, "attention", step) for step in steps_of(frozen)}
        curve = {step: table.agreement(alpha, key) for step, key in keys.items()}
        found = {
            "A(alpha,alpha_fr)": highest(curve),
            "A(alpha,beta_uf)": highest(table.pair("alpha,beta_uf", way)),
        }
        for name, (step, values) in found.items():
            at = {"at": step}
            rows.append(sheet.row(name, table.interval(values), share=True, found=at))
        fixed, uniform = (values for _, values in found.values())
        rows.append(sheet.row("difference", table.interval(fixed - uniform), share=True))
    return [*rows, table.chance(TEXT)]


CLAIMS = {
    "snell.frozen-probe": Claim(
        Cells("difference", given={"way": "text"}, aside=(OUTLIER,)),
        (
            Part("A(alpha,alpha_fr)", "A(alpha,alpha_fr)"),
            Part("A(alpha,beta_uf)", "A(alpha,beta_uf)"),
            Part("difference", "difference", below),
        ),
        Needs(datasets=4),
        deviation=text_deviations,
    )
}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw both agreements of each corpus, with the published ones."""
    shown = {
        "A(alpha,alpha_fr)": ("A(α, α frozen)", SCORES["attention"]),
        "A(alpha,beta_uf)": ("A(α, β uniform)", SCORES["uniform_probe"]),
    }
    title = "Attention over frozen states, and the uniform probe"
    return {"table10": agreement_dots(result, shown, title)}
