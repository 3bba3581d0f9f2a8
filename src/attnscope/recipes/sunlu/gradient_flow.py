"""Eq. 19 and 27: the terms that move polarity and attention scores, checked and weighed.

On random problems of every form the sum of the terms is compared with the exact rate of change by
automatic differentiation; the supplement's equations with a misprint are taken as printed too. At
the paper's initialisation, on the synthetic corpus, the terms are then weighed over λ: A fades, D
takes over. Nothing is trained.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field
from scipy import stats

from attnscope.analysis.intervals import Interval, mean_interval
from attnscope.claims.decide import verdict
from attnscope.claims.pool import Decision, Pool, undecided
from attnscope.data.corpus import training_batches
from attnscope.data.polarity_texts import PolarityTexts
from attnscope.recipes.recipe import Charts, Lab, Logged
from attnscope.recipes.sunlu.answers import rng
from attnscope.recipes.sunlu.flow_claims import lambda_terms
from attnscope.recipes.sunlu.flow_problems import (
    FORMS,
    MISPRINTS,
    Form,
    draw as draw_problem,
    exact,
    predicted,
    relative_error,
)
from attnscope.recipes.sunlu.units import SCALES, Scales, SunluConfig, Variant, model_of
from attnscope.runs.result import Measurement, Result, measured
from attnscope.runs.spec import Settings
from attnscope.theory.gradient_flow.classifier import classifier_flow
from attnscope.theory.gradient_flow.groups import group_row

if TYPE_CHECKING:
    import altair as alt

EXACT = 1e-9
# A misprint is caught if its error is above this on every problem; near λ = 1 it may be small.
_CAUGHT = 1e-6


class Config(Settings):
    """Settings of the check."""

    problems: int = Field(100, ge=1)  # of each form; milliseconds each
    seeds: int = Field(5, ge=1)  # initialisations whose terms are weighed
    scales: Scales = Field(SCALES, min_length=2)  # Table 2's
    texts: int = Field(2000, ge=2)  # of each label; 6000 give the same ratios


QUICK = {"problems": 20, "seeds": 3, "texts": 300}
HEADLINE = ("relative_error", "misprint_error", "rank_correlation", "F/E at the start")
RATIOS = {"A/(B+C)": ("A", ("B", "C")), "D/(E+F)": ("D", ("E", "F"))}


def measure(config: Config, lab: Lab) -> list[Measurement]:
    """Check the identities, catch the misprints, and weigh the terms over λ."""
    rows = [row for form in FORMS for row in _errors(form, config.problems)]
    rows += _misprints(config.problems)
    return [*rows, *_weighed(config)]


def _errors(form: Form, problems: int) -> list[Measurement]:
    """Return the largest relative error over the problems of a form."""
    errors: dict[str, list[float]] = {"polarity": [], "attention": [], "products": []}
    scales = []
    for seed in range(problems):
        problem = draw_problem(form, seed)
        scales.append(problem.scale)
        for name, right, found in zip(errors, exact(problem), predicted(problem), strict=True):
            errors[name].append(relative_error(found, right))
    told = {"smallest lambda": min(scales), "largest lambda": max(scales)}
    return [
        Measurement(
            name="relative_error",
            dataset="random problems",
            axes={"form": form.name, "of": name},
            found=told,
            value=max(values),
            n=problems,
        )
        for name, values in errors.items()
    ]


def _misprints(problems: int) -> list[Measurement]:
    """Return the errors of some equations as printed (the least) and corrected (the largest)."""
    rows = []
    for equation, form, rate, of in MISPRINTS:
        drawn = [draw_problem(form, seed) for seed in range(problems)]
        right = [getattr(exact(problem), of) for problem in drawn]
        for version, pick in (("printed", min), ("corrected", max)):
            printed = version == "printed"
            errors = [
                relative_error(rate(problem, printed=printed), truth)
                for problem, truth in zip(drawn, right, strict=True)
            ]
            rows.append(
                Measurement(
                    name="misprint_error",
                    dataset="random problems",
                    axes={"equation": equation, "version": version},
                    found={"median": float(np.median(errors))},
                    value=pick(errors),
                    n=problems,
                )
            )
    return rows


def _weighed(config: Config) -> list[Measurement]:
    source = PolarityTexts(positives=config.texts, negatives=config.texts)
    batches = training_batches(source)
    logs = []
    for seed in range(config.seeds):
        by_scale = {}
        for scale in config.scales:
            model = model_of(SunluConfig(), Variant("DP", scale)).build(source, seed).eval()
            by_scale[scale] = group_row(*classifier_flow(model, batches), source.groups)
        logs.append(by_scale)
    seeds = tuple(range(config.seeds))
    return weighed_rows(source.dataset, logs, seeds, "start")


def weighed_rows(
    dataset: str,
    logs: Sequence[dict[float, Any]],
    seeds: Sequence[int],
    when: str,
    prefix: str = "",
) -> list[Measurement]:
    """Return the ratios of the terms' sizes over λ, and their rank correlation with it by seed.

    Parameters
    ----------
    logs
        For each seed the quantities of gradient flow by group at each λ, as `group_row` has them.
    when
        ``start``, or when in training.
    prefix
        What the quantities' names start with.
    """
    rows = []
    scales = sorted(logs[0])
    axes: dict[str, Any]
    for name, (above, below) in RATIOS.items():
        table = np.array([[_ratio(log[x], above, below, prefix) for x in scales] for log in logs])
        for scale, column in zip(scales, table.T, strict=True):
            axes = {"ratio": name, "lambda": scale, "when": when}
            rows.append(measured("ratio", dataset, mean_interval(column, rng=rng()), axes, seeds))
        for seed, line in zip(seeds, table, strict=True):
            rank = float(stats.spearmanr(scales, line).statistic)
            axes = {"ratio": name, "when": when}
            point = Interval(rank, np.nan, np.nan, len(scales))
            rows.append(measured("rank_correlation", dataset, point, axes, (seed,)))
    if when == "start":
        for scale in scales:
            shares = [_ratio(log[scale], "F", ("E",), prefix) for log in logs]
            interval, axes = mean_interval(shares, rng=rng()), {"lambda": scale, "when": when}
            rows.append(measured("F/E at the start", dataset, interval, axes, seeds))
    return rows


def _ratio(row: dict[str, float], above: str, below: Sequence[str], prefix: str) -> float:
    """Return the size of a term over that of others, polar words of both labels alike."""

    def size(term: str) -> float:
        return sum(row[f"{prefix}{term}.{group}.size"] for group in ("negative", "positive"))

    return size(above) / sum(size(term) for term in below)


def draw(result: Result, units: Sequence[Logged]) -> Charts:
    """Draw the errors of every form and misprint, and the terms' weights over λ."""
    from attnscope.figures.charts import beside

    return {
        "errors": beside(_error_panel(result), _misprint_panel(result)),
        "lambda": beside(*ratio_panels(result)),
    }


def _error_panel(result: Result) -> alt.LayerChart:
    from attnscope.figures.charts import Axis, dots_with_intervals
    from attnscope.figures.palette import ROLES

    rows = [row for row in result.select("relative_error") if row.axes["of"] != "products"]
    lines = [
        {"label": f"{row.axes['form']}: {row.axes['of']}", "value": row.value, **_NO_ENDS}
        for row in rows
    ]
    axis = Axis(
        "largest relative error", "log", (1e-17, 1.0), (1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 1), "~e"
    )
    colours = {line["label"]: ROLES["control"] for line in lines}
    return dots_with_intervals(
        lines, axis, label="label", colours=colours, title="Sum of the terms"
    )


_NO_ENDS: dict[str, Any] = {"low": None, "high": None, "published": None}


def _misprint_panel(result: Result) -> alt.LayerChart:
    from attnscope.figures.charts import Axis, dots_with_intervals
    from attnscope.figures.palette import ROLES

    rows = result.select("misprint_error")
    lines = [
        {"label": f"{row.axes['equation']}, {row.axes['version']}", "value": row.value, **_NO_ENDS}
        for row in rows
    ]
    tints = {"printed": ROLES["hard"], "corrected": ROLES["control"]}
    colours = {
        line["label"]: tints[str(row.axes["version"])]
        for line, row in zip(lines, rows, strict=True)
    }
    axis = Axis("relative error", "log", (1e-17, 10.0), (1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 1), "~e")
    return dots_with_intervals(
        lines,
        axis,
        label="label",
        colours=colours,
        title="Misprints: least printed, largest corrected",
    )


def ratio_panels(result: Result) -> list[alt.LayerChart]:
    """Draw both ratios over λ, a curve for each data set and time."""
    from attnscope.figures.charts import Axis, Panel, band
    from attnscope.figures.palette import NEUTRAL, ROLES

    panels = []
    for name in RATIOS:
        rows = [row for row in result.select("ratio", ratio=name) if row.value]
        groups = list(dict.fromkeys(f"{row.dataset}, {row.axes['when']}" for row in rows))
        tints = (NEUTRAL, ROLES["control"], ROLES["hard"], ROLES["mixed"])
        lines = [
            {
                "lambda": row.axes["lambda"],
                "group": f"{row.dataset}, {row.axes['when']}",
                **row.model_dump(include={"value", "low", "high"}),
            }
            for row in rows
        ]
        scales = sorted({float(row.axes["lambda"]) for row in rows})
        ticks = [
            x for x in (0.001, 0.1, 1.0, 10.0, 100.0, 10_000.0) if scales[0] <= x <= scales[-1]
        ]
        panel = Panel(
            Axis("scaling factor λ", "log", (scales[0], scales[-1]), ticks, "~g"),
            Axis(f"mean {_spoken(name)}", "log", format="~e"),
            dict(zip(groups, tints, strict=False)),
            title=_spoken(name),
            width=230,
        )
        panels.append(band(lines, panel, x="lambda", group="group"))
    return panels


def _spoken(ratio: str) -> str:
    above, _, below = ratio.partition("/")
    first, second = below.strip("()").split("+")
    return f"|{above}| / (|{first}| + |{second}|)"


def terms(pool: Pool) -> Decision:
    """Decide sunlu.terms: every form exact to 1e-9; the misprints beside."""
    rows = pool.select("relative_error")
    forms = {str(row.axes["form"]) for row in rows}
    evidence: dict[str, Any] = {
        str(form): f"{max(row.value or 0.0 for row in rows if row.axes['form'] == form):.1e}"
        for form in sorted(forms)
    }
    for row in pool.select("misprint_error"):
        key = f"{row.axes['equation']}, {row.axes['version']}"
        evidence[key] = f"{row.value:.1e}" if row.value is not None else "not measured"
    if forms < {form.name for form in FORMS} or min(row.n for row in rows) < pool.needed(20):
        return undecided("needs twenty problems of every form", evidence)
    right = all(row.value is not None and row.value < EXACT for row in rows)
    printed = pool.select("misprint_error", version="printed")
    caught = all(row.value is not None and row.value > _CAUGHT for row in printed)
    note = "" if caught else "a misprint was not caught on every problem"
    deviation = "the affine and multi-class forms corrected, the additive one by the chain rule"
    return Decision(verdict(right, True), evidence, deviation, note)


CLAIMS = {"sunlu.terms": terms, "sunlu.lambda-terms": lambda_terms}
