"""Table 11: the proxy is a logistic regression on word shares (A.10).

Both are compared with β^uf at the checkpoint that agrees most, and with each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from attnscope.analysis.comparison import per_word
from attnscope.claims.decide import about_equal
from attnscope.claims.published import published_value
from attnscope.claims.table import Cells, Claim, Needs, Part
from attnscope.data.text import Text
from attnscope.recipes.options import Names
from attnscope.recipes.recipe import Charts, Lab, Logged
from attnscope.recipes.showing import right_and_wrong
from attnscope.recipes.snell.agreement_rows import (
    WAYS,
    Compared,
    Values,
    Way,
    Which,
    highest,
    point,
    steps_of,
)
from attnscope.recipes.snell.table5 import QUICK as TABLE5_QUICK
from attnscope.recipes.snell.text_units import (
    CLASSIFICATION,
    OUTLIER,
    TextConfig,
    demand_labels,
    text_deviations,
    train_corpora,
)
from attnscope.runs.result import Measurement, Result
from attnscope.scores.logistic import logistic_lexicon
from attnscope.scores.score import Score

MARGIN = 8.0  # points, as the claim has it


class Config(TextConfig):
    """Settings of the logistic regression's comparison."""

    corpus: Names = Field(CLASSIFICATION, min_length=1)


QUICK = TABLE5_QUICK | {"corpus": "grammar-sentiment"}
SHOWN = {"way": "text"}
EXAMPLES = right_and_wrong
HEADLINE = ("A(beta_uf,beta_px)", "A(beta_uf,beta_log)", "A(beta_px,beta_log)", "difference")


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Fit the regressions and compare them with the units of the agreement tables."""
    demand_labels(config, "snell/table11")
    return [row for runs in train_corpora(config, lab) for row in _rows(Compared(runs, "val"))]


def _rows(compared: Compared) -> list[Measurement]:
    source = compared.runs.source
    printed = source.definition.published if isinstance(source, Text) else None
    fit = logistic_lexicon(
        source.training_examples, source.validation_examples, len(source.input_words)
    )
    logistic = fit.lexicon.score(compared.batch)
    rows = []
    for way in WAYS:
        found = {
            "A(beta_uf,beta_px)": highest(compared.pair("beta_uf,beta_px", way, "top5pct")),
            "A(beta_uf,beta_log)": highest(_with_uniform(compared, logistic, way)),
            "A(beta_px,beta_log)": (0, per_word(compared.proxy, logistic)),
        }
        for name, (step, values) in found.items():
            published = published_value("snell", "table11", printed, name) if printed else None
            at = {} if "uf" not in name else {"at": step}
            percent = None if published is None else 100 * published
            axes, interval = {"way": way.name}, compared.interval(values)
            rows.append(compared.row(name, interval, axes, percent, found=at))
        proxy, regression, _ = (values for _, values in found.values())
        rows.append(
            compared.row("difference", compared.interval(proxy - regression), {"way": way.name})
        )
    best = fit.accuracies[fit.strength]
    chosen = {"C": fit.strength, "unfinished": len(fit.unfinished)}
    rows.append(compared.row("accuracy(logistic)", point(best), {}, found=chosen))
    proxy_row = compared.runs.proxy.log_row(compared.runs.proxy.best_step)
    rows.append(compared.row("accuracy(proxy)", point(proxy_row["accuracy"]), {}))
    return rows


def _with_uniform(compared: Compared, logistic: Score, way: Way) -> dict[int, Values]:
    uniform = compared.runs.uniform
    curve = {}
    for step in steps_of(uniform):
        beta_uf = compared.read(Which(uniform, "lexical_probe", step))
        pair = (logistic, beta_uf) if way.proxy_first else (beta_uf, logistic)
        curve[step] = per_word(*pair)
    return curve


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw the three agreements of each corpus, with the published ones."""
    from attnscope.figures.charts import Axis, dots_with_intervals
    from attnscope.figures.palette import NEUTRAL, SCORES

    shown = {
        "A(beta_uf,beta_px)": ("A(β uniform, β proxy)", SCORES["proxy"]),
        "A(beta_uf,beta_log)": ("A(β uniform, β logistic)", SCORES["logistic"]),
        "A(beta_px,beta_log)": ("A(β proxy, β logistic)", NEUTRAL),
    }
    lines = [
        {"label": f"{row.dataset}: {label}", "colour": colour, **row.model_dump()}
        for dataset in dict.fromkeys(row.dataset for row in result.measurements)
        for name, (label, colour) in shown.items()
        for row in result.select(name, dataset, way="text")
    ]
    tints = {line["label"]: line["colour"] for line in lines}
    axis = Axis("agreement (%)", domain=(0, 100))
    title = "Proxy and logistic regression"
    chart = dots_with_intervals(lines, axis, label="label", colours=tints, title=title)
    return {"table11": chart}


_SHOWN = ("A(beta_uf,beta_px)", "A(beta_uf,beta_log)", "A(beta_px,beta_log)")
CLAIMS = {
    "snell.logistic": Claim(
        Cells("difference", given={"way": "text"}, aside=(OUTLIER,)),
        (
            *(Part(name, name) for name in _SHOWN),
            Part("difference", "difference", about_equal, MARGIN),
        ),
        Needs(datasets=4),
        deviation=text_deviations,
    )
}
