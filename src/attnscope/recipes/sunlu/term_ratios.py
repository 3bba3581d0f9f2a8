"""The sizes of the gradient-flow terms relative to each other, over λ: measured, decided, drawn.

At initialisation (`gradient_flow`) and through training on synthetic texts (`synthetic`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
from scipy import stats

from attnscope.claims.decide import Verdict, all_of, verdict
from attnscope.claims.table import Cell, Cells, Claim, Finding, Needs, NotMeasured
from attnscope.figures.charts import Axis, Panel
from attnscope.figures.palette import NEUTRAL, ROLES
from attnscope.recipes.kit import plots
from attnscope.recipes.kit.sheet import Sheet
from attnscope.recipes.sunlu.units import SYNTHETIC_SIZES
from attnscope.runs.result import Measurement, Result

RATIOS = {"A/(B+C)": ("A", ("B", "C")), "D/(E+F)": ("D", ("E", "F"))}
# The predicted change of each ratio as λ grows.
_SIGNS = {"A/(B+C)": -1.0, "D/(E+F)": 1.0}
# F counts as 0 at the start if it is less than this part of E, at λ = √d. (Where attention is all
# on one word, as at λ = .001, E is about 0 itself and says nothing of F.)
_START, _ROOT = 0.1, 10.0
_PROBLEMS: dict[str, float] = {"problems": 20}
_TICKS = (0.001, 0.1, 1.0, 10.0, 100.0, 10_000.0)
_TINTS = (NEUTRAL, ROLES["control"], ROLES["hard"], ROLES["mixed"])


def ratio_rows(
    dataset: str,
    logs: Sequence[Mapping[float, Mapping[str, Any]]],
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
        The beginning of the quantities' names.
    """
    sheet, scales = Sheet(dataset, seeds=range(len(logs))), sorted(logs[0])
    rows = []
    for name, (above, below) in RATIOS.items():
        axes = {"ratio": name, "when": when}
        table = np.array([[_ratio(log[x], above, below, prefix) for x in scales] for log in logs])
        for scale, column in zip(scales, table.T, strict=True):
            rows.append(sheet.mean("ratio", column, {"ratio": name, "lambda": scale, "when": when}))
        for seed, line in enumerate(table):
            rank = float(stats.spearmanr(scales, line).statistic)
            rows.append(sheet.point("rank_correlation", rank, axes, len(scales), seeds=(seed,)))
    if when == "start":
        for scale in scales:
            shares = [_ratio(log[scale], "F", ("E",), prefix) for log in logs]
            rows.append(sheet.mean("F/E at the start", shares, {"lambda": scale, "when": when}))
    return rows


def _ratio(row: Mapping[str, float], above: str, below: Sequence[str], prefix: str) -> float:
    """Return the size of a term over that of others, polar words of both labels alike."""

    def size(term: str) -> float:
        return sum(row[f"{prefix}{term}.{group}.size"] for group in ("negative", "positive"))

    return size(above) / sum(size(term) for term in below)


def _as_predicted(cell: Cell) -> Finding:
    """Check that A fades and D takes over as λ grows, and that F is about 0 at the start."""
    parts: list[Verdict] = []
    evidence: dict[str, Any] = {}
    for ratio, sign in _SIGNS.items():
        # One value of λ has no rank.
        rows = cell.select("rank_correlation", ratio=ratio)
        values = [row.value for row in rows if row.value is not None]
        if not values:
            raise NotMeasured("rank_correlation")
        right = sum(sign * value > 0 for value in values)
        evidence[ratio] = (
            f"rank correlation with λ {min(values):.2f} to {max(values):.2f}, "
            f"{right} of {len(values)} seeds as predicted"
        )
        parts.append(verdict(right == len(values), True))
    for row in cell.select("F/E at the start"):
        scale = float(row.axes["lambda"])
        evidence[f"F/E, λ = {scale:g}"] = row
        if scale == _ROOT:
            parts.append(verdict(row.number < _START, row.number >= _START))
    return Finding(all_of(parts), evidence)


LAMBDA_TERMS = Claim(
    Cells("rank_correlation", ("dataset", "when")),
    (_as_predicted,),
    Needs(
        3,
        {"sunlu/gradient-flow": _PROBLEMS, "sunlu/synthetic": SYNTHETIC_SIZES},
        each={"when": ("start",)},
    ),
    note=f"F counts as 0 at the start where mean |F| is below {_START:g} of mean |E| at λ = √d",
)


# The score whose rate each ratio's terms add up to.
_MOVED = {"A": "Terms of polarity", "D": "Terms of attention scores"}


def ratio_panels(result: Result) -> list[alt.LayerChart]:
    """Draw both ratios over λ, a curve for each data set and time."""
    panels = []
    for name in RATIOS:
        rows = [row for row in result.select("ratio", ratio=name) if row.value]
        groups = list(dict.fromkeys(map(_group, rows)))
        scales = sorted(plots.axis_values(rows, "lambda"))
        ticks = [x for x in _TICKS if scales[0] <= x <= scales[-1]]
        panel = Panel(
            Axis("scaling factor λ", "log", (scales[0], scales[-1]), ticks, "~g"),
            Axis(f"mean ratio, {_spelled(name)}", "log", format="~e"),
            dict(zip(groups, _TINTS, strict=False)),
            title=f"{_MOVED[name[0]]}: {_spelled(name)}",
            width=230,
        )
        panels.append(plots.band(rows, panel, x="lambda", group=_group))
    return panels


def _group(row: Measurement) -> str:
    return f"{row.dataset}, {row.axes['when']}"


def _spelled(ratio: str) -> str:
    above, _, below = ratio.partition("/")
    first, second = below.strip("()").split("+")
    return f"|{above}| / (|{first}| + |{second}|)"
