"""Table 10: attention alone cannot be learned when the rest is frozen at random (A.6).

Embeddings, encoder and output layer of a random model stay as they are; only the attention layer
trains. Its attention α^fr is compared with the reference's at the checkpoint that agrees most.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from attnscope.claims.decide import below
from attnscope.claims.published import published_value
from attnscope.claims.table import Cells, Claim, Needs, Part
from attnscope.data.corpus import Corpus
from attnscope.data.text import Text
from attnscope.recipes.options import Names
from attnscope.recipes.recipe import Charts, Lab, Logged
from attnscope.recipes.showing import right_and_wrong
from attnscope.recipes.snell.agreement_rows import (
    WAYS,
    Compared,
    Which,
    highest,
    steps_of,
)
from attnscope.recipes.snell.table5 import QUICK as TABLE5_QUICK
from attnscope.recipes.snell.text_units import (
    CLASSIFICATION,
    OUTLIER,
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


class Config(TextConfig):
    """Settings of the frozen probe."""

    corpus: Names = Field(CLASSIFICATION, min_length=1)  # the paper's table has no translation
    frozen_seed: int = 18  # none of the other runs'; the paper does not give it


QUICK = TABLE5_QUICK | {"corpus": "grammar-sentiment"}
SHOWN = {"way": "text"}
EXAMPLES = right_and_wrong
HEADLINE = ("A(alpha,alpha_fr)", "A(alpha,beta_uf)", "difference")


def frozen_unit(config: Config, source: Corpus) -> Unit:
    """Return the unit whose attention layer alone is trained."""
    training = training_of(config, source, frozen=("embedding", "encoder", "output"))
    return Unit(
        source=source, model=model_of(config, source), training=training, seed=config.frozen_seed
    )


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Train the frozen models beside the units of the agreement tables."""
    demand_labels(config, "snell/table10")
    corpora = train_corpora(config, lab)
    frozen = lab.train([frozen_unit(config, runs.source) for runs in corpora], "frozen")
    return [
        row
        for runs, unit in zip(corpora, frozen, strict=True)
        for row in _rows(Compared(runs, "val"), unit)
    ]


def _rows(compared: Compared, frozen: TrainedUnit) -> list[Measurement]:
    rows = []
    source = compared.runs.source
    printed = source.definition.published if isinstance(source, Text) else None
    for way in WAYS:
        alpha = compared.alpha(way)
        curve = {
            step: compared.agreement(alpha, Which(frozen, "attention", step), "top5pct")
            for step in steps_of(frozen)
        }
        found = {
            "A(alpha,alpha_fr)": highest(curve),
            "A(alpha,beta_uf)": highest(compared.pair("alpha,beta_uf", way, "top5pct")),
        }
        for name, (step, values) in found.items():
            published = published_value("snell", "table10", printed, name) if printed else None
            axes, at = {"way": way.name}, {"at": step}
            rows.append(compared.row(name, compared.interval(values), axes, published, found=at))
        fixed, uniform = (values for _, values in found.values())
        rows.append(
            compared.row("difference", compared.interval(fixed - uniform), {"way": way.name})
        )
        if way is WAYS[0]:
            rows.append(compared.chance(way))
    return rows


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw both agreements of each corpus, with the published ones."""
    from attnscope.figures.charts import Axis, dots_with_intervals
    from attnscope.figures.palette import SCORES

    shown = {"A(alpha,alpha_fr)": "A(α, α frozen)", "A(alpha,beta_uf)": "A(α, β uniform)"}
    colours = {
        "A(alpha,alpha_fr)": SCORES["attention"],
        "A(alpha,beta_uf)": SCORES["uniform_probe"],
    }
    lines = [
        {"label": f"{row.dataset}: {label}", **row.model_dump()}
        for dataset in dict.fromkeys(row.dataset for row in result.measurements)
        for name, label in shown.items()
        for row in result.select(name, dataset, way="text")
    ]
    tints = {line["label"]: colours[line["name"]] for line in lines}
    axis = Axis("agreement (%)", domain=(0, 100))
    title = "Attention over frozen states, and the uniform probe"
    chart = dots_with_intervals(lines, axis, label="label", colours=tints, title=title)
    return {"table10": chart}


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
