"""Table 11: the proxy is a logistic regression on word shares (A.10, Eq. 55–58).

Both are compared with β^uf at the checkpoint that agrees most, and with each other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnscope.analysis.comparison import per_word
from attnscope.analysis.stored_agreement import Grid, StoredScore
from attnscope.claims.decide import about_equal
from attnscope.claims.table import Part
from attnscope.figures.palette import NEUTRAL, SCORES
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.sheet import point
from attnscope.recipes.recipe import Charts
from attnscope.recipes.snell.agreement import (
    CODE,
    MODEL,
    TEXT,
    AgreementTable,
    Procedure,
    agreement_dots,
    difference_claim,
    model_rows,
)
from attnscope.recipes.snell.units import (
    QUICK_LABELLED as QUICK,
    LabelledConfig,
    train_corpora,
)
from attnscope.runs.result import Measurement, Result
from attnscope.scores.logistic import logistic_lexicon
from attnscope.scores.score import Score

__all__ = ["CLAIMS", "EXAMPLES", "HEADLINE", "QUICK", "SHOWN", "Config", "draw", "measure"]


Config = LabelledConfig
SHOWN = {"way": "text"}
EXAMPLES = "moved"
AGREEMENTS = {
    "A(beta_uf,beta_px)": SCORES["proxy"],
    "A(beta_uf,beta_log)": SCORES["logistic"],
    "A(beta_px,beta_log)": NEUTRAL,
}
HEADLINE = (*MODEL, *AGREEMENTS, "difference")


def measure(config: LabelledConfig, lab: Lab) -> list[Measurement]:
    """Fit the regressions and compare them with the units of the agreement tables."""
    config.demand_labels("snell/table11")
    rows: list[Measurement] = []
    for runs in train_corpora(config, lab):
        rows += compared(AgreementTable(runs, "val", lab.device))
    return rows


def compared(table: AgreementTable) -> list[Measurement]:
    """Measure how far the proxy, a regression and β^uf agree on one corpus."""
    source, proxy = table.runs.source, table.runs.proxy
    words = len(source.input_words)
    fit = logistic_lexicon(source.training_examples, source.validation_examples, words)
    logistic = fit.lexicon.score(table.batch)
    both = table.interval(per_word(table.proxy, logistic))
    rows: list[Measurement] = []
    for way in (TEXT, CODE):
        sheet = table.sheet(way, "table11")
        curves = {
            "A(beta_uf,beta_px)": table.grid("beta_uf,beta_px", way),
            "A(beta_uf,beta_log)": _with_uniform(table, logistic, way),
        }
        rows += table.at_highest(sheet, curves)
        rows.append(sheet.row("A(beta_px,beta_log)", both, share=True))
    sheet = table.sheet()
    chosen = {"C": fit.strength, "unfinished": len(fit.unfinished)}
    regression = point(fit.accuracies[fit.strength])
    own = point(proxy.log_row(proxy.best_step)["accuracy"])
    rows.append(sheet.row("accuracy(logistic)", regression, share=True, found=chosen))
    return [*rows, sheet.row("accuracy(proxy)", own, share=True), *model_rows(table)]


def _with_uniform(table: AgreementTable, logistic: Score, way: Procedure) -> dict[int, Grid]:
    logistic, curve = table.placed(logistic), {}
    for step in table.steps:
        found = []
        for uniform in table.uniforms:
            beta_uf = table.read(StoredScore(uniform, "lexical_probe", step))
            pair = (logistic, beta_uf) if way.proxy_first else (beta_uf, logistic)
            found.append(per_word(*pair))
        curve[step] = np.stack(found)[None]
    return curve


MARGIN = 8.0  # points, as the claim has it
CLAIMS = {
    "snell.logistic": difference_claim(
        *(Part(name, name) for name in AGREEMENTS),
        Part("difference", "difference", about_equal, MARGIN),
    )
}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw the three agreements of each corpus, with the published ones."""
    return {"table11": agreement_dots(result, AGREEMENTS, "Proxy and logistic regression")}
