"""Eq. 19 and 27: the terms that move polarity and attention scores, checked and weighed.

On random problems of every form the sum of the terms is compared with the exact rate of change by
automatic differentiation; the supplement's equations with a misprint are taken as printed too. At
the paper's initialisation, on the synthetic corpus, the terms are then weighed over λ: A fades, D
takes over. Nothing is trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import Field

from attnscope.claims.decide import verdict
from attnscope.claims.pool import Pool
from attnscope.claims.table import Cell, Cells, Claim, Finding, Needs
from attnscope.data.corpus import training_batches
from attnscope.data.polarity_texts import PolarityTexts
from attnscope.figures.charts import Axis, beside
from attnscope.figures.palette import ROLES
from attnscope.recipes.kit import plots
from attnscope.recipes.kit.lab import Lab, Logged
from attnscope.recipes.kit.settings import RecipeSettings
from attnscope.recipes.kit.sheet import Sheet
from attnscope.recipes.recipe import Charts
from attnscope.recipes.sunlu.term_ratios import LAMBDA_TERMS, ratio_panels, ratio_rows
from attnscope.recipes.sunlu.units import SCALES, Scales, SunluConfig, Variant, model_of
from attnscope.runs.result import Measurement, Result
from attnscope.theory.gradient_flow.classifier import classifier_flow
from attnscope.theory.gradient_flow.groups import group_row
from attnscope.theory.gradient_flow.random_problems import (
    ADDITIVE,
    FORMS,
    MISPRINTS,
    Form,
    Misprint,
    draw_problem,
    exact,
    first_order_attention,
    predicted,
    relative_error,
    with_small_weights,
)


class Config(RecipeSettings):
    """Settings of the check."""

    problems: int = Field(100, ge=1)
    """Random problems of each form; each takes milliseconds."""
    seeds: int = Field(5, ge=1)
    """Initialisations whose terms are compared."""
    scales: Scales = Field(SCALES, min_length=2)
    """Scaling factors λ, those of Table 2."""
    texts: int = Field(2000, ge=2)
    """Texts of each label; 6,000 give the same ratios."""


QUICK = {"problems": 20, "seeds": 3, "texts": 300}
TRAINS = False
HEADLINE = (
    "relative_error",
    "misprint_error",
    "first_order_error",
    "rank_correlation",
    "F/E at the start",
)
_SHEET = Sheet("random problems")


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Check the identities, catch the misprints, and weigh the terms over λ."""
    rows: list[Measurement] = []
    for form in FORMS:
        rows += _errors(form, config.problems)
    for misprint in MISPRINTS:
        rows += _misprint_errors(misprint, config.problems)
    return [*rows, *_small_weights(config.problems), *_weighed(config)]


# Root mean squares of M_a e; at 1 the expansion says nothing.
_SIZES = (1.0, 0.1, 0.01)


def _small_weights(problems: int) -> list[Measurement]:
    """Return the error of Eq. 71, which is of first order, as additive attention's weights shrink.

    The supplement prints it as an equality; it is one in the limit.
    """
    drawn = [draw_problem(ADDITIVE, seed) for seed in range(problems)]
    rows = []
    for size in _SIZES:
        errors = []
        for problem in (with_small_weights(one, size) for one in drawn):
            right = exact(problem).attention
            errors.append(relative_error(first_order_attention(problem), right))
        axes, found = {"size": size}, {"largest": max(errors)}
        median = float(np.median(errors))
        rows.append(_SHEET.point("first_order_error", median, axes, problems, found=found))
    return rows


def _errors(form: Form, problems: int) -> list[Measurement]:
    """Return the largest relative error over the problems of a form."""
    errors: dict[str, list[float]] = {"polarity": [], "attention": [], "products": []}
    scales = []
    for seed in range(problems):
        problem = draw_problem(form, seed)
        scales.append(problem.scale)
        for name, right, found in zip(errors, exact(problem), predicted(problem), strict=True):
            errors[name].append(relative_error(found, right))
    drawn = {"smallest lambda": min(scales), "largest lambda": max(scales)}
    return [
        _SHEET.point(
            "relative_error", max(values), {"form": form.name, "of": name}, problems, found=drawn
        )
        for name, values in errors.items()
    ]


def _misprint_errors(misprint: Misprint, problems: int) -> list[Measurement]:
    """Return the errors of an equation as printed (the least) and corrected (the largest)."""
    drawn = [draw_problem(misprint.form, seed) for seed in range(problems)]
    right = [getattr(exact(problem), misprint.of) for problem in drawn]
    rows = []
    for version, pick in (("printed", min), ("corrected", max)):
        errors = [
            relative_error(misprint.rate(problem, printed=version == "printed"), truth)
            for problem, truth in zip(drawn, right, strict=True)
        ]
        axes = {"equation": misprint.equation, "version": version}
        found = {"median": float(np.median(errors))}
        rows.append(_SHEET.point("misprint_error", pick(errors), axes, problems, found=found))
    return rows


def _weighed(config: Config) -> list[Measurement]:
    """Return the sizes of the terms at initialisation, over λ."""
    source = PolarityTexts(positives=config.texts, negatives=config.texts)
    batches = training_batches(source)
    logs = []
    for seed in range(config.seeds):
        by_scale = {}
        for scale in config.scales:
            model = model_of(SunluConfig(), Variant("DP", scale)).build(source, seed).eval()
            by_scale[scale] = group_row(*classifier_flow(model, batches), source.groups)
        logs.append(by_scale)
    return ratio_rows(source.dataset, logs, "start")


_EXACT = 1e-9
# A misprint is caught if its error is above this on every problem; near λ = 1 it may be small.
_CAUGHT = 1e-6


def _exact_in_every_form(cell: Cell) -> Finding:
    """Check that the terms of every form add up to the exact rates; misprints are shown."""
    rows = cell.select("relative_error")
    largest: dict[str, float] = {}
    for row in rows:
        form = str(row.axes["form"])
        largest[form] = max(largest.get(form, 0.0), row.number)
    evidence: dict[str, Any] = {form: f"{largest[form]:.1e}" for form in sorted(largest)}
    misprints = cell.select("misprint_error")
    for row in misprints:
        evidence[f"{row.axes['equation']}, {row.axes['version']}"] = f"{row.number:.1e}"
    printed = [row for row in misprints if row.axes["version"] == "printed"]
    for row in cell.select("first_order_error"):
        evidence[f"Eq. 71, |x| = {row.axes['size']:g}"] = f"{row.number:.1e}"
    if not all(row.number > _CAUGHT for row in printed):
        evidence["misprints"] = "not caught on every problem"
    return Finding(verdict(all(row.number < _EXACT for row in rows), True), evidence)


def _every_form(pool: Pool, cells: Sequence[Cell]) -> str:
    rows = pool.select("relative_error")
    complete = {form.name for form in FORMS} <= {str(row.axes["form"]) for row in rows}
    enough = complete and min(row.n for row in rows) >= pool.needed(20)
    return "" if enough else "needs twenty problems of every form"


CLAIMS = {
    "sunlu.terms": Claim(
        Cells(),
        (_exact_in_every_form,),
        Needs(also=_every_form),
        deviation="the affine and multi-class forms corrected, the additive one by the chain rule",
    ),
    "sunlu.lambda-terms": LAMBDA_TERMS,
}


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw the errors of every form and misprint, and the terms' weights over λ."""
    ticks = (1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 1)
    rows = [row for row in result.select("relative_error") if row.axes["of"] != "products"]
    errors = plots.dots(
        rows,
        Axis("largest relative error", "log", (1e-17, 1.0), ticks, "~e"),
        label=lambda row: f"{row.axes['form']}: {row.axes['of']}",
        colour=lambda row: ROLES["control"],
        title="Sum of the terms",
    )
    tints = {"printed": ROLES["hard"], "corrected": ROLES["control"]}
    misprints = plots.dots(
        result.select("misprint_error"),
        Axis("relative error", "log", (1e-17, 10.0), ticks, "~e"),
        label=lambda row: f"{row.axes['equation']}, {row.axes['version']}",
        colour=lambda row: tints[str(row.axes["version"])],
        title="Misprints: least printed, largest corrected",
    )
    return {"errors": beside(errors, misprints), "lambda": beside(*ratio_panels(result))}
