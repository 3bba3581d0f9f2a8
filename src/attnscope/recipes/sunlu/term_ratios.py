"""The sizes of the gradient-flow terms relative to each other, over λ: measured and drawn.

At initialisation (`gradient_flow`) and through training on synthetic texts (`synthetic`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
from scipy import stats

from attnscope.figures.charts import Axis, Panel
from attnscope.figures.palette import NEUTRAL, ROLES
from attnscope.recipes.kit import plots
from attnscope.recipes.kit.sheet import Sheet
from attnscope.runs.result import Measurement, Result

RATIOS = {"A/(B+C)": ("A", ("B", "C")), "D/(E+F)": ("D", ("E", "F"))}
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
            Axis(f"mean {_spelled(name)}", "log", format="~e"),
            dict(zip(groups, _TINTS, strict=False)),
            title=_spelled(name),
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
